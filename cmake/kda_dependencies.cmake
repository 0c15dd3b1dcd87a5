# Every dependency is a Debian package; README says why each is there.
find_package(Eigen3 3.4 REQUIRED NO_MODULE)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(OpenSSL REQUIRED COMPONENTS Crypto)
find_package(ZLIB REQUIRED)
find_package(Threads REQUIRED)
set(HDF5_PREFER_PARALLEL OFF)
find_package(HDF5 REQUIRED COMPONENTS C)

# FindHDF5 of CMake 3.25 reports variables; give the rest of the build one target.
add_library(kda_hdf5 INTERFACE IMPORTED)
target_include_directories(kda_hdf5 SYSTEM INTERFACE ${HDF5_C_INCLUDE_DIRS})
target_link_libraries(kda_hdf5 INTERFACE ${HDF5_C_LIBRARIES})
