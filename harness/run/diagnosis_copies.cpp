#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/probes.hpp"
#include "harness/run/diagnosis.hpp"

#include <cmath>
#include <limits>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Of the error: a fault that leaves more does not explain it.
constexpr double kMostLeft = 0.1;

double square(double x) { return x * x; }

/// A tensor of the result beside the exact one, block by block.
struct Pair {
  OutputKind kind;
  const Semantics& semantics;
  const Tensor& exact;
  const Tensor& got;
  std::int64_t first_head;

  [[nodiscard]] std::vector<Block> blocks() const {
    return blocks_of(kind, semantics, {exact, got}, first_head);
  }
};

/// Sum of (got - other)^2 over what is compared; infinite when something is not finite.
double distance2(const Pair& pair, const Tensor& other) {
  double sum = 0;
  for (const Block& block : blocks_of(pair.kind, pair.semantics, {other, pair.got})) {
    const std::vector<double> a = to_f64(block.expected);
    const std::vector<double> b = to_f64(block.got);
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (a[i] != b[i]) sum += square(b[i] - a[i]);
    }
  }
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

class Copies {
 public:
  Copies(const Pair& pair, std::vector<Suspect>& suspects)
      : pair_(pair), suspects_(suspects), error2_(distance2(pair, pair.exact)) {}

  void suspect_all() {
    if (!(error2_ > 0) || std::isinf(error2_)) return;
    for (const Probe probe : probes_of(pair_.kind)) {
      if (probe == Probe::kMean || probe == Probe::kHeadsRotated) continue;
      const auto copy = spoilt(probe, pair_.kind, pair_.semantics, pair_.exact);
      if (copy)
        suspect(fmt::format("{} is {}", name(pair_.kind), text(probe)), distance2(pair_, *copy));
    }
    if (pair_.kind == OutputKind::kO) suspect_shift();
    suspect_scale();
    suspect_heads();
  }

 private:
  static std::string_view text(Probe probe) {
    switch (probe) {
      case Probe::kZeros: return "all zeros";
      case Probe::kShifted: return "one token late: each has the output of the token before";
      case Probe::kColumnsReversed: return "stored with its value columns reversed";
      case Probe::kTransposed: return "transposed: key and value axes are exchanged";
      case Probe::kSlotsRotated: return "that of the next sequence or chunk";
      default: return name(probe);
    }
  }

  void suspect(std::string fault, double left2) {
    const double left = std::sqrt(left2 / error2_);
    if (left <= kMostLeft) suspects_.push_back({std::move(fault), left});
  }

  /// One token early. The last token has nothing after it.
  void suspect_shift() {
    double sum = 0;
    bool moved = false;
    for (const Block& block : pair_.blocks()) {
      const std::vector<double> exact = to_f64(block.expected);
      const std::vector<double> got = to_f64(block.got);
      const auto cols = static_cast<std::size_t>(block.cols());
      for (std::size_t i = 0; i + cols < exact.size(); ++i) {
        sum += square(got[i] - exact[i + cols]);
        moved = true;
      }
    }
    if (moved && std::isfinite(sum))
      suspect("o is one token early: each has the output of the token after", sum);
  }

  /// got = factor * exact, by least squares.
  void suspect_scale() {
    double cross = 0;
    double exact2 = 0;
    double got2 = 0;
    for (const Block& block : pair_.blocks()) {
      const std::vector<double> exact = to_f64(block.expected);
      const std::vector<double> got = to_f64(block.got);
      for (std::size_t i = 0; i < exact.size(); ++i) {
        cross += exact[i] * got[i];
        exact2 += square(exact[i]);
        got2 += square(got[i]);
      }
    }
    const double factor = cross / exact2;
    if (factor == 0 || !std::isfinite(factor)) return;
    suspect(fmt::format("{} is {:.4g} times the right one{}", name(pair_.kind), factor,
                        meaning_of(factor)),
            std::max(0.0, got2 - square(cross) / exact2));
  }

  [[nodiscard]] std::string meaning_of(double factor) const {
    const auto near = [factor](double other) { return std::abs(factor / other - 1) < 1e-2; };
    const auto K = static_cast<double>(pair_.semantics.K);
    if (near(-1)) return ": the sign is lost";
    if (near(1)) return "";  // so would be a scale of 1, left out or not
    if (near(1 / pair_.semantics.scale)) return ": the scale is left out";
    if (near(pair_.semantics.scale)) return ": the scale is applied twice";
    if (near(std::sqrt(K))) return " (sqrt K)";
    if (near(1 / std::sqrt(K))) return " (1 / sqrt K)";
    if (near(1 / std::log(2.0))) return " (1 / ln 2)";
    if (near(std::log(2.0))) return " (ln 2)";
    return "";
  }

  /// Each head of the result may be another head of the exact one.
  void suspect_heads() {
    const std::int64_t heads = pair_.semantics.HV;
    if (heads < 2 || heads > 64) return;
    const std::vector<Block> blocks = pair_.blocks();
    std::vector<std::int64_t> source(static_cast<std::size_t>(heads));
    double left2 = 0;
    bool moved = false;
    for (std::int64_t hv = 0; hv < heads; ++hv) {
      double best = std::numeric_limits<double>::infinity();
      for (std::int64_t other = 0; other < heads; ++other) {
        const double distance = head_distance2(blocks, hv, other, best);
        if (!(distance < best)) continue;
        best = distance;
        source[static_cast<std::size_t>(hv)] = other;
      }
      left2 += best;
      moved = moved || source[static_cast<std::size_t>(hv)] != hv;
    }
    if (!moved) return;
    std::string map;
    for (std::int64_t hv = 0; hv < heads; ++hv) {
      const std::int64_t from = source[static_cast<std::size_t>(hv)];
      if (from != hv)
        map += fmt::format("{}{} has the values of {}", map.empty() ? "" : ", ", hv, from);
    }
    suspect(fmt::format("{}: heads are mixed up: {}", name(pair_.kind), map), left2);
  }

  /// Between head `hv` of the result and head `other` of the exact one; stops beyond `enough`.
  [[nodiscard]] double head_distance2(const std::vector<Block>& blocks, std::int64_t hv,
                                      std::int64_t other, double enough) const {
    const auto heads = static_cast<std::size_t>(pair_.semantics.HV);
    double sum = 0;
    for (std::size_t i = 0; i < blocks.size() && sum < enough; i += heads) {
      const std::vector<double> exact =
          to_f64(blocks[i + static_cast<std::size_t>(other)].expected);
      const std::vector<double> got = to_f64(blocks[i + static_cast<std::size_t>(hv)].got);
      for (std::size_t e = 0; e < got.size(); ++e) sum += square(got[e] - exact[e]);
    }
    return sum;
  }

  const Pair& pair_;
  std::vector<Suspect>& suspects_;
  double error2_;
};

}  // namespace

void suspect_copies(const FailedResult& failed, std::vector<Suspect>& suspects) {
  for (const OutputKind kind : wanted_outputs(failed.semantics)) {
    const Tensor* got = comparable(kind, failed);
    if (got == nullptr) continue;
    const Pair pair{kind, failed.semantics, failed.standard.expected.at(std::string(name(kind))),
                    *got, failed.standard.first_head};
    Copies(pair, suspects).suspect_all();
  }
}

}  // namespace kda::harness
