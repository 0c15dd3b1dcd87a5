#include "reference/types/tensor.hpp"

#include "reference/types/error.hpp"

#include <utility>

namespace kda {
namespace {

template <class T>
T read(const std::byte* data, std::int64_t offset) noexcept {
  T value;
  std::memcpy(&value, data + offset * static_cast<std::int64_t>(sizeof(T)), sizeof(T));
  return value;
}

template <class T>
void write(std::byte* data, std::int64_t offset, T value) noexcept {
  std::memcpy(data + offset * static_cast<std::int64_t>(sizeof(T)), &value, sizeof(T));
}

}  // namespace

std::int64_t num_elements(const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  std::int64_t size = 1;
  for (const std::int64_t extent : shape) {
    if (extent == 0) return 0;
    if (extent < 0 || size > kMost / extent) {
      throw Error(ErrorCode::kShapeMismatch,
                  "shape: wanted at most 2^62 elements, got " + to_string(shape));
    }
    size *= extent;
  }
  return size;
}

Shape dense_strides(const Shape& shape) {
  Shape strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

std::string to_string(const Shape& shape) {
  std::string text = "(";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) text += ", ";
    text += std::to_string(shape[i]);
  }
  return text + (shape.size() == 1 ? ",)" : ")");
}

double load(const TensorView& view, std::int64_t offset) noexcept {
  switch (view.dtype) {
    case Dtype::kBf16: return static_cast<double>(to_float(read<Bf16>(view.data, offset)));
    case Dtype::kF16: return static_cast<double>(to_float(read<F16>(view.data, offset)));
    case Dtype::kF32: return static_cast<double>(read<float>(view.data, offset));
    case Dtype::kF64: return read<double>(view.data, offset);
    case Dtype::kI32: return static_cast<double>(read<std::int32_t>(view.data, offset));
    case Dtype::kI64: return static_cast<double>(read<std::int64_t>(view.data, offset));
  }
  return 0;
}

std::int64_t load_int(const TensorView& view, std::int64_t offset) noexcept {
  return view.dtype == Dtype::kI32 ? read<std::int32_t>(view.data, offset)
                                   : read<std::int64_t>(view.data, offset);
}

std::vector<double> to_f64(const TensorView& view) {
  const std::int64_t size = view.size();
  std::vector<double> values(static_cast<std::size_t>(size));
  std::vector<std::int64_t> index(view.shape.size(), 0);
  std::int64_t offset = 0;
  for (std::int64_t i = 0; i < size; ++i) {
    values[static_cast<std::size_t>(i)] = load(view, offset);
    for (std::size_t d = index.size(); d-- > 0;) {  // odometer: last dimension fastest
      offset += view.strides[d];
      if (++index[d] < view.shape[d]) break;
      offset -= view.strides[d] * view.shape[d];
      index[d] = 0;
    }
  }
  return values;
}

Tensor::Tensor(Dtype dtype, Shape shape)
    : dtype_(dtype),
      shape_(std::move(shape)),
      storage_(static_cast<std::size_t>(num_elements(shape_) * size_of(dtype))) {}

void Tensor::store(std::int64_t offset, double value) noexcept {
  switch (dtype_) {
    case Dtype::kBf16: return write(data(), offset, to_bf16(value));
    case Dtype::kF16: return write(data(), offset, to_f16(value));
    case Dtype::kF32: return write(data(), offset, static_cast<float>(value));
    case Dtype::kF64: return write(data(), offset, value);
    case Dtype::kI32: return write(data(), offset, static_cast<std::int32_t>(value));
    case Dtype::kI64: return write(data(), offset, static_cast<std::int64_t>(value));
  }
}

}  // namespace kda
