#include "harness/run/diagnosis.hpp"

#include "harness/compare/compare_blocks.hpp"
#include "harness/compare/compare_sigma.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// Where no policy says what is wrong, errors of this share of the largest one are.
constexpr double kLargeShare = 0.05;
constexpr std::size_t kPlotWidth = 64;
constexpr int kPlotHeight = 6;
constexpr std::size_t kMostSuspects = 3;

/// Which rows, heads and so on of a tensor hold wrong elements.
struct Wrong {
  std::set<std::int64_t> sequences;
  std::set<std::int64_t> heads;
  std::set<std::int64_t> columns;
  std::set<std::int64_t> rows;  ///< tokens of `o`, key channels of states
  std::int64_t elements = 0;
  std::int64_t compared = 0;
  std::optional<Place> first;
  bool only_tails = true;  ///< only in last chunks that are not full
  bool only_chunk_starts = true;
  bool spares_first_chunk = true;
};

Wrong wrong_elements(OutputKind kind, const FailedResult& failed,
                     const std::vector<double>& sizes) {
  Wrong wrong;
  const Tensor& got = *comparable(kind, failed);
  const double threshold = failed.standard.deviations != nullptr ? 1 : kLargeShare;
  const std::int64_t chunk = failed.semantics.chunk;
  for (const Block& block :
       blocks_of(kind, failed.semantics, {got, got}, failed.standard.first_head)) {
    const std::int64_t tail = block.rows() / chunk * chunk;
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      for (std::int64_t col = 0; col < block.cols(); ++col) {
        ++wrong.compared;
        if (sizes[static_cast<std::size_t>(block.offset(row, col))] <= threshold) continue;
        ++wrong.elements;
        if (!wrong.first) wrong.first = block.place(row, col);
        wrong.sequences.insert(block.origin.n);
        wrong.heads.insert(block.origin.hv);
        wrong.columns.insert(col);
        wrong.rows.insert(row);
        wrong.only_tails = wrong.only_tails && row >= tail;
        wrong.only_chunk_starts = wrong.only_chunk_starts && row % chunk == 0;
        wrong.spares_first_chunk = wrong.spares_first_chunk && row >= chunk;
      }
    }
  }
  return wrong;
}

/// "1 of 4 heads (2)", nothing when all or only one are there.
std::string part(const std::set<std::int64_t>& some, std::int64_t all, const char* what) {
  const auto count = static_cast<std::int64_t>(some.size());
  if (count == all || all <= 1) return "";
  std::string text = fmt::format(", {} of {} {}", count, all, what);
  if (count <= 4) text += fmt::format(" ({})", fmt::join(some, " "));
  return text;
}

std::string evenly_spaced(const std::set<std::int64_t>& rows) {
  if (rows.size() < 3) return "";
  const std::int64_t step = *std::next(rows.begin()) - *rows.begin();
  for (auto row = std::next(rows.begin()); row != rows.end(); ++row) {
    if (*row - *std::prev(row) != step) return "";
  }
  return step > 1 ? fmt::format(", every {}th from {}", step, *rows.begin()) : "";
}

std::string first_text(const Place& place, std::int64_t chunk) {
  std::string text = "first wrong " + to_string(place);
  if (place.t) text += fmt::format(", token {} of chunk {}", *place.t % chunk, *place.t / chunk);
  return text;
}

/// What the pattern of wrong tokens of `o` says.
std::string shape_of_rows(const Wrong& wrong, const Semantics& s) {
  std::int64_t longest = 0;
  bool has_tail = false;
  for (const Sequence& sequence : s.sequences) {
    longest = std::max(longest, sequence.length());
    has_tail = has_tail || sequence.length() % s.chunk != 0;
  }
  if (longest > s.chunk && has_tail && wrong.only_tails)
    return "only in the last chunk, which is not full: a fault of the tail";
  if (longest > s.chunk && wrong.only_chunk_starts)
    return "only at the first token of chunks: a fault at chunk bounds";
  if (longest > s.chunk && wrong.spares_first_chunk)
    return wrong.first && *wrong.first->t % s.chunk == 0
               ? "right in the first chunk, wrong from a chunk bound on: what a chunk hands on"
               : "right in the first chunk";
  return "";
}

std::vector<std::string> pattern_of(const FailedResult& failed, OutputKind kind,
                                    const std::vector<double>& sizes) {
  const Semantics& s = failed.semantics;
  const Wrong wrong = wrong_elements(kind, failed, sizes);
  if (!wrong.first) return {};
  const bool is_o = kind == OutputKind::kO;
  std::int64_t rows = is_o ? 0 : s.K;
  for (const Sequence& sequence : s.sequences)
    if (is_o) rows = std::max(rows, sequence.length());
  std::vector<std::string> lines;
  lines.push_back(fmt::format(
      "{}: {} of {} elements wrong{}{}{}{}{}", name(kind), wrong.elements, wrong.compared,
      part(wrong.sequences, s.N(), "sequences"), part(wrong.heads, s.HV, "heads"),
      part(wrong.rows, rows, is_o ? "tokens" : "key channels"), evenly_spaced(wrong.rows),
      part(wrong.columns, s.V, "value columns")));
  lines.push_back("  " + first_text(*wrong.first, s.chunk));
  const std::string shape = is_o ? shape_of_rows(wrong, s) : "";
  if (!shape.empty()) lines.push_back("  " + shape);
  return lines;
}

/// Largest size of each stretch of tokens, over sequences, heads and columns.
std::vector<double> by_token(const FailedResult& failed, const std::vector<double>& sizes,
                             std::int64_t& step) {
  std::int64_t longest = 0;
  for (const Sequence& sequence : failed.semantics.sequences)
    longest = std::max(longest, sequence.length());
  step = std::max<std::int64_t>(1, (longest + static_cast<std::int64_t>(kPlotWidth) - 1) /
                                       static_cast<std::int64_t>(kPlotWidth));
  std::vector<double> stretches(static_cast<std::size_t>((longest + step - 1) / step));
  const Tensor& got = *comparable(OutputKind::kO, failed);
  for (const Block& block : blocks_of(OutputKind::kO, failed.semantics, {got, got})) {
    for (std::int64_t row = 0; row < block.rows(); ++row) {
      double& most = stretches[static_cast<std::size_t>(row / step)];
      for (std::int64_t col = 0; col < block.cols(); ++col)
        most = std::max(most, sizes[static_cast<std::size_t>(block.offset(row, col))]);
    }
  }
  return stretches;
}

/// Bars on a logarithmic scale.
std::string plot_of(const FailedResult& failed, const std::vector<double>& sizes) {
  std::int64_t step = 1;
  const std::vector<double> stretches = by_token(failed, sizes, step);
  if (stretches.size() < 2) return "";
  double most = *std::ranges::max_element(stretches);
  if (!(most > 0)) return "";
  most = std::min(most, 1e9);
  const bool is_share = failed.standard.deviations != nullptr;
  std::string text = fmt::format("o: largest {} by token ({} a column)\n",
                                 is_share ? "error / limit" : "error / largest error", step);
  const double low = std::min(most / 10, is_share ? 1.0 : 0.01);
  for (int line = kPlotHeight - 1; line >= 0; --line) {
    const double level = low * std::pow(most / low, static_cast<double>(line) / (kPlotHeight - 1));
    text += fmt::format("{:>9.2g} |", level);
    for (const double size : stretches) text += size >= level * (1 - 1e-9) ? '#' : ' ';
    text.erase(text.find_last_not_of(' ') + 1);
    text += '\n';
  }
  const std::string last = std::to_string(static_cast<std::int64_t>(stretches.size()) * step);
  const std::size_t gap =
      stretches.size() > last.size() + 1 ? stretches.size() - last.size() - 1 : 1;
  return text + fmt::format("{:>9} +0{}{}\n", "", std::string(gap, '-'), last);
}

}  // namespace

const Tensor* comparable(OutputKind kind, const FailedResult& failed) {
  const auto found = failed.got.find(std::string(name(kind)));
  if (found == failed.got.end() || !is_float(found->second.dtype()) ||
      found->second.shape() != shape_of(kind, failed.semantics)) {
    return nullptr;
  }
  return &found->second;
}

std::vector<double> error_sizes(OutputKind kind, const FailedResult& failed) {
  const Standard& standard = failed.standard;
  const Tensor& expected = standard.expected.at(std::string(name(kind)));
  const std::vector<double> exact = to_f64(expected.view());
  const std::vector<double> got = to_f64(comparable(kind, failed)->view());
  std::vector<double> sizes(exact.size());
  double most = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    sizes[i] = absolute_error(exact[i], got[i]);
    if (std::isnan(sizes[i])) sizes[i] = std::numeric_limits<double>::infinity();
    if (std::isfinite(sizes[i])) most = std::max(most, sizes[i]);
  }
  std::vector<double> sigma;
  if (standard.deviations != nullptr) sigma = to_f64(sigma_of(*standard.deviations, kind)->view());
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    if (sizes[i] == 0) continue;
    const double limit = sigma.empty() ? most
                                       : standard.policy.deviations->element *
                                             widened(sigma[i], exact[i], expected.dtype(),
                                                     standard.deviations->formats);
    sizes[i] = limit > 0 ? sizes[i] / limit : std::numeric_limits<double>::infinity();
  }
  return sizes;
}

Diagnosis diagnose(const FailedResult& failed, const std::optional<Place>& worst) {
  Diagnosis diagnosis;
  for (const OutputKind kind : wanted_outputs(failed.semantics)) {
    if (comparable(kind, failed) == nullptr) continue;
    const std::vector<double> sizes = error_sizes(kind, failed);
    for (std::string& line : pattern_of(failed, kind, sizes))
      diagnosis.pattern.push_back(std::move(line));
    if (kind == OutputKind::kO) diagnosis.plot = plot_of(failed, sizes);
  }
  suspect_copies(failed, diagnosis.suspects);
  suspect_variants(failed, diagnosis.suspects);
  std::ranges::stable_sort(diagnosis.suspects, {}, &Suspect::left);
  if (worst) diagnosis.terms = bound_terms(failed, *worst);
  if (diagnosis.suspects.size() > kMostSuspects) diagnosis.suspects.resize(kMostSuspects);
  return diagnosis;
}

std::string to_text(const Diagnosis& diagnosis) {
  std::string text;
  for (const std::string& line : diagnosis.pattern) text += line + "\n";
  for (const Suspect& suspect : diagnosis.suspects) {
    text += fmt::format("looks like: {} (that explains all but {:.2g}% of the error)\n",
                        suspect.fault, 100 * suspect.left);
  }
  for (std::size_t i = 0; i < diagnosis.terms.size(); ++i) {
    text += fmt::format("{} {} {:.2g}%", i == 0 ? "variance of the worst element:" : ",",
                        diagnosis.terms[i].source, 100 * diagnosis.terms[i].share);
  }
  if (!diagnosis.terms.empty()) text += "\n";
  return text + diagnosis.plot;
}

}  // namespace kda::harness
