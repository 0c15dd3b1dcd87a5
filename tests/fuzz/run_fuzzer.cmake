# Runs one fuzzer on a copy of its seeds, so that the tree stays clean. What it finds stays in WORK.
# 64 MiB: the most that a file may make the program allocate at once; 10 s: no input may hang it.
file(MAKE_DIRECTORY ${WORK}/corpus)
execute_process(
  COMMAND ${FUZZER} -max_total_time=${SECONDS} -timeout=10 -rss_limit_mb=1024 -malloc_limit_mb=65
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
string(REGEX MATCH "number_of_executed_units: [0-9]+" count "${out}")
message(STATUS "fuzz.${NAME}: ${count}, no finding")
