#pragma once

#include "reference/types/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// The tensors that are judged.
enum class OutputKind : std::uint8_t { kO, kFinalState, kH };

/// "o", "final_state", "h".
[[nodiscard]] std::string_view name(OutputKind kind) noexcept;

/// An element by its indices, whatever the layout of the tensor:
/// o (n, t, hv, v), t counted from the start of the sequence; final_state (n, hv, k, v);
/// h (chunk, n, hv, k, v), chunk = row of h.
struct Place {
  OutputKind kind = OutputKind::kO;
  std::int64_t n = 0;                 ///< sequence
  std::int64_t hv = 0;                ///< value head
  std::int64_t v = 0;                 ///< value column
  std::optional<std::int64_t> t;      ///< o only
  std::optional<std::int64_t> k;      ///< states only
  std::optional<std::int64_t> chunk;  ///< h only
};

/// "(n=0, t=12, hv=3, v=5)".
[[nodiscard]] std::string to_string(const Place& place);

/// A few rows and columns of both arrays around an element. Rows are tokens of `o` or key channels
/// of a state, columns are value columns.
struct Window {
  std::int64_t first_row = 0;
  std::int64_t first_col = 0;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t centre_row = 0;  ///< as first_row counts
  std::int64_t centre_col = 0;
  std::vector<double> expected;  ///< [rows, cols]
  std::vector<double> got;       ///< [rows, cols]
};

/// Around (row, col) of two [rows, cols] views of equal shape; smaller at the borders.
[[nodiscard]] Window window_around(const TensorView& expected, const TensorView& got,
                                   std::int64_t row, std::int64_t col);

/// One line a row: expected, then got; the element itself in brackets.
[[nodiscard]] std::string to_text(const Window& window, OutputKind kind);

}  // namespace kda::harness
