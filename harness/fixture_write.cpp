#include "harness/content_hash.hpp"
#include "harness/fixture.hpp"
#include "harness/fixture_names.hpp"
#include "harness/hdf5_writer.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using hdf5::ElementType;
using hdf5::Writer;

constexpr std::string_view kParams = "/params";
constexpr std::string_view kExpected = "/expected";

void add_integer(Writer& writer, std::string_view object, std::string_view name,
                 const std::optional<std::int64_t>& value) {
  if (value) writer.add_integer(object, name, ElementType::kI64, *value);
}

void add_real(Writer& writer, std::string_view object, std::string_view name,
              const std::optional<double>& value) {
  if (value) writer.add_real(object, name, *value);
}

void add_text(Writer& writer, std::string_view object, std::string_view name,
              const std::optional<std::string>& value) {
  if (value) writer.add_text(object, name, *value);
}

void add_tensors(Writer& writer, std::string_view group,
                 const std::map<std::string, Tensor>& tensors) {
  for (const auto& [name, tensor] : tensors) {
    writer.add_tensor(fmt::format("{}/{}", group, name), tensor);
  }
}

void add_flag(Writer& writer, std::string_view name, bool value) {
  writer.add_integer(kParams, name, ElementType::kU8, value ? 1 : 0);
}

/// Adds inputs and params of one kind of case. Tensors made for the file go into `owned`.
struct AddInputs {
  Writer& writer;
  std::vector<Tensor>& owned;

  void operator()(const KdaCase& kda_case) const {
    add_tensors(writer, "/inputs", kda_case.inputs);
    for (const auto& field : kKdaFlags)
      add_flag(writer, field.name, kda_case.options.*field.member);
    for (const auto& field : kKdaReals) {
      add_real(writer, kParams, field.name, kda_case.options.*field.member);
    }
    add_integer(writer, kParams, kChunkSize, kda_case.options.chunk_size);
  }

  void operator()(const FitCase& fit) const {
    owned.reserve(2);  // the writer keeps views of the elements
    add_vector("/inputs/seq_lens", Dtype::kI64, fit.seq_lens);
    add_vector("/inputs/latencies", Dtype::kF64, fit.latencies);
    add_integer(writer, kParams, kBaseChunkSize, fit.base_chunk_size);
  }

  void operator()(const PredictCase& question) const {
    for (const auto& field : kPredictReals) {
      add_real(writer, kParams, field.name, question.*field.member);
    }
    for (const auto& field : kPredictIntegers) {
      add_integer(writer, kParams, field.name, question.*field.member);
    }
    add_integer(writer, kParams, kMaxChunkSize, question.max_chunk_size);
    add_real(writer, kParams, kSmoothFactor, question.smooth_factor);
    add_flag(writer, kNoTarget, question.no_target);
  }

 private:
  template <class T>
  void add_vector(std::string_view object, Dtype dtype, const std::vector<T>& values) const {
    Tensor& tensor = owned.emplace_back(dtype, Shape{static_cast<std::int64_t>(values.size())});
    std::ranges::copy(values, tensor.as<T>());
    writer.add_tensor(object, tensor);
  }
};

void add_expected(Writer& writer, const Expected& expected) {
  writer.add_group(kExpected);
  add_tensors(writer, kExpected, expected.tensors);
  add_text(writer, kExpected, kError, expected.error);
  add_text(writer, kExpected, kWarning, expected.fit.warning);
  for (const auto& field : kFitCoefficients) {
    add_real(writer, kExpected, field.name, expected.fit.*field.member);
  }
  for (const auto& field : kFitExtras) {
    add_real(writer, kExpected, field.name, expected.fit.*field.member);
  }
  add_integer(writer, kExpected, kChunkSize, expected.predict.chunk_size);
  add_text(writer, kExpected, kNone, expected.predict.none);
}

}  // namespace

void write_fixture(const std::filesystem::path& file, const Case& fixture, bool with_expected) {
  const hdf5::Session session;
  Writer writer;
  writer.add_text("/", "format", kFormat);
  writer.add_integer("/", "version", ElementType::kI32, kVersion);
  writer.add_text("/", "op", name(fixture.op));
  writer.add_text("/", "name", fixture.name);
  writer.add_text("/", "description", fixture.description);
  writer.add_text("/", "tags", fixture.tags);
  writer.add_text("/", "oracle", fixture.oracle);
  writer.add_group("/inputs");
  writer.add_group(kParams);
  std::vector<Tensor> owned;
  std::visit(AddInputs{writer, owned}, fixture.inputs);
  if (with_expected && fixture.expected) add_expected(writer, *fixture.expected);
  writer.add_text("/", kContentHashName, writer.content_sha256());
  writer.write(file);
}

}  // namespace kda::harness
