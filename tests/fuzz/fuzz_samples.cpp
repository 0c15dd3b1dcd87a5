// Any bytes as latency samples: table, JSON or log; then the fit of what was read.
#include "harness/fit/fit_input.hpp"
#include "reference/fit.hpp"
#include "tests/fuzz/fuzz_file.hpp"

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  return kda::tests::expect_error_or_success([&] {
    const auto samples = kda::harness::parse_samples(text, "fuzz");
    (void)kda::reference::fit_quadratic(samples.seq_lens, samples.latencies);
  });
}
