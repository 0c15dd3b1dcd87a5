#include "harness/case/case_line.hpp"

#include "harness/case/counter_rng.hpp"
#include "reference/types/contract.hpp"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace kda::harness {
namespace {

/// What parsing complains about.
std::string complaint(const std::string& text) {
  try {
    (void)parse_case_line(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCaseLineInvalid);
    return error.message();
  }
  ADD_FAILURE() << "accepted: " << text;
  return "";
}

void expect_complaint(const std::string& text, const std::vector<std::string>& parts) {
  const std::string message = complaint(text);
  for (const std::string& part : parts) {
    EXPECT_NE(message.find(part), std::string::npos) << message << "\n  lacks: " << part;
  }
}

TEST(CaseLine, DefaultsAreThoseOfKdaPrefill) {
  EXPECT_EQ(parse_case_line("op=kda_prefill"), CaseLine{});
  EXPECT_EQ(to_string(CaseLine{}), "op=kda_prefill B=1 T=64 H=1 HV=1 K=128 V=128");
}

TEST(CaseLine, ReadsEveryKey) {
  const CaseLine line = parse_case_line(
      " op=chunk_kda\tB=1 T=20 H=2 HV=4 K=60 V=100 lens=5,0,7 dtype=f16 g_dtype=f32 "
      "beta_dtype=bf16 chunk=32 scale=0.25 gate=bound lower_bound=-2.5 safe_gate=1 l2norm=1 "
      "beta_sigmoid=1 neg_eigval=1 v_first=1 initial_state=1 final_state=1 h=1 family=padding "
      "seed=18446744073709551615\n");
  EXPECT_EQ(line.op, Op::kChunkKda);
  EXPECT_EQ(line.T, 20);
  EXPECT_EQ(line.HV, 4);
  EXPECT_EQ(line.lens, (std::vector<std::int64_t>{5, 0, 7}));
  EXPECT_EQ(line.dtype, Dtype::kF16);
  EXPECT_EQ(line.g_dtype, Dtype::kF32);
  EXPECT_EQ(line.beta_dtype, Dtype::kBf16);
  EXPECT_EQ(line.gate, GateForm::kLowerBound);
  EXPECT_EQ(line.lower_bound, -2.5);
  EXPECT_EQ(line.family, Family::kPadding);
  EXPECT_EQ(line.seed, 18446744073709551615U);
  EXPECT_TRUE(line.safe_gate && line.l2norm && line.beta_sigmoid && line.neg_eigval &&
              line.v_first && line.initial_state && line.final_state && line.h);
  EXPECT_EQ(parse_case_line(to_string(line)), line);
}

TEST(CaseLine, DefaultsFollowOtherKeys) {
  const CaseLine line = parse_case_line("op=recurrent_kda H=3 lens=4,5 dtype=f32");
  EXPECT_EQ(line.HV, 3);
  EXPECT_EQ(line.T, 9);
  EXPECT_EQ(line.g_dtype, Dtype::kF32);
  EXPECT_EQ(line.beta_dtype, Dtype::kF32);
}

TEST(CaseLine, PrintedLinesReadBackTheSame) {
  const CounterRng rng(1, "case lines");
  for (int i = 0; i < 500; ++i) {
    int draw = 0;
    const auto pick = [&](int count) {
      return static_cast<int>(rng.uniform(i, draw++, 0, 0) * count);
    };
    CaseLine line;
    line.op = std::array{Op::kKdaPrefill, Op::kChunkKda,
                         Op::kRecurrentKda}[static_cast<std::size_t>(pick(3))];
    for (auto* extent : {&line.B, &line.T, &line.H, &line.HV, &line.K, &line.V})
      *extent = pick(999);
    if (pick(2) == 1) line.lens = std::vector<std::int64_t>{pick(9), pick(9)};
    for (auto* dtype : {&line.dtype, &line.g_dtype, &line.beta_dtype}) {
      *dtype =
          std::array{Dtype::kBf16, Dtype::kF16, Dtype::kF32}[static_cast<std::size_t>(pick(3))];
    }
    if (pick(2) == 1) line.scale = rng.uniform(i, draw++, 0, 0);
    line.gate = static_cast<GateForm>(pick(3));
    if (line.gate == GateForm::kLowerBound) line.lower_bound = -5 * rng.uniform(i, draw++, 0, 0);
    for (auto* flag : {&line.safe_gate, &line.l2norm, &line.beta_sigmoid, &line.neg_eigval,
                       &line.v_first, &line.initial_state, &line.final_state, &line.h}) {
      *flag = pick(2) == 1;
    }
    line.family = static_cast<Family>(pick(12));
    line.seed = static_cast<std::uint64_t>(pick(1000));
    EXPECT_EQ(parse_case_line(to_string(line)), line) << to_string(line);
  }
}

TEST(CaseLine, UnknownNamesSuggestTheNearest) {
  expect_complaint("op=kda_prefill famly=resets", {"key", "'family'", "'famly'"});
  expect_complaint("op=kda_prefil", {"op", "'kda_prefill'", "'kda_prefil'"});
  expect_complaint("op=fit", {"op", "kda_prefill, chunk_kda, recurrent_kda", "'fit'"});
  expect_complaint("op=kda_prefill family=reset", {"family", "'resets'", "'reset'"});
  expect_complaint("op=kda_prefill dtype=fp16", {"dtype", "bf16, f16, f32", "'fp16'"});
  expect_complaint("op=kda_prefill gate=bounded", {"gate", "'bound'", "'bounded'"});
}

TEST(CaseLine, BadValuesNameKeyWantedAndGot) {
  expect_complaint("op=kda_prefill T=many", {"T", "an integer from 0", "'many'"});
  expect_complaint("op=kda_prefill T=-1", {"T", "'-1'"});
  expect_complaint("op=kda_prefill T=2147483648", {"T", "2147483647", "'2147483648'"});
  expect_complaint("op=kda_prefill T=", {"T", "''"});
  expect_complaint("op=kda_prefill T=5x", {"T", "'5x'"});
  expect_complaint("op=kda_prefill lens=5,,7", {"lens", "''"});
  expect_complaint("op=kda_prefill lens=", {"lens", "''"});
  expect_complaint("op=kda_prefill h=yes", {"h", "0 or 1", "'yes'"});
  expect_complaint("op=kda_prefill scale=nan", {"scale", "a finite number", "'nan'"});
  expect_complaint("op=kda_prefill seed=-3", {"seed", "2^64 - 1", "'-3'"});
}

TEST(CaseLine, BadLinesSayWhatIsMissing) {
  expect_complaint("", {"op", "op=NAME"});
  expect_complaint("T=5", {"op", "op=NAME", "'T=5'"});
  expect_complaint("op=kda_prefill T", {"word", "key=value", "'T'"});
  expect_complaint("op=kda_prefill T=5 T=6", {"T", "once", "'T=6'"});
  expect_complaint("op=kda_prefill lower_bound=-5", {"lower_bound", "gate=bound", "'-5'"});
}

class CaseList : public testing::Test {
 protected:
  std::filesystem::path write(const std::string& text) const {
    const auto file = std::filesystem::path(testing::TempDir()) / "case_list.txt";
    std::ofstream(file) << text;
    return file;
  }
};

TEST_F(CaseList, SkipsCommentsAndBlankLines) {
  const auto lines =
      read_case_list(write("# head\n\nop=kda_prefill T=1 # one\r\n  \nop=chunk_kda"));
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].T, 1);
  EXPECT_EQ(lines[1].op, Op::kChunkKda);
  EXPECT_TRUE(read_case_list(write("")).empty());
}

TEST_F(CaseList, ErrorsNameFileAndLine) {
  const auto file = write("# head\nop=kda_prefill\nop=kda_prefill T=x\n");
  try {
    (void)read_case_list(file);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kCaseLineInvalid);
    EXPECT_EQ(error.message().rfind(file.string() + ":3: case line, T: wanted", 0), 0U)
        << error.message();
  }
}

TEST_F(CaseList, MissingFilesAndFoldersAreErrors) {
  for (const std::filesystem::path path : {"/nonexistent/cases.txt", "/tmp"}) {
    try {
      (void)read_case_list(path);
      FAIL() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPathNotFound);
    }
  }
}

TEST_F(CaseList, BundledListsParse) {
  int lists = 0;
  for (const char* name : {"smoke", "ci", "full"}) {
    const auto file =
        std::filesystem::path(KDA_SOURCE_DIR) / "data/cases" / (name + std::string(".txt"));
    const auto lines = read_case_list(file);
    EXPECT_FALSE(lines.empty()) << file;
    for (const CaseLine& line : lines) EXPECT_EQ(parse_case_line(to_string(line)), line);
    ++lists;
  }
  EXPECT_EQ(lists, 3);
}

TEST(MakeCase, FillsInputsAndOptions) {
  const Case made = make_case(parse_case_line(
      "op=chunk_kda lens=5,0,64 H=2 HV=4 K=60 V=100 dtype=f32 g_dtype=f16 chunk=32 scale=0.5 "
      "gate=bound lower_bound=-3 safe_gate=1 l2norm=1 beta_sigmoid=1 neg_eigval=1 v_first=1 "
      "initial_state=1 final_state=1 h=1 seed=3"));
  EXPECT_EQ(made.op, Op::kChunkKda);
  EXPECT_EQ(made.line, made.name);
  EXPECT_EQ(to_string(parse_case_line(made.line)), made.line);
  EXPECT_FALSE(made.expected);
  const auto& kda_case = std::get<KdaCase>(made.inputs);
  const Semantics s = check(kda_case.contract, kda_case.problem());
  EXPECT_EQ(s.N(), 3);
  EXPECT_EQ(s.HV, 4);
  EXPECT_EQ(s.chunk, 32);
  EXPECT_EQ(s.scale, 0.5);
  EXPECT_EQ(s.gate, GateForm::kLowerBound);
  EXPECT_EQ(s.lower_bound, -3);
  EXPECT_EQ(s.beta, BetaForm::kDoubledLogit);
  EXPECT_EQ(s.state_layout, StateLayout::kVK);
  EXPECT_EQ(s.qk_norm, QkNorm::kL2);
  EXPECT_TRUE(s.final_state && s.chunk_states);
  EXPECT_EQ(kda_case.inputs.at("g").dtype(), Dtype::kF16);
  EXPECT_EQ(kda_case.inputs.at("beta").dtype(), Dtype::kF32);
}

TEST(MakeCase, InputsLargerThanTheMachineAreRefusedBeforeAnyIsMade) {
  try {
    (void)make_case(parse_case_line("op=chunk_kda T=1000000000 H=1024 K=256 V=256"));
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kOutOfMemory);
    EXPECT_NE(error.message().find("GiB"), std::string::npos) << error.message();
  }
}

TEST(MakeCase, LeavesRefusalsToTheContract) {
  const Case made = make_case(parse_case_line("op=kda_prefill chunk=32"));
  const auto& kda_case = std::get<KdaCase>(made.inputs);
  try {
    (void)check(kda_case.contract, kda_case.problem());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kChunkSizeUnsupported);
  }
}

}  // namespace
}  // namespace kda::harness
