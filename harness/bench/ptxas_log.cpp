#include "harness/bench/ptxas_log.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <system_error>
#include <tuple>

#include <cxxabi.h>

namespace kda::harness {
namespace {

/// The text between two marks after the first; nothing when they are not both there.
std::optional<std::string_view> between(std::string_view line, std::string_view before,
                                        std::string_view after) {
  const std::size_t begin = line.find(before);
  if (begin == std::string_view::npos) return std::nullopt;
  line.remove_prefix(begin + before.size());
  const std::size_t end = line.find(after);
  if (end == std::string_view::npos) return std::nullopt;
  return line.substr(0, end);
}

/// The whole number that stands right before `words`; 0 without it.
std::int64_t number_before(std::string_view line, std::string_view words) {
  const std::size_t end = line.find(words);
  if (end == std::string_view::npos) return 0;
  std::size_t begin = end;
  while (begin > 0 && line[begin - 1] >= '0' && line[begin - 1] <= '9') --begin;
  std::int64_t value = 0;
  std::from_chars(line.data() + begin, line.data() + end, value);
  return value;
}

/// "kda::cuda::kernels::dev::name<kda::Bf16, (kda::Kind)1>(kda::cuda::Params)" ->
/// "name<Bf16, (Kind)1>".
std::string short_name(std::string_view full) {
  std::string out;
  std::size_t word = 0;  // where the qualified name being read begins in `out`
  int depth = 0;         // of angle brackets; outside them a parenthesis begins the parameters
  for (std::size_t i = 0; i < full.size() && (depth > 0 || full[i] != '('); ++i) {
    if (full.substr(i, 2) == "::") {
      out.resize(word);
      ++i;
      continue;
    }
    out += full[i];
    if (full[i] == '<') ++depth;
    if (full[i] == '>') --depth;
    if (std::string_view("<( ,)").find(full[i]) != std::string_view::npos) word = out.size();
  }
  // A template's name comes with its return type before it.
  const std::size_t bracket = out.find('<');
  const std::size_t space = out.rfind(' ', bracket);
  return space == std::string::npos || (bracket != std::string::npos && space > bracket)
             ? out
             : out.substr(space + 1);
}

std::string demangled(std::string_view symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(std::string(symbol).c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? short_name(text.get()) : std::string(symbol);
}

}  // namespace

std::vector<CompiledKernel> parse_ptxas_log(std::string_view log, const std::string& file) {
  std::vector<CompiledKernel> kernels;
  bool open = false;  // between a kernel's first line and the one with its registers
  while (!log.empty()) {
    const std::size_t end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    log.remove_prefix(std::min(end + 1, log.size()));
    if (const auto symbol = between(line, "Compiling entry function '", "'")) {
      CompiledKernel kernel;
      kernel.kernel = demangled(*symbol);
      kernel.file = file;
      kernel.arch = between(line, " for '", "'").value_or("");
      kernels.push_back(std::move(kernel));
      open = true;
    } else if (open && line.find("bytes stack frame") != std::string_view::npos) {
      kernels.back().stack = number_before(line, " bytes stack frame");
      kernels.back().spill_stores = number_before(line, " bytes spill stores");
      kernels.back().spill_loads = number_before(line, " bytes spill loads");
    } else if (open && line.find(" registers") != std::string_view::npos) {
      kernels.back().registers = static_cast<int>(number_before(line, " registers"));
      kernels.back().static_shared = number_before(line, " bytes smem");
      open = false;
    }
  }
  return kernels;
}

std::vector<CompiledKernel> read_ptxas_logs(const std::filesystem::path& folder) {
  constexpr std::string_view kEnding = ".o.ptxas.txt";
  std::vector<CompiledKernel> all;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    std::string file = entry.path().filename().string();
    if (!file.ends_with(kEnding)) continue;
    file.resize(file.size() - kEnding.size());
    std::ifstream in(entry.path(), std::ios::binary);
    const std::string log((std::istreambuf_iterator<char>(in)), {});
    for (CompiledKernel& kernel : parse_ptxas_log(log, file)) all.push_back(std::move(kernel));
  }
  std::ranges::sort(all, {}, [](const CompiledKernel& k) { return std::tie(k.kernel, k.arch); });
  return all;
}

}  // namespace kda::harness
