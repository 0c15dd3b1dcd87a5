#include "harness/fixture_read.hpp"

#include "harness/content_hash.hpp"
#include "harness/fixture.hpp"
#include "harness/fixture_names.hpp"
#include "harness/hdf5_probe.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

namespace kda::harness {
namespace {

using hdf5::Attributes;
using hdf5::Dataset;
using hdf5::Group;
using hdf5::Place;

void require_known(std::string_view name, const Names& known, const Place& place) {
  if (std::ranges::find(known, name) != known.end()) return;
  const std::string wanted =
      known.empty() ? "nothing here" : fmt::format("one of {}", fmt::join(known, ", "));
  hdf5::fail(ErrorCode::kNameUnknown, place, fmt::format("wanted {}", wanted));
}

void require_format(const Attributes& head) {
  // A format of another type is as foreign as one of another name.
  const auto format = std::ranges::find(head.all(), "format", &hdf5::Attribute::name);
  if (format == head.all().end() || format->type != hdf5::ElementType::kStr ||
      head.text("format") != kFormat) {
    hdf5::fail(ErrorCode::kFormatUnknown, head.place().attribute("format"),
               fmt::format("wanted the text \"{}\", got {}", kFormat,
                           format == head.all().end() ? "none" : "another"));
  }
  const std::optional<std::int64_t> version = head.integer("version");
  if (!version) fail_missing(head.place().attribute("version"));
  if (*version != kVersion) {
    hdf5::fail(ErrorCode::kVersionUnsupported, head.place().attribute("version"),
               fmt::format("wanted {}, got {}", kVersion, *version));
  }
}

Op require_op(const Attributes& head) {
  const std::optional<std::string> text = head.text("op");
  if (!text) fail_missing(head.place().attribute("op"));
  const std::optional<Op> op = find_op(*text);
  if (!op) {
    hdf5::fail(ErrorCode::kOpUnknown, head.place().attribute("op"),
               fmt::format("wanted a known op, got \"{}\"", *text));
  }
  return *op;
}

void require_content(const Group& root, const Attributes& head) {
  const std::optional<std::string> wanted = head.text(kContentHashName);
  if (!wanted) return;
  const std::string got = content_sha256(root);
  if (got == *wanted) return;
  hdf5::fail(ErrorCode::kContentHashMismatch, head.place().attribute(kContentHashName),
             fmt::format("wanted {}, got {}", *wanted, got));
}

}  // namespace

void fail_missing(const Place& place) {
  hdf5::fail(ErrorCode::kInputMissing, place, "wanted it, the file has none");
}

void require_members(const Group& group, const Names& known) {
  for (const std::string& member : group.members()) {
    require_known(member, known, group.place().child(member));
  }
}

void require_attributes(const Attributes& attributes, const Names& known) {
  for (const hdf5::Attribute& attribute : attributes.all()) {
    require_known(attribute.name, known, attributes.place().attribute(attribute.name));
  }
}

Attributes read_params(const Group& root, const Names& known) {
  const std::optional<Group> params = root.group("params");
  if (!params) return Attributes(root.place().child("params"));
  require_members(*params, {});
  Attributes attributes = params->attributes();
  require_attributes(attributes, known);
  return attributes;
}

Tensor read_tensor(const Dataset& dataset, std::uint64_t& held) {
  std::optional<Dtype> dtype = hdf5::dtype_of(dataset.type());
  if (dataset.type() == hdf5::ElementType::kU16 && dataset.attributes().text("dtype") == "bf16") {
    dtype = Dtype::kBf16;
  }
  if (!dtype) {
    hdf5::fail(
        ErrorCode::kDatasetTypeUnsupported, dataset.place(),
        fmt::format("wanted bf16, f16, f32, f64, i32 or i64, got {}{}", hdf5::name(dataset.type()),
                    dataset.type() == hdf5::ElementType::kU16
                        ? " without the attribute dtype = \"bf16\""
                        : ""));
  }
  Tensor tensor(*dtype, dataset.shape());
  held += dataset.bytes();
  dataset.read(std::span(tensor.data(), dataset.bytes()));
  return tensor;
}

Tensor read_output(const Dataset& dataset, std::string_view name, std::uint64_t& held) {
  Tensor tensor = read_tensor(dataset, held);
  if (!is_float(tensor.dtype())) {
    hdf5::fail(ErrorCode::kDatasetTypeUnsupported, dataset.place(),
               fmt::format("wanted floats, got {}", kda::name(tensor.dtype())));
  }
  if (name != "h" || tensor.shape().size() != 5 || tensor.shape().front() != 1) return tensor;
  Tensor dropped(tensor.dtype(), Shape(tensor.shape().begin() + 1, tensor.shape().end()));
  std::copy_n(tensor.data(), tensor.bytes(), dropped.data());
  return dropped;
}

namespace {

Case read_in_session(const std::filesystem::path& file) {
  const Group root = hdf5::open_file(file);
  const Attributes head = root.attributes();
  require_format(head);
  Case fixture;
  fixture.op = require_op(head);
  // Before anything else is judged: a damaged file is reported as damaged, not by what the damage
  // happens to look like.
  require_content(root, head);
  const std::optional<std::string> name = head.text("name");
  if (!name) fail_missing(head.place().attribute("name"));
  fixture.name = *name;
  fixture.description = head.text("description").value_or("");
  fixture.tags = head.text("tags").value_or("");
  fixture.oracle = head.text("oracle").value_or("");
  fixture.file = file;
  require_members(root, {"inputs", "params", "expected"});
  switch (fixture.op) {
    case Op::kFit: read_fit(root, fixture); break;
    case Op::kPredict: read_predict(root, fixture); break;
    default: read_kda(root, fixture);
  }
  return fixture;
}

}  // namespace

Case read_fixture(const std::filesystem::path& file) {
  const hdf5::Session session;
  hdf5::probe_in_child(file, [&] { (void)read_in_session(file); });
  return read_in_session(file);
}

}  // namespace kda::harness
