#include "harness/compare/window.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kda::harness {
namespace {

constexpr std::int64_t kRowsAround = 1;
constexpr std::int64_t kColsAround = 2;

double element(const TensorView& view, std::int64_t row, std::int64_t col) {
  return load(view, row * view.strides[0] + col * view.strides[1]);
}

/// One row of one of the two arrays; the element itself in brackets.
std::string row_text(const Window& window, const std::vector<double>& values, std::int64_t row) {
  std::string text;
  for (std::int64_t c = 0; c < window.cols; ++c) {
    const double value = values[static_cast<std::size_t>(row * window.cols + c)];
    const bool is_centre =
        window.first_row + row == window.centre_row && window.first_col + c == window.centre_col;
    text += fmt::format("{:>16}",
                        is_centre ? fmt::format("[{:.7g}]", value) : fmt::format("{:.7g}", value));
  }
  return text + '\n';
}

}  // namespace

std::string_view name(OutputKind kind) noexcept {
  switch (kind) {
    case OutputKind::kO: return "o";
    case OutputKind::kFinalState: return "final_state";
    case OutputKind::kH: return "h";
  }
  return "?";
}

std::string to_string(const Place& place) {
  std::string text = "(";
  if (place.chunk) text += fmt::format("chunk={}, ", *place.chunk);
  text += fmt::format("n={}", place.n);
  if (place.t) text += fmt::format(", t={}", *place.t);
  text += fmt::format(", hv={}", place.hv);
  if (place.k) text += fmt::format(", k={}", *place.k);
  return text + fmt::format(", v={})", place.v);
}

Window window_around(const TensorView& expected, const TensorView& got, std::int64_t row,
                     std::int64_t col) {
  Window window;
  window.first_row = std::max<std::int64_t>(0, row - kRowsAround);
  window.first_col = std::max<std::int64_t>(0, col - kColsAround);
  window.rows = std::min(expected.shape[0], row + kRowsAround + 1) - window.first_row;
  window.cols = std::min(expected.shape[1], col + kColsAround + 1) - window.first_col;
  window.centre_row = row;
  window.centre_col = col;
  for (std::int64_t r = window.first_row; r < window.first_row + window.rows; ++r) {
    for (std::int64_t c = window.first_col; c < window.first_col + window.cols; ++c) {
      window.expected.push_back(element(expected, r, c));
      window.got.push_back(element(got, r, c));
    }
  }
  return window;
}

std::string to_text(const Window& window, OutputKind kind) {
  const std::string_view row_name = kind == OutputKind::kO ? "t" : "k";
  std::string text = fmt::format("{:>18}", "");
  for (std::int64_t c = 0; c < window.cols; ++c) {
    text += fmt::format("{:>16}", fmt::format("v={}", window.first_col + c));
  }
  text += '\n';
  for (std::int64_t r = 0; r < window.rows; ++r) {
    const std::string head = fmt::format("{}={}", row_name, window.first_row + r);
    text += fmt::format("{:>8}{:>10}", head, "expected") + row_text(window, window.expected, r);
    text += fmt::format("{:>8}{:>10}", "", "got") + row_text(window, window.got, r);
  }
  return text;
}

}  // namespace kda::harness
