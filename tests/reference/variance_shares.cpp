// How much of the variance bound honest kernels use:
//
//   variance_shares                    the table of docs/bound.md, by input family
//   variance_shares fuzz FIRST COUNT   COUNT drawn cases from seed FIRST on, every honest kernel
//   variance_shares repeated FIRST COUNT   one key over and over, in COUNT variants of each kind
//
// Exit status 1 when an honest result is not accepted.

#include "reference/fast.hpp"
#include "reference/peer_prefill.hpp"
#include "tests/reference/honest_kernel.hpp"
#include "tests/reference/input_families.hpp"
#include "tests/reference/repeated_keys.hpp"
#include "tests/reference/z_scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

namespace kda::tests {
namespace {

using reference::Formats;

/// Worst of several results, medians and RMS averaged.
struct Share {
  double median = 0;
  double rms = 0;
  double max = 0;
  int count = 0;

  void add(const ZScores& z) {
    median += z.median;
    rms += z.rms;
    max = std::max(max, z.max);
    ++count;
  }
  [[nodiscard]] std::string text() const {
    const auto percent = [](double z) {
      return std::to_string(static_cast<int>(std::lround(100 * z / kElementLimit)));
    };
    return percent(median / count) + "/" + percent(rms / count) + "/" + percent(max);
  }
};

struct Honest {
  std::string name;
  Formats formats;
  std::optional<HonestKernel> kernel;  ///< absent: the peer of the prefill kernel
  reference::PeerFormats peer{};

  /// Holds operands in f16, and values that f16 does not hold come out as infinities or zeros.
  [[nodiscard]] bool f16() const {
    return kernel ? kernel->operands == Round::kF16 : peer.S == reference::OperandFormat::kF16;
  }
};

std::vector<Honest> honest() {
  std::vector<Honest> all;
  for (const HonestKernel& kernel : honest_kernels()) {
    all.push_back({.name = kernel.name, .formats = formats_of(kernel), .kernel = kernel});
  }
  const Formats bf16 = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  all.push_back({.name = "prefill peer, mixed",
                 .formats = bf16,
                 .kernel = {},
                 .peer = reference::kPeerMixed});
  all.push_back(
      {.name = "prefill peer, bf16", .formats = bf16, .kernel = {}, .peer = reference::kPeerBf16});
  return all;
}

struct Results {
  int judged = 0;
  int ill_conditioned = 0;  ///< the bound is too wide to judge anything
  int range = 0;            ///< not finite, from f16 operands beyond their range
  int alarms = 0;
};

class Judge {
 public:
  Judge(const KdaInputs& inputs, std::string what)
      : what_(std::move(what)),
        problem_(inputs.problem()),
        semantics_(inputs.semantics()),
        exact_(reference::fast(problem_, semantics_, {.threads = 1, .instructions = {}})) {}

  /// Absent when the result is out of the range of f16.
  std::optional<ZReport> judge(const Honest& honest, Results& results) {
    Formats formats = honest.formats;
    Outputs got;
    if (honest.kernel) {
      got = run(*honest.kernel, problem_, semantics_);
    } else {
      got = reference::peer_prefill(problem_, semantics_, honest.peer);
      formats.output = reference::rounding_of(problem_.v.dtype);
    }
    const ZReport report = z_scores(got, exact_, sigma(formats), semantics_);
    if (honest.f16() && report.o.non_finite + report.final_state.non_finite > 0) {
      ++results.range;
      return {};
    }
    if (!judgeable(exact_.o, sigma(formats).o) ||
        !judgeable(*exact_.final_state, *sigma(formats).final_state)) {
      ++results.ill_conditioned;
      return {};
    }
    ++results.judged;
    if (!report.accepted()) {
      ++results.alarms;
      std::cerr << "ALARM " << what_ << ", " << honest.name << "\n  o " << report.o.text()
                << "\n  final_state " << report.final_state.text() << "\n  h " << report.h.text()
                << "\n";
    }
    return report;
  }

  [[nodiscard]] const Semantics& semantics() const { return semantics_; }

 private:
  const reference::Deviations& sigma(const Formats& formats) {
    const auto known = std::find(formats_.begin(), formats_.end(), formats);
    if (known != formats_.end()) {
      return sigmas_[static_cast<std::size_t>(known - formats_.begin())];
    }
    formats_.push_back(formats);
    sigmas_.push_back(
        reference::deviations(problem_, semantics_, formats, {.threads = 1, .instructions = {}}));
    return sigmas_.back();
  }

  /// False when the RMS of sigma is over a tenth of the RMS of the values: the harness does not
  /// trust such a case either.
  static bool judgeable(const Tensor& exact, const Tensor& sigma) {
    double values = 0;
    double deviations = 0;
    for (std::int64_t i = 0; i < exact.size(); ++i) {
      const double deviation = load(sigma.view(), i);
      if (deviation == 0) continue;
      values += std::pow(load(exact.view(), i), 2);
      deviations += deviation * deviation;
    }
    return deviations <= 0.01 * values;
  }

  std::string what_;
  Problem problem_;
  Semantics semantics_;
  Outputs exact_;
  std::vector<Formats> formats_;
  std::vector<reference::Deviations> sigmas_;
};

/// The mixed peer states bf16 but scales its f16 operands for values of ordinary size only.
bool beyond_peer(const Honest& honest, const InputFamily& family) {
  return !honest.kernel && honest.f16() && family.name == "v x1e-20";
}

struct Shape {
  Extents extents;
  std::uint64_t seed;
};

int table() {
  const std::vector<Honest> all = honest();
  const std::vector<Shape> shapes{{{.T = 200, .H = 1, .HV = 2, .K = 64, .V = 64}, 1},
                                  {{.T = 130, .H = 2, .HV = 2, .K = 128, .V = 64}, 2},
                                  {{.T = 1000, .K = 32, .V = 32}, 3}};
  Results results;
  std::cout << "| family |";
  for (const Honest& kernel : all) std::cout << " " << kernel.name << " |";
  std::cout << "\n" << std::flush;
  for (const InputFamily& family : input_families()) {
    Results unused;
    Results& counted = family.limit ? unused : results;
    std::vector<Share> o(all.size());
    std::vector<Share> state(all.size());
    for (const Shape& shape : shapes) {
      const KdaInputs inputs = family.make(shape.extents, 1000 * shape.seed, Dtype::kBf16);
      Judge judge(inputs, std::string(family.name));
      for (std::size_t i = 0; i < all.size(); ++i) {
        if (beyond_peer(all[i], family)) continue;
        if (const auto report = judge.judge(all[i], counted)) {
          o[i].add(report->o);
          state[i].add(report->final_state);
        }
      }
    }
    std::cout << "| " << family.name << " |";
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::cout << " " << (o[i].count == 0 ? "-" : o[i].text() + ", " + state[i].text()) << " |";
    }
    std::cout << "\n" << std::flush;
  }
  std::cout << results.judged << " results, " << results.alarms << " alarms, " << results.range
            << " out of the range of f16, " << results.ill_conditioned << " ill-conditioned\n";
  return results.alarms == 0 ? 0 : 1;
}

int fuzz(std::uint64_t first, std::uint64_t count) {
  const std::vector<Honest> all = honest();
  Results results;
  double worst = 0;
  std::string where;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    const DrawnCase drawn = draw_case(seed);
    Judge judge(drawn.inputs,
                "seed " + std::to_string(seed) + ", " + std::string(drawn.family->name));
    for (const Honest& kernel : all) {
      if (!kernel.kernel && judge.semantics().chunk != 64) continue;
      if (beyond_peer(kernel, *drawn.family)) continue;
      if (const auto report = judge.judge(kernel, results)) {
        const double most = std::max({report->o.max, report->final_state.max, report->h.max});
        if (most <= worst) continue;
        worst = most;
        where = "seed " + std::to_string(seed) + ", " + std::string(drawn.family->name) + ", " +
                kernel.name;
      }
    }
  }
  std::cout << count << " cases, " << results.judged << " results, " << results.alarms
            << " alarms, " << results.range << " out of the range of f16, "
            << results.ill_conditioned << " ill-conditioned, largest |z| " << worst << ": " << where
            << "\n";
  return results.alarms == 0 ? 0 : 1;
}

/// Kinds of repeated keys, the one that was found first at the head.
std::vector<RepeatedKeys> repeated_kinds() {
  std::vector<RepeatedKeys> kinds{{}};
  for (const double beta : {0.02, 0.1, 0.3, 0.5, 1.0, 1.5}) {
    kinds.push_back({.beta = beta});
    kinds.push_back({.T = 300, .V = 16, .beta = beta, .initial_state = true});
  }
  for (const std::int64_t K : {1, 16, 128}) kinds.push_back({.K = K, .V = 16});
  kinds.push_back({.T = 600, .V = 16});
  kinds.push_back({.constant_gate = true});
  kinds.push_back({.beta = 0.1, .constant_gate = true});
  kinds.push_back({.query_is_key = false});
  kinds.push_back({.beta = 0.3, .query_is_key = false});
  kinds.push_back({.initial_state = true});
  kinds.push_back({.period = 2});
  kinds.push_back({.beta = 0.2, .period = 2});
  kinds.push_back({.T = 600, .V = 16, .beta = 0.6, .turn = 80});
  return kinds;
}

int repeated(std::uint64_t first, std::uint64_t count) {
  Results all;
  for (const RepeatedKeys& kind : repeated_kinds()) {
    std::cout << kind.text() << "\n";
    for (const Honest& kernel : honest()) {
      Results results;
      Share o;
      Share state;
      for (std::uint64_t seed = first; seed < first + count; ++seed) {
        const Dtype dtype = kernel.f16() && kernel.kernel ? Dtype::kF16 : Dtype::kBf16;
        const KdaInputs inputs = make(kind, 100 * seed, dtype);
        Judge judge(inputs, kind.text() + ", seed " + std::to_string(seed));
        if (const auto report = judge.judge(kernel, results)) {
          o.add(report->o);
          state.add(report->final_state);
        }
      }
      all.alarms += results.alarms;
      all.judged += results.judged;
      std::cout << "  " << kernel.name << ": " << results.alarms << " alarms of " << results.judged
                << (o.count == 0 ? "" : ", " + o.text() + ", " + state.text()) << "\n"
                << std::flush;
    }
  }
  std::cout << all.judged << " results, " << all.alarms << " alarms\n";
  return all.alarms == 0 ? 0 : 1;
}

}  // namespace
}  // namespace kda::tests

int main(int argc, char** argv) {
  if (argc == 1) return kda::tests::table();
  if (argc == 4 && std::string(argv[1]) == "fuzz") {
    return kda::tests::fuzz(std::strtoull(argv[2], nullptr, 10),
                            std::strtoull(argv[3], nullptr, 10));
  }
  if (argc == 4 && std::string(argv[1]) == "repeated") {
    return kda::tests::repeated(std::strtoull(argv[2], nullptr, 10),
                                std::strtoull(argv[3], nullptr, 10));
  }
  std::cerr << "usage: variance_shares [fuzz|repeated FIRST COUNT]\n";
  return 2;
}
