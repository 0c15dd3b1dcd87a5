#include "harness/compare/formats.hpp"

#include "reference/types/error.hpp"

#include <string>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

using reference::Formats;
using reference::StateStorage;

Problem problem_of(Dtype qkv) {
  Problem problem;
  problem.q.dtype = problem.k.dtype = problem.v.dtype = qkv;
  return problem;
}

TEST(StatedFormats, NothingStatedFollowsTheCase) {
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF16, Dtype::kF32}) {
    EXPECT_EQ(formats_of({}, problem_of(dtype)), reference::default_formats(dtype, dtype));
  }
  EXPECT_EQ(to_string(StatedFormats{}), "");
}

TEST(StatedFormats, F32KeepsTheStorageOfTheOutput) {
  const Formats formats = formats_of(f32_formats(), problem_of(Dtype::kBf16));
  EXPECT_EQ(to_string(formats),
            "operands=f32,triangle=f32,solve=f32,accumulation=f32,gate=f32,state=f32,output=bf16");
}

TEST(StatedFormats, EveryPlaceCanBeStated) {
  const StatedFormats stated = parse_formats(
      "operands=bf16,triangle=bf16x2,solve=tf32,accumulation=f32,gate=f16,state=bf16/token,"
      "output=f32,block=16");
  const Formats formats = formats_of(stated, problem_of(Dtype::kF32));
  EXPECT_EQ(formats.operands, reference::kRoundBf16);
  EXPECT_EQ(formats.triangle, reference::kRoundBf16Pair);
  EXPECT_EQ(formats.solve, reference::kRoundTf32);
  EXPECT_EQ(formats.accumulation, reference::kRoundF32);
  EXPECT_EQ(formats.gate, reference::kRoundF16);
  EXPECT_EQ(formats.state, reference::kRoundBf16);
  EXPECT_EQ(formats.output, reference::kRoundF32);
  EXPECT_EQ(formats.state_storage, StateStorage::kPerToken);
  EXPECT_EQ(formats.block, 16);
}

TEST(StatedFormats, AFormatAloneIsForTheOperands) {
  EXPECT_EQ(parse_formats("bf16"), parse_formats("operands=bf16"));
  const Formats tf32 = formats_of(parse_formats("tf32"), problem_of(Dtype::kF32));
  EXPECT_EQ(tf32.operands, reference::kRoundTf32);
  EXPECT_EQ(tf32.triangle, reference::kRoundTf32);
  EXPECT_EQ(tf32.state, reference::kRoundF32);
}

TEST(StatedFormats, TextIsReadBackAsItWas) {
  for (const char* text :
       {"operands=bf16", "triangle=bf16x2,state=bf16/token", "output=f16,block=32"}) {
    EXPECT_EQ(to_string(parse_formats(text)), text);
  }
}

TEST(StatedFormats, MistakesAreNamed) {
  const auto message = [](const char* text) -> std::string {
    try {
      (void)parse_formats(text);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFormatsInvalid);
      return error.message();
    }
    return "accepted";
  };
  EXPECT_EQ(message("operands=fp8"),
            "formats: operands: expected one of bf16, f16, tf32, bf16x2, f32, f64, got 'fp8'");
  EXPECT_EQ(
      message("weights=bf16"),
      "formats: expected one of operands, triangle, solve, accumulation, gate, state, output, "
      "block, got 'weights'");
  EXPECT_EQ(message("bf16,operands=f32"), "formats: operands is given twice");
  EXPECT_EQ(
      message("operands=bf16/token"),
      "formats: operands: expected one of bf16, f16, tf32, bf16x2, f32, f64, got 'bf16/token'");
  EXPECT_NE(message(""), "accepted");
  EXPECT_NE(message("bf16,"), "accepted");
  for (const char* block : {"block=0", "block=129", "block=x", "block=", "block=8 "})
    EXPECT_NE(message(block), "accepted") << block;
}

}  // namespace
}  // namespace kda::harness
