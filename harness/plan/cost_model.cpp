#include "harness/plan/cost_model.hpp"

#include <algorithm>

namespace kda::harness {
namespace {

constexpr std::int64_t kChunk = 64;
constexpr std::int64_t kWidth = 128;
constexpr std::int64_t kTile = kChunk * kWidth * 2;  // bytes of a 16-bit [64,128] operand
constexpr std::int64_t kTriangle = 5120;             // of the ten blocks of T or Q, one part
constexpr std::int64_t kVectors = 1024 + 768;        // channel factors; token scales
constexpr double kState = kWidth * kWidth * 4.0;

constexpr std::int64_t kSchedulers = 4;  // of an SM
constexpr double kSharedBytes = 128;     // a cycle and SM
constexpr std::int64_t kWarpColumns = 16;
/// Instructions that one scheduler issues for a chunk of the first kernel, and the share of cycles
/// in which a scheduler with two blocks' warps issues one.
constexpr double kFactorSlots = 3900;
constexpr double kIssueRate = 0.65;
/// From the bounds of the model to what a tuned pipeline keeps of them.
constexpr double kExpectedOverIdeal = 1.38;

// H200: copy bandwidth measured by others; L2 and the rate of mma.sync (about 60% of what wgmma
// reaches) are assumptions, as are all of B200's but its data sheet.
constexpr std::array kDevices{
    DeviceModel{"A100", 108, 1.41e9, 1.75e12, 3.5e12, 8.5, 312e12},
    DeviceModel{"H100", 132, 1.755e9, 3.0e12, 5.5e12, 7, 790e12},
    DeviceModel{"H200", 132, 1.755e9, 4.3e12, 5.5e12, 7, 790e12},
    DeviceModel{"B200", 148, 1.85e9, 7.2e12, 9e12, 8, 1800e12},
};

/// Parts (1 or 2) of the operands that differ between policies, and the products of each kind.
struct Parts {
  std::int64_t level;    ///< products of the level blocks of the first kernel
  std::int64_t gated;    ///< parts of Kg and Qg
  std::int64_t written;  ///< parts of Kd
  std::int64_t scores;   ///< parts of Q
  std::int64_t P;        ///< products of Kg S and Qg S
  std::int64_t U;        ///< of T R
  std::int64_t O;        ///< of Q U
  std::int64_t S;        ///< of Kd^T U
};

constexpr Parts parts(OperandPolicy policy) {
  switch (policy) {
    case OperandPolicy::kMixed: return {1, 1, 2, 2, 1, 3, 3, 3};
    case OperandPolicy::kSplit: return {3, 2, 2, 2, 3, 3, 3, 3};
    case OperandPolicy::kSingle: return {1, 1, 1, 1, 1, 2, 1, 1};
  }
  return {};
}

double total_tokens(const Semantics& s) {
  std::int64_t tokens = 0;
  for (const Sequence& sequence : s.sequences) tokens += sequence.length();
  return static_cast<double>(tokens);
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t longest(const Semantics& s) {
  std::int64_t tokens = 0;
  for (const Sequence& sequence : s.sequences) tokens = std::max(tokens, sequence.length());
  return tokens;
}

/// Bytes of every input and output, each once.
double bytes_once(const Semantics& s, const Problem& p, double state_bytes) {
  const double tokens = total_tokens(s);
  const auto of = [&](const TensorView& x, std::int64_t heads, std::int64_t width) {
    return tokens * static_cast<double>(heads * width * size_of(x.dtype));
  };
  const double states = static_cast<double>(s.N() * s.HV) * state_bytes;
  return of(p.q, s.H, s.K) + of(p.k, s.H, s.K) + of(p.g, s.HV, s.K) + of(p.beta, s.HV, 1) +
         2 * of(p.v, s.HV, s.V) + (p.initial_state ? states : 0) + (s.final_state ? states : 0) +
         (s.chunk_states ? static_cast<double>(s.num_chunks * s.HV) * state_bytes : 0);
}

}  // namespace

std::span<const DeviceModel> device_models() noexcept { return kDevices; }

std::string_view name(OperandPolicy policy) noexcept {
  switch (policy) {
    case OperandPolicy::kMixed: return "mixed";
    case OperandPolicy::kSplit: return "split";
    case OperandPolicy::kSingle: return "bf16";
  }
  return "?";
}

PrefillWork prefill_work(const Semantics& s, const Problem& p, OperandPolicy policy) {
  const Parts n = parts(policy);
  const double tokens = total_tokens(s);
  const double rows = tokens * static_cast<double>(s.HV);
  const double states = static_cast<double>(s.N() * s.HV) * kState;
  PrefillWork work;
  work.chunks = s.num_chunks * s.HV;
  work.serial_steps = ceil_div(longest(s), kChunk);
  work.heads = s.N() * s.HV;
  work.minimum_bytes = bytes_once(s, p, kState);
  // Per token and head: 6 K V for reads and writes of the state, 3 C K for scores, C^2 for T.
  work.minimum_flop =
      rows * (6.0 * kWidth * kWidth + 3.0 * kChunk * kWidth + 1.0 * kChunk * kChunk);
  work.factor_read = rows * (kWidth * (2.0 * 2 + static_cast<double>(size_of(p.g.dtype))) +
                             static_cast<double>(size_of(p.beta.dtype)));
  const std::int64_t blob =
      (2 * n.gated + n.written) * kTile + (2 + n.scores) * kTriangle + kVectors;
  work.workspace = static_cast<double>(work.chunks * blob);
  work.chain_read = rows * kWidth * 2.0 + (p.initial_state ? states : 0);
  work.chain_written = rows * kWidth * 2.0 + (s.final_state ? states : 0) +
                       (s.chunk_states ? static_cast<double>(work.chunks) * kState : 0);
  work.factor_matrix = 224 * n.level + 120;
  work.chain_matrix = 128 * n.P + 20 * n.U + 20 * n.O + 64 * n.S;
  work.chain_fragments = 128 * n.gated + 64 * n.written + 40 + 20 * n.scores;
  return work;
}

PrefillTime prefill_time(const PrefillWork& work, const DeviceModel& device) {
  PrefillTime time;
  time.floor =
      std::max(work.minimum_bytes / device.hbm_bytes_s, work.minimum_flop / device.matrix_flop_s);
  time.factor_hbm = (work.factor_read + work.workspace) / device.hbm_bytes_s;
  time.factor_issue = static_cast<double>(work.chunks) / static_cast<double>(device.sms) *
                      kFactorSlots / (device.clock_hz * kIssueRate);

  // Blocks of 64 columns unless twice as many would still have an SM each.
  time.chain_columns = work.heads * (kWidth / 32) <= device.sms ? 32 : 64;
  const std::int64_t slices = kWidth / time.chain_columns;
  time.chain_blocks = work.heads * slices;
  const auto chains = static_cast<double>(time.chain_blocks);
  const double mean_steps = static_cast<double>(work.chunks) / static_cast<double>(work.heads);
  // An SM works through its blocks, all at once or one after the other; a lone chain waits for
  // itself. Chunks of 16 columns by the busiest scheduler:
  const auto rounds = static_cast<double>(ceil_div(time.chain_blocks, device.sms));
  const double chunks = std::max(static_cast<double>(work.serial_steps), rounds * mean_steps);
  const std::int64_t warps_a_block = time.chain_columns / kWarpColumns;
  const auto warps = static_cast<double>(warps_a_block);
  time.chain_matrix = chunks * static_cast<double>(work.chain_matrix) * device.matrix_cycles *
                      std::max(1.0, warps / static_cast<double>(kSchedulers)) / device.clock_hz;
  time.chain_shared = chunks * warps * static_cast<double>(work.chain_fragments) * 256 /
                      kSharedBytes / device.clock_hz;
  time.chain_l2 = (static_cast<double>(slices) * work.workspace +
                   chains * mean_steps * kChunk * static_cast<double>(time.chain_columns) * 2) /
                  device.l2_bytes_s;
  time.chain_hbm = (work.workspace + work.chain_read + work.chain_written) / device.hbm_bytes_s;
  time.ideal = std::max(time.factor_hbm, time.factor_issue) +
               std::max({time.chain_matrix, time.chain_shared, time.chain_l2, time.chain_hbm});
  time.expected = kExpectedOverIdeal * time.ideal;
  return time;
}

RecurrentCost recurrent_cost(const Semantics& s, const Problem& p) {
  constexpr std::int64_t kColumns = 32;
  return {.bytes = bytes_once(s, p, static_cast<double>(s.K * s.V) * 4),
          .blocks = s.N() * s.HV * ceil_div(s.V, kColumns),
          .serial_steps = longest(s)};
}

double recurrent_floor(const RecurrentCost& cost, const DeviceModel& device) {
  return cost.bytes / device.hbm_bytes_s;
}

}  // namespace kda::harness
