#include "harness/mutate/suite.hpp"

#include "harness/case/case_line.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/implementation/implementation.hpp"
#include "harness/run/oracle.hpp"

#include <fstream>
#include <sstream>
#include <string>

namespace kda::harness::mutate {
namespace {

Case made(const std::string& line) {
  Case test_case = make_case(parse_case_line(line));
  test_case.expected = expected_from(test_case, "reference");
  test_case.oracle = oracle_name("reference");
  return test_case;
}

/// The case's name or line, taken off the front of `text`.
std::string take_case(std::string& text, bool& quoted) {
  quoted = !text.empty() && text.front() == '"';
  const std::size_t end = quoted ? text.find('"', 1) : text.find(' ');
  std::string name =
      text.substr(quoted ? 1 : 0, quoted && end != std::string::npos ? end - 1 : end);
  text = end == std::string::npos ? "" : text.substr(end + 1);
  return name;
}

}  // namespace

std::vector<SuiteCase> read_suite(const std::filesystem::path& file,
                                  const std::filesystem::path& fixtures) {
  std::ifstream in(file);
  if (!in) throw Error(ErrorCode::kPathNotFound, file.string());
  std::vector<SuiteCase> suite;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    text = text.substr(0, text.find('#'));
    if (text.find_first_not_of(" \t") == std::string::npos) continue;
    bool quoted = false;
    const std::string name = take_case(text, quoted);
    SuiteCase one;
    one.test_case = quoted ? made(name) : read_fixture(fixtures / (name + ".h5"));
    std::istringstream words(text);
    for (std::string word; words >> word;) {
      if (word == "kernels") {
        one.kernels = true;
      } else if (word == "laws") {
        one.laws = true;
      } else {
        throw Error(ErrorCode::kCaseLineInvalid, file.string() + ":" + std::to_string(number) +
                                                     ": wanted kernels or laws, got " + word);
      }
    }
    suite.push_back(std::move(one));
  }
  return suite;
}

}  // namespace kda::harness::mutate
