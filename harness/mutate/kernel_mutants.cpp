#include "harness/case/named_outputs.hpp"
#include "harness/case/same_bits.hpp"
#include "harness/mutate/judging.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <functional>
#include <map>

#include <fmt/format.h>

// Faults injected by the executor into a CUDA kernel (cuda/simt/mutation.hpp).

namespace kda::harness::mutate {
namespace {

KernelSettings on_executor() {
  KernelSettings settings;
  settings.device = DeviceChoice::kCpu;
  return settings;
}

/// Schedules that show what only some of them show.
KernelSettings under_schedules() {
  KernelSettings settings = on_executor();
  settings.order = cuda::simt::Order::kPct;
  settings.seeds = 2;
  settings.copies = CopyTiming::kBoth;
  return settings;
}

std::vector<std::size_t> kernel_cases(const Bench& bench, const Implementation& kernel) {
  std::vector<std::size_t> cases;
  for (std::size_t i = 0; i < bench.suite().size(); ++i) {
    const SuiteCase& one = bench.suite()[i];
    if (one.kernels && !unsupported(kernel, one.test_case)) cases.push_back(i);
  }
  return cases;
}

/// Effect of the fault in order, the values that came without and with it.
struct Measured {
  double effect = 0;
  bool changed = false;
  bool reported = false;  ///< by the executor
};

Measured measure(const Bench& bench, const KernelMutant& mutant,
                 const std::vector<std::size_t>& cases) {
  Measured measured;
  KernelSettings settings = on_executor();
  for (const std::size_t i : cases) {
    const Case& test_case = bench.suite()[i].test_case;
    const auto& kda_case = std::get<KdaCase>(test_case.inputs);
    try {
      settings.mutation = nullptr;
      const auto right = std::get<Outputs>(mutant.kernel->run(test_case, settings));
      settings.mutation = &mutant.mutation;
      const auto got = std::get<Outputs>(mutant.kernel->run(test_case, settings));
      if (same_bits(right, got)) continue;
      measured.changed = true;
      const Semantics semantics = check(kda_case.contract, kda_case.problem());
      measured.effect = std::max(
          measured.effect, element_share(compare(kda_case, semantics, test_case.expected->tensors,
                                                 by_name(got), default_policy(got.o.dtype()))));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::kExecutorFault) continue;  // a case that must be refused
      measured.reported = true;
    }
    if (measured.effect > 10) break;
  }
  return measured;
}

}  // namespace

std::vector<KernelMutant> kernel_mutants(Bench& bench, const Implementation& kernel) {
  bench.admit(kernel, kernel_cases(bench, kernel), on_executor());
  cuda::simt::SiteLog log;
  KernelSettings settings = on_executor();
  settings.sites = &log;
  for (const std::size_t i : kernel_cases(bench, kernel)) {
    try {
      static_cast<void>(kernel.run(bench.suite()[i].test_case, settings));
    } catch (const Error&) {  // NOLINT(bugprone-empty-catch): a case that must be refused
    }
  }
  // Numbered in the order of lines, not by line, so that names outlive edits elsewhere.
  std::vector<cuda::simt::Mutation> all = log.mutations();
  std::ranges::stable_sort(all, std::less{}, [](const auto& m) { return m.site.line; });
  std::map<std::string, int> numbers;
  std::vector<KernelMutant> mutants;
  for (const cuda::simt::Mutation& m : all) {
    const std::string text = m.text();
    const std::string file = text.substr(text.rfind(' ') + 1);
    const std::string what = std::string(name(m.injected)) + " " + std::string(name(m.primitive));
    const std::string in = file.substr(0, file.rfind(':'));
    const int number = ++numbers[fmt::format("{} {}", what, in)];
    mutants.push_back({fmt::format("{}: {} {} of {}", kernel.name, what, number, in), m, &kernel});
  }
  return mutants;
}

MutantScore score(const Bench& bench, const KernelMutant& mutant) {
  MutantScore score;
  score.name = mutant.name;
  score.what = mutant.mutation.text();
  score.group = mutant.kernel->name;
  const std::vector<std::size_t> cases = kernel_cases(bench, *mutant.kernel);
  const Measured measured = measure(bench, mutant, cases);
  score.effect = measured.effect;
  score.effect_class =
      measured.changed && measured.effect >= 1 ? class_of(measured.effect) : Class::kProtocol;
  score.alive = measured.changed || measured.reported;
  for (const std::string& policy : bench.policies()) {
    for (KernelSettings settings : {on_executor(), under_schedules()}) {
      settings.mutation = &mutant.mutation;
      const auto how = bench.killer(*mutant.kernel, mutant.kernel->name, policy, cases, settings);
      if (!how) continue;
      score.killed[policy] = *how;
      score.alive = true;
      break;
    }
  }
  if (measured.changed && !measured.reported && measured.effect < 1) {
    score.effect_class = Class::kWithin;
  }
  return score;
}

}  // namespace kda::harness::mutate
