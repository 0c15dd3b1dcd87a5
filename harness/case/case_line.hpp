#pragma once

#include "harness/case/case.hpp"
#include "harness/case/fill_family.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kda::harness {

/// A KDA case described in one line of text. Keys, in canonical order ("*" = required):
///
///   op*=kda_prefill|chunk_kda|recurrent_kda   B  T  H  HV  K  V     extents; HV defaults to H
///   lens=5,0,7     sequence lengths, cu_seqlens (int64) = their running sums; T defaults to the
///   sum
///                  and may be larger (rows beyond belong to no sequence)
///   dtype=bf16|f16|f32   of q, k, v;   g_dtype, beta_dtype   default to dtype
///   chunk=64   scale=X   gate=none|softplus|bound   lower_bound=-5 (gate=bound only)
///   safe_gate l2norm beta_sigmoid neg_eigval v_first initial_state final_state h   flags 0|1
///   family=NAME (see fill_family.hpp)   seed=N
///
/// Defaults: B=1 T=64 H=1 HV=H K=V=128 dtype=bf16 chunk=64 gate=none flags 0 family=ordinary
/// seed=0.
struct CaseLine {
  Op op = Op::kKdaPrefill;
  std::int64_t B = 1;
  std::int64_t T = 64;
  std::int64_t H = 1;
  std::int64_t HV = 1;
  std::int64_t K = 128;
  std::int64_t V = 128;
  std::optional<std::vector<std::int64_t>> lens;
  Dtype dtype = Dtype::kBf16;
  Dtype g_dtype = Dtype::kBf16;
  Dtype beta_dtype = Dtype::kBf16;
  std::int64_t chunk = 64;
  std::optional<double> scale;
  GateForm gate = GateForm::kLogDecay;
  double lower_bound = -5;  ///< used by GateForm::kLowerBound only
  bool safe_gate = false;
  bool l2norm = false;
  bool beta_sigmoid = false;
  bool neg_eigval = false;
  bool v_first = false;
  bool initial_state = false;
  bool final_state = false;
  bool h = false;
  Family family = Family::kOrdinary;
  std::uint64_t seed = 0;

  friend bool operator==(const CaseLine&, const CaseLine&) = default;
};

/// Throws kCaseLineInvalid: the key, wanted, got; for an unknown key or value the nearest known
/// one.
[[nodiscard]] CaseLine parse_case_line(std::string_view text);

/// Canonical text: op and extents always, the rest where it differs from the default. Parsing it
/// gives the same line.
[[nodiscard]] std::string to_string(const CaseLine& line);

/// The lines of a list: blank lines and what follows `#` are skipped.
/// Throws kPathNotFound, and kCaseLineInvalid with file and line number.
[[nodiscard]] std::vector<CaseLine> read_case_list(const std::filesystem::path& file);

/// The options of the call; the views of its tensors are empty.
[[nodiscard]] Problem call_options(const CaseLine& line);

/// The case with its inputs filled in (fill.hpp); `name` and `line` are the canonical text,
/// `expected` is absent. Nothing but memory limits the extents; whether the contract accepts the
/// case is for `check` to say.
[[nodiscard]] Case make_case(const CaseLine& line);

}  // namespace kda::harness
