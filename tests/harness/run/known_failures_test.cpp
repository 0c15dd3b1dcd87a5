#include "harness/run/known_failures.hpp"

#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

namespace kda::harness {
namespace {

std::vector<KnownFailure> read(const std::string& entries, std::string_view today = "2026-06-01") {
  const std::filesystem::path file =
      ::testing::TempDir() + "/known_" + std::to_string(getpid()) + ".json";
  std::ofstream(file)
      << R"({"format": "kdacheck-known-failures", "version": 1, "known_failures": [)" << entries
      << "]}";
  return read_known_failures(file, today);
}

std::string entry(const std::string& implementation, const std::string& test_case,
                  const std::string& expires = "2026-06-01", const std::string& more = "") {
  return R"({"implementation": ")" + implementation + R"(", "case": ")" + test_case +
         R"(", "reason": "bug 7", "expires": ")" + expires + "\"" + more + "}";
}

CaseResult result(const std::string& implementation, const std::string& test_case, Verdict verdict,
                  const std::string& code = "") {
  CaseResult made;
  made.implementation = implementation;
  made.case_name = test_case;
  made.verdict = verdict;
  made.code = code;
  return made;
}

std::optional<ErrorCode> code_of(const std::string& entries) {
  try {
    (void)read(entries);
  } catch (const Error& error) {
    return error.code();
  }
  return std::nullopt;
}

TEST(KnownFailures, ExcuseWhatTheyNameAndNothingElse) {
  auto entries = read(entry("cuda-*", "tail_*"));
  std::vector<CaseResult> results{result("cuda-x", "tail_5", Verdict::kFailed, "over_bound"),
                                  result("cuda-x", "head_5", Verdict::kFailed, "over_bound"),
                                  result("fast", "tail_5", Verdict::kCrashed, "signal"),
                                  result("cuda-x", "tail_6", Verdict::kPassed),
                                  result("cuda-x", "tail_7", Verdict::kUnsupported)};
  apply_known_failures(entries, results);
  EXPECT_EQ(results[0].verdict, Verdict::kKnownFailure);
  EXPECT_EQ(results[0].known, "failed (until 2026-06-01): bug 7");
  EXPECT_EQ(results[1].verdict, Verdict::kFailed);
  EXPECT_EQ(results[2].verdict, Verdict::kCrashed);
  EXPECT_EQ(results[3].verdict, Verdict::kPassed);
  EXPECT_EQ(results[4].verdict, Verdict::kUnsupported);
  EXPECT_TRUE(notes_on(entries).lines.empty());
}

TEST(KnownFailures, ACodeNarrowsAnEntry) {
  auto entries = read(entry("a", "b", "2026-06-01", R"(, "code": "over_bound")"));
  std::vector<CaseResult> results{result("a", "b", Verdict::kCrashed, "signal")};
  apply_known_failures(entries, results);
  EXPECT_EQ(results[0].verdict, Verdict::kCrashed);
}

TEST(KnownFailures, AnExpiredEntryExcusesNothingAndIsNamed) {
  auto entries = read(entry("a", "b", "2026-05-31"));
  std::vector<CaseResult> results{result("a", "b", Verdict::kFailed)};
  apply_known_failures(entries, results);
  EXPECT_EQ(results[0].verdict, Verdict::kFailed);
  const KnownFailureNotes notes = notes_on(entries);
  ASSERT_EQ(notes.lines.size(), 1U);
  EXPECT_EQ(notes.lines[0],
            "known failure b of a (bug 7): expired on 2026-05-31; 1 failures count again");
  EXPECT_FALSE(notes.unexpected_pass);
}

TEST(KnownFailures, APassOfANamedCaseIsUnexpected) {
  auto entries = read(entry("a", "b") + "," + entry("a", "c*") + "," + entry("z", "z"));
  std::vector<CaseResult> results{result("a", "b", Verdict::kPassed),
                                  result("a", "c1", Verdict::kPassed)};
  apply_known_failures(entries, results);
  const KnownFailureNotes notes = notes_on(entries);
  ASSERT_EQ(notes.lines.size(), 3U);
  EXPECT_NE(notes.lines[0].find("passes now"), std::string::npos);
  EXPECT_NE(notes.lines[1].find("passes now"), std::string::npos);
  EXPECT_NE(notes.lines[2].find("matched no result"), std::string::npos);
  EXPECT_TRUE(notes.unexpected_pass);
  auto globs = read(entry("a", "c*"));
  apply_known_failures(globs, results);
  EXPECT_FALSE(notes_on(globs).unexpected_pass);
}

TEST(KnownFailures, ListsThatSayTooLittleAreRefused) {
  EXPECT_FALSE(code_of(entry("a", "b")));
  const auto invalid = ErrorCode::kKnownFailuresInvalid;
  EXPECT_EQ(code_of(R"({"implementation": "a", "case": "b", "expires": "2026-06-01"})"), invalid);
  EXPECT_EQ(code_of(R"({"implementation": "a", "case": "b", "reason": "r"})"), invalid);
  EXPECT_EQ(code_of(entry("", "b")), invalid);
  for (const char* date : {"2026-6-1", "2026-02-30", "tomorrow", "20260601"})
    EXPECT_EQ(code_of(entry("a", "b", date)), invalid) << date;
  EXPECT_EQ(code_of(entry("a", "b", "2026-06-01", R"(, "extra": "x")")), invalid);
  EXPECT_EQ(code_of("7"), invalid);
  EXPECT_EQ(code_of("{"), invalid);
  EXPECT_THROW((void)read_known_failures("/no/such/list", "2026-06-01"), Error);
}

TEST(KnownFailures, TodayIsADate) {
  EXPECT_EQ(utc_date().size(), 10U);
  EXPECT_GT(utc_date(), "2025-01-01");
}

}  // namespace
}  // namespace kda::harness
