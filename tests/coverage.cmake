# Preset `coverage`: what the tests run of the code that judges inputs and hands them to devices. Only
# the files measured are instrumented, without optimisation; the rest is built as ever. The programs run
# whole, once, and coverage_check.py then holds their counts to tests/uncovered.txt.
function(kda_measure target folder)
  foreach(file IN LISTS ARGN)
    set_property(SOURCE ${PROJECT_SOURCE_DIR}/${folder}/${file} TARGET_DIRECTORY ${target}
                 APPEND PROPERTY COMPILE_OPTIONS -O0 --coverage -fprofile-update=atomic)
  endforeach()
endfunction()

kda_measure(kda_types reference types/contract.cpp types/error.cpp types/problem.cpp types/tensor.cpp)
kda_measure(kda_reference reference fit.cpp fit_bootstrap.cpp fit_diagnostics.cpp fit_influence.cpp
            fit_solve.cpp fit_statistics.cpp fit_svd.cpp predictor.cpp)
kda_measure(
  kda_harness harness case/case.cpp case/case_line.cpp case/case_line_keys.cpp fit/fit_input.cpp
  fit/fit_input_json.cpp fit/fit_input_log.cpp fit/fit_input_table.cpp fit/fit_plot.cpp
  fit/fit_report.cpp fit/fit_run.cpp fit/fit_schedule.cpp fit/fit_svg.cpp fixture/content_hash.cpp
  fixture/fixture_find.cpp fixture/fixture_kda.cpp fixture/fixture_latency.cpp
  fixture/fixture_read.cpp fixture/fixture_result.cpp fixture/fixture_write.cpp fixture/hdf5.cpp
  fixture/hdf5_attributes.cpp fixture/hdf5_chunk.cpp fixture/hdf5_dataset.cpp
  fixture/hdf5_probe.cpp fixture/hdf5_reader.cpp fixture/hdf5_store.cpp
  fixture/hdf5_superblock.cpp fixture/hdf5_type.cpp fixture/hdf5_writer.cpp)
kda_measure(
  kda_cuda cuda argument_checks.cpp device_tensors.cpp executor_device.cpp fit_batch.cpp
  fit_batch_plan.cpp fit_batch_run.cpp prefill.cpp prefill_plan.cpp prefill_run.cpp
  prefill_validate.cpp recurrent.cpp recurrent_plan.cpp recurrent_run.cpp recurrent_validate.cpp
  unavailable.cpp)
kda_measure(fit_tool_test harness program/command_fit.cpp)
set_property(SOURCE ${CMAKE_CURRENT_BINARY_DIR}/cuda/gpu_device.cpp TARGET_DIRECTORY gpu_device_test
             APPEND PROPERTY COMPILE_OPTIONS -O0 --coverage -fprofile-update=atomic)

set(programs types_test fit_test fixture_test fit_tool_test harness_test fit_batch_test gpu_device_test
             prefill_interface_test recurrent_kernel_test)
add_custom_target(coverage_programs DEPENDS ${programs})
# Counts of an earlier build do not fit.
add_test(NAME coverage.clear COMMAND find ${PROJECT_BINARY_DIR} -name *.gcda -delete)
set_tests_properties(coverage.clear PROPERTIES LABELS coverage FIXTURES_SETUP coverage_clear)
foreach(program IN LISTS programs)
  set(only "")
  if(program STREQUAL harness_test) # most of it is about other code
    set(only --gtest_filter=Case*:Fill*:MakeCase*:CounterRng*)
  endif()
  add_test(NAME coverage.${program} COMMAND ${program} --gtest_brief=1 ${only})
  set_tests_properties(coverage.${program} PROPERTIES LABELS coverage FIXTURES_SETUP coverage
                       FIXTURES_REQUIRED coverage_clear TIMEOUT 900)
endforeach()
add_test(NAME coverage.report COMMAND ${KDA_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/coverage_check.py
                                      ${PROJECT_SOURCE_DIR} ${PROJECT_BINARY_DIR})
set_tests_properties(coverage.report PROPERTIES LABELS coverage FIXTURES_REQUIRED coverage TIMEOUT 600)
