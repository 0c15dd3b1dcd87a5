#include "harness/case/case.hpp"
#include "harness/fixture/fixture.hpp"
#include "tests/cuda/case_pack.hpp"

#include <cstdio>
#include <exception>
#include <variant>

// pack_fixtures OUT PATH...: the fixtures of the three KDA contracts as a pack for device_check.

namespace {

using kda::harness::Case;

bool is_kda(const Case& c) { return std::holds_alternative<kda::harness::KdaCase>(c.inputs); }

kda::tests::PackedCase packed(const Case& c) {
  const auto& kda_case = std::get<kda::harness::KdaCase>(c.inputs);
  kda::tests::PackedCase result;
  result.name = c.name;
  result.contract = kda_case.contract;
  result.options = kda_case.options;
  result.inputs = kda_case.inputs;
  result.error = c.expected->error.value_or("");
  result.expected = c.expected->tensors;
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    std::vector<kda::tests::PackedCase> cases;
    for (int i = 2; i < argc; ++i) {
      for (const auto& file : kda::harness::find_fixtures(argv[i])) {
        const Case c = kda::harness::read_fixture(file);
        if (c.expected && is_kda(c)) cases.push_back(packed(c));
      }
    }
    if (cases.empty()) {
      std::fprintf(stderr, "usage: pack_fixtures OUT PATH... (folders with KDA fixtures)\n");
      return 2;
    }
    kda::tests::write_pack(argv[1], cases);
    std::printf("%zu cases packed\n", cases.size());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "pack_fixtures: %s\n", error.what());
    return 2;
  }
}
