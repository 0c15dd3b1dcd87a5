#include "harness/hdf5_writer.hpp"

#include "harness/content_hash.hpp"
#include "harness/hdf5_store.hpp"

#include <algorithm>
#include <tuple>

namespace kda::harness::hdf5 {
namespace {

constexpr auto kUnwritable = ErrorCode::kFileUnwritable;
constexpr std::int64_t kChunkBytes = std::int64_t{4} << 20;

Handle make_properties(hid_t type_class, const Place& place) {
  return own(H5Pcreate(type_class), place, "prepare writing", kUnwritable);
}

/// A file that exists in memory only, so that a full disk never meets the library, which cannot
/// close a file it failed to flush.
Handle create_image(const Place& place) {
  constexpr std::size_t kIncrement = std::size_t{1} << 20;
  const Handle access = make_properties(H5P_FILE_ACCESS, place);
  const Handle creation = make_properties(H5P_FILE_CREATE, place);
  const bool prepared = H5Pset_fapl_core(access.get(), kIncrement, false) >= 0 &&
                        H5Pset_obj_track_times(creation.get(), false) >= 0;
  check(prepared, place, "prepare writing", kUnwritable);
  return own(H5Fcreate(place.file.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()), place,
             "create the file", kUnwritable);
}

/// The bytes of such a file, which stay the library's.
std::span<const std::byte> image_of(hid_t file, const Place& place) {
  void* memory = nullptr;  // the core driver's handle is a pointer to its buffer
  const ssize_t size =
      H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 ? -1 : H5Fget_file_image(file, nullptr, 0);
  check(size > 0 && H5Fget_vfd_handle(file, H5P_DEFAULT, &memory) >= 0, place, "finish the file",
        kUnwritable);
  return {*static_cast<std::byte**>(memory), static_cast<std::size_t>(size)};
}

Handle make_space(const Shape& shape, const Place& place) {
  const std::vector<hsize_t> extents(shape.begin(), shape.end());
  const hid_t id = shape.empty()
                       ? H5Screate(H5S_SCALAR)
                       : H5Screate_simple(static_cast<int>(shape.size()), extents.data(), nullptr);
  return own(id, place, "describe the shape", kUnwritable);
}

/// Whole inner dimensions as far as they fit into one chunk, then a part of the next one out.
std::vector<hsize_t> chunk_of(const Shape& shape, std::int64_t element_size) {
  std::vector<hsize_t> chunk(shape.size(), 1);
  std::int64_t room = kChunkBytes / element_size;
  for (std::size_t d = shape.size(); d-- > 0 && room > 1;) {
    const std::int64_t extent = std::min(shape[d], room);
    chunk[d] = static_cast<hsize_t>(extent);
    room = extent < shape[d] ? 1 : room / extent;
  }
  return chunk;
}

}  // namespace

void Writer::add_text(std::string_view object, std::string_view name, std::string_view value) {
  add_attribute(object, name, ElementType::kStr, std::as_bytes(std::span(value)));
}

void Writer::add_real(std::string_view object, std::string_view name, double value) {
  add_attribute(object, name, ElementType::kF64, std::as_bytes(std::span(&value, 1)));
}

void Writer::add_integer(std::string_view object, std::string_view name, ElementType type,
                         std::int64_t value) {
  // Little-endian: the low bytes come first.
  add_attribute(object, name, type, std::as_bytes(std::span(&value, 1)).first(size_of(type)));
}

void Writer::add_attribute(std::string_view object, std::string_view name, ElementType type,
                           std::span<const std::byte> value) {
  records_.push_back(
      {std::string(object), std::string(name), type, {}, {value.begin(), value.end()}, {}});
}

void Writer::add_tensor(std::string_view object, const Tensor& tensor) {
  records_.push_back({std::string(object),
                      {},
                      element_of(tensor.dtype()),
                      tensor.shape(),
                      {},
                      {tensor.data(), static_cast<std::size_t>(tensor.bytes())}});
}

void Writer::sort() {
  // Attributes before the dataset of the same object, as the content hash wants it.
  std::ranges::sort(records_, {}, [](const Record& record) {
    return std::tuple<std::string_view, bool, std::string_view>(record.object, record.name.empty(),
                                                                record.name);
  });
}

std::string Writer::content_sha256() {
  sort();
  ContentHash hash;
  for (const Record& record : records_) {
    hash.add({record.object, record.name, record.type, record.shape, record.data()});
  }
  return hash.finish();
}

void Writer::write(const std::filesystem::path& file) {
  sort();
  std::ranges::sort(groups_);
  const Place place{file};
  const Handle image = create_image(place);
  const Handle properties = make_properties(H5P_GROUP_CREATE, place);
  check(H5Pset_obj_track_times(properties.get(), false) >= 0, place, "prepare writing",
        kUnwritable);
  for (const std::string& group : groups_) {
    const Handle made =
        own(H5Gcreate2(image.get(), group.c_str(), H5P_DEFAULT, properties.get(), H5P_DEFAULT),
            Place{file, group}, "create the group", kUnwritable);
  }
  for (const Record& record : records_) {
    const Place object{file, record.object};
    if (record.name.empty()) {
      write_dataset(image.get(), record, object);
    } else {
      write_attribute(image.get(), record, object.attribute(record.name));
    }
  }
  replace_file(file, image_of(image.get(), place));
}

void Writer::write_attribute(hid_t file, const Record& record, const Place& place) const {
  const Handle space = make_space({}, place);
  const bool is_text = record.type == ElementType::kStr;
  const Handle type = is_text ? own(H5Tcopy(H5T_C_S1), place, "describe the type", kUnwritable)
                              : file_type(record.type, place);
  if (is_text) {
    const bool made =
        H5Tset_size(type.get(), H5T_VARIABLE) >= 0 && H5Tset_cset(type.get(), H5T_CSET_UTF8) >= 0;
    check(made, place, "describe the string", kUnwritable);
  }
  const Handle attribute =
      own(H5Acreate_by_name(file, record.object.c_str(), record.name.c_str(), type.get(),
                            space.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT),
          place, "create the attribute", kUnwritable);
  const std::string text(reinterpret_cast<const char*>(record.value.data()), record.value.size());
  const char* string = text.c_str();
  const void* value = is_text ? static_cast<const void*>(&string) : record.value.data();
  check(H5Awrite(attribute.get(), type.get(), value) >= 0, place, "write the attribute",
        kUnwritable);
}

void Writer::write_dataset(hid_t file, const Record& record, const Place& place) const {
  const Handle space = make_space(record.shape, place);
  const Handle type = file_type(record.type, place);
  const Handle properties = make_properties(H5P_DATASET_CREATE, place);
  bool prepared = H5Pset_obj_track_times(properties.get(), false) >= 0;
  if (!record.elements.empty() && !record.shape.empty()) {  // only chunks take filters
    const auto element_size = static_cast<std::int64_t>(size_of(record.type));
    const std::vector<hsize_t> chunk = chunk_of(record.shape, element_size);
    prepared = prepared &&
               H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data()) >= 0 &&
               H5Pset_fletcher32(properties.get()) >= 0;
  }
  check(prepared, place, "prepare the dataset", kUnwritable);
  const Handle dataset = own(H5Dcreate2(file, record.object.c_str(), type.get(), space.get(),
                                        H5P_DEFAULT, properties.get(), H5P_DEFAULT),
                             place, "create the dataset", kUnwritable);
  if (record.elements.empty()) return;
  const herr_t status =
      H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, record.elements.data());
  check(status >= 0, place, "write the dataset", kUnwritable);
}

}  // namespace kda::harness::hdf5
