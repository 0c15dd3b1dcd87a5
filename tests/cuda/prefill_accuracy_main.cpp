#include "cuda/prefill.hpp"
#include "reference/peer_prefill.hpp"
#include "reference/recurrent.hpp"
#include "tests/cuda/prefill_families.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

// Prints, by input family, the error of o in f32 token recurrences and the worst error of a chunk
// state, for each policy of the prefill kernel and of its peer, as a Markdown table:
//
//   prefill_accuracy [SEEDS [PART OF A FAMILY'S NAME]]
//
// Exit status 1 when a limit of the mixed policy is exceeded.

namespace kda::tests {
namespace {

struct Candidate {
  const char* name;
  Compute compute;
  bool limited;  ///< held to the family's limits
};

Compute peer(const reference::PeerFormats& formats) {
  return [&formats](const Problem& p, const Semantics& s) {
    return reference::peer_prefill(p, s, formats);
  };
}

Compute kernel(cuda::PrefillPolicy policy) {
  return [policy](const Problem& p, const Semantics&) {
    return cuda::run_prefill_cpu(p, {.policy = policy}, {});
  };
}

std::vector<Candidate> candidates() {
  return {{"cuda M", kernel(cuda::PrefillPolicy::kMixed), true},
          {"cuda X", kernel(cuda::PrefillPolicy::kSplit), true},
          {"cuda bf16", kernel(cuda::PrefillPolicy::kBf16), false},
          {"f32", reference::recurrent_f32, false},
          {"peer M", peer(reference::kPeerMixed), true},
          {"peer X", peer(reference::kPeerSplit), true},
          {"peer bf16", peer(reference::kPeerBf16), false}};
}

int print_table(std::int64_t seeds, const std::string& filter) {
  const std::vector<Candidate> all = candidates();
  std::string head = "| family (T) |";
  std::string rule = "|---|";
  for (const Candidate& candidate : all) {
    head += std::string(" ") + candidate.name + " |";
    rule += "---|";
  }
  std::printf("%s limit |\n%s---|\n", head.c_str(), rule.c_str());
  int status = EXIT_SUCCESS;
  for (const PrefillFamily& family : prefill_families()) {
    if (std::string(family.name).find(filter) == std::string::npos) continue;
    const FamilyJudge judge(make_family(family, seeds));
    std::printf("| %s (%lld) |", std::string(family.name).c_str(),
                static_cast<long long>(family.T));
    for (const Candidate& candidate : all) {
      const FamilyErrors errors = judge.judge(candidate.compute);
      std::printf(" %.2f / %.1e |", errors.o_in_peers, errors.worst_state);
      const bool holds = errors.o_in_peers <= family.limit &&
                         (family.state_limit == 0 || errors.worst_state <= family.state_limit);
      if (candidate.limited && !holds) status = EXIT_FAILURE;
    }
    std::printf(" %.1f / %.0e |\n", family.limit, family.state_limit);
    std::fflush(stdout);
  }
  return status;
}

}  // namespace
}  // namespace kda::tests

int main(int argc, char** argv) {
  const std::int64_t seeds = argc > 1 ? std::atoll(argv[1]) : 6;
  return kda::tests::print_table(seeds, argc > 2 ? argv[2] : "");
}
