#include "reference/variance_head.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace kda::reference {
namespace {

double square(double x) { return x * x; }

double rho(Rounding rounding) { return square(kKappa * rounding.unit); }

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

BoundFactors make_factors(const Formats& formats, const Semantics& semantics) {
  const bool per_token = formats.state_storage == StateStorage::kPerToken;
  // A state no coarser than the sums is rounded by them.
  const bool stored = formats.state.unit > formats.accumulation.unit;
  const double rho_accumulation = rho(formats.accumulation);
  BoundFactors f{};
  f.rho_operands = rho(formats.operands);
  f.rho_triangle = rho(formats.triangle);
  f.rho_solve = rho(formats.solve);
  f.rho_accumulation = rho_accumulation;
  // A sum of K terms one after the other rounds K partial sums, which are half of the squared whole
  // on average when signs are random.
  f.sum_roundings = 16 + static_cast<double>(semantics.K) / 2;
  f.rho_output = rho(formats.output) + f.sum_roundings * rho_accumulation;
  f.gate_unit = formats.gate.unit;
  f.underflow = square(formats.operands.underflow) / 3;
  f.output_underflow = square(formats.output.underflow) / 3;
  f.sum_underflow = square(formats.accumulation.underflow);
  f.scale = semantics.scale;
  if (stored) {
    // Values that change slowly stall at the same side of a rounding: u, not its RMS.
    f.rho_state = per_token ? square(formats.state.unit) : rho(formats.state);
    f.state_underflow = square(formats.state.underflow) / 3;
    f.state_stall = per_token ? formats.state.unit : 0;
  }
  return f;
}

std::int64_t block_tokens(const Formats& formats, const Semantics& semantics) {
  if (formats.state_storage == StateStorage::kPerToken) return 1;
  const std::int64_t wanted = formats.block > 0 ? formats.block : semantics.chunk;
  return std::min(wanted, kMaxBoundBlock);
}

std::uint64_t mix(std::uint64_t hash, std::uint64_t bits) {
  hash = (hash ^ bits) * 0x9E3779B97F4A7C15U;
  return hash ^ (hash >> 29U);
}

/// Four chains side by side: one alone would wait for its multiplications.
std::uint64_t hash_row(std::uint64_t hash, const double* row, std::size_t size) {
  std::array<std::uint64_t, 4> chains{hash, 1, 2, 3};
  for (std::size_t i = 0; i < size; ++i) {
    chains[i % 4] = mix(chains[i % 4], std::bit_cast<std::uint64_t>(row[i]));
  }
  return mix(mix(mix(chains[0], chains[1]), chains[2]), chains[3]);
}

}  // namespace

VarianceHead::Buffer::Buffer(std::int64_t rows, std::int64_t columns)
    : lines_per_row_((columns + 7) / 8) {
  lines_.resize(index(rows * lines_per_row_));
}

MatrixRef VarianceHead::Buffer::matrix() { return {lines_.data()->x, lines_per_row_ * 8}; }

void VarianceHead::Buffer::fill(double value) {
  for (Line& line : lines_) std::ranges::fill(line.x, value);
}

const double* VarianceHead::Buffer::row(std::int64_t i) const {
  return lines_[index(i * lines_per_row_)].x;
}

void VarianceHead::Buffer::set_rows(std::span<const double> values, std::int64_t columns) {
  const MatrixRef to = matrix();
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(values.data() + i * columns, columns, to.data + i * to.pitch);
  }
}

VarianceHead::VarianceHead(const Problem& problem, const Semantics& semantics,
                           const Formats& formats, const VarianceKernel& kernel)
    : semantics_(semantics),
      kernel_(kernel),
      reader_(problem, semantics),
      gate_error_(problem, semantics, formats.gate.unit > formats.accumulation.unit),
      factors_(make_factors(formats, semantics)),
      block_(block_tokens(formats, semantics)),
      repeated_(index(block_)),
      tokens_(index(block_)),
      q_(block_, semantics.K),
      k_(block_, semantics.K),
      v_(block_, semantics.V),
      log_decay_(block_, semantics.K),
      errors_(block_, semantics.K),
      o_(block_, semantics.V),
      sigma_o_(block_, semantics.V),
      S_(semantics.K, semantics.V),
      P_(semantics.K, semantics.V),
      Gamma_(semantics.K, semantics.V),
      scratch_(1, kernel.scratch_size(static_cast<int>(block_), static_cast<int>(semantics.K),
                                      static_cast<int>(semantics.V))) {
  inputs_.K = static_cast<int>(semantics.K);
  inputs_.V = static_cast<int>(semantics.V);
  inputs_.q = q_.matrix();
  inputs_.k = k_.matrix();
  inputs_.v = v_.matrix();
  inputs_.log_decay = log_decay_.matrix();
  inputs_.gate_error = errors_.matrix();
  // However short the sequence.
  inputs_.prefix_sums = formats.state_storage == StateStorage::kPerChunk && formats.block != 1;
  inputs_.S = S_.matrix();
  inputs_.P = P_.matrix();
  inputs_.Gamma = Gamma_.matrix();
  inputs_.o = o_.matrix();
  inputs_.sigma_o = sigma_o_.matrix();
}

HeadDeviation VarianceHead::run(std::int64_t n, std::int64_t hv) {
  const Sequence& sequence = semantics_.sequences[index(n)];
  const std::int64_t length = sequence.length();
  const std::int64_t chunks = (length + semantics_.chunk - 1) / semantics_.chunk;
  const auto state_size = index(semantics_.K * semantics_.V);
  HeadDeviation result{.n = n, .hv = hv, .o = {}, .final_state = {}, .h = {}, .keys = {}};
  result.o.resize(index(length * semantics_.V));
  result.keys.resize(index(length));
  result.final_state.resize(state_size);
  if (semantics_.chunk_states) result.h.resize(index(chunks) * state_size);

  start(n, hv);
  for (std::int64_t first = 0; first < length;) {
    const std::int64_t in_chunk = first % semantics_.chunk;
    std::int64_t count = std::min(block_, length - first);
    if (semantics_.chunk_states) {  // a block must not run over a state that is asked for
      count = std::min(count, semantics_.chunk - in_chunk);
      if (in_chunk == 0) {
        store_state(result.h.data() + index(first / semantics_.chunk) * state_size);
      }
    }
    advance(sequence, hv, first, count, result);
    first += count;
  }
  store_state(result.final_state.data());
  return result;
}

void VarianceHead::start(std::int64_t n, std::int64_t hv) {
  S_.set_rows(reader_.initial_state(n, hv), semantics_.V);
  P_.fill(0);
  Gamma_.fill(0);
  inputs_.has_error = false;
  before_.clear();
}

void VarianceHead::advance(const Sequence& sequence, std::int64_t hv, std::int64_t first,
                           std::int64_t count, HeadDeviation& result) {
  const std::int64_t K = semantics_.K;
  const std::int64_t V = semantics_.V;
  reader_.read(sequence, hv, first, count, rows_);
  gate_error_.read(sequence, hv, first, count, rows_.log_decay, before_, gate_rows_);
  before_.assign(rows_.log_decay.end() - K, rows_.log_decay.end());
  q_.set_rows(rows_.q, K);
  k_.set_rows(rows_.k, K);
  v_.set_rows(rows_.v, V);
  log_decay_.set_rows(rows_.log_decay, K);
  errors_.set_rows(gate_rows_, K);
  for (std::int64_t i = 0; i < count; ++i) {
    result.keys[index(first + i)] = hash_row(1, k_.row(i), index(K));
    const std::uint64_t hash =
        mix(result.keys[index(first + i)], std::bit_cast<std::uint64_t>(rows_.beta[index(i)]));
    tokens_[index(i)] = hash_row(hash, log_decay_.row(i), index(K));
    const auto earlier = std::find(tokens_.begin(), tokens_.begin() + i, tokens_[index(i)]);
    repeated_[index(i)] = static_cast<int>(earlier - tokens_.begin());
  }
  inputs_.tokens = static_cast<int>(count);
  inputs_.beta = rows_.beta.data();
  inputs_.repeated = repeated_.data();
  kernel_.advance(inputs_, factors_, scratch_.matrix().data);
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(sigma_o_.row(i), V, result.o.data() + (first + i) * V);
  }
}

void VarianceHead::store_state(double* sigma) const {
  for (std::int64_t k = 0; k < semantics_.K; ++k) {
    const double* independent = P_.row(k);
    const double* coherent = Gamma_.row(k);
    for (std::int64_t v = 0; v < semantics_.V; ++v, ++sigma) {
      *sigma = std::sqrt(independent[v] + square(coherent[v]));
    }
  }
}

}  // namespace kda::reference
