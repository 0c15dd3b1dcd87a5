#include "harness/run/run_report.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

namespace kda::harness {
namespace {

/// Implementations asked for by name that no case was run with.
std::vector<std::string> idle_implementations(const RunReport& report) {
  std::vector<std::string> idle;
  for (const std::string& implementation : report.asked) {
    const bool ran = std::ranges::any_of(report.results, [&](const CaseResult& result) {
      return result.implementation == implementation && was_run(result.verdict);
    });
    if (!ran) idle.push_back(implementation);
  }
  return idle;
}

}  // namespace

std::int64_t RunReport::compared() const {
  return std::ranges::count_if(results, [](const CaseResult& r) { return was_run(r.verdict); });
}

std::int64_t RunReport::failures() const {
  return std::ranges::count_if(results, [](const CaseResult& r) { return is_failure(r.verdict); });
}

Exit RunReport::exit_status() const {
  if (interrupted) return Exit::kInterrupted;
  if (!input_errors.empty() || count(Verdict::kFixtureError) > 0) return Exit::kBadInput;
  const bool biased = std::ranges::any_of(biases, &RunBias::failed);
  if (failures() > 0 || biased || unexpected_pass) return Exit::kFailed;
  const bool nothing = count(Verdict::kPassed) == 0;  // known failures prove nothing
  if (nothing || count(Verdict::kSkipped) > 0 || !idle.empty() || not_run > 0)
    return Exit::kUnavailable;
  return Exit::kSuccess;
}

void RunReport::conclude() {
  counts = {};
  std::set<std::int64_t> items;
  for (const CaseResult& result : results) {
    ++counts[static_cast<std::size_t>(result.verdict)];
    items.insert(result.item);
  }
  cases = static_cast<std::int64_t>(items.size());
  biases = run_biases(results);
  // What a shard has no case for, another may have.
  idle = origin.is_part() ? std::vector<std::string>() : idle_implementations(*this);
  KnownFailureNotes on_known = notes_on(known_failures);
  notes.clear();
  for (const std::string& half : halves)
    notes.push_back(half + ": left by a writer that was ended; no fixture, remove it");
  std::ranges::move(on_known.lines, std::back_inserter(notes));
  unexpected_pass = on_known.unexpected_pass;
}

}  // namespace kda::harness
