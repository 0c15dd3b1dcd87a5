#include "harness/compare/probes.hpp"

#include "harness/compare/compare_blocks.hpp"

#include <array>

namespace kda::harness {
namespace {

constexpr std::array kOutputProbes{Probe::kZeros, Probe::kMean, Probe::kShifted,
                                   Probe::kHeadsRotated, Probe::kColumnsReversed};
constexpr std::array kStateProbes{Probe::kZeros, Probe::kTransposed, Probe::kHeadsRotated,
                                  Probe::kSlotsRotated};

double at(const TensorView& view, std::int64_t row, std::int64_t col) {
  return load(view, row * view.strides[0] + col * view.strides[1]);
}

double mean(const std::vector<Block>& blocks) {
  double sum = 0;
  std::int64_t count = 0;
  for (const Block& block : blocks) {
    for (const double x : to_f64(block.expected)) sum += x;
    count += block.rows() * block.cols();
  }
  return count > 0 ? sum / static_cast<double>(count) : 0;
}

/// Finds what stands in the place of an element.
class Source {
 public:
  Source(Probe probe, const Semantics& semantics, const std::vector<Block>& blocks)
      : probe_(probe),
        heads_(static_cast<std::size_t>(semantics.HV)),
        blocks_(blocks),
        mean_(probe == Probe::kMean ? mean(blocks) : 0) {}

  [[nodiscard]] double value(std::size_t i, std::int64_t row, std::int64_t col) const {
    const Block& block = blocks_[i];
    switch (probe_) {
      case Probe::kZeros: return 0;
      case Probe::kMean: return mean_;
      case Probe::kShifted: return at(block.expected, row > 0 ? row - 1 : block.rows() - 1, col);
      case Probe::kHeadsRotated:  // blocks count heads fastest
        return at(blocks_[i / heads_ * heads_ + (i + 1) % heads_].expected, row, col);
      case Probe::kColumnsReversed: return at(block.expected, row, block.cols() - 1 - col);
      case Probe::kTransposed: return at(block.expected, col, row);
      case Probe::kSlotsRotated:
        return at(blocks_[(i + heads_) % blocks_.size()].expected, row, col);
    }
    return 0;
  }

 private:
  Probe probe_;
  std::size_t heads_;
  const std::vector<Block>& blocks_;
  double mean_;
};

}  // namespace

std::string_view name(Probe probe) noexcept {
  switch (probe) {
    case Probe::kZeros: return "zeros";
    case Probe::kMean: return "the mean";
    case Probe::kShifted: return "shifted by a token";
    case Probe::kHeadsRotated: return "heads rotated";
    case Probe::kColumnsReversed: return "columns reversed";
    case Probe::kTransposed: return "transposed";
    case Probe::kSlotsRotated: return "sequences rotated";
  }
  return "?";
}

std::span<const Probe> probes_of(OutputKind kind) noexcept {
  if (kind == OutputKind::kO) return kOutputProbes;
  return kStateProbes;
}

std::optional<Tensor> spoilt(Probe probe, OutputKind kind, const Semantics& semantics,
                             const Tensor& exact) {
  if (probe == Probe::kTransposed && semantics.K != semantics.V) return std::nullopt;
  const auto blocks = blocks_of(kind, semantics, {exact, exact});
  const Source source(probe, semantics, blocks);
  Tensor tensor(Dtype::kF64, exact.shape());
  bool differs = false;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    const Block& block = blocks[i];
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      for (std::int64_t col = 0; col < block.cols(); ++col) {
        const double value = source.value(i, row, col);
        differs = differs || value != at(block.expected, row, col);
        tensor.store(block.offset(row, col), value);
      }
    }
  }
  if (!differs) return std::nullopt;
  return tensor;
}

}  // namespace kda::harness
