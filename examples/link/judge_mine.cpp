// Judges a KDA function of one's own inside one's own test program, with an installed kdacheck.
#include "harness/case/case_line.hpp"
#include "harness/run/judge.hpp"
#include "harness/version.hpp"
#include "my_kda.hpp"

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  using namespace kda::harness;
  const bool stale = argc > 1 && std::string(argv[1]) == "--broken";
  const Implementation mine{
      .name = "mine",
      .description = "a token recurrence in f32",
      .ops = {Op::kRecurrentKda},
      .limit = {},
      .run = [stale](const Case& test_case, const KernelSettings&) -> Answer {
        const kda::Problem problem = std::get<KdaCase>(test_case.inputs).problem();
        return my_kda(problem, kda::check(kda::Contract::kRecurrentKda, problem), stale);
      },
  };
  bool passed = true;
  for (const char* line : {"op=recurrent_kda T=20 H=2 K=32 V=48 dtype=f32 final_state=1 seed=1",
                           "op=recurrent_kda lens=5,0,7 H=1 HV=2 K=16 V=16 dtype=f32 seed=2"}) {
    const CaseResult result = judge(make_case(parse_case_line(line)), mine, nullptr);
    std::printf("%s: %s %s\n", line, name(result.verdict).data(), result.detail.c_str());
    passed = passed && result.verdict == Verdict::kPassed;
  }
  std::printf("judged by kdacheck %s\n", kVersion.data());
  return passed ? 0 : 1;
}
