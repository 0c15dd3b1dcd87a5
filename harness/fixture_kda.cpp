#include "harness/fixture_names.hpp"
#include "harness/fixture_read.hpp"
#include "reference/types/contract.hpp"

#include <algorithm>
#include <optional>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using hdf5::Attributes;
using hdf5::Group;
using hdf5::Place;

void read_inputs(const Group& root, KdaCase& kda_case, std::uint64_t& held) {
  const std::optional<Group> inputs = root.group("inputs");
  if (!inputs) fail_missing(root.place().child("inputs"));
  Names known(kRequiredInputs.begin(), kRequiredInputs.end());
  known.insert(known.end(), kOptionalInputs.begin(), kOptionalInputs.end());
  require_members(*inputs, known);
  require_attributes(inputs->attributes(), {});
  for (const std::string_view name : kRequiredInputs) {
    if (!inputs->has(name)) fail_missing(inputs->place().child(name));
  }
  for (const std::string& name : inputs->members()) {
    kda_case.inputs.emplace(name, read_tensor(*inputs->dataset(name, held), held));
  }
}

Problem read_options(const Group& root) {
  Names known{kChunkSize};
  for (const auto& field : kKdaFlags) known.push_back(field.name);
  for (const auto& field : kKdaReals) known.push_back(field.name);
  const Attributes params = read_params(root, known);
  Problem options;
  for (const auto& field : kKdaFlags) options.*field.member = params.flag(field.name);
  for (const auto& field : kKdaReals) options.*field.member = params.real(field.name);
  options.chunk_size = params.integer(kChunkSize).value_or(options.chunk_size);
  return options;
}

/// What the contract makes of the inputs, or nothing if it refuses them: whether the fixture is
/// right about that is for the run to judge.
std::optional<Semantics> accept(const KdaCase& kda_case) {
  try {
    return check(kda_case.contract, kda_case.problem());
  } catch (const Error&) {
    return std::nullopt;
  }
}

void require_tensor(const Expected& expected, const char* name, const Shape& shape,
                    const Place& place) {
  const auto found = expected.tensors.find(name);
  if (found == expected.tensors.end()) fail_missing(place.child(name));
  if (found->second.shape() == shape) return;
  hdf5::fail(ErrorCode::kExpectedShape, place.child(name),
             fmt::format("wanted {}, got {}", to_string(shape), to_string(found->second.shape())));
}

void require_shapes(const KdaCase& kda_case, const Expected& expected, const Place& place) {
  if (!expected.tensors.contains("o")) fail_missing(place.child("o"));
  const std::optional<Semantics> semantics = accept(kda_case);
  if (!semantics) return;
  require_tensor(expected, "o", semantics->o_shape(), place);
  if (semantics->final_state) {
    require_tensor(expected, "final_state", semantics->state_shape(semantics->N()), place);
  }
  if (semantics->chunk_states) {
    require_tensor(expected, "h", semantics->state_shape(semantics->num_chunks), place);
  }
}

Expected read_expected(const Group& group, const KdaCase& kda_case, std::uint64_t& held) {
  require_members(group, {kTensors.begin(), kTensors.end()});
  const Attributes attributes = group.attributes();
  require_attributes(attributes, {kError});
  Expected expected;
  expected.error = attributes.text(kError);
  if (expected.error) {
    if (group.members().empty()) return expected;
    hdf5::fail(ErrorCode::kAttributeInvalid, attributes.place().attribute(kError),
               "wanted an error or expected tensors, got both");
  }
  for (const std::string& name : group.members()) {
    expected.tensors.emplace(name, read_output(*group.dataset(name, held), name, held));
  }
  require_shapes(kda_case, expected, group.place());
  return expected;
}

}  // namespace

void read_kda(const Group& root, Case& fixture) {
  std::uint64_t held = 0;
  KdaCase kda_case;
  kda_case.contract = *contract_of(fixture.op);
  kda_case.options = read_options(root);
  read_inputs(root, kda_case, held);
  if (const std::optional<Group> group = root.group("expected")) {
    fixture.expected = read_expected(*group, kda_case, held);
  }
  fixture.inputs = std::move(kda_case);
}

}  // namespace kda::harness
