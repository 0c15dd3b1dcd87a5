#include "harness/plugin/plugin_run.hpp"

#include "harness/case/case_line.hpp"
#include "harness/plugin/guarded_tensor.hpp"
#include "harness/run/oracle.hpp"

#include <cmath>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include <gtest/gtest.h>

// What a plugin may do wrong is tested through the program (external_test.py); here is what it is
// given, and the path through the memory of a device, with the CPU executor's in its place.

namespace kda::harness {
namespace {

Case small_case() {
  return make_case(parse_case_line(
      "op=chunk_kda lens=5,0,9 T=20 H=1 HV=2 K=4 V=8 dtype=bf16 gate=bound l2norm=1 v_first=1 "
      "initial_state=1 final_state=1 h=1 seed=3"));
}

std::size_t elements(const kdacheck_tensor* tensor) {
  std::size_t count = 1;
  for (std::int32_t i = 0; i < tensor->rank; ++i)
    count *= static_cast<std::size_t>(tensor->shape[i]);
  return count;
}

kdacheck_plugin plugin_of(std::int32_t (*run)(const kdacheck_call*), std::uint32_t memory) {
  return {KDACHECK_PLUGIN_VERSION, memory, "test", run};
}

std::unique_ptr<cuda::Device> no_device() { throw std::logic_error("no device was asked for"); }

/// o = 1 in bf16, states = what initial_state begins with; whether everything is there.
std::int32_t fill(const kdacheck_call* call) {
  if (call->size != sizeof(kdacheck_call) || std::string(call->op) != "chunk_kda" ||
      call->chunk_size != 64 || call->has_lower_bound != 1 || call->lower_bound != -5 ||
      call->scale != 0.5 || call->has_scale != 0 || call->state_v_first != 1 ||
      call->A_log == nullptr || call->q->rank != 4 || call->q->strides[1] != 4 ||
      call->q->dtype != KDACHECK_BF16 || call->cu_seqlens->dtype != KDACHECK_I64 ||
      static_cast<const std::int64_t*>(call->cu_seqlens_host)[3] != 14 ||
      reinterpret_cast<std::uintptr_t>(call->beta->data) % 256 != 0) {
    return KDACHECK_ERROR;
  }
  auto* o = static_cast<std::uint16_t*>(call->o->data);
  for (std::size_t i = 0; i < 14 * 2 * 8; ++i) o[i] = 0x3F80;  // rows 14 ... 19 are of no sequence
  std::memset(call->final_state->data, 0, elements(call->final_state) * 4);
  std::memset(call->h->data, 0, elements(call->h) * 4);
  return KDACHECK_OK;
}

TEST(PluginRun, GivesTheCallAsItIs) {
  const PluginAnswer answer =
      run_plugin_case(plugin_of(fill, KDACHECK_HOST), small_case(), no_device);
  EXPECT_FALSE(answer.reply.verdict) << answer.reply.code << ": " << answer.reply.text;
  ASSERT_TRUE(answer.outputs);
  EXPECT_EQ(answer.outputs->o.shape(), (Shape{1, 20, 2, 8}));
  EXPECT_EQ(answer.outputs->o.dtype(), Dtype::kBf16);
  EXPECT_EQ(answer.outputs->o.as<std::uint16_t>()[14 * 2 * 8 - 1], 0x3F80);
  EXPECT_EQ(answer.outputs->final_state->shape(), (Shape{3, 2, 8, 4}));
  EXPECT_EQ(answer.outputs->h->shape(), (Shape{2, 2, 8, 4}));
}

TEST(PluginRun, TensorsOfADevicePass) {
  const auto executor = [] { return cuda::open_executor({}); };
  const PluginAnswer answer =
      run_plugin_case(plugin_of(fill, KDACHECK_CUDA), small_case(), executor);
  EXPECT_TRUE(answer.outputs) << answer.reply.code << ": " << answer.reply.text;
  const auto outside = [](const kdacheck_call* call) -> std::int32_t {
    static_cast<char*>(call->h->data)[elements(call->h) * 4 + 1] = 7;
    return fill(call);
  };
  const PluginAnswer fault =
      run_plugin_case(plugin_of(outside, KDACHECK_CUDA), small_case(), executor);
  EXPECT_EQ(fault.reply.code, "wrote_outside");
  EXPECT_EQ(fault.reply.text, "wrote outside h: 1 bytes behind its end");
}

TEST(PluginRun, ACaseToRefuseHasAnOutputToo) {
  const auto refuse = [](const kdacheck_call* call) -> std::int32_t {
    if (call->o == nullptr || elements(call->o) != elements(call->v)) return KDACHECK_ERROR;
    std::strcpy(call->code, "chunk_size_unsupported");
    return KDACHECK_REFUSED;
  };
  const Case refused = make_case(parse_case_line("op=chunk_kda T=4 K=8 V=8 chunk=16"));
  const PluginAnswer answer = run_plugin_case(plugin_of(refuse, KDACHECK_HOST), refused, no_device);
  EXPECT_FALSE(answer.reply.verdict);
  EXPECT_EQ(answer.reply.code, "chunk_size_unsupported");
}

TEST(PluginRun, TextThatDoesNotEndIsCut) {
  const auto shout = [](const kdacheck_call* call) -> std::int32_t {
    std::memset(call->text, 'a', call->text_size);
    return KDACHECK_ERROR;
  };
  const PluginAnswer answer =
      run_plugin_case(plugin_of(shout, KDACHECK_HOST), small_case(), no_device);
  EXPECT_EQ(answer.reply.code, "plugin_error");
  EXPECT_EQ(answer.reply.text.find_first_not_of('a'), std::string::npos);
}

TEST(GuardByte, FillsAreWhatTheySay) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16, Dtype::kF32, Dtype::kF64}) {
    for (const GuardFill fill : {GuardFill::kNan, GuardFill::kLarge}) {
      Tensor one(dtype, {1});
      for (std::int64_t i = 0; i < one.bytes(); ++i)
        one.data()[i] = guard_byte(fill, dtype, static_cast<std::size_t>(i));
      const double value = load(one.view(), 0);
      EXPECT_EQ(std::isnan(value), fill == GuardFill::kNan) << name(dtype);
      EXPECT_TRUE(fill == GuardFill::kNan || value > 6e4) << name(dtype);
    }
  }
}

}  // namespace
}  // namespace kda::harness
