#include "harness/fuzz/fuzz.hpp"

#include "harness/base/interrupt.hpp"
#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/fuzz/draw.hpp"
#include "harness/run/judge.hpp"
#include "harness/run/oracle.hpp"

#include <chrono>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {

void write_shrunk(const std::filesystem::path& file, const KdaCase& kda_case,
                  const std::string& description) {
  Case fixture;
  fixture.name = file.stem().string();
  fixture.description = description;
  fixture.tags = "shrunk";
  fixture.op = *find_op(name(kda_case.contract));
  fixture.inputs = kda_case;
  const std::string_view oracle = oracle_for(kda_case, "");
  fixture.expected = expected_from(fixture, oracle);
  fixture.oracle = oracle_name(oracle);
  write_fixture(file, fixture);
}

namespace {

FuzzFailure shrunken(const Case& drawn, const CaseResult& result,
                     const Implementation& implementation, const FuzzOptions& options,
                     const std::string& name) {
  FuzzFailure failure;
  failure.line = drawn.line;
  failure.verdict = result.verdict;
  failure.detail = result.detail;
  failure.shrunk =
      shrink(std::get<KdaCase>(drawn.inputs), judged_by(implementation, options.judging),
             {.judgements = ShrinkLimits{}.judgements, .seconds = options.shrink_seconds});
  failure.file = options.folder / (name + ".h5");
  write_shrunk(failure.file, failure.shrunk.smallest, "shrunk from: " + drawn.line);
  return failure;
}

}  // namespace

FuzzReport fuzz(const Implementation& implementation, const FuzzOptions& options,
                const std::function<void(const FuzzReport&)>& progress) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  const InterruptGuard guard;
  CaseDraw draw(implementation.ops, options.seed);
  FuzzReport report;
  const auto more = [&] {
    return std::chrono::duration<double>(Clock::now() - begin).count() < options.seconds &&
           (options.cases == 0 || report.cases < options.cases) && !interrupted() &&
           std::ssize(report.failures) < options.most_failures;
  };
  try {
    while (more()) {
      const Case drawn = make_case(draw.next());
      report.pairs = draw.pairs();
      report.all_pairs = draw.all_pairs();
      if (unsupported(implementation, drawn)) {
        ++report.unsupported;
        continue;
      }
      CaseAnswers answers(drawn);
      const CaseResult result = judge(answers, implementation, options.judging);
      if (!was_run(result.verdict)) {  // it said itself that it cannot, or not here
        ++report.unsupported;
        continue;
      }
      if (result.verdict == Verdict::kMistrusted) {  // says nothing about the implementation
        ++report.mistrusted;
        continue;
      }
      ++report.cases;
      if (is_failure(result.verdict)) {
        const std::string name = fmt::format("fuzz_{}_{}", options.seed, report.cases);
        report.failures.push_back(shrunken(drawn, result, implementation, options, name));
      }
      progress(report);
    }
  } catch (const Interrupted&) {
    // The case that was given up shows nothing; what was found before stands.
  }
  report.interrupted = interrupted();
  return report;
}

}  // namespace kda::harness
