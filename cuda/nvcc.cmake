set(KDA_CUDA_ARCHITECTURES "80;90a;100a" CACHE STRING "Architectures of the device code")

# kda_device_code(result file.cu ...): objects of device code, for the SOURCES of a library. A
# warning, or a kernel that spills registers, stops the build.
function(kda_device_code result)
  set(targets "")
  foreach(arch ${KDA_CUDA_ARCHITECTURES})
    list(APPEND targets -gencode arch=compute_${arch},code=sm_${arch})
  endforeach()
  set(objects "")
  foreach(file ${ARGN})
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${file}.o)
    add_custom_command(
      OUTPUT ${object}
      COMMAND
        ${CMAKE_COMMAND} -DLOG=${object}.ptxas.txt -P ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_ptxas.cmake --
        ${KDA_NVCC} -ccbin ${CMAKE_CXX_COMPILER} -std=c++20 -O3 ${targets} -Xptxas -v -Werror
        all-warnings -Xcompiler=-Wall,-Wextra,-fPIC -I${PROJECT_SOURCE_DIR} -MD -MF ${object}.d -c
        ${CMAKE_CURRENT_SOURCE_DIR}/${file} -o ${object}
      DEPENDS ${file} ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/check_ptxas.cmake
      DEPFILE ${object}.d
      COMMENT "Device code of ${file}" VERBATIM)
    list(APPEND objects ${object})
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set(${result} ${objects} PARENT_SCOPE)
endfunction()
