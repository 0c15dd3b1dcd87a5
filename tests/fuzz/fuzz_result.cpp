// Any bytes as a result file.
#include "harness/fixture/fixture.hpp"
#include "tests/fuzz/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const kda::tests::InputFile file(data, size);
  return kda::tests::expect_error_or_success([&] {
    (void)kda::harness::read_result(file.path());
    kda::tests::expect_all_closed();
  });
}
