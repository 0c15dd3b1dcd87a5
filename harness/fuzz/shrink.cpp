#include "harness/fuzz/shrink.hpp"

#include "harness/fuzz/simpler.hpp"
#include "harness/fuzz/slice.hpp"
#include "harness/run/judge.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using Clock = std::chrono::steady_clock;

/// Votes of a case that does not fail every time.
constexpr std::int64_t kVotes = 5;

class Search {
 public:
  Search(const KdaCase& failing, const VerdictOn& verdict_on, const ShrinkLimits& limits)
      : verdict_on_(verdict_on), limits_(limits), best_(failing) {
    std::vector<Verdict> verdicts{judge_once(failing)};
    while (verdicts.size() < 3 && !exhausted()) verdicts.push_back(judge_once(failing));
    const auto found = std::ranges::find_if(verdicts, [](Verdict v) { return is_failure(v); });
    if (found == verdicts.end()) {
      throw Error(ErrorCode::kUsage, "shrink: wanted a case that fails, got one that " +
                                         std::string(name(verdicts.front())));
    }
    wanted_ = *found;
    steady_ = std::ranges::count(verdicts, wanted_) == std::ssize(verdicts);
  }

  Shrunk run() {
    for (bool smaller = true; smaller && !exhausted();) {
      smaller = false;
      smaller |= cut_sequences();
      smaller |= cut_heads();
      smaller |= cut_value_heads();
      smaller |= cut_tokens();
      smaller |= cut_channels();
      smaller |= simplify();
    }
    Shrunk result;
    result.smallest = best_;
    result.verdict = wanted_;
    result.exhausted = exhausted();
    do {
      result.votes += judge_once(best_) == wanted_ ? 1 : 0;
      ++result.of_votes;
    } while (result.of_votes < kVotes && !out_of_time());
    result.judgements = judgements_;
    return result;
  }

 private:
  [[nodiscard]] bool out_of_time() const {
    return std::chrono::duration<double>(Clock::now() - begin_).count() > limits_.seconds;
  }
  [[nodiscard]] bool exhausted() const {
    return judgements_ >= limits_.judgements || out_of_time();
  }

  Verdict judge_once(const KdaCase& kda_case) {
    ++judgements_;
    return verdict_on_(kda_case);
  }

  bool still_fails(const KdaCase& kda_case) {
    if (!accepted(kda_case)) return false;  // another question than the one that failed
    if (steady_) return judge_once(kda_case) == wanted_;
    std::int64_t votes = 0;
    for (std::int64_t i = 0; i < kVotes && !exhausted(); ++i)
      votes += judge_once(kda_case) == wanted_ ? 1 : 0;
    return 2 * votes > kVotes;
  }

  /// Takes the candidate if it still fails.
  bool take(std::optional<KdaCase> candidate) {
    if (!candidate || exhausted() || !still_fails(*candidate)) return false;
    best_ = std::move(*candidate);
    return true;
  }

  [[nodiscard]] Semantics semantics() const { return check(best_.contract, best_.problem()); }

  /// One of `count` parts alone, else one half of them, as often as that goes.
  template <class Keep>
  bool cut_to_one(std::int64_t count, Keep keep) {
    if (count < 2) return false;
    for (std::int64_t i = 0; i < count; ++i) {
      if (take(keep(i, 1))) return true;
      if (i == 8) break;  // with many parts halves come sooner to the one
    }
    const std::int64_t half = count / 2;
    if (take(keep(0, half)) || take(keep(half, count - half))) {
      return true;
    }
    return false;
  }

  bool cut_sequences() {
    return cut_to_one(semantics().N(), [this](std::int64_t first, std::int64_t count) {
      return std::optional(keep_sequences(best_, first, count));
    });
  }

  bool cut_heads() {
    return cut_to_one(semantics().H, [this](std::int64_t first, std::int64_t count) {
      return std::optional(keep_heads(best_, first, count));
    });
  }

  /// Fewer value heads for each query/key head.
  bool cut_value_heads() {
    const Semantics s = semantics();
    return cut_to_one(s.HV / s.H, [this](std::int64_t first, std::int64_t count) {
      return std::optional(keep_value_heads(best_, first, count));
    });
  }

  /// The shortest prefix by bisection, then as late a beginning.
  bool cut_tokens() {
    std::int64_t most = 0;
    for (const Sequence& s : semantics().sequences) most = std::max(most, s.length());
    const std::int64_t before = most;
    std::int64_t passing = 0;
    while (most - passing > 1 && !exhausted()) {
      const std::int64_t middle = passing + (most - passing) / 2;
      if (take(keep_tokens(best_, 0, middle))) {
        most = middle;
      } else {
        passing = middle;
      }
    }
    std::int64_t skipped = 0;
    for (std::int64_t step = most / 2; step > 0; step /= 2) {
      while (skipped + step < most && take(keep_tokens(best_, step, most))) skipped += step;
    }
    return most - skipped < before;
  }

  bool cut_channels() {
    bool cut = false;
    for (bool again = true; again && !exhausted();) {
      const Semantics s = semantics();
      const std::int64_t k = s.K / 2;
      const std::int64_t v = s.V / 2;
      again = (k > 0 && (take(keep_channels(best_, 0, k, 0, s.V)) ||
                         take(keep_channels(best_, k, s.K - k, 0, s.V)))) ||
              (v > 0 && (take(keep_channels(best_, 0, s.K, 0, v)) ||
                         take(keep_channels(best_, 0, s.K, v, s.V - v))));
      cut |= again;
    }
    return cut;
  }

  bool simplify() {
    bool simpler = false;
    for (const Simplification& step : simplifications()) {
      std::optional<KdaCase> candidate = step.apply(best_);
      simpler |= take(std::move(candidate));
    }
    return simpler;
  }

  const VerdictOn& verdict_on_;
  const ShrinkLimits& limits_;
  Clock::time_point begin_ = Clock::now();
  KdaCase best_;
  Verdict wanted_ = Verdict::kFailed;
  bool steady_ = true;
  std::int64_t judgements_ = 0;
};

}  // namespace

Shrunk shrink(const KdaCase& failing, const VerdictOn& verdict_on, const ShrinkLimits& limits) {
  return Search(failing, verdict_on, limits).run();
}

VerdictOn judged_by(const Implementation& implementation, const Judging& judging) {
  return [&implementation, judging](const KdaCase& kda_case) {
    Case alone;
    alone.name = "shrink";
    alone.op = *find_op(name(kda_case.contract));
    alone.inputs = kda_case;
    CaseAnswers answers(alone);
    return judge(answers, implementation, judging).verdict;
  };
}

std::string describe(const KdaCase& kda_case) {
  const Semantics s = check(kda_case.contract, kda_case.problem());
  std::int64_t tokens = 0;
  for (const Sequence& sequence : s.sequences) tokens = std::max(tokens, sequence.length());
  const Problem& o = kda_case.options;
  std::string text = fmt::format("{} N={} T={} H={} HV={} K={} V={}", name(kda_case.contract),
                                 s.N(), tokens, s.H, s.HV, s.K, s.V);
  const auto add = [&text](bool on, const char* word) {
    if (on) text += std::string(" ") + word;
  };
  add(kda_case.inputs.count("cu_seqlens") > 0, "cu_seqlens");
  add(s.gate == GateForm::kSoftplus, "gate=softplus");
  add(s.gate == GateForm::kLowerBound, "gate=bound");
  add(o.use_qk_l2norm_in_kernel, "l2norm");
  add(o.use_beta_sigmoid_in_kernel, "beta_sigmoid");
  add(o.allow_neg_eigval, "neg_eigval");
  add(o.state_v_first, "v_first");
  add(kda_case.inputs.count("initial_state") > 0, "initial_state");
  add(o.output_final_state, "final_state");
  add(o.return_intermediate_states, "h");
  return text;
}

}  // namespace kda::harness
