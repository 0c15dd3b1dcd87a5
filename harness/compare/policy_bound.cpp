#include "harness/compare/policy_bound.hpp"

#include <cmath>

namespace kda::harness {
namespace {

/// RMS of the relative error of rounding to nearest, in unit roundoffs, for mantissas spread evenly
/// on a log scale: sqrt(1/3) * sqrt(3 / (8 ln 2)).
constexpr double kRoundingRms = 0.4248;

/// Independent operand roundings on the way into one element of a chunk kernel: decayed key, score,
/// inverse, update as written, update (or query) as read again. Three of them (score, inverse,
/// update) act again on every earlier token that the key overlaps with.
constexpr double kOperandRoundings = 5;
constexpr double kOverlapRoundings = 15;

/// Every kernel accumulates and keeps its state in f32. A product of some hundred terms and the
/// exponentials of the gate cost a few unit roundoffs together; a constant gate repeats the same
/// error of exp(g), up to half a unit roundoff a token, and those add up linearly.
constexpr double kAccumulation = 8;
constexpr double kPerToken = 0.5;

double square(double x) { return x * x; }
double finite_or_0(double x) { return std::isfinite(x) ? x : 0; }

/// Below the normal range errors are absolute. Any format but f16 and f64 may flush below 2^-126;
/// f16 rounds to multiples of 2^-24.
double smallest_step(Dtype dtype) {
  switch (dtype) {
    case Dtype::kF16: return 0x1p-24;
    case Dtype::kF64: return 0;
    default: return 0x1p-126;
  }
}

/// Size of an element, split into a factor per row and one per column: value columns never mix,
/// and may differ by decades; rows differ by what was decayed, written or read.
struct Sizes {
  std::vector<double> row;  ///< relative to a typical row, 1 on RMS average
  std::vector<double> col;  ///< RMS of the column
};

Sizes sizes(std::span<const double> values, std::size_t cols) {
  const std::size_t rows = values.size() / cols;
  Sizes size{std::vector<double>(rows), std::vector<double>(cols)};
  for (std::size_t r = 0; r < rows; ++r) {
    for (std::size_t c = 0; c < cols; ++c) size.col[c] += square(finite_or_0(values[r * cols + c]));
  }
  std::size_t used = 0;  // columns that are not all zero
  for (double& column : size.col) {
    column = std::sqrt(column / static_cast<double>(rows));
    if (column > 0) ++used;
  }
  for (std::size_t r = 0; r < rows && used > 0; ++r) {
    double sum = 0;
    for (std::size_t c = 0; c < cols; ++c) {
      if (size.col[c] > 0) sum += square(finite_or_0(values[r * cols + c]) / size.col[c]);
    }
    size.row[r] = std::sqrt(sum / static_cast<double>(used));
  }
  return size;
}

}  // namespace

double unit_roundoff(Dtype dtype) noexcept {
  switch (dtype) {
    case Dtype::kBf16: return 0x1p-8;
    case Dtype::kF16: return 0x1p-11;
    case Dtype::kF32: return 0x1p-24;
    default: return 0x1p-53;
  }
}

std::vector<double> rounding_deviation(std::span<const double> expected,
                                       std::span<const double> terms, std::int64_t cols,
                                       double mixing, const Formats& formats) {
  const double operand = square(kRoundingRms * unit_roundoff(formats.operands));
  const double accumulation =
      square(unit_roundoff(Dtype::kF32) *
             (kAccumulation + kPerToken * static_cast<double>(formats.tokens)));
  const double storage = square(kRoundingRms) * (square(unit_roundoff(formats.result)) +
                                                 square(unit_roundoff(formats.expected)));
  const double floor = square(smallest_step(formats.operands)) +
                       square(smallest_step(formats.result)) + square(smallest_step(Dtype::kF32));

  const auto width = static_cast<std::size_t>(cols);
  const Sizes size = sizes(expected, width);
  std::vector<double> deviation(expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double overlap =
        formats.overlap.size() == 1 ? formats.overlap[0] : formats.overlap[i / width];
    const double operands = (kOperandRoundings + kOverlapRoundings * overlap) * operand;
    const double row2 = square(size.row[i / width]) + square(mixing);
    const double scale2 = square(size.col[i % width]) * row2 + square(terms[i]);
    deviation[i] = std::sqrt((operands + accumulation) * scale2 +
                             storage * square(finite_or_0(expected[i])) + floor);
  }
  return deviation;
}

}  // namespace kda::harness
