#pragma once

#include "harness/case.hpp"
#include "harness/hdf5.hpp"
#include "reference/types/error.hpp"
#include "reference/types/tensor.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <hdf5.h>

// What the tests of fixtures share: a folder, small cases, and files damaged or built with the HDF5
// library itself, since our own writer cannot make a bad file.

namespace kda::harness::testing {

using hdf5::Handle;

/// A fresh folder, removed with all its content.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] std::filesystem::path operator/(std::string_view name) const {
    return path_ / name;
  }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Names of all entries, hidden ones too.
  [[nodiscard]] std::vector<std::string> entries() const;

 private:
  std::filesystem::path path_;
};

/// Elements 1, 2, 3, ... rounded to the dtype.
[[nodiscard]] Tensor count_up(Dtype dtype, const Shape& shape);

/// chunk_kda with B=1, T=3, H=HV=1, K=2, V=4 in f32, that asks for final_state and h and has all
/// three expected.
[[nodiscard]] Case small_case();
[[nodiscard]] Case small_fit();
[[nodiscard]] Case small_predict();

/// Changes an HDF5 file through the library. The content hash goes, so that the change itself is
/// what a reader meets. `format` is the oldest that new objects may use.
void edit(const std::filesystem::path& file, const std::function<void(hid_t)>& change,
          H5F_libver_t format = H5F_LIBVER_EARLIEST);

[[nodiscard]] std::string read_bytes(const std::filesystem::path& file);
void write_bytes(const std::filesystem::path& file, std::string_view bytes);

/// Objects as the library makes them. `type` is an HDF5 type in file and memory alike.
struct Dataset {
  hid_t type = H5I_INVALID_HID;
  std::vector<hsize_t> shape = {};
  const void* data = nullptr;  ///< nothing is written without
  hid_t properties = H5P_DEFAULT;
  std::vector<hsize_t> most = {};  ///< extents that it may grow to; empty = none
};
Handle add_dataset(hid_t file, const std::string& path, const Dataset& dataset);
void remove(hid_t file, const std::string& path);
/// Attributes replace one of the same name.
void put_attribute(hid_t file, const std::string& object, const std::string& name, hid_t type,
                   const void* value, const std::vector<hsize_t>& shape = {});
void put_text(hid_t file, const std::string& object, const std::string& name,
              const std::string& value);
void put_integer(hid_t file, const std::string& object, const std::string& name,
                 std::int64_t value);
void put_real(hid_t file, const std::string& object, const std::string& name, double value);
void remove_attribute(hid_t file, const std::string& object, const std::string& name);

/// A 16-bit float type with bf16's fields.
[[nodiscard]] Handle bf16_type(bool big_endian = false);

/// The call throws Error with this code, and the message names file and object.
void expect_error(const std::function<void()>& call, ErrorCode code,
                  const std::filesystem::path& file, std::string_view object);
/// The same for read_fixture.
void expect_refused(const std::filesystem::path& file, ErrorCode code, std::string_view object);

/// Equal to the bit.
[[nodiscard]] bool same(const Tensor& a, const Tensor& b);

}  // namespace kda::harness::testing
