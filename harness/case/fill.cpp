#include "harness/case/fill.hpp"

#include "harness/case/counter_rng.hpp"
#include "harness/case/fill_gate.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <numeric>
#include <span>
#include <thread>
#include <vector>

namespace kda::harness {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

/// Calls work(begin, end) on disjoint ranges that cover [0, count), on all cores.
void in_parallel(std::int64_t count, const std::function<void(std::int64_t, std::int64_t)>& work) {
  const auto cores = std::max<std::int64_t>(1, std::thread::hardware_concurrency());
  const std::int64_t workers = std::clamp<std::int64_t>(count / 64, 1, cores);
  std::vector<std::jthread> threads;
  for (std::int64_t w = 1; w < workers; ++w) {
    threads.emplace_back(work, count * w / workers, count * (w + 1) / workers);
  }
  work(0, count / workers);
}

/// What a row of the batch is.
enum class Token : std::uint8_t { kReal, kPad, kBeyond };

bool in_last_quarter(std::int64_t t, std::int64_t length) { return 4 * t >= 3 * length; }

/// One entry per token of the batch, [B*T].
std::vector<Token> classify(const CaseLine& line) {
  std::vector<Token> tokens(static_cast<std::size_t>(line.B * line.T),
                            line.lens ? Token::kBeyond : Token::kReal);
  const std::vector<std::int64_t> all_rows(static_cast<std::size_t>(line.B), line.T);
  std::int64_t begin = 0;
  for (const std::int64_t length : line.lens ? *line.lens : all_rows) {
    for (std::int64_t t = 0; t < length && begin + t < line.B * line.T; ++t) {
      const bool pad =
          line.family == Family::kPadding && (t % 4 == 3 || in_last_quarter(t, length));
      tokens[static_cast<std::size_t>(begin + t)] = pad ? Token::kPad : Token::kReal;
    }
    begin += length;
  }
  return tokens;
}

/// Where a row of a [B,T,heads,width] tensor lies.
struct Row {
  std::int64_t b;
  std::int64_t t;
  std::int64_t head;
  Token token;
};

/// tensor[offset + c] = values[c], rounded once; the type is looked up once a row.
void store_row(Tensor& tensor, std::int64_t offset, std::span<const double> values) {
  if (tensor.dtype() == Dtype::kBf16) {
    std::transform(values.begin(), values.end(), tensor.as<Bf16>() + offset,
                   [](double x) { return to_bf16(x); });
    return;
  }
  for (const double x : values) tensor.store(offset++, x);
}

using MakeRow = std::function<void(const Row&, std::span<double>)>;

/// Fills a [B,T,heads,width] tensor row by row; rows beyond the last sequence become NaN.
class RowFiller {
 public:
  explicit RowFiller(const CaseLine& line) : line_(line), tokens_(classify(line)) {}

  [[nodiscard]] Tensor fill(Dtype dtype, std::int64_t heads, std::int64_t width,
                            const MakeRow& make) const {
    Tensor tensor(dtype, {line_.B, line_.T, heads, width});
    fill(tensor, heads, width, make);
    return tensor;
  }

  /// The same for a tensor [B,T,heads].
  [[nodiscard]] Tensor fill(Dtype dtype, std::int64_t heads, const MakeRow& make) const {
    Tensor tensor(dtype, {line_.B, line_.T, heads});
    fill(tensor, heads, 1, make);
    return tensor;
  }

 private:
  void fill(Tensor& tensor, std::int64_t heads, std::int64_t width, const MakeRow& make) const {
    in_parallel(line_.B * line_.T, [&](std::int64_t begin, std::int64_t end) {
      std::vector<double> values(static_cast<std::size_t>(width));
      for (std::int64_t i = begin; i < end; ++i) {
        const Token token = tokens_[static_cast<std::size_t>(i)];
        for (std::int64_t head = 0; head < heads; ++head) {
          std::fill(values.begin(), values.end(), kNaN);
          if (token != Token::kBeyond) make({i / line_.T, i % line_.T, head, token}, values);
          const std::int64_t offset = (i * heads + head) * width;
          store_row(tensor, offset, values);
        }
      }
    });
  }

  const CaseLine& line_;
  std::vector<Token> tokens_;
};

void scale_to_length_one(std::span<double> row) {
  double square = 0;
  for (const double x : row) square += x * x;
  const double factor = square > 0 ? 1 / std::sqrt(square) : 0;
  for (double& x : row) x *= factor;
}

/// Random directions for queries; keys of the families that are about keys are fewer.
class Directions {
 public:
  explicit Directions(const CaseLine& line)
      : line_(line), q_(line.seed, "q"), k_(line.seed, "k"), common_(line.seed, "k common") {}

  void query(const Row& row, std::span<double> out) const {
    if (line_.family == Family::kIdentical) return key(row, out);
    random(q_, row, out);
    if (!line_.l2norm) scale_to_length_one(out);
  }

  void key(const Row& row, std::span<double> out) const {
    if (row.token == Token::kPad) return std::fill(out.begin(), out.end(), 0.0);
    const Row whole_head{0, 0, row.head, Token::kReal};
    switch (line_.family) {
      case Family::kIdentical:
      case Family::kAlternating: random(common_, whole_head, out); break;
      case Family::kCollinear: near_common(row, whole_head, out); break;
      default: random(k_, row, out);
    }
    if (!line_.l2norm) scale_to_length_one(out);
    if (line_.family == Family::kAlternating && row.t % 2 == 1) {
      for (double& x : out) x = -x;
    }
  }

 private:
  static void random(const CounterRng& rng, const Row& row, std::span<double> out) {
    rng.normal_row(row.b, row.t, row.head, out);
  }

  void near_common(const Row& row, const Row& whole_head, std::span<double> out) const {
    constexpr double kNoise = 0.1;
    random(common_, whole_head, out);
    for (std::size_t c = 0; c < out.size(); ++c) {
      out[c] += kNoise * k_.normal(row.b, row.t, row.head, static_cast<std::int64_t>(c));
    }
  }

  const CaseLine& line_;
  CounterRng q_;
  CounterRng k_;
  CounterRng common_;
};

/// Powers of ten from 1e-6 to 1e4, exactly the literals.
double decade(std::int64_t exponent) {
  constexpr std::array<double, 11> kDecades = {1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1,
                                               1,    10,   1e2,  1e3,  1e4};
  return kDecades[static_cast<std::size_t>(exponent + 6)];
}

Tensor make_values(const CaseLine& line, const RowFiller& rows) {
  const CounterRng rng(line.seed, "v");
  return rows.fill(line.dtype, line.HV, line.V, [&](const Row& row, std::span<double> out) {
    if (row.token == Token::kPad) return std::fill(out.begin(), out.end(), 0.0);
    rng.normal_row(row.b, row.t, row.head, out);
    if (line.family != Family::kWildState) return;
    for (std::size_t c = 0; c < out.size(); ++c) {
      out[c] *= decade(static_cast<std::int64_t>(c) % 7 - 3);
    }
  });
}

Tensor make_beta(const CaseLine& line, const RowFiller& rows) {
  const CounterRng rng(line.seed, "beta");
  return rows.fill(line.beta_dtype, line.HV, [&](const Row& row, std::span<double> out) {
    out[0] = beta_value(line, row.token == Token::kPad, rng, row.b, row.t, row.head);
  });
}

Tensor make_gate(const CaseLine& line, const RowFiller& rows) {
  const GateFill gate(line);
  return rows.fill(line.g_dtype, line.HV, line.K, [&](const Row& row, std::span<double> out) {
    gate.row(row.b, row.t, row.head, row.token == Token::kPad, out);
  });
}

/// Numbers by (n, head, k, v), wherever the layout puts them.
Tensor make_initial_state(const CaseLine& line, std::int64_t sequences) {
  constexpr double kSize = 0.25;  // about what v = 1 and unit keys leave behind
  const CounterRng rng(line.seed, "initial_state");
  Tensor state(Dtype::kF32, line.v_first ? Shape{sequences, line.HV, line.V, line.K}
                                         : Shape{sequences, line.HV, line.K, line.V});
  in_parallel(sequences * line.HV, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t k = 0; k < line.K; ++k) {
        const double size = line.family == Family::kWildState ? decade(k % 11 - 6) : kSize;
        for (std::int64_t v = 0; v < line.V; ++v) {
          const std::int64_t inner = line.v_first ? v * line.K + k : k * line.V + v;
          state.store(i * line.K * line.V + inner,
                      size * rng.normal(i / line.HV, i % line.HV, k, v));
        }
      }
    }
  });
  return state;
}

Tensor make_cu_seqlens(const std::vector<std::int64_t>& lens) {
  Tensor bounds(Dtype::kI64, {static_cast<std::int64_t>(lens.size()) + 1});
  std::partial_sum(lens.begin(), lens.end(), bounds.as<std::int64_t>() + 1);
  return bounds;
}

}  // namespace

KdaCase fill(const CaseLine& line) {
  const RowFiller rows(line);
  const Directions directions(line);
  KdaCase made;
  made.contract = contract_of(line.op).value();
  made.inputs["q"] =
      rows.fill(line.dtype, line.H, line.K,
                [&](const Row& row, std::span<double> out) { directions.query(row, out); });
  made.inputs["k"] =
      rows.fill(line.dtype, line.H, line.K,
                [&](const Row& row, std::span<double> out) { directions.key(row, out); });
  made.inputs["v"] = make_values(line, rows);
  made.inputs["g"] = make_gate(line, rows);
  made.inputs["beta"] = make_beta(line, rows);
  if (line.gate != GateForm::kLogDecay) {
    made.inputs["A_log"] = make_a_log(line);
    made.inputs["dt_bias"] = make_dt_bias(line);
  }
  if (line.lens) made.inputs["cu_seqlens"] = make_cu_seqlens(*line.lens);
  if (line.initial_state) {
    const auto sequences = line.lens ? static_cast<std::int64_t>(line.lens->size()) : line.B;
    made.inputs["initial_state"] = make_initial_state(line, sequences);
  }
  return made;
}

}  // namespace kda::harness
