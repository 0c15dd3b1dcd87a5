#include "harness/hdf5_type.hpp"

#include <algorithm>
#include <array>
#include <bit>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

static_assert(std::endian::native == std::endian::little, "stored bytes are used as they are");

struct ElementInfo {
  ElementType type;
  std::string_view name;
  std::size_t size;
};

constexpr auto kElements = std::to_array<ElementInfo>({
    {ElementType::kBf16, "bf16", 2},
    {ElementType::kF16, "f16", 2},
    {ElementType::kF32, "f32", 4},
    {ElementType::kF64, "f64", 8},
    {ElementType::kI8, "i8", 1},
    {ElementType::kI16, "i16", 2},
    {ElementType::kI32, "i32", 4},
    {ElementType::kI64, "i64", 8},
    {ElementType::kU8, "u8", 1},
    {ElementType::kU16, "u16", 2},
    {ElementType::kU32, "u32", 4},
    {ElementType::kU64, "u64", 8},
    {ElementType::kStr, "str", 0},
});

/// Where the parts of a float lie, in bits.
struct FloatLayout {
  std::size_t sign;
  std::size_t exponent_at;
  std::size_t exponent_bits;
  std::size_t mantissa_at;
  std::size_t mantissa_bits;
  std::size_t bias;

  bool operator==(const FloatLayout&) const = default;
};

struct FloatInfo {
  ElementType type;
  FloatLayout layout;
};

constexpr auto kFloats = std::to_array<FloatInfo>({
    {ElementType::kBf16, {15, 7, 8, 0, 7, 127}},
    {ElementType::kF16, {15, 10, 5, 0, 10, 15}},
    {ElementType::kF32, {31, 23, 8, 0, 23, 127}},
    {ElementType::kF64, {63, 52, 11, 0, 52, 1023}},
});

std::optional<ElementType> classify_float(hid_t type) {
  FloatLayout layout{};
  if (H5Tget_fields(type, &layout.sign, &layout.exponent_at, &layout.exponent_bits,
                    &layout.mantissa_at, &layout.mantissa_bits) < 0 ||
      H5Tget_norm(type) != H5T_NORM_IMPLIED) {
    return std::nullopt;
  }
  layout.bias = H5Tget_ebias(type);
  const auto* found = std::ranges::find(kFloats, layout, &FloatInfo::layout);
  if (found == kFloats.end() || H5Tget_size(type) != size_of(found->type)) return std::nullopt;
  return found->type;
}

std::optional<ElementType> classify_integer(hid_t type) {
  const bool is_signed = H5Tget_sign(type) == H5T_SGN_2;
  switch (H5Tget_size(type)) {
    case 1: return is_signed ? ElementType::kI8 : ElementType::kU8;
    case 2: return is_signed ? ElementType::kI16 : ElementType::kU16;
    case 4: return is_signed ? ElementType::kI32 : ElementType::kU32;
    case 8: return is_signed ? ElementType::kI64 : ElementType::kU64;
    default: return std::nullopt;
  }
}

const char* class_name(H5T_class_t type_class) {
  switch (type_class) {
    case H5T_INTEGER: return "integer";
    case H5T_FLOAT: return "float";
    case H5T_STRING: return "string";
    case H5T_BITFIELD: return "bit field";
    case H5T_OPAQUE: return "opaque";
    case H5T_COMPOUND: return "compound";
    case H5T_REFERENCE: return "reference";
    case H5T_ENUM: return "enumeration";
    case H5T_VLEN: return "variable length";
    case H5T_ARRAY: return "array";
    default: return "unknown class";
  }
}

const ElementInfo& element_info(ElementType type) noexcept {
  return kElements[static_cast<std::size_t>(type)];
}

}  // namespace

std::string_view name(ElementType type) noexcept { return element_info(type).name; }

std::size_t size_of(ElementType type) noexcept { return element_info(type).size; }

std::optional<StoredType> classify(hid_t type) {
  const H5T_class_t type_class = H5Tget_class(type);
  if (type_class == H5T_STRING) return StoredType{ElementType::kStr, false};
  if (type_class == H5T_ENUM) {
    const Handle base(H5Tget_super(type));
    return classify(base.get());
  }
  if (type_class != H5T_INTEGER && type_class != H5T_FLOAT) return std::nullopt;
  const H5T_order_t order = H5Tget_order(type);
  if (order != H5T_ORDER_LE && order != H5T_ORDER_BE) return std::nullopt;
  if (H5Tget_precision(type) != 8 * H5Tget_size(type) || H5Tget_offset(type) != 0) {
    return std::nullopt;  // fewer bits than the storage has, as after an n-bit filter
  }
  const std::optional<ElementType> element =
      type_class == H5T_FLOAT ? classify_float(type) : classify_integer(type);
  if (!element) return std::nullopt;
  return StoredType{*element, order == H5T_ORDER_BE};
}

std::string describe(hid_t type) {
  return fmt::format("{}, {} bytes", class_name(H5Tget_class(type)), H5Tget_size(type));
}

Handle file_type(ElementType type, const Place& place) {
  const hid_t base = [type]() -> hid_t {
    switch (type) {
      case ElementType::kF16:
      case ElementType::kBf16:
      case ElementType::kF32: return H5T_IEEE_F32LE;
      case ElementType::kF64: return H5T_IEEE_F64LE;
      case ElementType::kI32: return H5T_STD_I32LE;
      case ElementType::kI64: return H5T_STD_I64LE;
      case ElementType::kU8: return H5T_STD_U8LE;
      default: return H5I_INVALID_HID;
    }
  }();
  Handle copy = own(H5Tcopy(base), place, "describe the type", ErrorCode::kFileUnwritable);
  if (size_of(type) == 2) {
    const FloatLayout& layout = std::ranges::find(kFloats, type, &FloatInfo::type)->layout;
    const hid_t id = copy.get();
    const bool made = H5Tset_fields(id, layout.sign, layout.exponent_at, layout.exponent_bits,
                                    layout.mantissa_at, layout.mantissa_bits) >= 0 &&
                      H5Tset_ebias(id, layout.bias) >= 0 && H5Tset_precision(id, 16) >= 0 &&
                      H5Tset_size(id, 2) >= 0;
    check(made, place, "describe the 16-bit float", ErrorCode::kFileUnwritable);
  }
  return copy;
}

std::optional<Dtype> dtype_of(ElementType type) noexcept {
  switch (type) {
    case ElementType::kBf16: return Dtype::kBf16;
    case ElementType::kF16: return Dtype::kF16;
    case ElementType::kF32: return Dtype::kF32;
    case ElementType::kF64: return Dtype::kF64;
    case ElementType::kI32: return Dtype::kI32;
    case ElementType::kI64: return Dtype::kI64;
    default: return std::nullopt;
  }
}

ElementType element_of(Dtype dtype) noexcept {
  const auto* found =
      std::ranges::find(kElements, std::string_view(kda::name(dtype)), &ElementInfo::name);
  return found->type;
}

void swap_bytes(std::span<std::byte> data, std::size_t element_size) noexcept {
  for (std::size_t at = 0; at + element_size <= data.size(); at += element_size) {
    std::ranges::reverse(data.subspan(at, element_size));
  }
}

}  // namespace kda::harness::hdf5
