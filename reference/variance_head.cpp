#include "reference/variance_head.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <utility>

namespace kda::reference {
namespace {

constexpr std::int64_t kColumnMultiple = 16;  ///< of the rows of a block

double square(double x) { return x * x; }

double rho(Rounding rounding) { return square(kKappa * rounding.unit); }

double* row(MatrixRef x, std::int64_t i) { return x.data + i * x.pitch; }

std::size_t index(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A state no coarser than the sums is rounded by them.
bool stores_state(const Formats& formats) { return formats.state.unit > formats.accumulation.unit; }

/// The narrow kernel rounds like f32 sums, 2^-24 of what it adds, and what it makes of a value must
/// be nothing beside the roundings that the formats have there anyway. Single tokens have no matrix
/// products to speed up.
bool f32_is_enough(const Formats& formats, std::int64_t block) {
  return block > 1 && formats.operands.unit >= kRoundF16.unit &&
         formats.accumulation.unit >= kRoundF32.unit;
}

BoundFactors make_factors(const Formats& formats, const Semantics& semantics) {
  const bool per_token = formats.state_storage == StateStorage::kPerToken;
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
  f.sum_underflow = square(formats.accumulation.underflow);
  f.scale = semantics.scale;
  if (stores_state(formats)) {
    // Values that change slowly stall at the same side of a rounding: u, not its RMS.
    f.rho_state = per_token ? square(formats.state.unit) : rho(formats.state);
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
    : lines_per_row_((columns + kColumnMultiple - 1) / kColumnMultiple * (kColumnMultiple / 8)) {
  lines_.resize(index(rows * lines_per_row_));
}

MatrixRef VarianceHead::Buffer::matrix() { return {lines_.data()->x, lines_per_row_ * 8}; }

MatrixRef VarianceHead::Buffer::of_rows(std::vector<double>& values, std::int64_t columns) {
  if (columns % kColumnMultiple == 0) return {values.data(), columns};
  const MatrixRef to = matrix();
  const std::int64_t rows = static_cast<std::int64_t>(values.size()) / columns;
  for (std::int64_t i = 0; i < rows; ++i) {
    std::copy_n(values.data() + i * columns, columns, to.data + i * to.pitch);
  }
  return to;
}

VarianceHead::Buffer VarianceHead::state_buffer(const Semantics& semantics) {
  return {semantics.K, semantics.V};
}

VarianceHead::VarianceHead(const Problem& problem, const Semantics& semantics,
                           const Formats& formats, const VarianceKernels& kernels)
    : semantics_(semantics),
      kernels_(kernels),
      reader_(problem, semantics),
      gate_error_(problem, semantics, formats.gate.unit,
                  formats.gate.unit > formats.accumulation.unit),
      factors_(make_factors(formats, semantics)),
      block_(block_tokens(formats, semantics)),
      narrow_(f32_is_enough(formats, block_)),
      repeated_(index(block_)),
      tokens_(index(block_)),
      q_(block_, semantics.K),
      k_(block_, semantics.K),
      v_(block_, semantics.V),
      log_decay_(block_, semantics.K),
      errors_(block_, semantics.K),
      o_(block_, semantics.V),
      sigma_o_(block_, semantics.V),
      underflow_(4, semantics.V),
      states_{state_buffer(semantics), state_buffer(semantics), state_buffer(semantics),
              state_buffer(semantics), state_buffer(semantics), state_buffer(semantics)} {
  inputs_.K = static_cast<int>(semantics.K);
  inputs_.V = static_cast<int>(semantics.V);
  // However short the sequence.
  inputs_.prefix_sums = formats.state_storage == StateStorage::kPerChunk && formats.block != 1;
  inputs_.S = states_[0].matrix();
  inputs_.P = states_[1].matrix();
  inputs_.Gamma = states_[2].matrix();
  inputs_.S_next = states_[3].matrix();
  inputs_.P_next = states_[4].matrix();
  inputs_.Gamma_next = states_[5].matrix();
  inputs_.o = o_.matrix();
  inputs_.sigma_o = sigma_o_.matrix();
  set_underflow(formats);
  watch_repeats(formats);
  const auto scratch = [&](const VarianceKernel& kernel) {
    return kernel.scratch_size(static_cast<int>(block_), inputs_.K, inputs_.V);
  };
  const long bytes = std::max(scratch(kernels.wide), narrow_ ? scratch(kernels.narrow) : 0);
  scratch_.resize(index((bytes + 63) / 64));
}

void VarianceHead::set_underflow(const Formats& formats) {
  const double state = stores_state(formats) ? square(formats.state.underflow) / 3 : 0;
  const std::array<double, 4> values{factors_.underflow, factors_.sum_underflow, state,
                                     square(formats.output.underflow) / 3};
  const MatrixRef rows = underflow_.matrix();
  const std::array<double**, 4> to{&inputs_.underflow.operands, &inputs_.underflow.sums,
                                   &inputs_.underflow.state, &inputs_.underflow.output};
  for (std::size_t i = 0; i < to.size(); ++i) {
    *to[i] = rows.data + static_cast<long>(i) * rows.pitch;
    std::fill_n(*to[i], semantics_.V, values[i]);
  }
}

/// Finer formats are nothing beside 16-bit operands, or beside the sums of f32.
void VarianceHead::watch_repeats(const Formats& formats) {
  inputs_.watch_echoes = formats.triangle.unit >= kRoundF16.unit && block_ > 1;
  inputs_.watch_scores = formats.operands.unit >= kRoundF16.unit && block_ > 1;
  // Who does not say how many tokens it solves for at once may do so for fewer.
  echo_sizes_ = formats.block > 0 || block_ < 32 ? 1 : (block_ < 64 ? 2 : 3);
}

void VarianceHead::make_room_for_echoes() {
  const std::int64_t pitch =
      (semantics_.V + kColumnMultiple - 1) / kColumnMultiple * kColumnMultiple + kColumnMultiple;
  const std::int64_t squares = semantics_.K * pitch;
  const std::int64_t Z = std::int64_t{2} * kEchoes * squares * echo_sizes_;
  echo_numbers_ = std::make_unique_for_overwrite<double[]>(index(2 * (Z + squares)));
  double* numbers = echo_numbers_.get();
  for (EchoesOf<double>& echoes : echoes_) {
    echoes.block = static_cast<int>(block_);
    echoes.sizes = echo_sizes_;
    echoes.Z = {numbers, pitch};
    echoes.squares = {numbers + Z, pitch};
    numbers += Z + squares;
  }
  inputs_.echoes = echoes_.data();
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
  const std::vector<double> S = reader_.initial_state(n, hv);
  for (const MatrixRef& x : {inputs_.S, inputs_.P, inputs_.Gamma}) {
    std::fill_n(x.data, semantics_.K * x.pitch, 0);
  }
  for (std::int64_t c = 0; c < semantics_.K; ++c) {
    std::copy_n(S.data() + c * semantics_.V, semantics_.V, row(inputs_.S, c));
  }
  in_narrow_ = false;
  stale_ = false;
  inputs_.has_error = false;
  echoes_[0].count = 0;
  before_.clear();
}

void VarianceHead::advance(const Sequence& sequence, std::int64_t hv, std::int64_t first,
                           std::int64_t count, HeadDeviation& result) {
  const std::int64_t K = semantics_.K;
  const std::int64_t V = semantics_.V;
  reader_.read(sequence, hv, first, count, rows_);
  gate_error_.read(sequence, hv, first, count, rows_.log_decay, before_, gate_rows_);
  before_.assign(rows_.log_decay.end() - K, rows_.log_decay.end());
  inputs_.q = q_.of_rows(rows_.q, K);
  inputs_.k = k_.of_rows(rows_.k, K);
  inputs_.v = v_.of_rows(rows_.v, V);
  inputs_.log_decay = log_decay_.of_rows(rows_.log_decay, K);
  inputs_.gate_error = errors_.of_rows(gate_rows_, K);
  for (std::int64_t i = 0; i < count; ++i) {
    result.keys[index(first + i)] = hash_row(1, row(inputs_.k, i), index(K));
    const std::uint64_t hash =
        mix(result.keys[index(first + i)], std::bit_cast<std::uint64_t>(rows_.beta[index(i)]));
    tokens_[index(i)] = hash_row(hash, row(inputs_.log_decay, i), index(K));
    const auto earlier = std::find(tokens_.begin(), tokens_.begin() + i, tokens_[index(i)]);
    repeated_[index(i)] = static_cast<int>(earlier - tokens_.begin());
  }
  inputs_.tokens = static_cast<int>(count);
  inputs_.beta = rows_.beta.data();
  inputs_.repeated = repeated_.data();
  run_kernel();
  for (std::int64_t i = 0; i < count; ++i) {
    std::copy_n(row(inputs_.sigma_o, i), V, result.o.data() + (first + i) * V);
  }
}

void VarianceHead::run_kernel() {
  if (narrow_ && inputs_.tokens > 1 && echoes_[0].count == 0) {
    if (!in_narrow_) kernels_.narrow.load_state(inputs_, scratch_.data());
    in_narrow_ = true;
    if (kernels_.narrow.advance(inputs_, factors_, scratch_.data())) {
      inputs_.has_error = inputs_.has_error || inputs_.state_changed;
      stale_ = stale_ || inputs_.state_changed;
      return;
    }
  }
  fetch_state();
  in_narrow_ = false;
  // f64 holds everything; keys that repeat are rare, and what they need is large.
  if (!kernels_.wide.advance(inputs_, factors_, scratch_.data())) {
    make_room_for_echoes();
    (void)kernels_.wide.advance(inputs_, factors_, scratch_.data());
  }
  if (!inputs_.state_changed) return;
  std::swap(inputs_.S, inputs_.S_next);
  std::swap(inputs_.P, inputs_.P_next);
  std::swap(inputs_.Gamma, inputs_.Gamma_next);
  std::swap(echoes_[0], echoes_[1]);
  inputs_.has_error = true;
}

void VarianceHead::fetch_state() {
  if (stale_) kernels_.narrow.store_state(inputs_, scratch_.data());
  stale_ = false;
}

void VarianceHead::store_state(double* sigma) {
  fetch_state();
  for (std::int64_t k = 0; k < semantics_.K; ++k) {
    const double* independent = row(inputs_.P, k);
    const double* coherent = row(inputs_.Gamma, k);
    const double* echoes = echoes_[0].count > 0 ? row(echoes_[0].squares, k) : nullptr;
    for (std::int64_t v = 0; v < semantics_.V; ++v, ++sigma) {
      const double echo = echoes == nullptr ? 0 : echoes[v];
      *sigma = std::sqrt(independent[v] + square(coherent[v]) + echo);
    }
  }
}

}  // namespace kda::reference
