#include "harness/mutate/score.hpp"

namespace kda::harness::mutate {

const std::map<std::string, std::string>& explained_survivors() {
  static const std::map<std::string, std::string> kExplained{
      {"gate_clamped_at_20", "e^-20 of a value is below half a unit in the last place of its f32"},
      {"gate_small_in_steps", "6e-8 a token is one rounding of f32 more"},
      {"gate_two_bf16", "2^-17 of a log decay moves a decay by less than f32 sums do"}};
  return kExplained;
}

}  // namespace kda::harness::mutate
