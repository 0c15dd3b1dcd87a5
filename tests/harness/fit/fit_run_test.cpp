#include "harness/fit/fit_run.hpp"

#include "harness/fit/fit_input.hpp"
#include "harness/fit/fit_svg.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/program/command.hpp"
#include "reference/predictor.hpp"
#include "reference/types/error.hpp"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

namespace kda::tests {
namespace {

using harness::Exit;
using harness::FitCommand;
using harness::PredictCommand;
using harness::run_fit;
using harness::run_predict;

/// A folder of its own for each test, removed behind it.
class FitRun : public testing::Test {
 protected:
  FitRun()
      : folder_(std::filesystem::temp_directory_path() /
                ("kda_" +
                 std::string(testing::UnitTest::GetInstance()->current_test_info()->name()) +
                 std::to_string(::getpid()))) {
    std::filesystem::create_directories(folder_);
  }
  ~FitRun() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string file(const std::string& name) const {
    return (folder_ / name).string();
  }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(file(name), std::ios::binary) << text;
    return file(name);
  }
  static std::string read(const std::string& name) {
    std::ifstream in(name, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  /// SGLang's profile of a chunk of 6144 on f, with a cold start in front.
  std::string profile(const reference::Coefficients& f, double ripple = 0) const {
    std::string text = "seq_len,latency_ms\n";
    double i = 0;
    for (const std::int64_t length : reference::profile_lengths(6144)) {
      const double cold = i == 0 ? 7000 : 0;
      const double latency = f(static_cast<double>(length)) + ripple * std::sin(i * i);
      text += std::to_string(length) + "," + std::to_string(latency + cold) + "\n";
      ++i;
    }
    return write("samples.csv", text);
  }

  Exit fit(FitCommand command) {
    out_.str("");
    err_.str("");
    return run_fit(command, out_, err_);
  }

  std::filesystem::path folder_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(FitRun, PrintsCoefficientsTargetAndSchedule) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15}, 0.5);
  command.base_chunk_size = 6144;
  command.prompt_len = 20000;
  command.context_len = 131072;
  EXPECT_EQ(fit(command), Exit::kSuccess);
  EXPECT_EQ(err_.str(), "");
  const std::string text = out_.str();
  for (const char* part : {"128 samples, 127 kept", "95 % interval", "target latency 130.",
                           "for a chunk of 6144", "R^2 0.9999", "   20000 ", "  sum", "  tail\n"}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " in\n" << text;
  }
  EXPECT_EQ(text.find("warning"), std::string::npos) << text;
}

TEST_F(FitRun, DoubtsAreInTheJsonToo) {
  FitCommand command;
  command.samples = profile({1e-9, 0.02, 100}, 40);  // noise that hides the square term
  command.json = file("fit.json");
  (void)fit(command);
  const auto json = nlohmann::json::parse(read(command.json));
  ASSERT_FALSE(json["warnings"].empty()) << json;
  for (const auto& warning : json["warnings"]) {
    EXPECT_FALSE(warning["code"].get<std::string>().empty());
    EXPECT_FALSE(warning["message"].get<std::string>().empty());
  }
}

TEST_F(FitRun, ATargetThatCannotBeIsTheErrorOfTheReport) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15}, 0.5);
  command.base_chunk_size = -1'000'000'000;
  command.json = file("fit.json");
  EXPECT_NE(fit(command), Exit::kSuccess);
  EXPECT_NE(out_.str() + err_.str(), "");
}

TEST(SvgPanel, ARangeOfOneValueIsWidened) {
  for (const double value : {0.0, -4.0, 1e9}) {
    harness::SvgPanel panel("p", {0, 0, 100, 50}, {value, value}, {value, value});
    panel.dot(value, value, "red", "tip");
    const std::string svg = panel.finish("title", "x", "y");
    EXPECT_NE(svg.find("cx=\"50.00\" cy=\"25.00\""), std::string::npos) << svg;
    EXPECT_EQ(svg.find("nan"), std::string::npos) << svg;
  }
}

TEST_F(FitRun, SameReportTwice) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15}, 0.5);
  command.base_chunk_size = 6144;
  EXPECT_EQ(fit(command), Exit::kSuccess);
  const std::string first = out_.str();
  EXPECT_EQ(fit(command), Exit::kSuccess);
  EXPECT_EQ(out_.str(), first);
}

TEST_F(FitRun, JsonHoldsEverythingAndCanBeReadBack) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15}, 0.5);
  command.base_chunk_size = 6144;
  command.prompt_len = 20000;
  command.json = file("fit.json");
  EXPECT_EQ(fit(command), Exit::kSuccess);
  const auto json = nlohmann::json::parse(read(command.json));
  EXPECT_EQ(json["format"], "kdacheck-fit");
  EXPECT_TRUE(json["error"].is_null());
  EXPECT_NEAR(json["corrected"]["a"].get<double>(), 2e-7, 3e-8);  // 4 standard errors
  EXPECT_LT(json["intervals"]["a"][0].get<double>(), json["raw"]["a"].get<double>());
  EXPECT_EQ(json["influence"].size(), 127U);
  EXPECT_EQ(json["residuals"].size(), 127U);
  std::int64_t sum = 0;
  for (const auto& step : json["schedule"]) sum += step["chunk"].get<std::int64_t>();
  EXPECT_EQ(sum, 20000);
  const auto again = harness::read_samples(command.json);
  const auto before = harness::read_samples(command.samples);
  EXPECT_EQ(again.seq_lens, before.seq_lens);
  EXPECT_EQ(again.latencies, before.latencies);
}

TEST_F(FitRun, PlotIsWellFormedAndHasTheParts) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15}, 0.5);
  command.base_chunk_size = 6144;
  command.prompt_len = 20000;
  command.plot = file("fit.svg");
  EXPECT_EQ(fit(command), Exit::kSuccess);
  const std::string svg = read(command.plot);
  const auto count = [&svg](const std::string& what) {
    std::size_t found = 0;
    for (std::size_t at = svg.find(what); at != std::string::npos; at = svg.find(what, at + 1)) {
      ++found;
    }
    return found;
  };
  EXPECT_EQ(count("<circle"), 127U);
  EXPECT_EQ(count("<polygon"), 1U);
  EXPECT_EQ(count("<polyline"), 1U);
  EXPECT_GE(count("<rect"), 4U);
  EXPECT_EQ(count("<svg"), count("</svg>"));
  EXPECT_EQ(count("<g "), count("</g>"));
  EXPECT_EQ(count("nan"), 0U);
}

TEST_F(FitRun, OutlierIsNamedInTheReport) {
  std::string text = read(profile({2e-7, 0.02, 15}, 0.5));
  const std::string line = "7620,";
  const std::size_t at = text.find(line) + line.size();
  text.replace(at, text.find('\n', at) - at, "7234.07");
  FitCommand command;
  command.samples = write("outlier.csv", text);
  command.base_chunk_size = 6144;
  command.plot = file("outlier.svg");
  EXPECT_EQ(fit(command), Exit::kSuccess);
  EXPECT_NE(out_.str().find("warning fit_b_negative: Fitted linear coefficient b="),
            std::string::npos);
  EXPECT_NE(out_.str().find("warning outlier: sample 1 (length 7620, 7234.07 ms)"),
            std::string::npos)
      << out_.str();
  EXPECT_NE(out_.str().find("  used: a="), std::string::npos);
  EXPECT_NE(read(command.plot).find("#c62828"), std::string::npos);
}

TEST_F(FitRun, FitErrorIsExit1AndKeepsWhatThereIs) {
  FitCommand command;
  command.samples = profile({-2e-7, 0.02, 15});
  command.base_chunk_size = 6144;
  command.json = file("fit.json");
  EXPECT_EQ(fit(command), Exit::kFailed);
  EXPECT_NE(err_.str().find("fit_a_not_positive: Fitted quadratic coefficient a=-2.00e-07"),
            std::string::npos)
      << err_.str();
  EXPECT_NE(out_.str().find("a ms/tok^2"), std::string::npos);
  const auto json = nlohmann::json::parse(read(command.json));
  EXPECT_EQ(json["error"]["code"], "fit_a_not_positive");
  EXPECT_FALSE(json.contains("corrected"));
  EXPECT_NEAR(json["raw"]["a"].get<double>(), -2e-7, 1e-12);
}

TEST_F(FitRun, RefusedSamplesHaveNoPlot) {
  FitCommand command;
  command.samples = write("few.csv", "1,1\n2,2\n3,3\n");
  command.plot = file("fit.svg");
  EXPECT_EQ(fit(command), Exit::kFailed);
  EXPECT_NE(err_.str().find("fit_not_enough_points"), std::string::npos);
  EXPECT_NE(err_.str().find("not written"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(command.plot));
}

TEST_F(FitRun, TargetThatIsNotPositiveIsExit1) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15});
  command.base_chunk_size = 0;
  EXPECT_EQ(fit(command), Exit::kFailed);
  EXPECT_NE(err_.str().find("fit_target_latency_not_positive: Calculated target_latency=0.00ms"),
            std::string::npos);
}

TEST_F(FitRun, BadUsageAndInputThrow) {
  const auto code_of = [this](const FitCommand& command) {
    try {
      (void)fit(command);
    } catch (const Error& error) {
      return error.code();
    }
    return ErrorCode::kChunkSizeUnsupported;
  };
  FitCommand command;
  command.samples = file("missing.csv");
  EXPECT_EQ(code_of(command), ErrorCode::kPathNotFound);
  command.samples = write("bad.csv", "1,x\n");
  EXPECT_EQ(code_of(command), ErrorCode::kFitInputInvalid);
  command.samples = profile({2e-7, 0.02, 15});
  command.prompt_len = 1000;
  EXPECT_EQ(code_of(command), ErrorCode::kUsage);  // no base chunk
  command.base_chunk_size = 6144;
  command.context_len = 500;
  EXPECT_EQ(code_of(command), ErrorCode::kUsage);  // the prompt does not fit
  command.context_len = 5000;
  command.confidence = 1;
  EXPECT_EQ(code_of(command), ErrorCode::kUsage);
  command.confidence = 0.9;
  command.smooth_factor = std::nan("");
  EXPECT_EQ(code_of(command), ErrorCode::kUsage);
}

TEST_F(FitRun, AFileThatCannotBeWrittenLeavesTheOthers) {
  FitCommand command;
  command.samples = profile({2e-7, 0.02, 15});
  command.json = file("no/such/folder/fit.json");
  command.plot = file("fit.svg");
  try {
    (void)fit(command);
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kReportUnwritable);
  }
  EXPECT_NE(out_.str().find("a ms/tok^2"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(command.plot));
}

TEST_F(FitRun, FixturesBringTheirBaseChunk) {
  harness::Case fixture;
  fixture.name = "profile";
  fixture.op = harness::Op::kFit;
  harness::FitCase inputs;
  const auto samples = harness::read_samples(profile({2e-7, 0.02, 15}));
  inputs.seq_lens = samples.seq_lens;
  inputs.latencies = samples.latencies;
  inputs.base_chunk_size = 6144;
  fixture.inputs = inputs;
  FitCommand command;
  command.samples = file("fit.h5");
  harness::write_fixture(command.samples, fixture, false);
  EXPECT_EQ(fit(command), Exit::kSuccess);
  EXPECT_NE(out_.str().find("for a chunk of 6144"), std::string::npos);

  fixture.op = harness::Op::kPredict;
  fixture.inputs = harness::PredictCase{};
  command.samples = file("predict.h5");
  harness::write_fixture(command.samples, fixture, false);
  EXPECT_THROW((void)fit(command), Error);
  command.samples = write("broken.h5", "no HDF5");
  EXPECT_THROW((void)fit(command), Error);
}

TEST(PredictRun, AnswersAndReasons) {
  const auto ask = [](PredictCommand command, std::string& text) {
    std::ostringstream out;
    std::ostringstream err;
    const Exit exit = run_predict(command, out, err);
    text = out.str() + err.str();
    return exit;
  };
  PredictCommand command;
  command.a = 2e-7;
  command.b = 0.02;
  command.base_chunk_size = 6144;
  std::string text;
  EXPECT_EQ(ask(command, text), Exit::kSuccess);
  EXPECT_EQ(text, "6144\n");
  command.context_len = 163;
  EXPECT_EQ(ask(command, text), Exit::kFailed);
  EXPECT_EQ(text, "kdacheck: no chunk size: below_alignment\n");
  command.target_latency = -1;
  EXPECT_EQ(ask(command, text), Exit::kFailed);
  EXPECT_EQ(text, "kdacheck: no chunk size: chunk_not_positive\n");
  command.target_latency.reset();
  command.base_chunk_size = 0;
  EXPECT_EQ(ask(command, text), Exit::kFailed);
  EXPECT_NE(text.find("fit_target_latency_not_positive: Calculated target_latency=0.00ms"),
            std::string::npos);
  command.b = std::nan("");
  EXPECT_THROW((void)ask(command, text), Error);
}

Exit parse(const std::vector<std::string>& arguments, std::string& text) {
  CLI::App app("test", "kdacheck");
  harness::CommandContext context;
  add_fit_command(app, context);
  add_predict_command(app, context);
  std::vector<std::string> reversed(arguments.rbegin(), arguments.rend());
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  try {
    app.parse(reversed);
  } catch (...) {
    text = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
    throw;
  }
  text = testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr();
  return context.exit;
}

TEST(FitCommandLine, PredictOptions) {
  std::string text;
  EXPECT_EQ(parse({"predict", "--a", "2e-7", "--b", "0.02", "--base-chunk", "8192", "--history",
                   "65536", "--context", "131072"},
                  text),
            Exit::kSuccess);
  EXPECT_EQ(text, "4864\n");
  EXPECT_EQ(parse({"predict", "--a", "2e-7", "--b", "-0.02", "--base-chunk", "1024", "--history",
                   "0", "--target", "-5", "--page", "16", "--smooth", "1", "--max-chunk", "512"},
                  text),
            Exit::kSuccess)
      << text;
  EXPECT_THROW((void)parse({"predict", "--a", "2e-7"}, text), CLI::ParseError);
  EXPECT_THROW(
      (void)parse({"predict", "--a", "x", "--b", "1", "--base-chunk", "1", "--history", "0"}, text),
      CLI::ParseError);
}

TEST_F(FitRun, FitOptions) {
  std::string text;
  const std::string samples = profile({2e-7, 0.02, 15}, 0.5);
  EXPECT_EQ(parse({"fit",          samples,
                   "--base-chunk", "6144",
                   "--prompt",     "9000",
                   "--context",    "131072",
                   "--page",       "128",
                   "--smooth",     "0.65",
                   "--max-chunk",  "4096",
                   "--resamples",  "100",
                   "--seed",       "3",
                   "--confidence", "0.9",
                   "--json",       file("fit.json"),
                   "--plot",       file("fit.svg")},
                  text),
            Exit::kSuccess);
  EXPECT_NE(text.find("90 % interval"), std::string::npos) << text;
  EXPECT_TRUE(std::filesystem::exists(file("fit.json")));
  EXPECT_TRUE(std::filesystem::exists(file("fit.svg")));
  EXPECT_EQ(parse({"fit", samples, "--resamples", "0"}, text), Exit::kSuccess);
  EXPECT_EQ(text.find("interval"), std::string::npos);
  EXPECT_THROW((void)parse({"fit"}, text), CLI::ParseError);
  EXPECT_THROW((void)parse({"fit", samples, "--resamples", "-1"}, text), CLI::ParseError);
}

TEST(FitSvg, TicksAreRoundAndInside) {
  EXPECT_EQ(harness::axis_ticks({0, 10}), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_EQ(harness::axis_ticks({-1, 1}).size(), 5U);
  for (const double far : {1.0, 1e15, 9007199254740992.0}) {
    EXPECT_LE(harness::axis_ticks({far, far + 1}).size(), 12U);
  }
}

TEST(FitSvg, EscapesText) {
  EXPECT_EQ(harness::xml_escaped("<a&\"b\">\x01"), "&lt;a&amp;&quot;b&quot;&gt; ");
}

}  // namespace
}  // namespace kda::tests
