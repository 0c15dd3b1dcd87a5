#include "harness/fixture.hpp"
#include "harness/fixture_names.hpp"
#include "harness/fixture_read.hpp"
#include "harness/hdf5_probe.hpp"
#include "harness/hdf5_writer.hpp"

namespace kda::harness {

namespace {

Result read_in_session(const std::filesystem::path& file) {
  const hdf5::Group root = hdf5::open_file(file);
  const hdf5::Attributes head = root.attributes();
  Result result;
  result.error = head.text(kError);
  result.message = head.text("message").value_or("");
  std::uint64_t held = 0;
  for (const std::string_view name : kTensors) {
    const std::optional<hdf5::Dataset> dataset = root.dataset(std::string(name), held);
    if (dataset) result.tensors.emplace(name, read_output(*dataset, name, held));
  }
  // Other objects are the maker's own business.
  if (result.error.has_value() == result.tensors.contains("o")) {
    hdf5::fail(ErrorCode::kResultMalformed, root.place(),
               result.error ? "wanted the dataset o or the attribute error, got both"
                            : "wanted the dataset o or the attribute error, got neither");
  }
  return result;
}

}  // namespace

Result read_result(const std::filesystem::path& file) {
  const hdf5::Session session;
  hdf5::probe_in_child(file, [&] { (void)read_in_session(file); });
  return read_in_session(file);
}

void write_result(const std::filesystem::path& file, const Result& result) {
  const hdf5::Session session;
  hdf5::Writer writer;
  for (const auto& [name, tensor] : result.tensors) writer.add_tensor("/" + name, tensor);
  if (result.error) {
    writer.add_text("/", kError, *result.error);
    writer.add_text("/", "message", result.message);
  }
  writer.write(file);
}

}  // namespace kda::harness
