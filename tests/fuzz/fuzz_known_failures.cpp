// Any bytes as a list of known failures.
#include "harness/run/known_failures.hpp"
#include "tests/fuzz/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kda::harness;
  const kda::tests::InputFile file(data, size);
  return kda::tests::expect_error_or_success([&] {
    std::vector<KnownFailure> entries = read_known_failures(file.path(), "2027-01-31");
    std::vector<CaseResult> results(1);
    apply_known_failures(entries, results);
    (void)notes_on(entries);
  });
}
