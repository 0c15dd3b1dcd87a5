#include "harness/run/capsule.hpp"

#include "harness/base/environment.hpp"
#include "harness/fixture/fixture.hpp"

#include <cctype>
#include <cstdint>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace kda::harness {
namespace {

constexpr std::size_t kLongestName = 80;

/// A name that any file system takes; made distinct where something had to be left out.
std::string file_name(const std::string& text) {
  std::string name;
  std::uint64_t hash = 0xCBF29CE484222325;  // FNV-1a
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    name += std::isalnum(byte) != 0 || c == '_' || c == '-' ? c : '_';
    hash = (hash ^ byte) * 0x100000001B3;
  }
  if (name == text && name.size() <= kLongestName) return name;
  return fmt::format("{}-{:08x}", name.substr(0, kLongestName), hash & 0xFFFFFFFF);
}

std::map<std::string, Tensor> sigma_tensors(const Evidence& evidence) {
  std::map<std::string, Tensor> tensors;
  if (!evidence.deviations) return tensors;
  const reference::Deviations& sigma = evidence.deviations->sigma;
  tensors.emplace("o", sigma.o);
  if (sigma.final_state) tensors.emplace("final_state", *sigma.final_state);
  if (sigma.h) tensors.emplace("h", *sigma.h);
  return tensors;
}

}  // namespace

std::string write_capsule(const std::filesystem::path& folder, const CaseResult& result) {
  const Evidence& evidence = *result.evidence;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(ErrorCode::kFileUnwritable, folder.string() + ": " + error.message());
  const std::string name = file_name(result.case_name) + "--" + file_name(result.implementation);
  const std::filesystem::path fixture = folder / (name + ".case.h5");
  const std::filesystem::path file = folder / (name + ".result.h5");
  write_fixture(fixture, evidence.test_case);
  Result saved;
  saved.tensors = evidence.got;
  saved.sigma = sigma_tensors(evidence);
  saved.formats = result.comparison ? result.comparison->formats : "";
  saved.notes = {{"implementation", result.implementation},
                 {"verdict", std::string(kda::harness::name(result.verdict))},
                 {"detail", result.detail},
                 {"policy", result.policy},
                 {"command", result.command},
                 {"environment", environment().dump()}};
  write_result(file, saved);
  return file.string() + " " + fixture.string();
}

}  // namespace kda::harness
