#include "harness/compare/compare_terms.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kda::harness {
namespace {

double square(double x) { return x * x; }

std::size_t at(std::int64_t row, std::int64_t width, std::int64_t col) {
  return static_cast<std::size_t>(row * width + col);
}

double sum_of_squares(const double* x, std::int64_t count) {
  double sum = 0;
  for (std::int64_t i = 0; i < count; ++i) sum += x[i] * x[i];
  return sum;
}

/// By token i, the sum over j < i that CaseTerms::overlap explains. `decayed` becomes every key as
/// token i sees it; no exponent is positive.
std::vector<double> overlap_of_tokens(const reference::ActivatedRows& rows, std::int64_t count,
                                      std::int64_t K) {
  std::vector<double> decayed = rows.k;
  std::vector<double> decay(static_cast<std::size_t>(K));
  std::vector<double> sums(static_cast<std::size_t>(count));
  for (std::int64_t i = 1; i < count; ++i) {
    for (std::int64_t c = 0; c < K; ++c) {
      decay[static_cast<std::size_t>(c)] = std::exp(rows.log_decay[at(i, K, c)]);
    }
    for (std::int64_t j = 0; j < i; ++j) {
      double dot = 0;
      for (std::int64_t c = 0; c < K; ++c) {
        double& key = decayed[at(j, K, c)];
        key *= decay[static_cast<std::size_t>(c)];
        dot += key * rows.k[at(i, K, c)];
      }
      sums[static_cast<std::size_t>(i)] += square(rows.beta[static_cast<std::size_t>(i)] * dot);
    }
  }
  return sums;
}

}  // namespace

CaseTerms::CaseTerms(const Problem& problem, const Semantics& semantics)
    : problem_(problem),
      semantics_(semantics),
      reader_(problem, semantics),
      cache_(static_cast<std::size_t>(semantics.N() * semantics.HV)) {}

CaseTerms::ChunkSize CaseTerms::measure(const reference::ActivatedRows& rows,
                                        std::int64_t count) const {
  const std::int64_t K = semantics_.K;
  const std::int64_t V = semantics_.V;
  ChunkSize size{std::vector<double>(static_cast<std::size_t>(K)),
                 std::vector<double>(static_cast<std::size_t>(V)),
                 overlap_of_tokens(rows, count, K)};
  for (std::int64_t t = 0; t < count; ++t) {
    const double beta = rows.beta[static_cast<std::size_t>(t)];
    for (std::int64_t c = 0; c < K; ++c) {
      size.key[static_cast<std::size_t>(c)] += square(beta * rows.k[at(t, K, c)]);
    }
    for (std::int64_t v = 0; v < V; ++v) {
      size.value[static_cast<std::size_t>(v)] += square(rows.v[at(t, V, v)]);
    }
  }
  for (double& x : size.key) x = std::sqrt(x / static_cast<double>(count));
  for (double& x : size.value) x = std::sqrt(x / static_cast<double>(count));
  return size;
}

const std::vector<CaseTerms::ChunkSize>& CaseTerms::chunks(std::int64_t n, std::int64_t hv) {
  std::vector<ChunkSize>& sizes = cache_[at(n, semantics_.HV, hv)];
  const Sequence& sequence = semantics_.sequences[static_cast<std::size_t>(n)];
  if (!sizes.empty()) return sizes;
  reference::ActivatedRows rows;
  for (std::int64_t first = 0; first < sequence.length(); first += semantics_.chunk) {
    const std::int64_t count = std::min(semantics_.chunk, sequence.length() - first);
    reader_.read(sequence, hv, first, count, rows);
    sizes.push_back(measure(rows, count));
  }
  return sizes;
}

double CaseTerms::overlap(std::int64_t n, std::int64_t hv) {
  double most = 0;
  for (const ChunkSize& size : chunks(n, hv)) {
    const double sum = std::accumulate(size.overlap.begin(), size.overlap.end(), 0.0);
    most = std::max(most, sum / static_cast<double>(size.overlap.size()));
  }
  return most;
}

std::vector<double> CaseTerms::overlap_so_far(std::int64_t n, std::int64_t hv) {
  std::vector<double> by_token;
  double before = 0;  // of the chunks that are over
  for (const ChunkSize& size : chunks(n, hv)) {
    double sum = 0;
    double most = before;
    std::int64_t count = 0;
    for (const double of_token : size.overlap) {
      sum += of_token;
      most = std::max({most, of_token, sum / static_cast<double>(++count)});
      by_token.push_back(most);
    }
    before = std::max(before, sum / static_cast<double>(count));
  }
  return by_token;
}

std::vector<double> CaseTerms::state(std::int64_t n, std::int64_t hv, std::int64_t chunk) {
  const ChunkSize& size = chunks(n, hv)[static_cast<std::size_t>(chunk)];
  std::vector<double> terms;
  terms.reserve(size.key.size() * size.value.size());
  for (const double key : size.key) {
    for (const double value : size.value) terms.push_back(key * value);
  }
  return terms;
}

std::vector<double> CaseTerms::output(std::int64_t n, std::int64_t hv) {
  const std::int64_t K = semantics_.K;
  const std::int64_t V = semantics_.V;
  const Sequence& sequence = semantics_.sequences[static_cast<std::size_t>(n)];
  const std::vector<ChunkSize>& sizes = chunks(n, hv);
  std::vector<double> squares(static_cast<std::size_t>(sequence.length() * V));
  reference::ActivatedRows rows;
  for (std::int64_t first = 0; first < sequence.length(); first += semantics_.chunk) {
    const std::int64_t count = std::min(semantics_.chunk, sequence.length() - first);
    reader_.read(sequence, hv, first, count, rows);
    const ChunkSize& size = sizes[static_cast<std::size_t>(first / semantics_.chunk)];
    const double write2 = sum_of_squares(size.key.data(), K) / static_cast<double>(K);
    for (std::int64_t t = 0; t < count; ++t) {
      const double read2 = sum_of_squares(rows.q.data() + t * K, K) * write2;
      for (std::int64_t v = 0; v < V; ++v) {
        squares[at(first + t, V, v)] = read2 * square(size.value[static_cast<std::size_t>(v)]);
      }
    }
    if (first == 0 && problem_.initial_state) add_initial_state(n, hv, rows, count, squares);
  }
  for (double& x : squares) x = std::abs(semantics_.scale) * std::sqrt(x);
  return squares;
}

void CaseTerms::add_initial_state(std::int64_t n, std::int64_t hv,
                                  const reference::ActivatedRows& rows, std::int64_t count,
                                  std::vector<double>& squares) const {
  const std::int64_t K = semantics_.K;
  const std::int64_t V = semantics_.V;
  std::vector<double> state = reader_.initial_state(n, hv);
  for (std::int64_t t = 0; t < count; ++t) {
    for (std::int64_t c = 0; c < K; ++c) {
      const double decay = std::exp(rows.log_decay[at(t, K, c)]);
      const double q = rows.q[at(t, K, c)];
      for (std::int64_t v = 0; v < V; ++v) {
        double& s = state[at(c, V, v)];
        s *= decay;
        squares[at(t, V, v)] += square(q * s);
      }
    }
  }
}

}  // namespace kda::harness
