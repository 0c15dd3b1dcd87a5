#include "harness/mutate/mutant.hpp"

#include "reference/types/contract.hpp"

namespace kda::harness::mutate {

Outputs run(const Mutant& mutant, const KdaCase& kda_case, Precision precision) {
  Call call{kda_case, check(kda_case.contract, kda_case.problem())};
  if (mutant.read != nullptr) mutant.read(call);
  Activated a = activate(call);
  a.operands = kda_case.inputs.at("v").dtype();
  if (mutant.edit != nullptr) mutant.edit(a);
  Outputs outputs = mutant.form == Mutant::Form::kTokens ? run_tokens(a, mutant.token, precision)
                                                         : run_chunks(a, mutant.chunk, precision);
  if (mutant.write != nullptr) mutant.write(outputs, a);
  return outputs;
}

Mutant honest(Mutant::Form form) {
  return {.name = form == Mutant::Form::kTokens ? "honest tokens" : "honest chunks",
          .what = "no mistake",
          .form = form};
}

Implementation implementation_of(const Mutant& mutant) {
  return {.name = mutant.name,
          .description = mutant.what,
          .ops = {Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda},
          .limit = {},
          .run = [mutant](const Case& test_case, const KernelSettings&) -> Answer {
            return run(mutant, std::get<KdaCase>(test_case.inputs), Precision::kWorking);
          },
          .by_head = false};
}

std::vector<Mutant> together(std::initializer_list<std::vector<Mutant>> parts) {
  std::vector<Mutant> all;
  for (const std::vector<Mutant>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

std::vector<Mutant> value_mutants() {
  return together({option_mutants(), norm_mutants(), gate_mutants(), token_mutants(),
                   head_mutants(), sequence_mutants(), order_mutants(), chunk_mutants(),
                   output_mutants(), state_mutants()});
}

}  // namespace kda::harness::mutate
