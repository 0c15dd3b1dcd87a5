// The real cuda/gpu_device.cu on a stand-in of the CUDA runtime: any call can be made to fail.

#include "cuda/runtime.hpp"
#include "reference/types/error.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include <cuda_runtime.h>

#include <gtest/gtest.h>

namespace kda::cuda {
namespace {

FakeCudart& fresh_fake() {
  FakeCudart::get() = FakeCudart{};
  return FakeCudart::get();
}

/// A whole call as the harness makes it: open, two buffers, a copy, a launch, the copy back.
void use_device() {
  const std::unique_ptr<Device> device = open_gpu();
  std::array<std::byte, 64> host{};
  std::byte* const in = device->allocate("in", host.size());
  std::byte* const out = device->allocate("out", host.size());
  device->copy_to_device(in, host.data(), host.size());
  int params = 0;
  const KernelForms kernel{.name = "fake", .cpu = nullptr, .gpu = &params};
  device->launch(kernel, {.grid = {1, 1, 1}, .block = {32, 1, 1}, .shared_bytes = 64 * 1024},
                 &params);
  device->copy_to_host(host.data(), out, host.size());
}

std::optional<Error> failure_of(void (*call)()) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  return std::nullopt;
}

void expect_nothing_left() {
  EXPECT_EQ(FakeCudart::get().live_buffers, 0);
  EXPECT_EQ(FakeCudart::get().live_streams, 0);
}

TEST(GpuDevice, WithoutFaultsEverythingIsReleased) {
  fresh_fake();
  EXPECT_FALSE(failure_of(use_device));
  EXPECT_EQ(FakeCudart::get().calls["cudaLaunchKernel"], 1);
  expect_nothing_left();
}

TEST(GpuDevice, NoDeviceAndAnOldDriverAreUnavailable) {
  for (const cudaError_t status : {cudaErrorNoDevice, cudaErrorInsufficientDriver}) {
    FakeCudart& fake = fresh_fake();
    fake.fail_call = "cudaGetDeviceCount";
    fake.fail_with = status;
    const auto error = failure_of(use_device);
    ASSERT_TRUE(error);
    EXPECT_EQ(error->code(), ErrorCode::kDeviceUnavailable);
    EXPECT_NE(error->message().find(cudaGetErrorString(status)), std::string::npos);
  }
  fresh_fake().devices = 0;
  EXPECT_EQ(failure_of(use_device)->code(), ErrorCode::kDeviceUnavailable);
}

TEST(GpuDevice, AnOldArchitectureIsNamed) {
  fresh_fake().major = 7;
  const auto error = failure_of(use_device);
  ASSERT_TRUE(error);
  EXPECT_EQ(error->code(), ErrorCode::kArchitectureUnsupported);
  EXPECT_NE(error->message().find("wanted compute capability 8.0, got 7.0"), std::string::npos);
  expect_nothing_left();
}

TEST(GpuDevice, AnyCallThatFailsNamesItselfAndLeavesNothing) {
  for (const std::string call :
       {"cudaGetDeviceCount", "cudaGetDeviceProperties", "cudaSetDevice",
        "cudaStreamCreateWithFlags", "cudaMalloc", "cudaMemsetAsync", "cudaMemcpyAsync to device",
        "cudaFuncSetAttribute", "cudaLaunchKernel", "cudaMemcpyAsync to host",
        "cudaStreamSynchronize"}) {
    FakeCudart& fake = fresh_fake();
    fake.fail_call = call;
    fake.fail_with = cudaErrorLaunchOutOfResources;
    const auto error = failure_of(use_device);
    ASSERT_TRUE(error) << call;
    EXPECT_EQ(error->code(), ErrorCode::kCudaRuntime) << call;
    EXPECT_NE(error->message().find(call.substr(0, call.find(' '))), std::string::npos)
        << error->message();
    EXPECT_EQ(fake.calls[call], 1) << "tried again: " << call;
    expect_nothing_left();

    FakeCudart::get().fail_call.clear();  // the next case finds a device that works
    EXPECT_FALSE(failure_of(use_device)) << "after " << call;
  }
}

TEST(GpuDevice, OutOfMemoryAtAnyAllocation) {
  for (const int nth : {1, 2}) {
    FakeCudart& fake = fresh_fake();
    fake.fail_call = "cudaMalloc";
    fake.fail_at = nth;
    fake.fail_with = cudaErrorMemoryAllocation;
    const auto error = failure_of(use_device);
    ASSERT_TRUE(error) << nth;
    EXPECT_EQ(error->code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(error->message().find(nth == 1 ? "in" : "out"), std::string::npos);
    expect_nothing_left();
  }
}

TEST(GpuDevice, AFaultOfAKernelIsFoundLaterAndLosesTheDevice) {
  for (const cudaError_t fault :
       {cudaErrorECCUncorrectable, cudaErrorIllegalAddress, cudaErrorLaunchTimeout, cudaErrorAssert,
        cudaErrorHardwareStackError, cudaErrorIllegalInstruction, cudaErrorMisalignedAddress,
        cudaErrorInvalidAddressSpace, cudaErrorInvalidPc, cudaErrorLaunchFailure}) {
    fresh_fake().fault_of_launch = fault;
    const auto error = failure_of(use_device);
    ASSERT_TRUE(error) << fault;
    EXPECT_EQ(error->code(), ErrorCode::kDeviceLost) << fault;
    expect_nothing_left();
    EXPECT_EQ(failure_of(use_device)->code(), ErrorCode::kDeviceLost) << "it stays lost";
  }
}

}  // namespace
}  // namespace kda::cuda
