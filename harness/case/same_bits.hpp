#pragma once

#include "reference/types/problem.hpp"

#include <cstddef>
#include <cstring>
#include <optional>

namespace kda::harness {

/// Equal bit for bit, with dtype and shape: NaN equals itself, -0 and +0 differ.
[[nodiscard]] inline bool same_bits(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         (a.bytes() == 0 ||
          std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0);
}

[[nodiscard]] inline bool same_bits(const std::optional<Tensor>& a,
                                    const std::optional<Tensor>& b) {
  return a.has_value() == b.has_value() && (!a || same_bits(*a, *b));
}

/// Name of the first tensor that differs; nullptr when none does.
[[nodiscard]] inline const char* difference(const Outputs& a, const Outputs& b) {
  if (!same_bits(a.o, b.o)) return "o";
  if (!same_bits(a.final_state, b.final_state)) return "final_state";
  return same_bits(a.h, b.h) ? nullptr : "h";
}

[[nodiscard]] inline bool same_bits(const Outputs& a, const Outputs& b) {
  return difference(a, b) == nullptr;
}

}  // namespace kda::harness
