#include "harness/mutate/score_report.hpp"

#include "harness/base/environment.hpp"

#include <array>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness::mutate {
namespace {

constexpr std::array kClasses{Class::kGross, Class::kSubtle, Class::kWithin, Class::kProtocol};

std::string shown(const std::string& policy) { return policy.empty() ? "default" : policy; }

std::string row(const MutationScore& score, std::string_view title, std::optional<Class> of) {
  std::string text = fmt::format("{:<10}{:>8}", title, score.total(of));
  for (const std::string& policy : score.policies) {
    text += fmt::format("{:>10}", score.killed(policy, of));
  }
  return text + "\n";
}

std::string table(const MutationScore& score) {
  std::string text = fmt::format("{:<10}{:>8}", "class", "mutants");
  for (const std::string& policy : score.policies) text += fmt::format("{:>10}", shown(policy));
  text += "\n";
  for (const Class c : kClasses) text += row(score, name(c), c);
  return text + row(score, "all", {});
}

std::string effect_text(double effect) {
  return std::isfinite(effect) ? fmt::format("{:.3g}", effect) : "inf";
}

std::string state(const MutantScore& m, const std::string& policy) {
  if (!m.survives(policy)) return "killed";
  return m.alive ? "survived" : "equivalent";
}

nlohmann::json mutant_json(const MutantScore& m, const std::vector<std::string>& policies) {
  nlohmann::json by_policy = nlohmann::json::object();
  for (const std::string& policy : policies) {
    const auto how = m.killed.find(policy);
    by_policy[shown(policy)] =
        how == m.killed.end() ? nlohmann::json() : nlohmann::json(how->second);
  }
  return {{"name", m.name},
          {"description", m.what},
          {"kernel", m.group},
          {"class", name(m.effect_class)},
          {"effect", std::isfinite(m.effect) ? nlohmann::json(m.effect) : nlohmann::json("inf")},
          {"state", state(m, policies.front())},
          {"killed_by", m.survives(policies.front()) ? "" : m.killed.at(policies.front())},
          {"killed_by_policy", by_policy},
          {"explanation", m.explanation}};
}

}  // namespace

std::string to_text(const MutationScore& score) {
  std::string text;
  for (const std::string& line : score.unfit) text += fmt::format("not used: {}\n", line);
  for (const MutantScore& m : score.mutants) {
    if (!m.survives(score.policies.front())) continue;
    text += fmt::format("{}  {} ({})  {}, effect {}{}{}\n", m.alive ? "SURVIVES" : "no effect",
                        m.name, m.what, name(m.effect_class), effect_text(m.effect),
                        m.explanation.empty() ? "" : ": ", m.explanation);
  }
  if (!text.empty()) text += "\n";
  text += table(score);
  text += fmt::format("{} mutants that change something, {} cases; {:.1f} s\n", score.total(),
                      score.cases, score.seconds);
  return text;
}

nlohmann::json to_json(const MutationScore& score) {
  nlohmann::json counts = nlohmann::json::object();
  for (const Class c : kClasses) {
    nlohmann::json of{{"mutants", score.total(c)}};
    for (const std::string& policy : score.policies) of[shown(policy)] = score.killed(policy, c);
    counts[std::string(name(c))] = of;
  }
  nlohmann::json mutants = nlohmann::json::array();
  for (const MutantScore& m : score.mutants) mutants.push_back(mutant_json(m, score.policies));
  return {{"format", "kdacheck-mutation"}, {"version", 1},       {"environment", environment()},
          {"cases", score.cases},          {"counts", counts},   {"complaints", score.complaints()},
          {"not_used", score.unfit},       {"mutants", mutants}, {"seconds", score.seconds}};
}

}  // namespace kda::harness::mutate
