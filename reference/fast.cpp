#include "reference/fast.hpp"

#include "reference/fast_head.hpp"
#include "reference/types/error.hpp"

#include <algorithm>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace kda::reference {
namespace {

const FastKernel& kernel(InstructionSet set) {
  switch (set) {
    case InstructionSet::kBaseline: return kFastBaseline;
    case InstructionSet::kAvx2: return kFastAvx2;
    case InstructionSet::kAvx512: return kFastAvx512;
  }
  return kFastBaseline;
}

/// One call, cut into heads and, where there are fewer heads than threads want, into parts of
/// heads: ranges of slices, each computed alike wherever and whenever it runs.
class Work {
 public:
  Work(const Problem& problem, const Semantics& semantics, const FastOptions& options,
       const HeadSink& sink)
      : semantics_(semantics),
        sink_(sink),
        kernel_(kernel(choose_instructions(options))),
        reader_(problem, semantics),
        heads_(semantics.N() * semantics.HV),
        slices_((semantics.V + kColumns - 1) / kColumns) {
    const std::int64_t processors = std::max(1U, std::thread::hardware_concurrency());
    const std::int64_t wanted = options.threads > 0 ? options.threads : processors;
    // Parts repeat the preparation of their head: only as many as keep the threads busy to the end.
    const bool enough_heads = wanted == 1 || heads_ >= 4 * wanted;
    parts_ = enough_heads ? 1 : std::min(slices_, (4 * wanted + heads_ - 1) / heads_);
    threads_ = std::min(wanted, heads_ * parts_);
  }

  void run() {
    std::vector<std::jthread> helpers;
    for (std::int64_t i = 1; i < threads_; ++i) helpers.emplace_back([this] { run_tasks(); });
    run_tasks();
    helpers.clear();  // joins
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  /// A head of which some part has begun.
  struct OpenHead {
    HeadResult result;
    std::int64_t parts_left;
  };
  struct Task {
    std::int64_t head;
    SliceRange slices;
    HeadResult* result;
  };

  void run_tasks() noexcept {
    try {
      FastHead head(reader_, semantics_, kernel_);
      while (const std::optional<Task> task = next_task()) {
        head.run(task->slices, *task->result);
        finish(task->head);
      }
    } catch (...) {
      const std::lock_guard lock(mutex_);
      if (!failure_) failure_ = std::current_exception();
      next_ = heads_ * parts_;  // nobody begins anything more
    }
  }

  std::optional<Task> next_task() {
    const std::lock_guard lock(mutex_);
    if (next_ == heads_ * parts_) return {};
    const std::int64_t head = next_ / parts_;
    const std::int64_t part = next_ % parts_;
    ++next_;
    std::unique_ptr<OpenHead>& open = open_[head];
    if (!open) open = make_head(head);
    const SliceRange slices{part * slices_ / parts_, (part + 1) * slices_ / parts_};
    return Task{head, slices, &open->result};
  }

  [[nodiscard]] std::unique_ptr<OpenHead> make_head(std::int64_t head) const {
    const std::int64_t n = head / semantics_.HV;
    const std::int64_t length = semantics_.sequences[static_cast<std::size_t>(n)].length();
    const std::int64_t chunks = (length + semantics_.chunk - 1) / semantics_.chunk;
    const auto state_size = static_cast<std::size_t>(semantics_.K * semantics_.V);
    HeadResult result{.n = n, .hv = head % semantics_.HV, .o = {}, .final_state = {}, .h = {}};
    result.o.resize(static_cast<std::size_t>(length * semantics_.V));
    result.final_state.resize(state_size);
    if (semantics_.chunk_states) result.h.resize(static_cast<std::size_t>(chunks) * state_size);
    return std::make_unique<OpenHead>(OpenHead{std::move(result), parts_});
  }

  /// Hands the head over when this was its last part.
  void finish(std::int64_t head) {
    std::unique_ptr<OpenHead> done;
    {
      const std::lock_guard lock(mutex_);
      const auto open = open_.find(head);
      if (--open->second->parts_left > 0) return;
      done = std::move(open->second);
      open_.erase(open);
    }
    const std::lock_guard lock(sink_mutex_);
    sink_(done->result);
  }

  const Semantics& semantics_;
  const HeadSink& sink_;
  const FastKernel& kernel_;
  ActivatedReader reader_;
  std::int64_t heads_;
  std::int64_t slices_;
  std::int64_t parts_ = 1;
  std::int64_t threads_ = 1;

  std::mutex mutex_;  ///< guards what follows
  std::int64_t next_ = 0;
  std::map<std::int64_t, std::unique_ptr<OpenHead>> open_;
  std::exception_ptr failure_;
  std::mutex sink_mutex_;
};

std::vector<InstructionSet> detect() {
  std::vector<InstructionSet> sets{InstructionSet::kBaseline};
#if defined(__x86_64__)  // elsewhere the builtin does not exist
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
    sets.push_back(InstructionSet::kAvx2);
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
      sets.push_back(InstructionSet::kAvx512);
    }
  }
#endif
  return sets;
}

}  // namespace

std::string_view name(InstructionSet set) noexcept { return kernel(set).name; }

std::span<const InstructionSet> available_instruction_sets() {
  static const std::vector<InstructionSet> sets = detect();
  return sets;
}

InstructionSet choose_instructions(const FastOptions& options) {
  const std::span<const InstructionSet> available = available_instruction_sets();
  const InstructionSet wanted = options.instructions.value_or(available.back());
  if (std::ranges::find(available, wanted) == available.end()) {
    throw Error(ErrorCode::kUsage, "instruction set: expected one that this machine has, got " +
                                       std::string(name(wanted)));
  }
  return wanted;
}

void fast_by_head(const Problem& problem, const Semantics& semantics, const FastOptions& options,
                  const HeadSink& sink) {
  Work(problem, semantics, options, sink).run();
}

Outputs fast(const Problem& problem, const Semantics& semantics, const FastOptions& options) {
  Outputs out;
  out.o = Tensor(Dtype::kF64, semantics.o_shape());
  if (semantics.final_state) {
    out.final_state = Tensor(Dtype::kF64, semantics.state_shape(semantics.N()));
  }
  if (semantics.chunk_states) {
    out.h = Tensor(Dtype::kF64, semantics.state_shape(semantics.num_chunks));
  }
  const std::int64_t V = semantics.V;
  const std::int64_t state_size = semantics.K * V;
  fast_by_head(problem, semantics, options, [&](const HeadResult& head) {
    const Sequence& sequence = semantics.sequences[static_cast<std::size_t>(head.n)];
    const std::int64_t first = sequence.b * semantics.T + sequence.begin;
    for (std::int64_t t = 0; t < sequence.length(); ++t) {
      std::copy_n(head.o.data() + t * V, V,
                  out.o.as<double>() + ((first + t) * semantics.HV + head.hv) * V);
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
