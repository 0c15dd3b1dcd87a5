#include "harness/hdf5_attributes.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

herr_t take_name(hid_t, const char* name, const H5A_info_t*, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  return 0;
}

Shape read_shape(hid_t space, const Place& place) {
  const int rank = H5Sget_simple_extent_ndims(space);
  check(rank >= 0, place, "read the rank");
  std::vector<hsize_t> extents(static_cast<std::size_t>(rank));
  check(H5Sget_simple_extent_dims(space, extents.data(), nullptr) >= 0, place, "read the shape");
  return {extents.begin(), extents.end()};
}

/// A fixed-length string without its padding.
std::string_view trim(std::string_view text, H5T_str_t padding) {
  if (padding == H5T_STR_NULLTERM) return text.substr(0, text.find('\0'));
  const char filler = padding == H5T_STR_SPACEPAD ? ' ' : '\0';
  return text.substr(0, text.find_last_not_of(filler) + 1);
}

std::vector<std::byte> read_fixed_strings(hid_t id, hid_t type, std::size_t count,
                                          const Place& place) {
  const std::size_t width = H5Tget_size(type);
  std::string raw(count * width, '\0');
  check(H5Aread(id, type, raw.data()) >= 0, place, "read the attribute");
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += trim(std::string_view(raw).substr(i * width, width), H5Tget_strpad(type));
  }
  return bytes_of(text);
}

std::vector<std::byte> read_variable_strings(hid_t id, hid_t type, hid_t space, std::size_t count,
                                             const Place& place) {
  std::vector<char*> strings(count, nullptr);
  check(H5Aread(id, type, strings.data()) >= 0, place, "read the attribute");
  std::string text;
  for (const char* string : strings) {
    if (string != nullptr) text += string;
  }
  H5Dvlen_reclaim(type, space, H5P_DEFAULT, strings.data());
  return bytes_of(text);
}

std::vector<std::byte> read_numbers(hid_t id, hid_t type, const StoredType& stored,
                                    std::size_t count, const Place& place) {
  const std::size_t width = size_of(stored.element);
  std::vector<std::byte> data(count * width);
  // Read in the file's own type: no conversion by the library, which is not to be trusted with
  // 16-bit floats.
  check(H5Aread(id, type, data.data()) >= 0, place, "read the attribute");
  if (stored.big_endian) swap_bytes(data, width);
  return data;
}

Attribute read_attribute(hid_t object, const std::string& name, const Place& place,
                         std::uint64_t limit) {
  const Handle id = own(H5Aopen(object, name.c_str(), H5P_DEFAULT), place, "open the attribute");
  const Handle type = own(H5Aget_type(id.get()), place, "read the type");
  const Handle space = own(H5Aget_space(id.get()), place, "read the shape");
  const std::optional<StoredType> stored = classify(type.get());
  Attribute attribute{name, std::nullopt, describe(type.get()), {}, {}};
  if (!stored) return attribute;

  const hssize_t count = H5Sget_simple_extent_npoints(space.get());
  check(count >= 0, place, "read the shape");
  const auto elements = static_cast<std::uint64_t>(count);
  if (elements > limit / H5Tget_size(type.get())) {
    fail_damaged(place, fmt::format("{} elements exceed the file", elements));
  }
  attribute.type = stored->element;
  attribute.shape = read_shape(space.get(), place);
  if (H5Sget_simple_extent_type(space.get()) == H5S_NULL) attribute.shape = {0};
  if (elements == 0) return attribute;
  if (stored->element != ElementType::kStr) {
    attribute.data = read_numbers(id.get(), type.get(), *stored, elements, place);
  } else if (H5Tis_variable_str(type.get()) > 0) {
    attribute.data = read_variable_strings(id.get(), type.get(), space.get(), elements, place);
  } else {
    attribute.data = read_fixed_strings(id.get(), type.get(), elements, place);
  }
  return attribute;
}

template <class T>
T first(const std::vector<std::byte>& data) noexcept {
  T value{};
  std::memcpy(&value, data.data(), sizeof value);
  return value;
}

/// An integer attribute's value; nothing if it is none or beyond 63 bits.
std::optional<std::int64_t> integer_value(const Attribute& attribute) {
  switch (*attribute.type) {
    case ElementType::kI8: return first<std::int8_t>(attribute.data);
    case ElementType::kI16: return first<std::int16_t>(attribute.data);
    case ElementType::kI32: return first<std::int32_t>(attribute.data);
    case ElementType::kI64: return first<std::int64_t>(attribute.data);
    case ElementType::kU8: return first<std::uint8_t>(attribute.data);
    case ElementType::kU16: return first<std::uint16_t>(attribute.data);
    case ElementType::kU32: return first<std::uint32_t>(attribute.data);
    case ElementType::kU64: {
      const auto value = first<std::int64_t>(attribute.data);
      return value >= 0 ? std::optional(value) : std::nullopt;
    }
    default: return std::nullopt;
  }
}

std::optional<double> real_value(const Attribute& attribute) {
  switch (*attribute.type) {
    case ElementType::kBf16: return to_float(first<Bf16>(attribute.data));
    case ElementType::kF16: return to_float(first<F16>(attribute.data));
    case ElementType::kF32: return first<float>(attribute.data);
    case ElementType::kF64: return first<double>(attribute.data);
    default: break;
  }
  const std::optional<std::int64_t> integer = integer_value(attribute);
  if (!integer) return std::nullopt;
  return static_cast<double>(*integer);
}

}  // namespace

Attributes::Attributes(hid_t object, Place place, std::uint64_t limit) : place_(std::move(place)) {
  std::vector<std::string> names;
  check(H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, take_name, &names) >= 0, place_,
        "list the attributes");
  std::ranges::sort(names);
  for (const std::string& name : names) {
    attributes_.push_back(read_attribute(object, name, place_.attribute(name), limit));
  }
}

std::optional<std::string> Attributes::text(std::string_view name) const {
  const Attribute* attribute = find_single(name, "one string");
  if (attribute == nullptr) return std::nullopt;
  if (attribute->type != ElementType::kStr) refuse(*attribute, "one string");
  std::string value(attribute->data.size(), '\0');
  std::ranges::transform(attribute->data, value.begin(),
                         [](std::byte byte) { return static_cast<char>(byte); });
  if (!is_text(value)) {
    fail(ErrorCode::kAttributeInvalid, place_.attribute(name),
         "wanted UTF-8 text without control characters, got " + printable(value));
  }
  return value;
}

std::optional<std::int64_t> Attributes::integer(std::string_view name) const {
  const Attribute* attribute = find_single(name, "one integer of up to 63 bits");
  if (attribute == nullptr) return std::nullopt;
  const std::optional<std::int64_t> value = integer_value(*attribute);
  if (!value) refuse(*attribute, "one integer of up to 63 bits");
  return value;
}

std::optional<double> Attributes::real(std::string_view name) const {
  const Attribute* attribute = find_single(name, "one real number");
  if (attribute == nullptr) return std::nullopt;
  const std::optional<double> value = real_value(*attribute);
  if (!value) refuse(*attribute, "one real number");
  return value;
}

bool Attributes::flag(std::string_view name) const {
  const std::int64_t value = integer(name).value_or(0);
  if (value != 0 && value != 1) {
    fail(ErrorCode::kAttributeInvalid, place_.attribute(name),
         fmt::format("wanted the flag 0 or 1, got {}", value));
  }
  return value == 1;
}

const Attribute* Attributes::find(std::string_view name) const {
  const auto found = std::ranges::find(attributes_, name, &Attribute::name);
  return found == attributes_.end() ? nullptr : &*found;
}

const Attribute* Attributes::find_single(std::string_view name, const char* wanted) const {
  const Attribute* attribute = find(name);
  if (attribute == nullptr) return nullptr;
  if (!attribute->type || num_elements(attribute->shape) != 1) refuse(*attribute, wanted);
  return attribute;
}

void Attributes::refuse(const Attribute& attribute, const char* wanted) const {
  fail(ErrorCode::kAttributeInvalid, place_.attribute(attribute.name),
       fmt::format("wanted {}, got {} of shape {}", wanted, attribute.stored_as,
                   to_string(attribute.shape)));
}

}  // namespace kda::harness::hdf5
