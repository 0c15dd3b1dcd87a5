# Every C++ source must be as clang-format leaves it.
find_program(CLANG_FORMAT clang-format REQUIRED)
file(GLOB_RECURSE sources ${ROOT}/reference/*.[ch]pp ${ROOT}/cuda/*.[ch]pp ${ROOT}/cuda/*.cu
     ${ROOT}/cuda/*.cuh ${ROOT}/harness/*.[ch]pp ${ROOT}/examples/*.[ch]pp ${ROOT}/tests/*.[ch]pp ${ROOT}/bench/*.[ch]pp)
if(NOT sources)
  message(FATAL_ERROR "no sources under ${ROOT}")
endif()
execute_process(COMMAND ${CLANG_FORMAT} --dry-run -Werror ${sources} RESULT_VARIABLE status)
if(status)
  message(FATAL_ERROR "run: clang-format -i on the files above")
endif()
