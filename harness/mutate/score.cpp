#include "harness/mutate/score.hpp"

#include "harness/mutate/judging.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <fstream>
#include <mutex>
#include <thread>

#include <fnmatch.h>

namespace kda::harness::mutate {
namespace {

using Task = std::function<MutantScore()>;

struct NamedTask {
  std::string name;
  Task run;
};

/// Kernels whose source is mutated.
constexpr std::string_view kKernels[] = {"cuda-recurrent", "cuda-prefill"};

std::vector<NamedTask> all_tasks(Bench& bench) {
  std::vector<NamedTask> tasks;
  for (const Mutant& m : value_mutants()) {
    tasks.push_back({m.name, [&bench, m] { return bench.score(m); }});
  }
  for (const std::vector<Implementation>& part : {protocol_mutants(), external_mutants()}) {
    for (const Implementation& faulty : part) {
      tasks.push_back({faulty.name, [&bench, faulty] { return bench.score(faulty); }});
    }
  }
  for (const Implementation& kernel : all_implementations()) {
    if (std::ranges::find(kKernels, kernel.name) == std::end(kKernels)) continue;
    for (const KernelMutant& m : kernel_mutants(bench, kernel)) {
      tasks.push_back({m.name, [&bench, m] { return score(bench, m); }});
    }
  }
  return tasks;
}

std::vector<NamedTask> chosen(std::vector<NamedTask> tasks, const std::string& filter) {
  if (filter.empty()) return tasks;
  std::erase_if(tasks, [&](const NamedTask& task) {
    return fnmatch(filter.c_str(), task.name.c_str(), 0) != 0;
  });
  return tasks;
}

void run_tasks(const std::vector<NamedTask>& tasks, std::int64_t jobs,
               const MutationProgress& progress, std::vector<MutantScore>& scores) {
  std::atomic<std::size_t> next = 0;
  std::size_t done = 0;
  std::mutex reporting;
  const auto work = [&] {
    for (std::size_t i = next++; i < tasks.size(); i = next++) {
      scores[i] = tasks[i].run();
      const std::lock_guard lock(reporting);
      progress(++done, tasks.size(), tasks[i].name);
    }
  };
  std::vector<std::jthread> threads;
  for (std::int64_t i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
}

/// The line of source that a mutation names ("drop vote at FILE:LINE"); nothing where sources are
/// not at hand.
std::optional<std::string> source_line(const std::filesystem::path& folder,
                                       const std::string& mutation) {
  const std::size_t colon = mutation.rfind(':');
  const std::size_t space = mutation.rfind(' ', colon);
  std::ifstream in(folder / mutation.substr(space + 1, colon - space - 1));
  std::string line;
  for (int left = std::stoi(mutation.substr(colon + 1)); left > 0; --left) {
    if (!std::getline(in, line)) return std::nullopt;
  }
  return line;
}

void mark_harmless(std::vector<MutantScore>& mutants, const std::filesystem::path& sources) {
  for (const HarmlessMutant& declared : harmless_mutants()) {
    const auto found = std::ranges::find(mutants, declared.name, &MutantScore::name);
    if (found == mutants.end()) continue;
    found->harmless = true;
    found->explanation = declared.why;
    const auto line = source_line(sources, found->what);
    if (line && line->find(declared.text) == std::string::npos) found->moved = *line;
  }
}

void complain_of_harmless(const MutantScore& m, std::vector<std::string>& all) {
  if (m.alive) all.push_back(m.name + " is declared harmless and has an effect");
  if (!m.moved.empty()) all.push_back(m.name + " is declared harmless, but not for" + m.moved);
}

std::string percent(std::int64_t part, std::int64_t whole) {
  return std::to_string(whole == 0 ? 0 : (100 * part + whole / 2) / whole) + "%";
}

}  // namespace

std::string_view name(Class effect_class) noexcept {
  switch (effect_class) {
    case Class::kGross: return "gross";
    case Class::kSubtle: return "subtle";
    case Class::kWithin: return "within";
    case Class::kProtocol: return "protocol";
  }
  return "?";
}

std::int64_t MutationScore::total(std::optional<Class> of) const {
  return std::ranges::count_if(
      mutants, [&](const MutantScore& m) { return m.alive && (!of || m.effect_class == *of); });
}

std::int64_t MutationScore::killed(const std::string& policy, std::optional<Class> of) const {
  return std::ranges::count_if(mutants, [&](const MutantScore& m) {
    return m.alive && (!of || m.effect_class == *of) && !m.survives(policy);
  });
}

std::vector<std::string> MutationScore::complaints() const {
  constexpr std::int64_t kMostExplained = 20;  // one in so many
  std::vector<std::string> all;
  std::int64_t survivors = 0;
  for (const MutantScore& m : mutants) {
    if (m.harmless) {
      complain_of_harmless(m, all);
      continue;
    }
    if (!m.survives(policies.front())) continue;
    if (m.explanation.empty()) {
      all.push_back(m.name + (m.alive ? " survives" : " changes nothing that is looked at"));
    } else if (m.alive && m.effect_class != Class::kWithin) {
      all.push_back(m.name + " survives and is " + std::string(name(m.effect_class)) +
                    ": no explanation excuses that");
    }
    if (m.alive) ++survivors;
  }
  if (survivors * kMostExplained > total()) {
    all.push_back(std::to_string(survivors) + " of " + std::to_string(total()) + " (" +
                  percent(survivors, total()) + ") survive, wanted at most 5%");
  }
  return all;
}

MutationScore score_mutants(const std::vector<SuiteCase>& suite, const ScoreOptions& options,
                            const MutationProgress& progress) {
  const auto begin = std::chrono::steady_clock::now();
  MutationScore score;
  score.policies = {options.policy};
  for (const char* other : {"fla", "sglang"}) {
    if (options.policy != other) score.policies.emplace_back(other);
  }
  Bench bench(suite, score.policies);
  const std::vector<NamedTask> tasks = chosen(all_tasks(bench), options.filter);
  score.mutants.resize(tasks.size());
  run_tasks(tasks, options.jobs, progress, score.mutants);
  for (MutantScore& m : score.mutants) {
    const auto explained = explained_survivors().find(m.name);
    if (explained != explained_survivors().end()) m.explanation = explained->second;
  }
  mark_harmless(score.mutants, options.kernels);
  score.unfit = bench.unfit();
  score.cases = static_cast<std::int64_t>(suite.size());
  score.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return score;
}

}  // namespace kda::harness::mutate
