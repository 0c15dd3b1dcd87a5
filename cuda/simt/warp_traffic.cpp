#include "cuda/simt/warp_traffic.hpp"

#include <algorithm>
#include <bit>
#include <utility>

namespace kda::cuda::simt {
namespace {

constexpr unsigned kBanks = 32;
constexpr unsigned kBankBytes = 4;
constexpr unsigned kSectorBytes = 32;

/// Different words per bank, for the lanes that are served together.
class BankUse {
 public:
  void add(std::uintptr_t word) {
    const auto bank = static_cast<unsigned>(word % kBanks);
    for (unsigned i = 0; i < seen_; ++i) {
      if (words_[i] == word) return;  // a broadcast
    }
    words_[seen_++] = word;
    worst_ = std::max(worst_, ++per_bank_[bank]);
  }
  [[nodiscard]] unsigned wavefronts() const { return worst_; }

 private:
  // 32 lanes of 4 bytes, 16 of 8 or 8 of 16: never more than 32 words.
  std::uintptr_t words_[kBanks] = {};
  unsigned seen_ = 0;
  unsigned per_bank_[kBanks] = {};
  unsigned worst_ = 0;
};

}  // namespace

void count_shared(const WarpAccess& access, unsigned width, SharedTraffic& traffic) {
  const unsigned together = width <= 4 ? 32 : (width == 8 ? 16 : 8);
  ++traffic.requests;
  for (unsigned first = 0; first < kWarpSize; first += together) {
    BankUse use;
    for (unsigned lane = first; lane < first + together; ++lane) {
      if ((access.lanes >> lane & 1U) == 0) continue;
      traffic.bytes += access.bytes[lane];
      const std::uintptr_t begin = access.address[lane];
      for (std::uintptr_t at = begin; at < begin + access.bytes[lane]; at += kBankBytes) {
        use.add(at / kBankBytes);
      }
    }
    if (use.wavefronts() == 0) continue;
    traffic.wavefronts += use.wavefronts();
    traffic.conflicts += use.wavefronts() - 1;
  }
}

void count_global(const WarpAccess& access, GlobalTraffic& traffic) {
  struct Sector {
    std::uintptr_t number;
    std::uint32_t used;  ///< one bit a byte
  };
  Sector sectors[kWarpSize];  // aligned accesses of up to 16 bytes never straddle a sector
  unsigned count = 0;
  for (unsigned lane = 0; lane < kWarpSize; ++lane) {
    if ((access.lanes >> lane & 1U) == 0 || access.bytes[lane] == 0) continue;
    const std::uintptr_t number = access.address[lane] / kSectorBytes;
    const auto offset = static_cast<unsigned>(access.address[lane] % kSectorBytes);
    const std::uint32_t used = ((std::uint32_t{1} << access.bytes[lane]) - 1) << offset;
    // Neighbouring lanes share sectors, so the last ones are looked at first.
    unsigned at = count;
    while (at > 0 && sectors[at - 1].number != number) --at;
    if (at > 0) {
      sectors[at - 1].used |= used;
    } else {
      sectors[count++] = {number, used};
    }
  }
  ++traffic.requests;
  traffic.sectors += count;
  for (unsigned i = 0; i < count; ++i) {
    traffic.bytes += static_cast<unsigned>(std::popcount(sectors[i].used));
  }
}

std::size_t WarpTraffic::place(Site site, Access kind, unsigned width) const {
  auto hash = reinterpret_cast<std::uintptr_t>(site.file) / 8 + static_cast<unsigned>(site.line);
  hash = hash * 8 + static_cast<unsigned>(kind);
  hash = (hash * 32 + width) * 0x9E3779B97F4A7C15U;
  const std::size_t mask = table_.size() - 1;
  std::size_t at = (hash >> 32U) & mask;
  while (table_[at].width != 0 &&
         !(table_[at].site == site && table_[at].kind == kind && table_[at].width == width)) {
    at = (at + 1) & mask;
  }
  return at;
}

void WarpTraffic::grow() {
  std::vector<Entry> old = std::exchange(table_, {});
  table_.resize(std::max<std::size_t>(64, old.size() * 2));
  active_.clear();
  for (Entry& e : old) {
    if (e.width == 0) continue;
    const std::size_t at = place(e.site, e.kind, e.width);
    table_[at] = std::move(e);
    if (table_[at].used != 0) active_.push_back(at);
  }
}

WarpTraffic::Entry& WarpTraffic::entry(Site site, Access kind, unsigned width) {
  if (entries_ * 2 >= table_.size()) grow();
  const std::size_t at = place(site, kind, width);
  Entry& e = table_[at];
  if (e.width == 0) {
    e.site = site;
    e.kind = kind;
    e.width = width;
    ++entries_;
  }
  if (e.used == 0) active_.push_back(at);
  return e;
}

void WarpTraffic::record(Access kind, const void* address, unsigned bytes, unsigned width,
                         Site site, unsigned lane) {
  Entry& e = entry(site, kind, width);
  const std::size_t index = e.times[lane]++;
  if (index >= e.used) {
    // A lane's n-th visit follows its (n-1)-th, so accesses appear in order.
    if (e.used == e.accesses.size()) e.accesses.emplace_back();
    e.accesses[e.used++].lanes = 0;
  }
  WarpAccess& access = e.accesses[index];
  access.lanes |= std::uint32_t{1} << lane;
  access.bytes[lane] = static_cast<std::uint8_t>(bytes);
  access.address[lane] = reinterpret_cast<std::uintptr_t>(address);
}

void WarpTraffic::flush(Counters& counters) {
  for (const std::size_t at : active_) {
    Entry& e = table_[at];
    for (std::size_t i = 0; i < e.used; ++i) {
      const WarpAccess& access = e.accesses[i];
      switch (e.kind) {
        case Access::kSharedLoad: count_shared(access, e.width, counters.shared_load); break;
        case Access::kSharedStore: count_shared(access, e.width, counters.shared_store); break;
        case Access::kCopyStore: count_shared(access, e.width, counters.copy_store); break;
        case Access::kGlobalLoad: count_global(access, counters.global_load); break;
        case Access::kGlobalStore: count_global(access, counters.global_store); break;
        case Access::kGlobalAtomic: count_global(access, counters.global_atomic); break;
        case Access::kCopyLoad: count_global(access, counters.copy_load); break;
      }
    }
  }
  discard();
}

void WarpTraffic::discard() {
  for (const std::size_t at : active_) {
    table_[at].used = 0;
    std::fill(std::begin(table_[at].times), std::end(table_[at].times), 0U);
  }
  active_.clear();
}

}  // namespace kda::cuda::simt
