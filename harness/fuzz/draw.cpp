#include "harness/fuzz/draw.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

namespace kda::harness {
namespace {

enum Axis : std::size_t {
  kOp,
  kDtype,
  kGDtype,
  kBetaDtype,
  kGate,
  kSafeGate,
  kNorm,
  kBeta,
  kLayout,
  kInitial,
  kFinal,
  kChunkStates,
  kPacking,
  kLength,
  kHeads,
  kDims,
  kFamily,
  kChunk,
};

constexpr auto kDtypes = std::to_array({Dtype::kBf16, Dtype::kF16, Dtype::kF32});
constexpr auto kGates =
    std::to_array({GateForm::kLogDecay, GateForm::kSoftplus, GateForm::kLowerBound});
/// H, HV.
constexpr auto kHeadCounts = std::to_array<std::pair<int, int>>({{1, 1}, {2, 2}, {1, 3}, {2, 4}});
/// K, V: powers of two, not square, not powers of two, as large as may be, odd.
constexpr auto kHeadDims = std::to_array<std::pair<int, int>>(
    {{64, 64}, {16, 48}, {40, 24}, {128, 128}, {256, 192}, {37, 33}});
constexpr int kPackings = 4;  ///< one sequence, a batch, bounds, bounds with an empty sequence
constexpr int kLengths = 4;   ///< one token, few, about a chunk, some chunks

template <class List>
int count(const List& list) {
  return static_cast<int>(std::size(list));
}

/// Levels of each axis, in the order of Axis, for so many ops.
CaseDraw::Choice levels(int ops) {
  return {ops,       count(kDtypes), count(kDtypes),     count(kDtypes),   count(kGates),
          2,  // safe_gate
          2,  // l2norm
          3,  // beta: as it is, a logit, a logit up to 2
          2,  // layout
          2,  // initial state
          2,  // final state
          2,  // states of chunks
          kPackings, kLengths,       count(kHeadCounts), count(kHeadDims), count(all_families()),
          2};  // chunk size
}

/// The nearest choice that the contracts accept.
void repair(CaseDraw::Choice& c, Op op) {
  const bool prefill = op == Op::kKdaPrefill;
  if (c[kGate] != 2) c[kSafeGate] = 0;
  if (op != Op::kChunkKda) c[kChunk] = 0;
  if (!prefill) return;
  c[kDtype] = 0;
  c[kGDtype] = c[kGDtype] == 1 || c[kGate] != 0 ? 0 : c[kGDtype];
  if (c[kBetaDtype] == 1) c[kBetaDtype] = 0;
  if (c[kBeta] == 2) c[kBeta] = 1;
  c[kHeads] = std::min(c[kHeads], 1);
  c[kDims] = 3;
  if (c[kPacking] == 3) c[kPacking] = 2;
}

}  // namespace

CaseDraw::CaseDraw(std::span<const Op> ops, std::uint64_t seed) : random_(seed) {
  for (const Op op : ops) {
    if (contract_of(op)) ops_.push_back(op);
  }
  if (ops_.empty()) {
    throw Error(ErrorCode::kImplementationUnsupported,
                "fuzz: wanted an implementation that serves KDA calls, got one of fit or predict");
  }
}

int CaseDraw::uniform(int count) {
  return static_cast<int>(random_() % static_cast<std::uint64_t>(count));
}

CaseDraw::Choice CaseDraw::random_choice() {
  Choice choice = levels(count(ops_));
  for (int& axis : choice) axis = uniform(axis);
  repair(choice, ops_[static_cast<std::size_t>(choice[kOp])]);
  return choice;
}

std::vector<CaseDraw::Pair> CaseDraw::new_pairs(const Choice& choice) const {
  std::vector<Pair> pairs;
  for (std::size_t a = 0; a < kAxes; ++a) {
    for (std::size_t b = a + 1; b < kAxes; ++b) {
      const Pair pair{a, choice[a], b, choice[b]};
      if (!seen_.contains(pair)) pairs.push_back(pair);
    }
  }
  return pairs;
}

CaseLine CaseDraw::next() {
  constexpr int kCandidates = 200;  // enough to find the last pairs, cheap beside a judgement
  Choice best = random_choice();
  std::vector<Pair> gained = new_pairs(best);
  for (int i = 1; i < kCandidates && !all_pairs_; ++i) {
    const Choice candidate = random_choice();
    std::vector<Pair> pairs = new_pairs(candidate);
    if (pairs.size() > gained.size()) {
      best = candidate;
      gained = std::move(pairs);
    }
  }
  all_pairs_ = all_pairs_ || gained.empty();
  seen_.insert(gained.begin(), gained.end());

  const auto at = [&best](Axis axis) { return static_cast<std::size_t>(best[axis]); };
  CaseLine line;
  line.op = ops_[at(kOp)];
  line.dtype = kDtypes[at(kDtype)];
  line.g_dtype = kDtypes[at(kGDtype)];
  line.beta_dtype = kDtypes[at(kBetaDtype)];
  line.gate = kGates[at(kGate)];
  line.safe_gate = best[kSafeGate] == 1;
  line.l2norm = best[kNorm] == 1;
  line.beta_sigmoid = best[kBeta] > 0;
  line.neg_eigval = best[kBeta] == 2;
  line.v_first = best[kLayout] == 1;
  line.initial_state = best[kInitial] == 1;
  line.final_state = best[kFinal] == 1;
  line.h = best[kChunkStates] == 1;
  std::tie(line.H, line.HV) = kHeadCounts[at(kHeads)];
  std::tie(line.K, line.V) = kHeadDims[at(kDims)];
  line.family = all_families()[at(kFamily)].family;
  line.chunk = best[kChunk] == 1 ? 32 : 64;
  if (uniform(4) == 0) line.scale = 0.25 * (1 + uniform(8));
  line.seed = random_() % 1'000'000;

  const auto length = [&]() -> std::int64_t {
    switch (best[kLength]) {
      case 0: return 1;
      case 1: return 2 + uniform(14);
      case 2: return 62 + uniform(5);
      default: return 100 + uniform(100);
    }
  };
  line.T = length();
  if (best[kPacking] == 1) line.B = 2 + uniform(2);
  if (best[kPacking] >= 2) {
    std::vector<std::int64_t> lengths{length(), 1 + uniform(20), length()};
    if (best[kPacking] == 3) lengths[1] = 0;
    line.T = std::accumulate(lengths.begin(), lengths.end(), std::int64_t{0});
    line.lens = std::move(lengths);
  }
  return line;
}

}  // namespace kda::harness
