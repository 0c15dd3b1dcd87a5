// Any bytes as a JSON report of `check`, read back and merged as `merge` does it.
#include "harness/report/merge.hpp"
#include "tests/fuzz/fuzz_file.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kda::harness;
  const kda::tests::InputFile file(data, size);
  return kda::tests::expect_error_or_success([&] {
    const StoredReport shard = read_report(file.path());
    (void)merge_shards({shard});
  });
}
