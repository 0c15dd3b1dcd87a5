#include "cuda/simt/mutation.hpp"

#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <algorithm>

namespace kda::cuda::simt {
namespace {

std::vector<Injected> injectable(Primitive primitive) {
  switch (primitive) {
    case Primitive::kBlockBarrier:
    case Primitive::kNamedBarrier:
    case Primitive::kWarpBarrier:
    case Primitive::kCopyWait:
    case Primitive::kMovmatrix: return {Injected::kDrop};
    case Primitive::kSharedLoad:
    case Primitive::kSharedStore:
    case Primitive::kGlobalLoad:
    case Primitive::kGlobalStore:
    case Primitive::kGlobalAtomic: return {Injected::kDrop, Injected::kShift};
    case Primitive::kCopy: return {Injected::kDrop, Injected::kShift};
    case Primitive::kPartialCopy: return {Injected::kFull};
    case Primitive::kShuffle: return {Injected::kWrongLane};
    case Primitive::kVote:
    case Primitive::kLdmatrix: return {Injected::kFlip};
    case Primitive::kMma: return {Injected::kDrop, Injected::kSwap};
  }
  return {};
}

}  // namespace

std::string_view name(Primitive primitive) noexcept {
  switch (primitive) {
    case Primitive::kBlockBarrier: return "block barrier";
    case Primitive::kNamedBarrier: return "named barrier";
    case Primitive::kWarpBarrier: return "warp barrier";
    case Primitive::kSharedLoad: return "shared load";
    case Primitive::kSharedStore: return "shared store";
    case Primitive::kGlobalLoad: return "global load";
    case Primitive::kGlobalStore: return "global store";
    case Primitive::kGlobalAtomic: return "global atomic";
    case Primitive::kCopy: return "copy";
    case Primitive::kPartialCopy: return "partial copy";
    case Primitive::kCopyWait: return "copy wait";
    case Primitive::kShuffle: return "shuffle";
    case Primitive::kVote: return "vote";
    case Primitive::kLdmatrix: return "ldmatrix";
    case Primitive::kMovmatrix: return "movmatrix";
    case Primitive::kMma: return "mma";
  }
  return "?";
}

std::string_view name(Injected injected) noexcept {
  switch (injected) {
    case Injected::kDrop: return "drop";
    case Injected::kShift: return "shift";
    case Injected::kFull: return "full";
    case Injected::kWrongLane: return "wrong lane of";
    case Injected::kFlip: return "flip";
    case Injected::kSwap: return "swap operands of";
  }
  return "?";
}

std::string Mutation::text() const {
  return std::string(name(injected)) + " " + std::string(name(primitive)) + " at " +
         base_name(site.file) + ":" + std::to_string(site.line);
}

void SiteLog::add(Primitive primitive, Site site) {
  const auto same = [&](const Entry& e) { return e.primitive == primitive && e.site == site; };
  if (std::ranges::none_of(entries_, same)) entries_.push_back({primitive, site});
}

std::vector<Mutation> SiteLog::mutations() const {
  std::vector<Mutation> all;
  for (const Entry& entry : entries_) {
    for (const Injected injected : injectable(entry.primitive)) {
      all.push_back({entry.primitive, injected, entry.site});
    }
  }
  return all;
}

const Mutation* visit_site(const Options& options, Primitive primitive, Site site) {
  if (options.sites != nullptr) {
    const sanitizer::IgnoreScope ignore;
    options.sites->add(primitive, site);
  }
  const Mutation* m = options.mutation;
  return m != nullptr && m->primitive == primitive && m->site == site ? m : nullptr;
}

}  // namespace kda::cuda::simt
