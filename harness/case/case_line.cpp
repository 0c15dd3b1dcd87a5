#include "harness/case/case_line.hpp"

#include "harness/case/case_line_keys.hpp"
#include "harness/case/fill.hpp"

#include <algorithm>
#include <fstream>
#include <map>
#include <numeric>
#include <utility>

#include <fmt/format.h>
#include <unistd.h>

namespace kda::harness {
namespace {

const CaseLineKey& find_key(std::string_view name) {
  std::vector<std::string_view> known;
  for (const CaseLineKey& key : case_line_keys()) {
    if (key.name == name) return key;
    known.push_back(key.name);
  }
  fail_case_line("key", one_of(known, name), name);
}

/// The words "key=value" of a line, by key.
std::map<std::string_view, std::string_view> split(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n";
  std::map<std::string_view, std::string_view> words;
  for (auto begin = text.find_first_not_of(kSpace); begin != std::string_view::npos;) {
    const auto end = std::min(text.find_first_of(kSpace, begin), text.size());
    const std::string_view word = text.substr(begin, end - begin);
    const auto equals = word.find('=');
    if (equals == std::string_view::npos) fail_case_line("word", "key=value", word);
    const std::string_view name = find_key(word.substr(0, equals)).name;
    if (!words.emplace(name, word.substr(equals + 1)).second) {
      fail_case_line(name, "the key once", word);
    }
    begin = text.find_first_not_of(kSpace, end);
  }
  return words;
}

}  // namespace

CaseLine parse_case_line(std::string_view text) {
  const auto words = split(text);
  const auto given = [&](std::string_view key) { return words.count(key) > 0; };
  if (!given("op")) fail_case_line("op", "op=NAME", text);
  CaseLine line;
  for (const auto& [key, value] : words) find_key(key).read(line, key, value);
  if (!given("T") && line.lens)
    line.T = std::accumulate(line.lens->begin(), line.lens->end(), std::int64_t{0});
  if (!given("HV")) line.HV = line.H;
  if (!given("g_dtype")) line.g_dtype = line.dtype;
  if (!given("beta_dtype")) line.beta_dtype = line.dtype;
  if (given("lower_bound") && line.gate != GateForm::kLowerBound) {
    fail_case_line("lower_bound", "gate=bound beside it", words.at("lower_bound"));
  }
  return line;
}

std::string to_string(const CaseLine& line) {
  std::string text;
  for (const CaseLineKey& key : case_line_keys()) {
    const auto value = key.print(line);
    if (value) text += fmt::format("{}{}={}", text.empty() ? "" : " ", key.name, *value);
  }
  return text;
}

std::vector<CaseLine> read_case_list(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in || std::filesystem::is_directory(file)) {
    throw Error(ErrorCode::kPathNotFound,
                fmt::format("case list: wanted a readable file, got {}", file.string()));
  }
  std::vector<CaseLine> lines;
  std::string text;
  for (int number = 1; std::getline(in, text); ++number) {
    text.erase(std::min(text.find('#'), text.size()));
    if (text.find_first_not_of(" \t\r") == std::string::npos) continue;
    try {
      lines.push_back(parse_case_line(text));
    } catch (const Error& error) {
      throw Error(error.code(), fmt::format("{}:{}: {}", file.string(), number, error.message()));
    }
  }
  return lines;
}

namespace {

/// Bytes of the inputs, in floating point: extents may be anything.
double input_bytes(const CaseLine& line) {
  const auto x = [](std::int64_t extent) { return static_cast<double>(extent); };
  const double rows = x(line.B) * x(line.T);
  const double per_row = x(line.H) * x(line.K) * 2 + x(line.HV) * (x(line.V) + x(line.K) + 1);
  const double states = x(line.lens ? static_cast<std::int64_t>(line.lens->size()) : line.B) *
                        x(line.HV) * x(line.K) * x(line.V);
  const double parameters = x(line.HV) * x(line.K) + x(line.H) * x(line.K);
  return 4 * (rows * per_row + (line.initial_state ? states : 0) + parameters);
}

/// Refuses what would drive the machine out of memory before anybody could say so.
void require_memory(const CaseLine& line) {
  const double machine =
      static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
  const double wanted = input_bytes(line);
  if (wanted <= machine / 2) return;
  throw Error(
      ErrorCode::kOutOfMemory,
      fmt::format(
          "{}: inputs: wanted at most {:.1f} GiB, half of this machine's memory, got {:.1f}",
          to_string(line), machine / 2 / 0x1p30, wanted / 0x1p30));
}

}  // namespace

Problem call_options(const CaseLine& line) {
  Problem options;
  options.chunk_size = line.chunk;
  options.scale = line.scale;
  if (line.gate == GateForm::kLowerBound) options.lower_bound = line.lower_bound;
  options.use_gate_in_kernel = line.gate != GateForm::kLogDecay;
  options.safe_gate = line.safe_gate;
  options.use_qk_l2norm_in_kernel = line.l2norm;
  options.use_beta_sigmoid_in_kernel = line.beta_sigmoid;
  options.allow_neg_eigval = line.neg_eigval;
  options.state_v_first = line.v_first;
  options.output_final_state = line.final_state;
  options.return_intermediate_states = line.h;
  return options;
}

Case make_case(const CaseLine& line) {
  require_memory(line);
  KdaCase inputs = fill(line);
  inputs.options = call_options(line);
  Case made;
  made.name = to_string(line);
  made.line = made.name;
  made.op = line.op;
  made.inputs = std::move(inputs);
  return made;
}

}  // namespace kda::harness
