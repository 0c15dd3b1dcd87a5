#pragma once

#include "harness/case.hpp"
#include "harness/hdf5_reader.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

// Parts of read_fixture: one per kind of op, and what they share.

namespace kda::harness {

/// Fills inputs and expected values of a KDA case from the groups below the root.
void read_kda(const hdf5::Group& root, Case& fixture);
void read_fit(const hdf5::Group& root, Case& fixture);
void read_predict(const hdf5::Group& root, Case& fixture);

/// A dataset as a tensor; adds its bytes to `held`. 16-bit unsigned integers are bf16 when the
/// attribute dtype says so. Throws kDatasetTypeUnsupported for types that no tensor has.
[[nodiscard]] Tensor read_tensor(const hdf5::Dataset& dataset, std::uint64_t& held);

/// Expected values and results: also drops the leading 1 that upstream gives h.
[[nodiscard]] Tensor read_output(const hdf5::Dataset& dataset, std::string_view name,
                                 std::uint64_t& held);

/// The names that may stand in a place.
using Names = std::vector<std::string_view>;

/// Throws kNameUnknown for the first member or attribute that is not listed.
void require_members(const hdf5::Group& group, const Names& known);
void require_attributes(const hdf5::Attributes& attributes, const Names& known);

/// The attributes of /params, or none where the group is absent. Throws kNameUnknown.
[[nodiscard]] hdf5::Attributes read_params(const hdf5::Group& root, const Names& known);

/// Throws kInputMissing.
[[noreturn]] void fail_missing(const hdf5::Place& place);

}  // namespace kda::harness
