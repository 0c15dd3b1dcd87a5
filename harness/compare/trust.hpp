#pragma once

#include "harness/compare/compare.hpp"
#include "harness/compare/compare_tensor.hpp"
#include "harness/compare/probes.hpp"

#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace kda::harness {

/// Why a comparison proves nothing, whatever it says.
struct Doubt {
  std::string code;    ///< "probe_passed", "ill_conditioned", ...: see Trust
  std::string detail;  ///< one line
};

/// Whether a case can tell a wrong result from a right one, for one policy and one set of formats:
/// known before any result is seen.
///   probe_passed     a spoilt copy of the exact result would pass
///   ill_conditioned  RMS(sigma) > 0.1 RMS(exact) of o or final_state
///   unjudgeable      RMS(exact / sigma) <= 4 in most rows of o or final_state
///   vacuous          the exact result is not finite, or o is all 0
///   out_of_range     an exact value may round to infinity in the format of o or of the state
class Trust {
 public:
  /// Adds a case, or one more head of it: heads taken together are trusted as one case, but they
  /// are not rotated.
  void add(const Semantics& semantics, const Standard& standard);

  /// Nothing when the case can be trusted.
  [[nodiscard]] std::optional<Doubt> doubt() const;

  /// "final_state heads rotated": probes that change nothing here.
  [[nodiscard]] std::vector<std::string> skipped() const;
  /// Tensors that no probe changes.
  [[nodiscard]] std::vector<std::string> unprobed() const;

 private:
  enum class Outcome : std::uint8_t { kSkipped, kPassed, kRefused };
  /// Sums over the elements and rows of a tensor.
  struct Sight {
    void add_row(std::span<const double> exact, std::span<const double> sigma);

    double sigma2 = 0;
    double exact2 = 0;
    std::int64_t rows = 0;    ///< with some exact value that is not 0
    std::int64_t hidden = 0;  ///< of those, with RMS(exact / sigma) <= 4
    std::int64_t elements = 0;
    bool finite = true;
    bool nonzero = false;
    double largest = 0;                                      ///< of |exact| + 8 sigma
    double range = std::numeric_limits<double>::infinity();  ///< of the stated format
  };

  void probe(OutputKind kind, const JudgedCase& judged, const Tensor& exact);
  void look(OutputKind kind, const JudgedCase& judged, const Tensor& exact);

  std::map<std::pair<OutputKind, Probe>, Outcome> probes_;
  std::map<OutputKind, Sight> sights_;
};

}  // namespace kda::harness
