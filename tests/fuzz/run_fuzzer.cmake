# Runs one fuzzer on a copy of its seeds, so that the tree stays clean. What it finds stays in WORK.
# 64 MiB: the most that a file may make the program allocate at once; 60 s, on a machine however busy: no input may
# hang it (a child that reads an HDF5 file has 2 s of processor time).
if(NOT EXISTS ${FUZZER})
  message(STATUS "fuzz.${NAME}: skipped, it was not built; fuzz.build says why")
  return()
endif()
file(MAKE_DIRECTORY ${WORK}/corpus)
set(ENV{ASAN_OPTIONS} quarantine_size_mb=8) # a process is forked for every HDF5 file: the smaller, the faster
execute_process(
  COMMAND ${FUZZER} -max_total_time=${SECONDS} -timeout=60 -rss_limit_mb=1024 -malloc_limit_mb=65
          -max_len=65536 -artifact_prefix=${WORK}/ -print_final_stats=1 -detect_leaks=1
          ${WORK}/corpus ${SEEDS}
  RESULT_VARIABLE status OUTPUT_VARIABLE out ERROR_VARIABLE out)
if(NOT status EQUAL 0)
  string(LENGTH "${out}" length)
  if(length GREATER 8000)
    math(EXPR begin "${length} - 8000")
    string(SUBSTRING "${out}" ${begin} 8000 out)
  endif()
  message(FATAL_ERROR "${out}\nfuzz.${NAME}: a finding; repeat it with\n  ${FUZZER} FILE, a file in ${WORK}")
endif()
if(NOT out MATCHES "number_of_executed_units: ([1-9][0-9]*)")
  message(FATAL_ERROR "${out}\nfuzz.${NAME}: nothing was executed")
endif()
set(executed ${CMAKE_MATCH_1})
if(NOT out MATCHES "inputs accepted: ([1-9][0-9]*)")
  message(FATAL_ERROR "${out}\nfuzz.${NAME}: no input was accepted, not even a seed")
endif()
set(accepted ${CMAKE_MATCH_1})
set(library "")
if(out MATCHES "crashes of the HDF5 library, each an error of the file: ([0-9]+)")
  set(library ", ${CMAKE_MATCH_1} crashes inside the HDF5 library, each an error of the file")
endif()
message(STATUS "fuzz.${NAME}: ${executed} executions, ${accepted} accepted, no finding${library}")
