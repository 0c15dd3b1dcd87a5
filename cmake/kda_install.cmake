# `cmake --install`: the program with its fixtures, the libraries with their headers, and what
# find_package(kdacheck) and pkg-config need. `cpack` makes a Debian package of the same.
include(CMakePackageConfigHelpers)
include(GNUInstallDirs)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/kdacheck)

install(TARGETS kdacheck_program RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY data/fixtures data/cases DESTINATION ${CMAKE_INSTALL_DATADIR}/kdacheck)
install(FILES data/mutate.txt DESTINATION ${CMAKE_INSTALL_DATADIR}/kdacheck)
install(FILES bench/report.py DESTINATION ${CMAKE_INSTALL_DATADIR}/kdacheck/report)
install(DIRECTORY bench/kdareport DESTINATION ${CMAKE_INSTALL_DATADIR}/kdacheck/report
        PATTERN __pycache__ EXCLUDE)
install(FILES ${PROJECT_BINARY_DIR}/generated/harness/version.hpp
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/kdacheck/harness)
install(FILES harness/plugin/kdacheck_plugin.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}) # plain C, alone
install(DIRECTORY examples/exec examples/plugin DESTINATION ${CMAKE_INSTALL_DATADIR}/kdacheck/examples
        PATTERN __pycache__ EXCLUDE)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} FILES_MATCHING PATTERN *.md)
# The man page says what the program says of itself; without a Python there is none.
if(KDA_PYTHON)
  set(man_page ${PROJECT_BINARY_DIR}/kdacheck.1)
  add_custom_command(
    OUTPUT ${man_page}
    COMMAND ${KDA_PYTHON} ${PROJECT_SOURCE_DIR}/docs/man_page.py $<TARGET_FILE:kdacheck_program> ${man_page}
    DEPENDS kdacheck_program docs/man_page.py
    VERBATIM)
  add_custom_target(kda_man_page ALL DEPENDS ${man_page})
  install(FILES ${man_page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 OPTIONAL)
endif()
install(EXPORT kdacheck NAMESPACE kda:: DESTINATION ${package_dir} FILE kdacheckTargets.cmake)

set(KDA_NEEDS_CUDA ${KDA_HAS_DEVICE_CODE})
configure_package_config_file(cmake/kdacheckConfig.cmake.in ${PROJECT_BINARY_DIR}/kdacheckConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/kdacheckConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/kdacheckConfig.cmake ${PROJECT_BINARY_DIR}/kdacheckConfigVersion.cmake
              cmake/kda_dependencies.cmake DESTINATION ${package_dir})

# pkg-config knows no CMake targets: libraries by name, in link order.
set(KDA_PC_LIBS "-lkda_harness_bench -lkda_harness -lkda_cuda -lkda_simt -lkda_reference -lkda_types")
if(KDA_HAS_DEVICE_CODE)
  find_package(CUDAToolkit REQUIRED)
  string(APPEND KDA_PC_LIBS " -L${CUDAToolkit_LIBRARY_DIR} -lcudart_static -lrt -ldl")
endif()
file(RELATIVE_PATH KDA_PC_UP /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/kdacheck.pc.in ${PROJECT_BINARY_DIR}/kdacheck.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/kdacheck.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "kdacheck maintainers")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Reference and test harness for Kimi Delta Attention kernels")
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION devel)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
include(CPack)
