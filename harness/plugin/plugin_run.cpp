#include "harness/plugin/plugin_run.hpp"

#include "harness/case/named_outputs.hpp"
#include "harness/plugin/guarded_tensor.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::size_t kCodeBytes = 64;
constexpr std::size_t kTextBytes = 2048;

/// What one call of the plugin left behind.
struct CallResult {
  std::int32_t status = KDACHECK_OK;
  std::string code;
  std::string text;
  std::optional<PluginReply> memory_fault;
  std::map<std::string, Tensor> outputs;
};

/// The tensors and the struct of one call. Tensors do not move: the struct points to them.
class Call {
 public:
  Call(const Case& test_case, const std::optional<Semantics>& semantics, GuardFill fill,
       cuda::Device* device)
      : device_(device) {
    const auto& kda_case = std::get<KdaCase>(test_case.inputs);
    call_.size = sizeof(call_);
    op_ = name(test_case.op);
    call_.op = op_.c_str();
    add_inputs(kda_case, fill);
    set_options(kda_case);
    add_outputs(kda_case, semantics, fill);
    call_.code = code_.data();
    call_.code_size = code_.size();
    call_.text = text_.data();
    call_.text_size = text_.size();
  }

  CallResult run(const kdacheck_plugin& plugin) {
    CallResult result;
    if (device_ != nullptr) fetch();  // waits until all copies have arrived
    try {
      result.status = plugin.run(&call_);
    } catch (...) {
      result.status = KDACHECK_ERROR;
      *fmt::format_to_n(text_.data(), text_.size() - 1, "threw a C++ exception").out = 0;
    }
    fetch();
    code_.back() = 0;
    text_.back() = 0;
    result.code = code_.data();
    result.text = text_.data();
    result.memory_fault = memory_fault();
    for (const GuardedTensor* output : outputs_)
      result.outputs.emplace(output->name(), output->take());
    return result;
  }

 private:
  void add_inputs(const KdaCase& kda_case, GuardFill fill) {
    const auto input = [&](const char* name) -> const kdacheck_tensor* {
      const auto found = kda_case.inputs.find(name);
      if (found == kda_case.inputs.end()) return nullptr;
      tensors_.push_back(std::make_unique<GuardedTensor>(name, found->second, fill, device_));
      return tensors_.back()->view();
    };
    call_.q = input("q");
    call_.k = input("k");
    call_.v = input("v");
    call_.g = input("g");
    call_.beta = input("beta");
    call_.A_log = input("A_log");
    call_.dt_bias = input("dt_bias");
    call_.initial_state = input("initial_state");
    call_.cu_seqlens = input("cu_seqlens");
    if (const auto bounds = kda_case.inputs.find("cu_seqlens"); bounds != kda_case.inputs.end()) {
      bounds_.emplace("cu_seqlens (host)", bounds->second, fill, nullptr);
      call_.cu_seqlens_host = bounds_->view()->data;
    }
  }

  void set_options(const KdaCase& kda_case) {
    const Problem& options = kda_case.options;
    const Shape& q = kda_case.inputs.at("q").shape();
    call_.chunk_size = options.chunk_size;
    call_.scale =
        options.scale.value_or(q.empty() ? 1.0 : 1 / std::sqrt(static_cast<double>(q.back())));
    call_.lower_bound = options.lower_bound.value_or(0);
    call_.has_scale = options.scale.has_value() ? 1 : 0;
    call_.has_lower_bound = options.lower_bound.has_value() ? 1 : 0;
    call_.use_qk_l2norm_in_kernel = options.use_qk_l2norm_in_kernel ? 1 : 0;
    call_.use_gate_in_kernel = options.use_gate_in_kernel ? 1 : 0;
    call_.safe_gate = options.safe_gate ? 1 : 0;
    call_.use_beta_sigmoid_in_kernel = options.use_beta_sigmoid_in_kernel ? 1 : 0;
    call_.allow_neg_eigval = options.allow_neg_eigval ? 1 : 0;
    call_.state_v_first = options.state_v_first ? 1 : 0;
    call_.cp_context = options.cp_context ? 1 : 0;
    call_.disable_recompute = options.disable_recompute ? 1 : 0;
  }

  void add_outputs(const KdaCase& kda_case, const std::optional<Semantics>& semantics,
                   GuardFill fill) {
    const auto output = [&](const char* name, Dtype dtype, const Shape& shape) {
      tensors_.push_back(std::make_unique<GuardedTensor>(name, dtype, shape, fill, device_));
      outputs_.push_back(tensors_.back().get());
      return tensors_.back()->view();
    };
    const Tensor& v = kda_case.inputs.at("v");
    call_.o = output("o", v.dtype(), semantics ? semantics->o_shape() : v.shape());
    if (!semantics) return;
    if (semantics->final_state) {
      call_.final_state =
          output("final_state", Dtype::kF32, semantics->state_shape(semantics->N()));
    }
    if (semantics->chunk_states)
      call_.h = output("h", Dtype::kF32, semantics->state_shape(semantics->num_chunks));
  }

  void fetch() {
    for (const auto& tensor : tensors_) tensor->fetch();
  }

  [[nodiscard]] std::optional<PluginReply> memory_fault() const {
    std::vector<const GuardedTensor*> all;
    for (const auto& tensor : tensors_) all.push_back(tensor.get());
    if (bounds_) all.push_back(&*bounds_);
    for (const GuardedTensor* tensor : all) {
      if (const auto place = tensor->guard_change()) {
        return PluginReply{Verdict::kFailed, "wrote_outside",
                           fmt::format("wrote outside {}: {}", tensor->name(), *place)};
      }
      if (const auto element = tensor->input_change()) {
        return PluginReply{
            Verdict::kFailed, "input_changed",
            fmt::format("changed its input {}: element {}", tensor->name(), *element)};
      }
    }
    return std::nullopt;
  }

  cuda::Device* device_;
  std::string op_;
  std::vector<std::unique_ptr<GuardedTensor>> tensors_;
  std::vector<const GuardedTensor*> outputs_;
  std::optional<GuardedTensor> bounds_;
  std::array<char, kCodeBytes> code_{};
  std::array<char, kTextBytes> text_{};
  kdacheck_call call_{};
};

/// Rows of o beyond the last sequence may hold anything: they are made equal.
void clear_rows_of_no_sequence(const Semantics& semantics, Tensor& o) {
  if (semantics.B != 1) return;
  std::int64_t end = 0;
  for (const Sequence& sequence : semantics.sequences) end = std::max(end, sequence.end);
  const std::int64_t row = semantics.HV * semantics.V * size_of(o.dtype());
  std::memset(o.data() + end * row, 0, static_cast<std::size_t>((semantics.T - end) * row));
}

std::optional<std::int64_t> first_difference(const Tensor& a, const Tensor& b) {
  for (std::int64_t i = 0; i < a.bytes(); ++i) {
    if (a.data()[i] != b.data()[i]) return i / size_of(a.dtype());
  }
  return std::nullopt;
}

/// The element still holds what the memory was filled with.
bool is_fill(const Tensor& tensor, std::int64_t element, GuardFill fill) {
  const std::int64_t size = size_of(tensor.dtype());
  for (std::int64_t i = element * size; i < (element + 1) * size; ++i) {
    if (tensor.data()[i] != guard_byte(fill, tensor.dtype(), static_cast<std::size_t>(i)))
      return false;
  }
  return true;
}

struct Difference {
  std::string tensor;
  std::int64_t element;
  bool unwritten;
};

std::optional<Difference> difference(const CallResult& nan, const CallResult& large) {
  for (const auto& [name, a] : nan.outputs) {
    const Tensor& b = large.outputs.at(name);
    if (const auto element = first_difference(a, b)) {
      return Difference{
          name, *element,
          is_fill(a, *element, GuardFill::kNan) && is_fill(b, *element, GuardFill::kLarge)};
    }
  }
  return std::nullopt;
}

PluginReply reply_to(const CallResult& result) {
  switch (result.status) {
    case KDACHECK_OK: return {};
    case KDACHECK_REFUSED:
      return {.verdict = {},
              .code = result.code.empty() ? "refused" : result.code,
              .text = result.text};
    case KDACHECK_UNSUPPORTED:
      return {.verdict = Verdict::kUnsupported, .code = "unsupported", .text = result.text};
    case KDACHECK_UNAVAILABLE:
      return {.verdict = Verdict::kSkipped, .code = "unavailable", .text = result.text};
    case KDACHECK_ERROR:
      return {.verdict = Verdict::kFailed, .code = "plugin_error", .text = result.text};
    default:
      return {.verdict = Verdict::kMalformed,
              .code = "status_unknown",
              .text = fmt::format("wanted a kdacheck_status, got {}", result.status)};
  }
}

}  // namespace

PluginAnswer run_plugin_case(const kdacheck_plugin& plugin, const Case& test_case,
                             const OpenDevice& open) {
  const auto semantics = accepted(std::get<KdaCase>(test_case.inputs));
  const auto call = [&](GuardFill fill) {
    const auto device = plugin.memory == KDACHECK_CUDA ? open() : nullptr;
    CallResult result = Call(test_case, semantics, fill, device.get()).run(plugin);
    if (semantics) clear_rows_of_no_sequence(*semantics, result.outputs.at("o"));
    return result;
  };
  const auto fault = [](const char* code, const std::string& text) {
    return PluginAnswer{{Verdict::kFailed, code, text}, {}};
  };
  CallResult first = call(GuardFill::kNan);
  if (first.memory_fault) return {*first.memory_fault, {}};
  if (first.status != KDACHECK_OK) return {reply_to(first), {}};
  const CallResult second = call(GuardFill::kLarge);
  if (second.memory_fault) return {*second.memory_fault, {}};
  if (second.status != KDACHECK_OK) {
    return fault("not_repeatable",
                 "answers once, then gives status " + std::to_string(second.status));
  }
  const auto found = difference(first, second);
  if (!found || !semantics) return {{}, outputs_of(std::move(first.outputs))};
  const std::string place = fmt::format("{}: element {}", found->tensor, found->element);
  if (found->unwritten) return fault("output_unwritten", place + " was never written");
  const CallResult third = call(GuardFill::kNan);
  const bool repeats = third.status == KDACHECK_OK && !difference(first, third);
  if (repeats) {
    return fault("read_outside",
                 place + " depends on what lies outside the buffers or in unwritten outputs");
  }
  return fault("not_repeatable", place + " has other bits in a second run on the same inputs");
}

}  // namespace kda::harness
