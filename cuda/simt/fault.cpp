#include "cuda/simt/block.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <string>

namespace kda::cuda::simt {
namespace {

constexpr std::size_t kDetailBytes = 512;

const char* name(Wait wait) {
  switch (wait) {
    case Wait::kNone: return "nothing";
    case Wait::kBlockBarrier: return "sync_block";
    case Wait::kNamedBarrier: return "named barrier";
    case Wait::kWarpBarrier: return "sync_warp";
    case Wait::kShuffle: return "shuffle";
    case Wait::kVote: return "vote";
    case Wait::kLdmatrix: return "ldmatrix";
    case Wait::kMovmatrix: return "movmatrix";
    case Wait::kMma: return "mma";
  }
  return "?";
}

bool alike(const Thread& a, const Thread& b) {
  if (a.state != b.state) return false;
  return a.state != ThreadState::kWaiting ||
         (a.wait == b.wait && a.wait_barrier == b.wait_barrier && a.wait_mask == b.wait_mask &&
          a.wait_site == b.wait_site);
}

std::string describe(const Block& block, const Thread& t) {
  if (t.state == ThreadState::kExited) return "exited";
  if (t.state == ThreadState::kReady) return "can run";
  std::string text = name(t.wait);
  if (t.wait == Wait::kBlockBarrier || t.wait == Wait::kNamedBarrier) {
    const Barrier& barrier = block.barriers[t.wait_barrier];
    if (t.wait == Wait::kNamedBarrier) text += " " + std::to_string(t.wait_barrier);
    text += " (" + std::to_string(barrier.arrived) + " of " + std::to_string(barrier.expected) +
            " arrived)";
  } else {
    char mask[32];
    std::snprintf(mask, sizeof mask, " mask 0x%08x", t.wait_mask);
    text += mask;
  }
  return text + " at " + base_name(t.wait_site.file) + ":" + std::to_string(t.wait_site.line);
}

/// "0-3,8": the threads from `first` on that are like it.
std::string alike_threads(const Block& block, unsigned first, std::vector<bool>& done) {
  std::string text;
  const auto count = static_cast<unsigned>(block.threads.size());
  for (unsigned i = first; i < count; ++i) {
    if (!alike(*block.threads[first], *block.threads[i])) continue;
    unsigned end = i;
    while (end < count && alike(*block.threads[first], *block.threads[end])) done[end++] = true;
    text += (text.empty() ? "" : ",") + std::to_string(i);
    if (end - 1 > i) text += "-" + std::to_string(end - 1);
    i = end;
  }
  return text;
}

std::string wait_table(const Block& block) {
  std::string text;
  std::vector<bool> done(block.threads.size());
  for (unsigned i = 0; i < block.threads.size(); ++i) {
    if (done[i]) continue;
    const std::string who = alike_threads(block, i, done);
    text += "\n  threads " + who + ": " + describe(block, *block.threads[i]);
  }
  return text;
}

void fill_report(Block& block, const Thread& thread, FaultKind kind, Site site) {
  block.failed = true;
  block.report.kind = kind;
  block.report.kernel = block.config.name;
  block.report.block = block.index;
  block.report.thread = thread.index;
  block.report.file = base_name(site.file);
  block.report.line = site.line;
}

}  // namespace

const char* base_name(const char* path) {
  const char* slash = std::strrchr(path, '/');
  return slash != nullptr ? slash + 1 : path;
}

// This thread's frames are abandoned, not unwound, so nothing on them may own memory when it
// leaves: hence the C style of the message, and the scopes.
void fail(Thread& thread, FaultKind kind, Site site, const char* format, ...) {
  char detail[kDetailBytes];
  va_list values;
  va_start(values, format);
  std::vsnprintf(detail, sizeof detail, format, values);
  va_end(values);
  {
    const sanitizer::IgnoreScope ignore;
    fill_report(*thread.block, thread, kind, site);
    thread.block->report.detail = detail;
  }
  leave(thread);
}

void fail_with_waits(Thread& thread, FaultKind kind, Site site, const char* format, ...) {
  char detail[kDetailBytes];
  va_list values;
  va_start(values, format);
  std::vsnprintf(detail, sizeof detail, format, values);
  va_end(values);
  {
    const sanitizer::IgnoreScope ignore;
    fill_report(*thread.block, thread, kind, site);
    thread.block->report.detail = detail + wait_table(*thread.block);
  }
  leave(thread);
}

void report_overflow(Block& block, const Thread& thread) {
  fill_report(block, thread, FaultKind::kStackOverflow, {});
  block.report.detail =
      "more than " + std::to_string(thread.context.stack_bytes()) + " bytes of local variables";
}

void report_deadlock(Block& block) {
  for (const auto& thread : block.threads) {
    if (thread->state == ThreadState::kExited) continue;
    fill_report(block, *thread, FaultKind::kDeadlock, thread->wait_site);
    block.report.detail = "no thread can run" + wait_table(block);
    return;
  }
}

}  // namespace kda::cuda::simt
