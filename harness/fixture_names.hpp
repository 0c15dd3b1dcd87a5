#pragma once

#include "harness/case.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

// The names that fixtures use, once for reading and writing, and where each value lives.

namespace kda::harness {

inline constexpr std::string_view kFormat = "kdacheck-fixture";
inline constexpr std::int32_t kVersion = 1;

/// A named value of a struct.
template <class Owner, class Value>
struct Field {
  std::string_view name;
  Value Owner::*member;
};

inline constexpr auto kRequiredInputs =
    std::to_array<std::string_view>({"q", "k", "v", "g", "beta"});
inline constexpr auto kOptionalInputs =
    std::to_array<std::string_view>({"A_log", "dt_bias", "initial_state", "cu_seqlens"});
inline constexpr auto kFitInputs = std::to_array<std::string_view>({"seq_lens", "latencies"});
inline constexpr auto kTensors = std::to_array<std::string_view>({"o", "final_state", "h"});

inline constexpr std::string_view kChunkSize = "chunk_size";
inline constexpr std::string_view kBaseChunkSize = "base_chunk_size";

inline constexpr auto kKdaFlags = std::to_array<Field<Problem, bool>>({
    {"use_qk_l2norm_in_kernel", &Problem::use_qk_l2norm_in_kernel},
    {"use_gate_in_kernel", &Problem::use_gate_in_kernel},
    {"safe_gate", &Problem::safe_gate},
    {"use_beta_sigmoid_in_kernel", &Problem::use_beta_sigmoid_in_kernel},
    {"allow_neg_eigval", &Problem::allow_neg_eigval},
    {"state_v_first", &Problem::state_v_first},
    {"output_final_state", &Problem::output_final_state},
    {"return_intermediate_states", &Problem::return_intermediate_states},
    {"cp_context", &Problem::cp_context},
    {"disable_recompute", &Problem::disable_recompute},
});
inline constexpr auto kKdaReals = std::to_array<Field<Problem, std::optional<double>>>({
    {"scale", &Problem::scale},
    {"lower_bound", &Problem::lower_bound},
});

inline constexpr auto kPredictReals = std::to_array<Field<PredictCase, std::optional<double>>>({
    {"a", &PredictCase::a},
    {"b", &PredictCase::b},
    {"c", &PredictCase::c},
    {"target_latency", &PredictCase::target_latency},
});
inline constexpr auto kPredictIntegers = std::to_array<Field<PredictCase, std::int64_t>>({
    {kBaseChunkSize, &PredictCase::base_chunk_size},
    {"history_len", &PredictCase::history_len},
    {"page_size", &PredictCase::page_size},
    {"context_len", &PredictCase::context_len},
});
inline constexpr std::string_view kMaxChunkSize = "max_chunk_size";
inline constexpr std::string_view kSmoothFactor = "smooth_factor";
inline constexpr std::string_view kNoTarget = "no_target";

inline constexpr std::string_view kError = "error";
inline constexpr std::string_view kWarning = "warning";
inline constexpr std::string_view kNone = "none";
inline constexpr auto kFitCoefficients = std::to_array<Field<FitExpected, std::optional<double>>>({
    {"a", &FitExpected::a},
    {"b", &FitExpected::b},
    {"c", &FitExpected::c},
});
inline constexpr auto kFitExtras = std::to_array<Field<FitExpected, std::optional<double>>>({
    {"target_latency", &FitExpected::target_latency},
    {"raw_a", &FitExpected::raw_a},
    {"raw_b", &FitExpected::raw_b},
    {"raw_c", &FitExpected::raw_c},
});

}  // namespace kda::harness
