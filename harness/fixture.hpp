#pragma once

#include "harness/case.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace kda::harness {

/// Reads one HDF5 fixture (format "kdacheck-fixture", version 1).
///
/// Tensors keep their stored dtype (bf16 and f16 as such; big-endian data is converted; bf16 also
/// from 16-bit unsigned with attribute dtype = "bf16"). Any rank and float or 32/64-bit integer
/// dtype is accepted for inputs, since the contract judges those. Expected tensors are checked
/// against the shapes that the inputs imply when the contract accepts them; a leading 1 of a 5-D h
/// is dropped. Checksums and content_sha256 are verified where present. The file can neither make
/// the program open another file nor allocate more for its data than 1000 times its size (64 MiB
/// if that is more). May be called from several threads; they take turns.
/// Throws Error 5xx with a message that names file and object.
[[nodiscard]] Case read_fixture(const std::filesystem::path& file);

/// Writes a fixture that read_fixture returns unchanged: Fletcher32 on every non-empty dataset but
/// scalars, content_sha256 on the root, the same bytes for the same case. Written beside and
/// renamed, so that no half-written file has the final name. `with_expected = false` leaves
/// /expected out (input of an `exec:` program). Throws kFileUnwritable.
void write_fixture(const std::filesystem::path& file, const Case& fixture,
                   bool with_expected = true);

/// A result made elsewhere: tensors, or a refusal.
struct Result {
  std::map<std::string, Tensor> tensors;  ///< "o", "final_state", "h", as stored
  std::optional<std::string> error;       ///< code name, when the implementation refused the case
  std::string message;
};

/// Reads a result file: datasets o, final_state, h of any float type, or root attributes error and
/// message. A leading dimension of 1 of a 5-D h is dropped. Throws Error 5xx.
[[nodiscard]] Result read_result(const std::filesystem::path& file);

void write_result(const std::filesystem::path& file, const Result& result);

/// SHA-256 (lower-case hex) over all datasets and attributes; data/README.md defines the bytes.
[[nodiscard]] std::string content_sha256(const std::filesystem::path& file);

/// All *.h5 files under a folder, sorted by path; or the file itself.
/// Throws kPathNotFound or kNoFixtures.
[[nodiscard]] std::vector<std::filesystem::path> find_fixtures(const std::filesystem::path& path);

}  // namespace kda::harness
