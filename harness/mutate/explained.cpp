#include "harness/mutate/score.hpp"

namespace kda::harness::mutate {

const std::map<std::string, std::string>& explained_survivors() {
  static const std::map<std::string, std::string> kExplained{
      {"gate_clamped_at_20", "e^-20 of a value is below half a unit in the last place of its f32"},
      {"gate_small_in_steps", "6e-8 a token is one rounding of f32 more"},
      {"gate_two_bf16", "2^-17 of a log decay moves a decay by less than f32 sums do"}};
  return kExplained;
}

const std::vector<HarmlessMutant>& harmless_mutants() {
  static const std::vector<HarmlessMutant> kHarmless{
      {"cuda-prefill: drop warp barrier 2 of prefill_inverse.hpp",
       "device::sync_warp();  // all have read what is overwritten now",
       "what merge_16 overwrites is an operand of an mma before it: no lane is past that before "
       "all "
       "have read"},
      {"cuda-prefill: wrong lane of shuffle 1 of prefill_factors.hpp",
       "device::shuffle_idx(power, 4 * r)",
       "combine_across leaves the same number in lanes 4 r to 4 r + 3"},
      {"cuda-prefill: full partial copy 1 of prefill_rows.hpp",
       "p.g.data + at * 4, inside ? 16 : 0",
       "rows past the end then get g of the chunk's first row, and make_decays takes 0 for them"},
      {"cuda-prefill: full partial copy 2 of prefill_rows.hpp", "p.g.data + at * 2, inside ? 8 : 0",
       "rows past the end then get g of the chunk's first row, and make_decays takes 0 for them"},
      {"cuda-prefill: full partial copy 1 of prefill_chain.hpp",
       "p.v.data + at * 2, inside ? 16 : 0",
       "rows past the end then get v of the chunk's first row; their columns of T are 0, for their "
       "beta is"},
      {"cuda-prefill: drop warp barrier 1 of prefill_factors.hpp",
       "device::sync_warp();  // all have their decays in registers",
       "a lane clears the very pieces that it alone has read: piece n 32 + lane of the warp's "
       "part"},
  };
  return kHarmless;
}

}  // namespace kda::harness::mutate
