include(GNUInstallDirs)
include(GoogleTest)

# Flags of every target here; nothing is set globally, nothing leaks to a consumer.
add_library(kda_flags INTERFACE)
target_compile_options(
  kda_flags
  INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Werror
    -ffp-contract=off>)

# kda_library(name HEADERS ... SOURCES ... DEPENDS ...) -> target kda::name.
# HEADERS are also compiled alone by the target all_verify_interface_header_sets.
function(kda_library name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "HEADERS;SOURCES;DEPENDS;PRIVATE_DEPENDS")
  add_library(kda_${name} STATIC ${ARG_SOURCES})
  add_library(kda::${name} ALIAS kda_${name})
  target_sources(kda_${name} PUBLIC FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR}
                                    FILES ${ARG_HEADERS})
  target_compile_features(kda_${name} PUBLIC cxx_std_20)
  target_link_libraries(kda_${name} PUBLIC ${ARG_DEPENDS}
                                    PRIVATE ${ARG_PRIVATE_DEPENDS} $<BUILD_INTERFACE:kda_flags>)
  set_target_properties(kda_${name} PROPERTIES EXPORT_NAME ${name})
  install(TARGETS kda_${name} EXPORT kdacheck ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
          FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kdacheck)
endfunction()

# kda_test(name SOURCES ... DEPENDS ... LABELS ...): one GoogleTest program, one CTest per case.
# Label cpu-threads: it starts threads, so that preset tsan builds and runs it.
add_custom_target(thread_tests)
function(kda_test name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "SOURCES;DEPENDS;LABELS")
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPENDS} kda_flags GTest::gtest_main)
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60 PROPERTIES LABELS "${ARG_LABELS}")
  if(ARG_LABELS STREQUAL "cpu-threads")
    add_dependencies(thread_tests ${name})
  endif()
endfunction()
