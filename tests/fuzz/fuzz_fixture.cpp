// Any bytes as a fixture: read, and checked by its contract.
#include "harness/fixture/fixture.hpp"
#include "reference/types/contract.hpp"
#include "tests/fuzz/fuzz_file.hpp"

#include <variant>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kda::harness;
  const kda::tests::InputFile file(data, size);
  return kda::tests::expect_error_or_success([&] {
    const Case fixture = read_fixture(file.path());
    kda::tests::expect_all_closed();
    if (const auto* kda_case = std::get_if<KdaCase>(&fixture.inputs)) {
      (void)kda::check(kda_case->contract, kda_case->problem());
    }
  });
}
