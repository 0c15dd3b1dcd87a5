#include "cuda/device/primitives.hpp"
#include "cuda/simt/launch.hpp"
#include "cuda/simt/sanitizer.hpp"
#include "reference/types/error.hpp"
#include "tests/cuda/simt_modes.hpp"

#include <csignal>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>

#include <gtest/gtest.h>

// Every report that the executor can make, from a kernel that deserves it.

namespace kda::cuda::device {
namespace {

using simt::FaultKind;
using simt::Report;

/// Buffers that the kernels below misuse: "in" (read-only) and "out", 64 floats each.
struct Buffers {
  simt::Memory memory;
  Global<const float> in{};
  Global<float> out{};

  Buffers() {
    auto* data = reinterpret_cast<float*>(memory.allocate("in", 256, simt::Memory::Access::kRead));
    std::memset(data, 0, 256);
    in = {data};
    out = {memory.allocate_array<float>("out", 64)};
  }
};

using Kernel = void (*)(Global<const float>, Global<float>);

/// The line that a report names contains this text.
void expect_line(const Report& report, const std::string& text) {
  EXPECT_EQ(report.file, "simt_report_test.cpp") << report.text();
  std::ifstream source(KDA_SOURCE_DIR "/tests/cuda/simt_report_test.cpp");
  std::string line;
  for (int i = 0; i < report.line; ++i) std::getline(source, line);
  EXPECT_NE(line.find(text), std::string::npos) << report.text() << "\nthere: " << line;
}

/// Expects that kind of report in every mode, and the primitive at fault unless it is "".
Report expect_fault(FaultKind kind, Kernel kernel, const std::string& primitive,
                    unsigned threads = 64, std::size_t shared_bytes = 0) {
  Report last;
  for (const Mode& mode : all_modes()) {
    Buffers buffers;
    const simt::LaunchConfig config{"faulty", {}, {threads, 1, 1}, shared_bytes};
    const simt::LaunchResult result =
        simt::try_launch(config, mode.options(11), buffers.memory, kernel, buffers.in, buffers.out);
    if (!result.fault) {
      ADD_FAILURE() << "nothing reported, " << mode.name;
      return last;
    }
    last = *result.fault;
    EXPECT_EQ(name(last.kind), name(kind)) << last.text();
    EXPECT_EQ(last.kernel, "faulty");
    if (!primitive.empty()) expect_line(last, primitive);
  }
  return last;
}

KDA_KERNEL(64) divergent_kernel(Global<const float>, Global<float>) {
  if (thread_idx_x() < 10) {
    sync_block();
  } else {
    sync_block();
  }
}

TEST(Report, DivergentBarrierNamesBothLines) {
  const Report report = expect_fault(FaultKind::kBarrierDivergent, &divergent_kernel, "");
  EXPECT_NE(report.detail.find("others are in sync_block at simt_report_test.cpp:"),
            std::string::npos);
  EXPECT_NE(report.detail.find("\n  threads "), std::string::npos) << "who waits where";
}

KDA_KERNEL(64) early_exit_kernel(Global<const float>, Global<float>) {
  if (thread_idx_x() == 7) return;
  sync_block();
}

TEST(Report, AbandonedBarrier) {
  expect_fault(FaultKind::kBarrierAbandoned, &early_exit_kernel, "sync_block();");
}

KDA_KERNEL(64) left_arrival_kernel(Global<const float>, Global<float>) {
  if (thread_idx_x() < 32) arrive_named(1, 64);
}

TEST(Report, ArrivalsNobodyWaitedFor) {
  expect_fault(FaultKind::kBarrierAbandoned, &left_arrival_kernel, "arrive_named(1, 64)");
}

KDA_KERNEL(96) barrier_count_kernel(Global<const float>, Global<float>) {
  sync_named(1, thread_idx_x() < 32 ? 64 : 96);
}

TEST(Report, NamedBarrierWithTwoCounts) {
  expect_fault(FaultKind::kBarrierDivergent, &barrier_count_kernel,
               "sync_named(1, thread_idx_x() < 32 ? 64 : 96)", 96);
}

KDA_KERNEL(64) barrier_id_kernel(Global<const float>, Global<float>) { sync_named(16, 64); }
KDA_KERNEL(64) barrier_threads_kernel(Global<const float>, Global<float>) { sync_named(1, 40); }
KDA_KERNEL(64) partial_warp_kernel(Global<const float>, Global<float>) {
  if (lane_id() < 16) sync_named(1, 32);
}

TEST(Report, NamedBarrierArguments) {
  expect_fault(FaultKind::kBadArgument, &barrier_id_kernel, "sync_named(16, 64)");
  expect_fault(FaultKind::kBadArgument, &barrier_threads_kernel, "sync_named(1, 40)");
  expect_fault(FaultKind::kBadArgument, &partial_warp_kernel, "sync_named(1, 32)");
}

KDA_KERNEL(64) deadlock_kernel(Global<const float>, Global<float>) {
  if (thread_idx_x() < 32) sync_named(1, 64);
}

TEST(Report, DeadlockShowsWhoWaits) {
  const Report report = expect_fault(FaultKind::kDeadlock, &deadlock_kernel, "sync_named(1, 64)");
  EXPECT_NE(report.detail.find("threads 0-31: named barrier 1 (32 of 64 arrived) at"),
            std::string::npos)
      << report.detail;
  EXPECT_NE(report.detail.find("threads 32-63: exited"), std::string::npos) << report.detail;
}

KDA_KERNEL(64) lane_missing_kernel(Global<const float>, Global<float> out) {
  if (lane_id() == 9) return;
  store(out, thread_idx_x(), shuffle_xor(1.0F, 1));
}

TEST(Report, LaneThatLeavesACollectiveIsADeadlock) {
  expect_fault(FaultKind::kDeadlock, &lane_missing_kernel, "shuffle_xor(1.0F, 1)");
}

KDA_KERNEL(64) warp_divergent_kernel(Global<const float>, Global<float> out) {
  float v = 1.0F;
  if (lane_id() != 9) v = shuffle_xor(v, 1);
  v = shuffle_xor(v, 2);
  store(out, thread_idx_x(), v);
}

TEST(Report, LanesInDifferentCollectives) {
  expect_fault(FaultKind::kWarpDivergent, &warp_divergent_kernel, "");
}

KDA_KERNEL(64) own_lane_kernel(Global<const float>, Global<float>) { sync_warp(0xFFFFFFFEU); }
KDA_KERNEL(64) source_lane_kernel(Global<const float>, Global<float> out) {
  if (lane_id() < 8) store(out, thread_idx_x(), shuffle_idx(1.0F, 8, 0xFFU));
}
KDA_KERNEL(64) no_such_lane_kernel(Global<const float>, Global<float>) { sync_warp(); }
KDA_KERNEL(64) part_of_warp_kernel(Global<const float>, Global<float>) {
  float d[4] = {};
  const std::uint32_t a[4] = {};
  mma_m16n8k16_bf16(d, a, 0, 0);
}

TEST(Report, BadMasks) {
  expect_fault(FaultKind::kBadMask, &source_lane_kernel, "shuffle_idx(1.0F, 8, 0xFFU)");
  expect_fault(FaultKind::kBadMask, &no_such_lane_kernel, "sync_warp()", 40);
  expect_fault(FaultKind::kBadMask, &part_of_warp_kernel, "mma_m16n8k16_bf16(d, a, 0, 0)", 40);
}

TEST(Report, OwnLaneMissing) {
  // Other lanes may already wait for lane 0, which then is not where they are.
  Buffers buffers;
  const auto result = simt::try_launch({"faulty", {}, {32, 1, 1}}, {}, buffers.memory,
                                       &own_lane_kernel, buffers.in, buffers.out);
  ASSERT_TRUE(result.fault.has_value());
  EXPECT_EQ(result.fault->kind, FaultKind::kBadMask);
  EXPECT_EQ(result.fault->thread.x, 0U);
}

KDA_KERNEL(64) shared_request_kernel(Global<const float>, Global<float>) {
  SharedCarver carver;
  carver.take<float>(30);
  carver.take<float>(10);
}
KDA_KERNEL(64) static_limit_kernel(Global<const float>, Global<float>) {
  KDA_SHARED(float, array, 12289);
  static_cast<void>(array);
}
KDA_KERNEL(64) size_differs_kernel(Global<const float>, Global<float>) {
  SharedCarver carver;
  carver.take<float>(thread_idx_x() == 5 ? 3 : 4);
}

TEST(Report, SharedMemoryOverTheRequest) {
  // 120 bytes, then 40 from byte 128 on.
  expect_fault(FaultKind::kSharedOverRequest, &shared_request_kernel, "take<float>(10)", 64, 167);
  expect_fault(FaultKind::kSharedOverRequest, &static_limit_kernel,
               "KDA_SHARED(float, array, 12289)");
  expect_fault(FaultKind::kBadArgument, &size_differs_kernel,
               "take<float>(thread_idx_x() == 5 ? 3 : 4)", 64, 128);
}

TEST(Report, SharedMemoryWithinTheRequestIsFine) {
  Buffers buffers;
  const auto result = simt::try_launch({"fine", {}, {64, 1, 1}, 168}, {}, buffers.memory,
                                       &shared_request_kernel, buffers.in, buffers.out);
  EXPECT_FALSE(result.fault.has_value());
}

template <int kIndex>
KDA_KERNEL(64)
shared_bounds_kernel(Global<const float>, Global<float>) {
  KDA_SHARED(float, below, 64);
  KDA_SHARED(float, array, 64);
  KDA_SHARED(float, above, 64);
  store(below, thread_idx_x(), 0.0F);
  store(above, thread_idx_x(), 0.0F);
  if (thread_idx_x() == 33) store(array, kIndex, 1.0F);
}

TEST(Report, SharedAccessOutOfBounds) {
  // Wherever the neighbours lie, and however far the index goes astray.
  const char* line = "store(array, kIndex, 1.0F)";
  for (const Kernel kernel :
       {&shared_bounds_kernel<64>, &shared_bounds_kernel<-1>, &shared_bounds_kernel<128>,
        &shared_bounds_kernel<-64>, &shared_bounds_kernel<50000>, &shared_bounds_kernel<-50000>,
        &shared_bounds_kernel<2000000000>}) {
    const Report report = expect_fault(FaultKind::kSharedOutOfBounds, kernel, line);
    EXPECT_EQ(report.thread.x, 33U);
  }
}

KDA_KERNEL(64) shared_straddle_kernel(Global<const float>, Global<float>) {
  KDA_SHARED(float, array, 6);
  store(array.as<Vec<float, 4>>(), 1, {{0, 0, 0, 0}});
}

KDA_KERNEL(64) shared_from_global_kernel(Global<const float>, Global<float> out) {
  store(Shared<float>{out.raw}, 0, 1.0F);
}

TEST(Report, SharedAccessPartlyOrWhollyElsewhere) {
  expect_fault(FaultKind::kSharedOutOfBounds, &shared_straddle_kernel,
               "store(array.as<Vec<float, 4>>(), 1");
  expect_fault(FaultKind::kSharedOutOfBounds, &shared_from_global_kernel,
               "store(Shared<float>{out.raw}");
}

KDA_KERNEL(64) unwritten_kernel(Global<const float>, Global<float> out) {
  KDA_SHARED(float, array, 64);
  // All bits set is a value like any other.
  if (thread_idx_x() != 40) store(array, thread_idx_x(), bits_float(0xFFFFFFFFU));
  sync_block();
  store(out, thread_idx_x(), load(array, thread_idx_x()));
}

TEST(Report, SharedMemoryNeverWritten) {
  const Report report =
      expect_fault(FaultKind::kSharedUnwritten, &unwritten_kernel, "load(array, thread_idx_x())");
  EXPECT_EQ(report.thread.x, 40U);
  EXPECT_NE(report.detail.find("byte 160"), std::string::npos) << report.detail;
}

KDA_KERNEL(64) half_unwritten_kernel(Global<const float>, Global<float>) {
  KDA_SHARED(std::uint16_t, array, 64 * 8);
  const int row = static_cast<int>(thread_idx_x()) * 8;
  for (int i = 0; i < 8; ++i) {
    if (i != 5 || thread_idx_x() != 50) store(array, row + i, 0);
  }
  sync_block();
  std::uint32_t r[4];
  ldmatrix(r, array + row);
}

TEST(Report, LdmatrixOfARowWithAHole) {
  const Report report =
      expect_fault(FaultKind::kSharedUnwritten, &half_unwritten_kernel, "ldmatrix(r, array + row)");
  EXPECT_EQ(report.thread.x, 50U);
}

/// Late copies only: an eager one has arrived.
KDA_KERNEL(64) in_flight_kernel(Global<const float> in, Global<float> out) {
  KDA_SHARED(float, array, 64);
  copy_async<4>(array + thread_idx_x(), in + thread_idx_x());
  copy_commit();
  store(out, thread_idx_x(), load(array, thread_idx_x()));
  copy_wait<0>();
}
KDA_KERNEL(64) write_in_flight_kernel(Global<const float> in, Global<float>) {
  KDA_SHARED(float, array, 64);
  copy_async<4>(array + thread_idx_x(), in + thread_idx_x());
  store(array, thread_idx_x(), 1.0F);
  copy_commit();
  copy_wait<0>();
}

TEST(Report, SharedMemoryInFlight) {
  for (const auto& [kernel, line] :
       {std::pair<Kernel, const char*>{&in_flight_kernel, "load(array, thread_idx_x())"},
        {&write_in_flight_kernel, "store(array, thread_idx_x(), 1.0F)"}}) {
    Buffers buffers;
    const auto late = simt::try_launch({"faulty", {}, {64, 1, 1}}, {}, buffers.memory, kernel,
                                       buffers.in, buffers.out);
    ASSERT_TRUE(late.fault.has_value());
    EXPECT_EQ(late.fault->kind, FaultKind::kSharedInFlight);
    expect_line(*late.fault, line);
    const auto eager =
        simt::try_launch({"faulty", {}, {64, 1, 1}}, {.copies = simt::CopyMode::kEager},
                         buffers.memory, kernel, buffers.in, buffers.out);
    EXPECT_FALSE(eager.fault.has_value());
  }
}

KDA_KERNEL(64) copy_left_kernel(Global<const float> in, Global<float>) {
  KDA_SHARED(float, array, 64);
  copy_async<4>(array + thread_idx_x(), in + thread_idx_x());
  copy_wait<0>();  // of no group: the copy was not committed
}

TEST(Report, CopyInFlightAtExit) {
  expect_fault(FaultKind::kCopyInFlightAtExit, &copy_left_kernel, "copy_async<4>");
}

template <int kIndex>
KDA_KERNEL(64)
global_bounds_kernel(Global<const float> in, Global<float> out) {
  const int at = thread_idx_x() == 12 ? kIndex : 0;
  store(out, thread_idx_x(), load(in, at));
}

TEST(Report, GlobalAccessOutOfBounds) {
  const char* line = "store(out, thread_idx_x(), load(in, at))";
  for (const Kernel kernel : {&global_bounds_kernel<64>, &global_bounds_kernel<-1>,
                              &global_bounds_kernel<1000>, &global_bounds_kernel<-1000>}) {
    const Report report = expect_fault(FaultKind::kGlobalOutOfBounds, kernel, line);
    EXPECT_EQ(report.thread.x, 12U);
  }
}

KDA_KERNEL(64) read_only_kernel(Global<const float> in, Global<float>) {
  store(Global<float>{const_cast<float*>(in.raw)}, 5, 1.0F);
}

TEST(Report, WriteToAnInput) {
  const Report report =
      expect_fault(FaultKind::kGlobalReadOnly, &read_only_kernel, "const_cast<float*>(in.raw)");
  EXPECT_NE(report.detail.find("byte 20 of 'in'"), std::string::npos) << report.detail;
}

KDA_KERNEL(64) misaligned_load_kernel(Global<const float> in, Global<float>) {
  static_cast<void>(load((in + 1).as<Vec<float, 4>>(), 0));
}
KDA_KERNEL(64) misaligned_copy_kernel(Global<const float> in, Global<float>) {
  KDA_SHARED(float, array, 64);
  copy_async<8>(array, in + 3);
}
KDA_KERNEL(64) misaligned_row_kernel(Global<const float>, Global<float>) {
  KDA_SHARED(std::uint16_t, array, 64 * 9);
  for (int i = 0; i < 9; ++i) store(array, static_cast<int>(thread_idx_x()) * 9 + i, 0);
  sync_block();
  std::uint32_t r[4];
  ldmatrix(r, array + static_cast<int>(thread_idx_x()) * 9);
}

TEST(Report, MisalignedAccess) {
  expect_fault(FaultKind::kMisaligned, &misaligned_load_kernel, "(in + 1).as<Vec<float, 4>>()");
  expect_fault(FaultKind::kMisaligned, &misaligned_copy_kernel, "copy_async<8>(array, in + 3)");
  expect_fault(FaultKind::kMisaligned, &misaligned_row_kernel, "ldmatrix(r, array");
}

KDA_KERNEL(64) copy_size_kernel(Global<const float> in, Global<float>) {
  KDA_SHARED(float, array, 64);
  copy_async<4>(array, in, 5);
}

TEST(Report, CopyThatReadsMoreThanItWrites) {
  expect_fault(FaultKind::kBadArgument, &copy_size_kernel, "copy_async<4>(array, in, 5)");
}

KDA_KERNEL(64) behind_the_back_kernel(Global<const float>, Global<float> out) {
  out.raw[64] = 1.0F;
}

TEST(Report, GuardBandAfterAPlainWrite) {
  const Report report = expect_fault(FaultKind::kGuardBand, &behind_the_back_kernel, "", 1);
  EXPECT_NE(report.detail.find("'out'"), std::string::npos);
}

/// Endless, but the compiler must not see it.
float deeper(int depth, float x) {
  volatile float local[512];
  local[depth % 512] = x;
  return depth < 1'000'000 ? deeper(depth + 1, x) + local[(depth + 1) % 512] : x;
}

KDA_KERNEL(64) deep_kernel(Global<const float> in, Global<float> out) {
  const float x = load(in, 0);
  if (thread_idx_x() == 40) store(out, 0, deeper(0, x));
}

TEST(Report, StackOverflowNamesTheThread) {
  if (simt::sanitizer::asan() || simt::sanitizer::tsan()) {
    GTEST_SKIP() << "sanitizers report stack overflows themselves";
  }
  const Report report = expect_fault(FaultKind::kStackOverflow, &deep_kernel, "");
  EXPECT_EQ(report.thread.x, 40U);
  EXPECT_NE(report.text().find("kernel faulty block (0,0,0) thread (40,0,0): stack overflow"),
            std::string::npos)
      << report.text();
}

TEST(Report, OtherSegmentationFaultsStillEndTheProgram) {
  if (simt::sanitizer::asan() || simt::sanitizer::tsan()) GTEST_SKIP() << "not their signal";
  testing::FLAGS_gtest_death_test_style = "threadsafe";
  Buffers buffers;
  const simt::LaunchConfig config{"faulty", {}, {64, 1, 1}};
  static_cast<void>(
      simt::try_launch(config, {}, buffers.memory, &deep_kernel, buffers.in, buffers.out));
  volatile int* nowhere = nullptr;
  EXPECT_EXIT(*nowhere = 1, testing::KilledBySignal(SIGSEGV), "");
}

TEST(Report, LaunchBeyondTheLimits) {
  using simt::LaunchConfig;
  for (const LaunchConfig& config :
       {LaunchConfig{"faulty", {0, 1, 1}, {32, 1, 1}},
        LaunchConfig{"faulty", {1, 65536, 1}, {32, 1, 1}},
        LaunchConfig{"faulty", {1, 1, 65536}, {32, 1, 1}}, LaunchConfig{"faulty", {}, {1025, 1, 1}},
        LaunchConfig{"faulty", {}, {0, 1, 1}}, LaunchConfig{"faulty", {}, {1, 1, 65}},
        LaunchConfig{"faulty", {}, {32, 1, 1}, 227 * 1024 + 1}}) {
    Buffers buffers;
    const auto result = simt::try_launch(config, {}, buffers.memory, &behind_the_back_kernel,
                                         buffers.in, buffers.out);
    ASSERT_TRUE(result.fault.has_value());
    EXPECT_EQ(result.fault->kind, FaultKind::kBadLaunch);
    EXPECT_EQ(result.counters.blocks, 0U);
  }
}

TEST(Report, IsThrownAsAnExecutorFault) {
  Buffers buffers;
  try {
    simt::launch({"faulty", {}, {64, 1, 1}}, {}, buffers.memory, &unwritten_kernel, buffers.in,
                 buffers.out);
    FAIL() << "nothing thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kExecutorFault);
    EXPECT_NE(error.message().find("kernel faulty block (0,0,0) thread (40,0,0) at "
                                   "simt_report_test.cpp:"),
              std::string::npos)
        << error.message();
  }
}

TEST(Report, ALaunchAfterAFaultIsSound) {
  expect_fault(FaultKind::kSharedUnwritten, &unwritten_kernel, "");
  Buffers buffers;
  const auto result = simt::try_launch({"fine", {3, 1, 1}, {64, 1, 1}, 168}, {}, buffers.memory,
                                       &shared_request_kernel, buffers.in, buffers.out);
  EXPECT_FALSE(result.fault.has_value());
  EXPECT_EQ(result.counters.blocks, 3U);
}

}  // namespace
}  // namespace kda::cuda::device
