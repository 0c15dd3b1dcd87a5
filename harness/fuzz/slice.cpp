#include "harness/fuzz/slice.hpp"

#include "harness/case/tensor_slice.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace kda::harness {
namespace {

Tensor reshaped(const Tensor& tensor, const Shape& shape) {
  Tensor other(tensor.dtype(), shape);
  std::memcpy(other.data(), tensor.data(), static_cast<std::size_t>(tensor.bytes()));
  return other;
}

/// Replaces a tensor, if it is there, by ranges of its axis.
void cut(KdaCase& part, const std::string& name, std::size_t axis,
         const std::vector<Range>& ranges) {
  const auto found = part.inputs.find(name);
  if (found != part.inputs.end()) found->second = slice(found->second, axis, ranges);
}

void cut_tokens(KdaCase& part, std::size_t axis, const std::vector<Range>& ranges) {
  for (const char* name : {"q", "k", "v", "g", "beta"}) cut(part, name, axis, ranges);
}

void cut_value_heads(KdaCase& part, const std::vector<Range>& ranges) {
  for (const char* name : {"v", "g", "beta"}) cut(part, name, 2, ranges);
  cut(part, "initial_state", 1, ranges);
  for (const char* name : {"A_log", "dt_bias"}) cut(part, name, 0, ranges);
}

/// A copy whose gate parameters, if used, have the shapes [HV] and [HV,K].
KdaCase copy_of(const KdaCase& kda_case) {
  KdaCase part = kda_case;
  const bool used = kda_case.options.use_gate_in_kernel;
  const Shape& g = kda_case.inputs.at("g").shape();
  for (const auto& [name, shape] :
       {std::pair<const char*, Shape>{"A_log", {g[2]}}, {"dt_bias", {g[2], g[3]}}}) {
    const auto found = part.inputs.find(name);
    if (found == part.inputs.end()) continue;
    if (used) {
      found->second = reshaped(found->second, shape);
    } else {
      part.inputs.erase(found);
    }
  }
  return part;
}

void set_bounds(KdaCase& part, const std::vector<std::int64_t>& lengths) {
  Tensor bounds(part.inputs.at("cu_seqlens").dtype(),
                {static_cast<std::int64_t>(lengths.size()) + 1});
  std::int64_t sum = 0;
  for (std::size_t n = 0; n <= lengths.size(); ++n) {
    if (bounds.dtype() == Dtype::kI32) {
      bounds.as<std::int32_t>()[n] = static_cast<std::int32_t>(sum);
    } else {
      bounds.as<std::int64_t>()[n] = sum;
    }
    if (n < lengths.size()) sum += lengths[n];
  }
  part.inputs["cu_seqlens"] = std::move(bounds);
}

bool is_packed(const KdaCase& kda_case) { return kda_case.inputs.count("cu_seqlens") > 0; }

}  // namespace

KdaCase keep_sequences(const KdaCase& kda_case, std::int64_t first, std::int64_t count) {
  KdaCase part = copy_of(kda_case);
  cut(part, "initial_state", 0, {{first, count}});
  if (!is_packed(kda_case)) {
    cut_tokens(part, 0, {{first, count}});
    return part;
  }
  const Semantics s = check(kda_case.contract, kda_case.problem());
  std::vector<std::int64_t> lengths;
  for (std::int64_t n = first; n < first + count; ++n)
    lengths.push_back(s.sequences[static_cast<std::size_t>(n)].length());
  const std::int64_t begin = s.sequences[static_cast<std::size_t>(first)].begin;
  const std::int64_t end = s.sequences[static_cast<std::size_t>(first + count - 1)].end;
  cut_tokens(part, 1, {{begin, end - begin}});
  set_bounds(part, lengths);
  return part;
}

std::optional<KdaCase> keep_tokens(const KdaCase& kda_case, std::int64_t skip, std::int64_t count) {
  KdaCase part = copy_of(kda_case);
  if (!is_packed(kda_case)) {
    const std::int64_t left = kda_case.inputs.at("q").shape()[1] - skip;
    if (left <= 0) return std::nullopt;
    cut_tokens(part, 1, {{skip, std::min(count, left)}});
    return part;
  }
  std::vector<Range> ranges;
  std::vector<std::int64_t> lengths;
  for (const Sequence& s : check(kda_case.contract, kda_case.problem()).sequences) {
    const std::int64_t kept = std::min(count, s.length() - skip);
    if (kept <= 0) return std::nullopt;
    ranges.push_back({s.begin + skip, kept});
    lengths.push_back(kept);
  }
  cut_tokens(part, 1, ranges);
  set_bounds(part, lengths);
  return part;
}

KdaCase keep_heads(const KdaCase& kda_case, std::int64_t first, std::int64_t count) {
  KdaCase part = copy_of(kda_case);
  const std::int64_t group =
      kda_case.inputs.at("v").shape()[2] / kda_case.inputs.at("q").shape()[2];
  for (const char* name : {"q", "k"}) cut(part, name, 2, {{first, count}});
  cut_value_heads(part, {{first * group, count * group}});
  return part;
}

KdaCase keep_value_heads(const KdaCase& kda_case, std::int64_t first, std::int64_t count) {
  KdaCase part = copy_of(kda_case);
  const std::int64_t H = kda_case.inputs.at("q").shape()[2];
  const std::int64_t group = kda_case.inputs.at("v").shape()[2] / H;
  std::vector<Range> kept;
  for (std::int64_t h = 0; h < H; ++h) kept.push_back({h * group + first, count});
  cut_value_heads(part, kept);
  return part;
}

KdaCase keep_channels(const KdaCase& kda_case, std::int64_t first, std::int64_t count,
                      std::int64_t first_v, std::int64_t count_v) {
  KdaCase part = copy_of(kda_case);
  const bool v_first = kda_case.options.state_v_first;
  for (const char* name : {"q", "k", "g"}) cut(part, name, 3, {{first, count}});
  cut(part, "dt_bias", 1, {{first, count}});
  cut(part, "v", 3, {{first_v, count_v}});
  cut(part, "initial_state", v_first ? 3 : 2, {{first, count}});
  cut(part, "initial_state", v_first ? 2 : 3, {{first_v, count_v}});
  return part;
}

}  // namespace kda::harness
