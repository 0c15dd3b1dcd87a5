#include "harness/run/known_failures.hpp"

#include <array>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <set>

#include <fmt/format.h>
#include <fnmatch.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

using nlohmann::json;

[[noreturn]] void fail(const std::filesystem::path& file, const std::string& what) {
  throw Error(ErrorCode::kKnownFailuresInvalid, file.string() + ": " + what);
}

/// A date of the calendar in its one spelling, so that dates compare as text.
bool is_date(const std::string& text) {
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  char rest = 0;
  if (text.size() != 10 ||
      std::sscanf(text.c_str(), "%4d-%2u-%2u%c", &year, &month, &day, &rest) != 3) {
    return false;
  }
  return text == fmt::format("{:04}-{:02}-{:02}", year, month, day) &&
         std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day))
             .ok();
}

KnownFailure read_entry(const std::filesystem::path& file, const json& entry, std::size_t number) {
  const std::string place = fmt::format("entry {}", number);
  if (!entry.is_object()) fail(file, place + ": wanted an object");
  const std::set<std::string> known{"implementation", "case", "code", "reason", "expires"};
  for (const auto& [key, value] : entry.items()) {
    if (!known.contains(key)) fail(file, fmt::format("{}: unknown key {}", place, key));
    if (!value.is_string() || value.get_ref<const std::string&>().empty())
      fail(file, fmt::format("{}: {}: wanted text that is not empty", place, key));
  }
  const auto text = [&](const char* key) {
    if (!entry.contains(key)) fail(file, fmt::format("{}: wanted the key {}", place, key));
    return entry.at(key).get<std::string>();
  };
  KnownFailure read{.implementation = text("implementation"),
                    .test_case = text("case"),
                    .code = entry.value("code", "*"),
                    .reason = text("reason"),
                    .expires = text("expires")};
  if (!is_date(read.expires)) {
    fail(file,
         fmt::format("{}: expires: wanted a date as 2027-01-31, got {}", place, read.expires));
  }
  return read;
}

bool matches(const std::string& glob, const std::string& text) {
  return glob == text || fnmatch(glob.c_str(), text.c_str(), 0) == 0;
}

bool has_wildcard(const std::string& glob) {
  return glob.find_first_of("*?[") != std::string::npos;
}

void apply(std::vector<KnownFailure>& entries, CaseResult& result) {
  const bool failure = is_failure(result.verdict);
  if (!failure && result.verdict != Verdict::kPassed) return;
  for (KnownFailure& entry : entries) {
    if (!matches(entry.implementation, result.implementation) ||
        !matches(entry.test_case, result.case_name)) {
      continue;
    }
    if (!failure) {
      ++entry.passed;
    } else if (!matches(entry.code, result.code)) {
      continue;  // fails in another way than the one that is known
    } else if (entry.expired) {
      ++entry.failed;
    } else {
      ++entry.excused;
      result.known =
          fmt::format("{} (until {}): {}", name(result.verdict), entry.expires, entry.reason);
      result.verdict = Verdict::kKnownFailure;
      return;
    }
  }
}

}  // namespace

std::vector<KnownFailure> read_known_failures(const std::filesystem::path& file,
                                              std::string_view today) {
  std::ifstream in(file, std::ios::binary);
  std::error_code ignored;
  if (!in || std::filesystem::is_directory(file, ignored))
    throw Error(ErrorCode::kPathNotFound, file.string() + ": wanted a list of known failures");
  json list;
  try {
    list = json::parse(in);
  } catch (const json::exception& error) {
    fail(file, std::string("wanted JSON: ") + error.what());
  }
  const bool right = list.is_object() && list.contains("format") && list.contains("version") &&
                     list["format"] == "kdacheck-known-failures" && list["version"] == 1 &&
                     list.contains("known_failures") && list["known_failures"].is_array();
  if (!right) {
    fail(file, "wanted format \"kdacheck-known-failures\", version 1 and the array known_failures");
  }
  std::vector<KnownFailure> entries;
  for (const json& entry : list["known_failures"]) {
    entries.push_back(read_entry(file, entry, entries.size() + 1));
    entries.back().expired = entries.back().expires < today;
  }
  return entries;
}

void apply_known_failures(std::vector<KnownFailure>& entries, std::vector<CaseResult>& results) {
  for (CaseResult& result : results) apply(entries, result);
}

KnownFailureNotes notes_on(const std::vector<KnownFailure>& entries) {
  KnownFailureNotes notes;
  for (const KnownFailure& entry : entries) {
    const auto note = [&](const std::string& what) {
      notes.lines.push_back(fmt::format("known failure {} of {} ({}): {}", entry.test_case,
                                        entry.implementation, entry.reason, what));
    };
    if (entry.expired) {
      note(fmt::format("expired on {}; {}", entry.expires,
                       entry.failed > 0 ? fmt::format("{} failures count again", entry.failed)
                                        : std::string("remove it")));
    } else if (entry.excused > 0) {
      continue;
    } else if (entry.passed > 0) {
      note("passes now: remove it");
      if (!has_wildcard(entry.test_case) && !has_wildcard(entry.implementation))
        notes.unexpected_pass = true;
    } else {
      note("matched no result of this run");
    }
  }
  return notes;
}

std::string utc_date() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::array<char, 16> text{};
  std::strftime(text.data(), text.size(), "%Y-%m-%d", &parts);
  return text.data();
}

}  // namespace kda::harness
