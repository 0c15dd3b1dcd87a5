// The honest kernels of tests/reference as a program to judge:
//
//   kdacheck fuzz --impl "exec:honest_program 'chunk 64 bf16' {in} {out}"
//
// It states its formats in the result. Exit status 2 for a kernel that there is not.

#include "harness/compare/formats.hpp"
#include "harness/fixture/fixture.hpp"
#include "reference/types/contract.hpp"
#include "tests/reference/honest_kernel.hpp"

#include <algorithm>
#include <iostream>
#include <string>

namespace kda::tests {
namespace {

using harness::Result;

Result answer(HonestKernel kernel, const harness::KdaCase& kda_case) {
  const Problem problem = kda_case.problem();
  Result result;
  try {
    const Semantics semantics = check(kda_case.contract, problem);
    kernel.output = problem.v.dtype;
    Outputs outputs = run(kernel, problem, semantics);
    result.tensors.emplace("o", std::move(outputs.o));
    if (outputs.final_state) result.tensors.emplace("final_state", std::move(*outputs.final_state));
    if (outputs.h) result.tensors.emplace("h", std::move(*outputs.h));
    reference::Formats formats = formats_of(kernel);
    // run() solves for no more tokens at once than the case has in a chunk.
    if (kernel.chunk > 1) formats.block = std::min(kernel.chunk, semantics.chunk);
    result.formats = harness::to_string(formats);
  } catch (const Error& error) {
    result.error = name(error.code());
    result.message = error.message();
  }
  return result;
}

int judge_me(const std::string& kernel, const std::string& in, const std::string& out) {
  const std::vector<HonestKernel> kernels = honest_kernels();
  const auto found = std::ranges::find(kernels, kernel, &HonestKernel::name);
  if (found == kernels.end()) {
    std::cerr << "no kernel " << kernel << "; there are:\n";
    for (const HonestKernel& known : kernels) std::cerr << known.name << "\n";
    return 2;
  }
  const harness::Case test_case = harness::read_fixture(in);
  harness::write_result(out, answer(*found, std::get<harness::KdaCase>(test_case.inputs)));
  return 0;
}

}  // namespace
}  // namespace kda::tests

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: honest_program KERNEL IN OUT\n";
    return 2;
  }
  return kda::tests::judge_me(argv[1], argv[2], argv[3]);
}
