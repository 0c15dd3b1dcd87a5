#include "bench/fma_rate.hpp"

// Compiled once per instruction set with KDA_FMA_ROUNDS (name of the function) and KDA_FAST_LANES,
// with the flags of the kernel it is a measure for. a * b + c on the compiler's vector type is
// std::fma on every lane, in one instruction, where the instruction set has it; the baseline of
// x86-64 has only the product and the sum. Must not include the standard library: an inline
// function compiled here could be the copy that the whole program uses.

namespace kda::bench {
namespace {

constexpr int kLanes = KDA_FAST_LANES;
using Vec [[gnu::vector_size(kLanes * 8)]] = double;

}  // namespace

double KDA_FMA_ROUNDS(long long rounds) {
  Vec x[kFmaChains];
  for (int chain = 0; chain < kFmaChains; ++chain) x[chain] = Vec{} + chain;
  for (long long round = 0; round < rounds; ++round) {
    for (Vec& chain : x) chain = chain * 0.999999 + 1e-6;
  }
  Vec sum{};
  for (const Vec& chain : x) sum += chain;
  return sum[0];
}

}  // namespace kda::bench
