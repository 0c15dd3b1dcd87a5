// Any bytes as a case line: what is accepted must come back from its canonical text.
#include "harness/case/case_line.hpp"
#include "tests/fuzz/fuzz_file.hpp"

#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kda::harness;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  return kda::tests::expect_error_or_success([&] {
    const CaseLine line = parse_case_line(text);
    if (parse_case_line(to_string(line)) != line) std::abort();
  });
}
