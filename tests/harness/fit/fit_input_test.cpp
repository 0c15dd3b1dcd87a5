#include "harness/fit/fit_input.hpp"

#include "reference/types/error.hpp"

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace kda::tests {
namespace {

using harness::LatencySamples;
using harness::parse_samples;
using Lengths = std::vector<std::int64_t>;
using Latencies = std::vector<double>;

void expect_samples(const std::string& text, const Lengths& lengths, const Latencies& latencies) {
  SCOPED_TRACE(text);
  const LatencySamples got = parse_samples(text, "text");
  EXPECT_EQ(got.seq_lens, lengths);
  EXPECT_EQ(got.latencies, latencies);
}

void expect_refused(const std::string& text, const std::string& message) {
  SCOPED_TRACE(text);
  try {
    (void)parse_samples(text, "f");
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kFitInputInvalid);
    EXPECT_EQ(error.message(), message);
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
  }
}

TEST(FitInputTable, Forms) {
  const Lengths lengths{4096, 2048};
  const Latencies latencies{100.5, 50};
  expect_samples("4096,100.5\n2048,50\n", lengths, latencies);
  expect_samples("4096,100.5\n2048,50", lengths, latencies);
  expect_samples("4096, 100.5\r\n2048 ,50\r\n", lengths, latencies);
  expect_samples("4096;1.005e2\n2048;50.0\n", lengths, latencies);
  expect_samples("4096\t100.5\n2048\t50\n", lengths, latencies);
  expect_samples("  4096   100.5\n2048 50\n", lengths, latencies);
  expect_samples(
      "\xef\xbb\xbf"
      "4096,100.5\n2048,50\n",
      lengths, latencies);
  expect_samples("seq_len,latency_ms\n4096,100.5\n2048,50\n", lengths, latencies);
  expect_samples("# profile of today\n\nlength;ms # units\n4096;100.5 # cold\n\n2048;50\n", lengths,
                 latencies);
}

TEST(FitInputTable, NonFiniteLatenciesAreForTheFitToJudge) {
  const LatencySamples got = parse_samples("7680,nan\n7620,inf\n60,-0.0\n", "text");
  EXPECT_TRUE(std::isnan(got.latencies[0]));
  EXPECT_TRUE(std::isinf(got.latencies[1]));
  EXPECT_EQ(got.latencies[2], 0);
}

TEST(FitInputTable, BadInputNamesLineAndColumn) {
  expect_refused("", "f: line 1, column 1: wanted samples, got none");
  expect_refused("# nothing\n\n", "f: line 1, column 1: wanted samples, got none");
  expect_refused("length,ms\n", "f: line 1, column 1: wanted samples, got none");
  expect_refused("100,5\nabc,6\n",
                 "f: line 2, column 1: length: wanted a whole number of tokens, got \"abc\"");
  expect_refused("100,5\n\n200,slow\n",
                 "f: line 3, column 2: latency: wanted a number of ms, got \"slow\"");
  expect_refused("abc,5\n",
                 "f: line 1, column 1: length: wanted a whole number of tokens, got \"abc\"");
  expect_refused("a,b\nc,d\n",
                 "f: line 2, column 1: length: wanted a whole number of tokens, got \"c\"");
  expect_refused("100\n200\n",
                 "f: line 1, column 2: wanted two columns, length and latency, got 1");
  expect_refused("100,5\n200\n",
                 "f: line 2, column 2: wanted two columns, length and latency, got 1");
  expect_refused("100,5\n200,6,7\n",
                 "f: line 2, column 3: wanted two columns, length and latency, got 3");
  expect_refused("100,5\n200,\n", "f: line 2, column 2: latency: wanted a number of ms, got \"\"");
  expect_refused("100,5\n,6\n",
                 "f: line 2, column 1: length: wanted a whole number of tokens, got \"\"");
  expect_refused(",\n", "f: line 1, column 1: length: wanted a whole number of tokens, got \"\"");
  expect_refused("100,5\n0,6\n",
                 "f: line 2, column 1: length: wanted 1 ... 2^53 tokens, got \"0\"");
  expect_refused("100,5\n-3,6\n",
                 "f: line 2, column 1: length: wanted 1 ... 2^53 tokens, got \"-3\"");
  expect_refused("100,5\n3,-6\n", "f: line 2, column 2: latency: wanted >= 0 ms, got \"-6\"");
  expect_refused("100,5\n3,1e999\n",
                 "f: line 2, column 2: latency: beyond the range of a double: \"1e999\"");
  expect_refused("100.5,5\n",
                 "f: line 1, column 1: length: wanted a whole number of tokens, got \"100.5\"");
  expect_refused("latency_ms,seq_len\n5,100\n",
                 "f: line 1, column 1: columns: wanted length then latency, got a header that has "
                 "them the other way round");
  expect_refused("100;5,5\n200;6\n",
                 "f: line 1, column 2: latency: wanted a number of ms, got \"5,5\"");
}

TEST(FitInputTable, LengthsBeyondADoubleAreRefusedNotRounded) {
  expect_samples("9007199254740992,1\n", {9007199254740992}, {1});
  expect_refused("9007199254740993,1\n",
                 "f: line 1, column 1: length: wanted 1 ... 2^53 tokens, got \"9007199254740993\"");
  expect_refused("99999999999999999999999,1\n",
                 "f: line 1, column 1: length: wanted 1 ... 2^53 tokens, got "
                 "\"99999999999999999999999\"");
}

TEST(FitInputTable, HostileBytesStayOutOfMessages) {
  expect_refused(std::string("100,5\n\x01\x1b[2J\xff,6\n"),
                 "f: line 2, column 1: length: wanted a whole number of tokens, got \"??[2J?\"");
  expect_refused("100,5\n" + std::string(5000, 'x') + ",6\n",
                 "f: line 2, column 1: length: wanted a whole number of tokens, got \"" +
                     std::string(40, 'x') + "...\"");
}

TEST(FitInputJson, Forms) {
  const Lengths lengths{4096, 2048};
  const Latencies latencies{100.5, 50};
  expect_samples(R"({"seq_lens": [4096, 2048], "latencies_ms": [100.5, 50]})", lengths, latencies);
  expect_samples(R"({"latencies":[1.005e2,50],"model":{"seq_lens":[1]},"x":[[1],"a"],
                     "seq_lens":[4096,2048]})",
                 lengths, latencies);
  expect_samples("[[4096, 100.5],\n [2048, 50]]", lengths, latencies);
}

TEST(FitInputJson, BadInputNamesLineAndColumn) {
  expect_refused("{\"seq_lens\": [1,\n 2.5], \"latencies_ms\": [1, 2]}",
                 "f: line 2, column 2: length: wanted a whole number of tokens, got \"2.5\"");
  expect_refused("{\"seq_lens\": [1, 2],\n \"latencies_ms\": [1, -22]}",
                 "f: line 2, column 22: latency: wanted >= 0 ms, got \"-22\"");
  expect_refused("{\"seq_lens\": [9007199254740993], \"latencies_ms\": [1]}",
                 "f: line 1, column 15: length: wanted 1 ... 2^53 tokens, got "
                 "\"9007199254740993\"");
  expect_refused("{\"seq_lens\": [1, null], \"latencies_ms\": [1]}",
                 "f: line 1, column 21: wanted a number, got null");
  expect_refused("{\"seq_lens\": [\"7\"], \"latencies_ms\": [1]}",
                 "f: line 1, column 17: wanted a number, got \"7\"");
  expect_refused("{\"seq_lens\": [[7]], \"latencies_ms\": [1]}",
                 "f: line 1, column 15: wanted a number, got a list");
  expect_refused("{\"seq_lens\": 7}", "f: line 1, column 15: wanted a list, got 7");
  expect_refused("{\"seq_lens\": {}}", "f: line 1, column 14: wanted a list, got an object");
  expect_refused("{\"seq_lens\": [1, 2], \"latencies_ms\": [1]}",
                 "f: line 1, column 40: wanted one latency per length, got 2 lengths and 1 "
                 "latencies");
  expect_refused("{\"seq_lens\": [1], \"seq_lens\": [2]}",
                 "f: line 1, column 28: the second \"seq_lens\"");
  expect_refused("{}",
                 "f: line 1, column 1: wanted seq_lens and latencies_ms, or pairs, with samples, "
                 "got none");
  expect_refused("[]",
                 "f: line 1, column 1: wanted seq_lens and latencies_ms, or pairs, with samples, "
                 "got none");
  expect_refused("[1, 2]", "f: line 1, column 3: wanted a list, got 1");
  expect_refused("[[1, 2, 3]]",
                 "f: line 1, column 10: wanted pairs of length and latency, got 3 values");
  expect_refused("[[1]]", "f: line 1, column 4: wanted pairs of length and latency, got 1 values");
  expect_refused("[{}]", "f: line 1, column 2: wanted a list, got an object");
}

TEST(FitInputJson, BrokenDocuments) {
  for (const std::string text : {"{", "{\"seq_lens\": [1,", "[[1, 2]] x", "{\"seq_lens\": [NaN]}",
                                 "[[1, 2],]", "{\"a\" 1}", "[\"\xff\"]"}) {
    SCOPED_TRACE(text);
    try {
      (void)parse_samples(text, "f");
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kFitInputInvalid);
      EXPECT_TRUE(error.message().starts_with("f: line 1, column ")) << error.message();
      EXPECT_NE(error.message().find("no JSON: "), std::string::npos) << error.message();
    }
  }
}

TEST(FitInputLog, TheLineOfSGLang) {
  const std::string line =
      "[2026-02-11 10:02:07 PP0] [PP Dynamic Chunk] [PP0] Profiled 3 samples: "
      "seq_lens=[7680, 7620, 7560], latencies_ms=[7234.07, 221.5, 219.25]\n";
  const Lengths lengths{7680, 7620, 7560};
  const Latencies latencies{7234.07, 221.5, 219.25};
  expect_samples(line, lengths, latencies);
  expect_samples("before\n" + line + "behind\n" + line, lengths, latencies);
}

TEST(FitInputLog, BadInputNamesLineAndColumn) {
  expect_refused("x\nseq_lens=[1, 2], latencies_ms=[3, a]\n",
                 "f: line 2, column 35: latency: wanted a number of ms, got \"a\"");
  expect_refused("seq_lens=[1, -2], latencies_ms=[3, 4]\n",
                 "f: line 1, column 14: length: wanted 1 ... 2^53 tokens, got \"-2\"");
  expect_refused("seq_lens=[1, 2], latencies_ms=[3]\n",
                 "f: line 1, column 33: wanted one latency per length, got 2 lengths and 1 "
                 "latencies");
  expect_refused("seq_lens=[1, 2\n", "f: line 1, column 15: the list is cut off, wanted ']'");
  expect_refused("seq_lens=[1, 2]",
                 "f: line 1, column 16: wanted latencies_ms=[...] behind seq_lens");
  expect_refused("seq_lens=[1, 2]\nlatencies_ms=[1, 2]",
                 "f: line 1, column 16: wanted latencies_ms=[...] behind seq_lens");
  expect_refused("seq_lens=7", "f: line 1, column 10: wanted a list, '['");
  expect_refused("seq_lens=[], latencies_ms=[]", "f: line 1, column 1: wanted samples, got none");
  expect_refused("seq_lens=[1], latencies_ms=[2]\nseq_lens=[1], latencies_ms=[3]\n",
                 "f: line 2, column 1: another profile than in line 1: keep one of them");
}

TEST(FitInputFile, MissingFileAndFolder) {
  for (const std::filesystem::path& path :
       {std::filesystem::temp_directory_path(), std::filesystem::path("/no/such/file.csv")}) {
    try {
      (void)harness::read_samples(path);
      ADD_FAILURE() << path;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kPathNotFound);
    }
  }
}

}  // namespace
}  // namespace kda::tests
