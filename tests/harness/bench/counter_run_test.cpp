#include "harness/bench/counter_run.hpp"

#include "harness/bench/occupancy.hpp"
#include "harness/bench/ptxas_log.hpp"

#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#if __has_include(<cuda_occupancy.h>)
#include <cuda_occupancy.h>
#endif

namespace kda::harness {
namespace {

using nlohmann::json;

TEST(CounterReport, IsTheSameOnEveryRun) {
  const std::string first = counter_report(counter_cases(), "none").dump();
  EXPECT_EQ(counter_report(counter_cases(), "none").dump(), first);
}

TEST(CounterReport, HasEveryKernelAndCounter) {
  const json report = counter_report(counter_cases(), "none");
  std::set<std::string> implementations;
  for (const json& entry : report["cases"]) {
    implementations.insert(entry["implementation"]);
    EXPECT_GT(entry["total"]["global_load.sectors"], 0) << entry["case"];
    EXPECT_EQ(entry["total"]["launches"], entry["launches"].size());
  }
  EXPECT_TRUE(implementations.contains("cuda-recurrent"));
  EXPECT_TRUE(implementations.contains("cuda-fit"));
  for (const char* counter :
       {"mma", "special", "shared_load.conflicts", "shared_store.conflicts", "global_load.sectors",
        "global_load.bytes", "block_barriers", "path_barriers", "copy_groups", "atomics"})
    EXPECT_TRUE(report["cases"][0]["total"].contains(counter)) << counter;
  EXPECT_FALSE(report["kernels_missing"].get<std::string>().empty());
  EXPECT_NE(counter_text(report).find("decode_kv_f32"), std::string::npos);
}

/// The state of a decode step, f32 [2,2,128,128], goes in and out once, fully coalesced.
TEST(CounterReport, DecodeMovesItsStateOnce) {
  const json report = counter_report({counter_cases().front()}, "none");
  const json& launch = report["cases"][0]["launches"][0];
  constexpr int kStateBytes = 2 * 2 * 128 * 128 * 4;
  EXPECT_GE(launch["counters"]["global_load.bytes"], kStateBytes);
  EXPECT_LT(launch["counters"]["global_load.bytes"], kStateBytes * 11 / 10);
  EXPECT_GE(launch["counters"]["global_store.bytes"], kStateBytes);
  EXPECT_GT(launch["shares"]["global_load"], 0.95);
}

/// As ptxas 13.0 and 12.x write it.
constexpr const char* kLog =
    "ptxas info    : 0 bytes gmem\n"
    "ptxas info    : Compiling entry function "
    "'_ZN3kda4cuda7kernels3dev16recurrent_kernelIfLb1ELi64EEEvNS0_15RecurrentParamsE' for "
    "'sm_80'\n"
    "ptxas info    : Function properties for "
    "_ZN3kda4cuda7kernels3dev16recurrent_kernelIfLb1ELi64EEEvNS0_15RecurrentParamsE\n"
    "    8 bytes stack frame, 12 bytes spill stores, 16 bytes spill loads\n"
    "ptxas info    : Used 96 registers, used 1 barriers, 3712 bytes smem, 776 bytes cmem[0]\n"
    "ptxas info    : Compile time = 6441.270 ms\n"
    "ptxas info    : Compiling entry function 'plain_kernel' for 'sm_100a'\n"
    "    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
    "ptxas info    : Used 128 registers, used 0 barriers\n";

TEST(PtxasLog, SaysWhatEachKernelNeeds) {
  const auto kernels = parse_ptxas_log(kLog, "x.cu");
  ASSERT_EQ(kernels.size(), 2U);
  EXPECT_EQ(kernels[0].kernel, "recurrent_kernel<float, true, 64>");
  EXPECT_EQ(kernels[0].arch, "sm_80");
  EXPECT_EQ(kernels[0].registers, 96);
  EXPECT_EQ(kernels[0].stack, 8);
  EXPECT_EQ(kernels[0].spill_stores, 12);
  EXPECT_EQ(kernels[0].spill_loads, 16);
  EXPECT_EQ(kernels[0].static_shared, 3712);
  EXPECT_EQ(kernels[1].kernel, "plain_kernel");
  EXPECT_EQ(kernels[1].arch, "sm_100a");
  EXPECT_EQ(kernels[1].registers, 128);
  EXPECT_EQ(kernels[1].static_shared, 0);
  EXPECT_TRUE(parse_ptxas_log("", "x.cu").empty());
}

TEST(PtxasLog, VariantsByEnumerationKeepTheirNames) {
  const auto log = [](const std::string& symbol) {
    return "ptxas info    : Compiling entry function '" + symbol + "' for 'sm_80'\n";
  };
  const auto name_of = [&](const std::string& symbol) {
    return parse_ptxas_log(log(symbol), "x.cu").at(0).kernel;
  };
  EXPECT_EQ(name_of("_ZN3kda4cuda7kernels3dev12chain_kernelILNS0_6PolicyE2ELi32EEEvNS0_6ParamsE"),
            "chain_kernel<(Policy)2, 32>");
  EXPECT_EQ(name_of("_ZN3kda4cuda7kernels3dev10fit_kernelENS0_9FitParamsE"), "fit_kernel");
}

TEST(PtxasLog, KernelsOfAFolderGetTheirResidentBlocks) {
  const auto folder = std::filesystem::temp_directory_path() / "kdacheck_ptxas_test";
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "recurrent_kernels.cu.o.ptxas.txt") << kLog;
  const json report = counter_report({counter_cases().front()}, folder);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(report["kernels"].size(), 2U);
  const json& kernel = report["kernels"][1];
  EXPECT_EQ(kernel["kernel"], "recurrent_kernel<float, true, 64>");
  EXPECT_EQ(kernel["file"], "recurrent_kernels.cu");
  EXPECT_EQ(kernel["threads"], 128);
  EXPECT_EQ(kernel["blocks_per_sm"], 5);
  EXPECT_EQ(kernel["limited_by"], "registers");
  EXPECT_FALSE(report["kernels"][0].contains("blocks_per_sm")) << "never launched here";
  EXPECT_NE(counter_text(report).find("plain_kernel"), std::string::npos);
}

TEST(Occupancy, OfKnownKernels) {
  const auto blocks = [](const char* arch, int threads, int registers, int shared) {
    return occupancy(arch, {threads, registers, shared})->blocks;
  };
  EXPECT_EQ(blocks("sm_90a", 128, 32, 0), 16) << "2048 threads";
  EXPECT_EQ(blocks("sm_90a", 32, 32, 0), 32) << "32 blocks";
  EXPECT_EQ(blocks("sm_90a", 128, 255, 0), 2);
  EXPECT_EQ(blocks("sm_80", 128, 32, 80 * 1024), 2);
  EXPECT_EQ(blocks("sm_80", 128, 32, 83 * 1024), 1);
  EXPECT_EQ(occupancy("sm_80", {128, 32, 83 * 1024})->limited_by, "shared memory");
  EXPECT_FALSE(occupancy("sm_75", {128, 32, 0}));
}

#if __has_include(<cuda_occupancy.h>)
/// The Toolkit's own answer.
TEST(Occupancy, AgreesWithTheToolkit) {
  struct Arch {
    const char* name;
    int major;
    int shared_kib;
  };
  for (const Arch arch :
       {Arch{"sm_80", 8, 164}, Arch{"sm_90a", 9, 228}, Arch{"sm_100a", 10, 228}}) {
    cudaOccDeviceProp properties;
    properties.computeMajor = arch.major;
    properties.computeMinor = 0;
    properties.maxThreadsPerBlock = 1024;
    properties.maxThreadsPerMultiprocessor = 2048;
    properties.regsPerBlock = properties.regsPerMultiprocessor = 65536;
    properties.warpSize = 32;
    properties.sharedMemPerBlock = 48 * 1024;
    properties.sharedMemPerMultiprocessor = static_cast<std::size_t>(arch.shared_kib) * 1024;
    properties.sharedMemPerBlockOptin = properties.sharedMemPerMultiprocessor - 1024;
    properties.reservedSharedMemPerBlock = 1024;
    properties.numSms = 100;
    const cudaOccDeviceState state;
    for (const int threads : {32, 96, 128, 160, 256, 512, 1024}) {
      for (int registers = 16; registers <= 255; ++registers) {
        for (const int shared : {0, 100, 3712, 40000, 81920, 160000}) {
          cudaOccFuncAttributes attributes;
          attributes.maxThreadsPerBlock = 1024;
          attributes.numRegs = registers;
          attributes.sharedSizeBytes = 0;
          attributes.maxDynamicSharedSizeBytes = properties.sharedMemPerBlockOptin;
          attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
          cudaOccResult result;
          ASSERT_EQ(
              cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state,
                                                      threads, static_cast<std::size_t>(shared)),
              CUDA_OCC_SUCCESS);
          ASSERT_EQ(occupancy(arch.name, {threads, registers, shared})->blocks,
                    result.activeBlocksPerMultiprocessor)
              << arch.name << " " << threads << " " << registers << " " << shared;
        }
      }
    }
  }
}
#endif

}  // namespace
}  // namespace kda::harness
