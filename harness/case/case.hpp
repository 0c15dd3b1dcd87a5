#pragma once

#include "reference/types/error.hpp"
#include "reference/types/problem.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kda::harness {

/// What a case asks for: one of the KDA contracts, the latency fit, or a chunk-size prediction.
enum class Op : std::uint8_t { kKdaPrefill, kChunkKda, kRecurrentKda, kFit, kPredict };

[[nodiscard]] std::string_view name(Op op) noexcept;
[[nodiscard]] std::optional<Op> find_op(std::string_view name) noexcept;
/// The contract a KDA op is named after; nothing for kFit and kPredict.
[[nodiscard]] std::optional<Contract> contract_of(Op op) noexcept;

/// Owned inputs of a KDA call, keyed "q", "k", "v", "g", "beta", "A_log", "dt_bias",
/// "initial_state", "cu_seqlens", and its options.
struct KdaCase {
  Contract contract = Contract::kKdaPrefill;
  std::map<std::string, Tensor> inputs;
  Problem options;  ///< params only; its views are empty, `problem()` fills them

  /// The call as the entry point sees it. Views live as long as this case.
  [[nodiscard]] Problem problem() const;
};

/// What the contract makes of the call; nothing where it refuses it.
[[nodiscard]] std::optional<Semantics> accepted(const KdaCase& kda_case);

/// Latency samples for the quadratic fit. Lengths in tokens, latencies in ms.
struct FitCase {
  std::vector<std::int64_t> seq_lens;
  std::vector<double> latencies;
  std::optional<std::int64_t> base_chunk_size;  ///< wanted for target_latency
};

/// One question to the chunk-size predictor.
struct PredictCase {
  std::optional<double> a;  ///< a, b, c absent = no coefficients yet
  std::optional<double> b;
  std::optional<double> c;
  std::int64_t base_chunk_size = 0;
  std::optional<double> target_latency;  ///< ms; absent = derived from the base
  bool no_target = false;
  std::int64_t history_len = 0;
  std::int64_t page_size = 64;
  std::int64_t context_len = 0;
  std::optional<std::int64_t> max_chunk_size;
  double smooth_factor = 0.75;
};

/// What the oracle says about a fit.
struct FitExpected {
  std::optional<double> a;
  std::optional<double> b;
  std::optional<double> c;
  std::optional<double> target_latency;  ///< ms
  std::optional<std::string> warning;    ///< code name, "fit_b_negative"
  std::optional<double> raw_a;           ///< given beside an error
  std::optional<double> raw_b;
  std::optional<double> raw_c;
};

/// What the oracle says about a prediction: a chunk size, or the reason why there is none.
struct PredictExpected {
  std::optional<std::int64_t> chunk_size;
  std::optional<std::string> none;
};

/// The right answer: tensors "o", "final_state", "h" by name, numbers, or the error that must be
/// raised (its code by name, since files may name codes that only matter as text).
struct Expected {
  std::optional<std::string> error;
  std::map<std::string, Tensor> tensors;
  FitExpected fit;
  PredictExpected predict;
};

/// One case with where it comes from. `expected` is absent for cases made on the spot; then the
/// reference supplies the answer.
struct Case {
  std::string name;
  std::string description;
  std::string tags;    ///< comma-separated
  std::string oracle;  ///< what made `expected`
  Op op = Op::kKdaPrefill;
  std::variant<KdaCase, FitCase, PredictCase> inputs;
  std::optional<Expected> expected;
  std::filesystem::path file;  ///< empty for case lines
  std::string line;            ///< the case line, empty for files
};

}  // namespace kda::harness
