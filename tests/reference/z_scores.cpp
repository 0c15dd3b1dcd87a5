#include "tests/reference/z_scores.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iomanip>
#include <set>
#include <sstream>

namespace kda::tests {
namespace {

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

struct Values {
  std::vector<double> got, exact, sigma;
};

/// Sum of squares of z over some elements.
struct Sum {
  double squares = 0;
  std::int64_t count = 0;
  void add(double z) {
    squares += z * z;
    ++count;
  }
  [[nodiscard]] double rms() const {
    return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
  }
};

double group_limit(std::int64_t rows) {
  return kGroupLimit +
         kGroupSmallLimit / std::sqrt(static_cast<double>(std::max<std::int64_t>(rows, 1)));
}

class Scores {
 public:
  Scores(const Values& values, std::int64_t V) : x_(values), V_(V) {}

  /// One group: rows of V elements, `stride` apart, from element `first` on; `keys` caps how many
  /// of them count as independent. `columns`: columns are judged like rows.
  void group(std::int64_t first, std::int64_t rows, std::int64_t stride, std::int64_t element,
             std::int64_t keys, bool columns) {
    Sum all;
    std::int64_t rows_with_sigma = 0;
    std::vector<Sum> by_column(columns ? index(V_) : 0);
    for (std::int64_t r = 0; r < rows; ++r) {
      Sum row;
      for (std::int64_t v = 0; v < V_; ++v) {
        const std::int64_t at = first + r * stride + v * element;
        if (x_.sigma[index(at)] == 0) continue;
        const double z = z_at(at);
        row.add(z);
        all.add(z);
        if (columns) by_column[index(v)].add(z);
      }
      if (row.count > 0) ++rows_with_sigma;
      result_.row = std::max(result_.row, row.rms());
    }
    for (const Sum& column : by_column) result_.row = std::max(result_.row, column.rms());
    result_.group =
        std::max(result_.group, all.rms() / group_limit(std::min(rows_with_sigma, keys)));
  }

  /// Every element of the group once more for the statistics of the tensor.
  void count(std::int64_t first, std::int64_t rows, std::int64_t stride, std::int64_t element) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t v = 0; v < V_; ++v) count_element(first + r * stride + v * element);
    }
  }

  ZScores finish() && {
    result_.rms = all_.rms();
    if (!sizes_.empty()) {
      const auto middle = sizes_.begin() + static_cast<std::ptrdiff_t>(sizes_.size() / 2);
      std::nth_element(sizes_.begin(), middle, sizes_.end());
      result_.median = *middle;
    }
    return result_;
  }

 private:
  [[nodiscard]] double z_at(std::int64_t at) const {
    return (x_.got[index(at)] - x_.exact[index(at)]) / x_.sigma[index(at)];
  }

  void count_element(std::int64_t at) {
    const double got = x_.got[index(at)];
    if (!std::isfinite(got)) {
      ++result_.non_finite;
    } else if (x_.sigma[index(at)] == 0) {
      // What must be equal is an input that was kept: exact in the format of the output too.
      if (got != x_.exact[index(at)]) ++result_.unequal;
    } else {
      const double z = z_at(at);
      all_.add(z);
      sizes_.push_back(std::abs(z));
      // Not std::max: a NaN must stay.
      if (!(std::abs(z) <= result_.max)) result_.max = std::abs(z);
    }
  }

  const Values& x_;
  std::int64_t V_;
  ZScores result_;
  Sum all_;
  std::vector<double> sizes_;
};

Values values(const Tensor& got, const Tensor& exact, const Tensor& sigma) {
  return {to_f64(got.view()), to_f64(exact.view()), to_f64(sigma.view())};
}

/// Different keys of tokens [begin, end) of a row of `keys` [B,T,HV].
std::int64_t different_keys(const std::vector<std::uint64_t>& keys, const Semantics& s,
                            const Sequence& sequence, std::int64_t hv, std::int64_t begin,
                            std::int64_t end) {
  std::set<std::uint64_t> different;
  for (std::int64_t t = begin; t < end; ++t) {
    different.insert(keys[index((sequence.b * s.T + sequence.begin + t) * s.HV + hv)]);
  }
  return static_cast<std::int64_t>(different.size());
}

ZScores of_o(const Values& x, const reference::Deviations& sigma, const Semantics& s) {
  Scores scores(x, s.V);
  const std::int64_t stride = s.HV * s.V;
  for (const Sequence& sequence : s.sequences) {
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      const std::int64_t first = ((sequence.b * s.T + sequence.begin) * s.HV + hv) * s.V;
      const std::int64_t length = sequence.length();
      scores.count(first, length, stride, 1);
      scores.group(first, length, stride, 1, different_keys(sigma.keys, s, sequence, hv, 0, length),
                   false);
      for (std::int64_t t = 0; t < length; t += s.chunk) {
        const std::int64_t end = std::min(t + s.chunk, length);
        scores.group(first + t * stride, end - t, stride, 1,
                     different_keys(sigma.keys, s, sequence, hv, t, end), false);
      }
    }
  }
  return std::move(scores).finish();
}

/// `by_chunk`: h, else final_state.
ZScores of_states(const Values& x, const reference::Deviations& sigma, const Semantics& s,
                  bool by_chunk) {
  Scores scores(x, s.V);
  const bool k_first = s.state_layout == StateLayout::kKV;
  for (std::size_t n = 0; n < s.sequences.size(); ++n) {
    const Sequence& sequence = s.sequences[n];
    const std::int64_t chunks = (sequence.length() + s.chunk - 1) / s.chunk;
    for (std::int64_t hv = 0; hv < s.HV; ++hv) {
      for (std::int64_t i = 0; i < (by_chunk ? chunks : 1); ++i) {
        const std::int64_t slot =
            by_chunk ? sequence.first_chunk + i : static_cast<std::int64_t>(n);
        const std::int64_t first = (slot * s.HV + hv) * s.K * s.V;
        const std::int64_t tokens = by_chunk ? i * s.chunk : sequence.length();
        const std::int64_t keys = different_keys(sigma.keys, s, sequence, hv, 0, tokens);
        scores.count(first, s.K, k_first ? s.V : 1, k_first ? 1 : s.K);
        scores.group(first, s.K, k_first ? s.V : 1, k_first ? 1 : s.K, keys, true);
      }
    }
  }
  return std::move(scores).finish();
}

}  // namespace

bool ZScores::accepted() const {
  return unequal == 0 && non_finite == 0 && max <= kElementLimit && row <= kRowLimit && group <= 1;
}

std::string ZScores::text() const {
  std::ostringstream out;
  out << std::setprecision(3) << "median " << median << " rms " << rms << " max " << max << " row "
      << row << " group " << group << " unequal " << unequal << " non-finite " << non_finite;
  return out.str();
}

bool ZReport::accepted() const { return o.accepted() && final_state.accepted() && h.accepted(); }

ZReport z_scores(const Outputs& got, const Outputs& exact, const reference::Deviations& sigma,
                 const Semantics& semantics) {
  ZReport report;
  report.o = of_o(values(got.o, exact.o, sigma.o), sigma, semantics);
  if (exact.final_state) {
    report.final_state = of_states(values(*got.final_state, *exact.final_state, *sigma.final_state),
                                   sigma, semantics, false);
  }
  if (exact.h) {
    report.h = of_states(values(*got.h, *exact.h, *sigma.h), sigma, semantics, true);
  }
  return report;
}

}  // namespace kda::tests
