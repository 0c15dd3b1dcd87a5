#include "reference/variance.hpp"

#include "reference/types/error.hpp"
#include "reference/variance_head.hpp"

#include <algorithm>
#include <exception>
#include <mutex>
#include <string>
#include <thread>

namespace kda::reference {
namespace {

const VarianceKernels& choose_kernels(const FastOptions& options) {
  static const VarianceKernels kBaseline{kVarianceBaseline, kNarrowVarianceBaseline};
  static const VarianceKernels kAvx2{kVarianceAvx2, kNarrowVarianceAvx2};
  static const VarianceKernels kAvx512{kVarianceAvx512, kNarrowVarianceAvx512};
  switch (choose_instructions(options)) {
    case InstructionSet::kBaseline: return kBaseline;
    case InstructionSet::kAvx2: return kAvx2;
    case InstructionSet::kAvx512: return kAvx512;
  }
  return kBaseline;
}

void check_block(const Formats& formats) {
  if (formats.block >= 0 && formats.block <= kMaxBoundBlock) return;
  throw Error(ErrorCode::kUsage, "formats.block: expected 0 ... " + std::to_string(kMaxBoundBlock) +
                                     ", got " + std::to_string(formats.block));
}

/// One call; threads take heads until there are none left.
class Work {
 public:
  Work(const Problem& problem, const Semantics& semantics, const Formats& formats,
       const FastOptions& options, const DeviationSink& sink)
      : problem_(problem),
        semantics_(semantics),
        formats_(formats),
        sink_(sink),
        kernels_(choose_kernels(options)),
        heads_(semantics.N() * semantics.HV) {
    const std::int64_t processors = std::max(1U, std::thread::hardware_concurrency());
    threads_ = std::min(options.threads > 0 ? options.threads : processors, heads_);
  }

  void run() {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < threads_; ++i) helpers.emplace_back([this] { run_heads(); });
    run_heads();
    helpers.clear();  // joins
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run_heads() noexcept {
    try {
      VarianceHead head(problem_, semantics_, formats_, kernels_);
      for (std::int64_t i = take(); i < heads_; i = take()) {
        const HeadDeviation result = head.run(i / semantics_.HV, i % semantics_.HV);
        const std::lock_guard lock(sink_mutex_);
        sink_(result);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = heads_;  // nobody begins anything more
    }
  }

  std::int64_t take() {
    const std::lock_guard lock(mutex_);
    return next_ < heads_ ? next_++ : heads_;
  }

  const Problem& problem_;
  const Semantics& semantics_;
  const Formats& formats_;
  const DeviationSink& sink_;
  const VarianceKernels& kernels_;
  std::int64_t heads_;
  std::int64_t threads_ = 1;

  std::mutex mutex_;  ///< guards what follows
  std::int64_t next_ = 0;
  std::exception_ptr failure_;
  std::mutex sink_mutex_;
};

}  // namespace

void deviations_by_head(const Problem& problem, const Semantics& semantics, const Formats& formats,
                        const FastOptions& options, const DeviationSink& sink) {
  check_block(formats);
  Work(problem, semantics, formats, options, sink).run();
}

HeadDeviation deviation_of_head(const Problem& problem, const Semantics& semantics,
                                const Formats& formats, std::int64_t n, std::int64_t hv) {
  check_block(formats);
  return VarianceHead(problem, semantics, formats, choose_kernels({})).run(n, hv);
}

Deviations deviations(const Problem& problem, const Semantics& semantics, const Formats& formats,
                      const FastOptions& options) {
  const std::int64_t V = semantics.V;
  const std::int64_t state_size = semantics.K * V;
  Deviations out;
  out.o = Tensor(Dtype::kF64, semantics.o_shape());
  out.keys.resize(static_cast<std::size_t>(semantics.B * semantics.T * semantics.HV));
  if (semantics.final_state) {
    out.final_state = Tensor(Dtype::kF64, semantics.state_shape(semantics.N()));
  }
  if (semantics.chunk_states) {
    out.h = Tensor(Dtype::kF64, semantics.state_shape(semantics.num_chunks));
  }
  deviations_by_head(problem, semantics, formats, options, [&](const HeadDeviation& head) {
    const Sequence& sequence = semantics.sequences[static_cast<std::size_t>(head.n)];
    for (std::int64_t t = 0; t < sequence.length(); ++t) {
      const std::int64_t row =
          (sequence.b * semantics.T + sequence.begin + t) * semantics.HV + head.hv;
      std::copy_n(head.o.data() + t * V, V, out.o.as<double>() + row * V);
      out.keys[static_cast<std::size_t>(row)] = head.keys[static_cast<std::size_t>(t)];
    }
    if (out.final_state) {
      store_state(head.final_state.data(), head.n, head.hv, semantics, *out.final_state);
    }
    const auto chunks = static_cast<std::int64_t>(head.h.size()) / state_size;
    for (std::int64_t c = 0; c < chunks; ++c) {
      store_state(head.h.data() + c * state_size, sequence.first_chunk + c, head.hv, semantics,
                  *out.h);
    }
  });
  return out;
}

}  // namespace kda::reference
