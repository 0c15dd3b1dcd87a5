#include "harness/fixture_names.hpp"
#include "harness/fixture_read.hpp"

#include <fmt/format.h>

namespace kda::harness {
namespace {

using hdf5::Attributes;
using hdf5::Group;

/// The attributes of /expected, or nothing where the group is absent.
std::optional<Attributes> read_answer(const Group& root, const Names& known) {
  const std::optional<Group> group = root.group("expected");
  if (!group) return std::nullopt;
  require_members(*group, {});
  Attributes attributes = group->attributes();
  require_attributes(attributes, known);
  return attributes;
}

std::vector<std::int64_t> integers_of(const Tensor& tensor, const hdf5::Place& place) {
  if (is_float(tensor.dtype())) {
    hdf5::fail(ErrorCode::kDatasetTypeUnsupported, place,
               fmt::format("wanted i64 or i32, got {}", name(tensor.dtype())), "store integers");
  }
  std::vector<std::int64_t> values(static_cast<std::size_t>(tensor.size()));
  std::int64_t offset = 0;
  for (std::int64_t& value : values) value = load_int(tensor.view(), offset++);
  return values;
}

Expected read_fit_answer(const Attributes& answer) {
  Expected expected;
  expected.error = answer.text(kError);
  expected.fit.warning = answer.text(kWarning);
  for (const auto& field : kFitExtras) expected.fit.*field.member = answer.real(field.name);
  for (const auto& field : kFitCoefficients) {
    expected.fit.*field.member = answer.real(field.name);
    if (!expected.error && !(expected.fit.*field.member)) {
      fail_missing(answer.place().attribute(field.name));
    }
  }
  return expected;
}

Expected read_predict_answer(const Attributes& answer) {
  Expected expected;
  expected.error = answer.text(kError);
  expected.predict.chunk_size = answer.integer(kChunkSize);
  expected.predict.none = answer.text(kNone);
  const int answers = static_cast<int>(expected.error.has_value()) +
                      static_cast<int>(expected.predict.chunk_size.has_value()) +
                      static_cast<int>(expected.predict.none.has_value());
  if (answers == 0) fail_missing(answer.place().attribute(kChunkSize));
  if (answers > 1) {
    hdf5::fail(ErrorCode::kAttributeInvalid, answer.place().attribute(kChunkSize),
               "wanted one of chunk_size, none and error, got more");
  }
  return expected;
}

}  // namespace

void read_fit(const Group& root, Case& fixture) {
  const std::optional<Group> inputs = root.group("inputs");
  if (!inputs) fail_missing(root.place().child("inputs"));
  require_members(*inputs, {kFitInputs.begin(), kFitInputs.end()});
  require_attributes(inputs->attributes(), {});
  for (const std::string_view name : kFitInputs) {
    if (!inputs->has(name)) fail_missing(inputs->place().child(name));
  }
  std::uint64_t held = 0;
  const Tensor seq_lens = read_tensor(*inputs->dataset("seq_lens"), held);
  const Tensor latencies = read_tensor(*inputs->dataset("latencies", held), held);
  fixture.inputs =
      FitCase{integers_of(seq_lens, inputs->place().child("seq_lens")), to_f64(latencies.view()),
              read_params(root, {kBaseChunkSize}).integer(kBaseChunkSize)};

  Names known{kError, kWarning};
  for (const auto& field : kFitCoefficients) known.push_back(field.name);
  for (const auto& field : kFitExtras) known.push_back(field.name);
  if (const auto answer = read_answer(root, known)) fixture.expected = read_fit_answer(*answer);
}

void read_predict(const Group& root, Case& fixture) {
  if (const std::optional<Group> inputs = root.group("inputs")) {
    require_members(*inputs, {});
    require_attributes(inputs->attributes(), {});
  }
  Names known{kMaxChunkSize, kSmoothFactor, kNoTarget};
  for (const auto& field : kPredictReals) known.push_back(field.name);
  for (const auto& field : kPredictIntegers) known.push_back(field.name);
  const Attributes params = read_params(root, known);

  PredictCase question;
  for (const auto& field : kPredictReals) question.*field.member = params.real(field.name);
  for (const auto& field : kPredictIntegers) {
    const std::optional<std::int64_t> value = params.integer(field.name);
    if (!value && field.name == kBaseChunkSize) fail_missing(params.place().attribute(field.name));
    question.*field.member = value.value_or(question.*field.member);
  }
  question.max_chunk_size = params.integer(kMaxChunkSize);
  question.smooth_factor = params.real(kSmoothFactor).value_or(question.smooth_factor);
  question.no_target = params.flag(kNoTarget);
  fixture.inputs = question;

  if (const auto answer = read_answer(root, {kError, kNone, kChunkSize})) {
    fixture.expected = read_predict_answer(*answer);
  }
}

}  // namespace kda::harness
