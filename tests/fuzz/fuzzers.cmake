# The readers and what they need, and no more: the whole library under these flags would take many
# minutes to compile. hdf5_probe.cpp is replaced by one that tells our crashes from the library's.
set(sources
    reference/fit.cpp reference/fit_solve.cpp reference/types/contract.cpp reference/types/error.cpp
    reference/types/problem.cpp reference/types/tensor.cpp harness/bench/bench_compare.cpp
    harness/bench/bench_file.cpp harness/bench/counter_compare.cpp harness/bench/statistics.cpp
    harness/case/case.cpp harness/case/case_line.cpp harness/case/case_line_keys.cpp
    harness/case/counter_rng.cpp harness/case/fill.cpp harness/case/fill_family.cpp
    harness/case/fill_gate.cpp harness/compare/compare_read.cpp harness/compare/compare_report.cpp
    harness/compare/sigma_use.cpp harness/compare/token_profile.cpp harness/compare/window.cpp
    harness/fit/fit_input.cpp harness/fit/fit_input_json.cpp
    harness/fit/fit_input_log.cpp harness/fit/fit_input_table.cpp harness/fixture/content_hash.cpp
    harness/fixture/fixture_kda.cpp harness/fixture/fixture_latency.cpp
    harness/fixture/fixture_read.cpp harness/fixture/fixture_result.cpp harness/fixture/hdf5.cpp
    harness/fixture/hdf5_attributes.cpp harness/fixture/hdf5_chunk.cpp
    harness/fixture/hdf5_dataset.cpp harness/fixture/hdf5_reader.cpp harness/fixture/hdf5_store.cpp
    harness/fixture/hdf5_superblock.cpp harness/fixture/hdf5_type.cpp
    harness/fixture/hdf5_writer.cpp harness/report/merge.cpp harness/report/report_read.cpp
    harness/run/known_failures.cpp harness/run/run_bias.cpp harness/run/run_report.cpp)
list(TRANSFORM sources PREPEND ${PROJECT_SOURCE_DIR}/)
add_library(kda_fuzz_readers STATIC EXCLUDE_FROM_ALL ${sources} watched_probe.cpp)
target_compile_features(kda_fuzz_readers PUBLIC cxx_std_20)
target_include_directories(kda_fuzz_readers PUBLIC ${PROJECT_SOURCE_DIR}
                                                   ${PROJECT_BINARY_DIR}/generated)
target_link_libraries(
  kda_fuzz_readers PUBLIC kda_flags kda_hdf5 fmt::fmt nlohmann_json::nlohmann_json OpenSSL::Crypto
                          ZLIB::ZLIB Threads::Threads)

add_custom_target(fuzzers)
foreach(name IN LISTS fuzzers)
  add_executable(fuzz_${name} EXCLUDE_FROM_ALL fuzz_${name}.cpp)
  target_link_libraries(fuzz_${name} PRIVATE kda_fuzz_readers)
  target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
  add_dependencies(fuzzers fuzz_${name})
endforeach()
