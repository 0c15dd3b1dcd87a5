#pragma once

#include "reference/types/problem.hpp"

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

// What a call costs on a device, as numbers from its shape: bytes, matrix instructions, blocks,
// serial steps, and the time that the slowest of them takes. A model, not a measurement: no launch
// overhead, no cold start, perfect overlap inside a kernel and none between kernels.

namespace kda::harness {

/// A GPU as the model sees it. Bandwidths are what copies reach, not what data sheets say.
struct DeviceModel {
  std::string_view name;
  std::int64_t sms;
  double clock_hz;
  double hbm_bytes_s;
  double l2_bytes_s;
  double matrix_cycles;  ///< per warp-wide m16n8k16 of mma.sync, one scheduler
  double matrix_flop_s;  ///< dense bf16, for the floor
};

/// A100 (SXM, 80 GB), H100 (SXM), H200, B200.
[[nodiscard]] std::span<const DeviceModel> device_models() noexcept;

/// How operands of the prefill kernel's matrix products are held.
enum class OperandPolicy : std::uint8_t {
  kMixed,   ///< f16 with scales where that is enough, else two bf16: the default
  kSplit,   ///< two bf16 everywhere
  kSingle,  ///< one bf16 everywhere but in the inverse
};
inline constexpr std::array kOperandPolicies{OperandPolicy::kMixed, OperandPolicy::kSplit,
                                             OperandPolicy::kSingle};
[[nodiscard]] std::string_view name(OperandPolicy policy) noexcept;

/// What a call moves and does, whatever the device.
struct PrefillWork {
  std::int64_t chunks = 0;         ///< of 64 tokens, times value heads: blocks of the first kernel
  std::int64_t serial_steps = 0;   ///< chunks of the longest sequence
  std::int64_t heads = 0;          ///< sequences times value heads: chains
  double minimum_bytes = 0;        ///< every tensor once: what no kernel can do without
  double minimum_flop = 0;         ///< of the chunked form with chunks of 64
  double factor_read = 0;          ///< first kernel: q, k, g, beta
  double workspace = 0;            ///< written by the first kernel and read by the second
  double chain_read = 0;           ///< second kernel beside the workspace: v and the initial state
  double chain_written = 0;        ///< o, final state, chunk states
  std::int64_t factor_matrix = 0;  ///< matrix instructions of a block of the first kernel
  std::int64_t chain_matrix = 0;   ///< of a warp (16 value columns) and chunk of the second
  std::int64_t chain_fragments = 0;  ///< 256-byte operand fragments that it loads for them
};

/// Seconds. The kernels run one after the other, so the time is the sum of the two bounds.
struct PrefillTime {
  std::int64_t chain_columns = 0;  ///< value columns of a block of the second kernel: 64 or 32
  std::int64_t chain_blocks = 0;
  double floor = 0;  ///< minimum bytes or operations
  double factor_hbm = 0;
  double factor_issue = 0;
  double chain_matrix = 0;
  double chain_shared = 0;
  double chain_l2 = 0;
  double chain_hbm = 0;
  double ideal = 0;     ///< the two slowest, added
  double expected = 0;  ///< what a tuned kernel is expected to reach
};

/// `semantics` must be what `check` made of `problem`, with K = V = 128 and chunk 64.
[[nodiscard]] PrefillWork prefill_work(const Semantics& semantics, const Problem& problem,
                                       OperandPolicy policy);
[[nodiscard]] PrefillTime prefill_time(const PrefillWork& work, const DeviceModel& device);

/// The token recurrence: bound by memory when there are enough chains, else by its serial steps.
struct RecurrentCost {
  double bytes = 0;
  std::int64_t blocks = 0;
  std::int64_t serial_steps = 0;
};
[[nodiscard]] RecurrentCost recurrent_cost(const Semantics& semantics, const Problem& problem);
[[nodiscard]] double recurrent_floor(const RecurrentCost& cost, const DeviceModel& device);

}  // namespace kda::harness
