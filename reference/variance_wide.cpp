#include "reference/variance_isa.hpp"

// The variance bound in f64, compiled once per instruction set with KDA_ISA and KDA_VARIANCE_KERNEL
// (name of the table).

namespace kda::reference {
namespace {

long scratch_bytes(int tokens, int K, int V) {
  return KDA_ISA::scratch_size(tokens, K, V) * static_cast<long>(sizeof(double));
}

bool advance(BoundBlock& block, const BoundFactors& factors, void* scratch) {
  return KDA_ISA::advance(block, factors, static_cast<double*>(scratch));
}

}  // namespace

extern const VarianceKernel KDA_VARIANCE_KERNEL{scratch_bytes, nullptr, advance, nullptr};

}  // namespace kda::reference
