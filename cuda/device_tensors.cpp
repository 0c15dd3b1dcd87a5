#include "cuda/device_tensors.hpp"

#include <cstring>
#include <vector>

namespace kda::cuda {
namespace {

/// The elements in row-major order.
std::vector<std::byte> dense_bytes(const TensorView& view) {
  const auto element = static_cast<std::size_t>(size_of(view.dtype));
  const auto count = static_cast<std::size_t>(view.size());
  std::vector<std::byte> bytes(count * element);
  if (count == 0) return bytes;
  if (view.is_dense()) {
    std::memcpy(bytes.data(), view.data, bytes.size());
    return bytes;
  }
  std::vector<std::int64_t> index(view.shape.size(), 0);
  for (std::size_t i = 0; i < count; ++i) {
    std::int64_t offset = 0;
    for (std::size_t d = 0; d < index.size(); ++d) offset += index[d] * view.strides[d];
    const std::byte* from = view.data + offset * size_of(view.dtype);
    std::memcpy(bytes.data() + i * element, from, element);
    for (std::size_t d = index.size(); d-- > 0;) {
      if (++index[d] < view.shape[d]) break;
      index[d] = 0;
    }
  }
  return bytes;
}

}  // namespace

TensorView on_device(const char* name, const TensorView& view, Device& device) {
  const std::vector<std::byte> bytes = dense_bytes(view);
  std::byte* data = device.allocate(name, bytes.size());
  device.copy_to_device(data, bytes.data(), bytes.size());
  return {data, view.dtype, view.shape, dense_strides(view.shape)};
}

void move_optional(const char* name, std::optional<TensorView>& view, Device& device) {
  if (view) view = on_device(name, *view, device);
}

OutputView output(const char* name, const Tensor& like, Device& device) {
  std::byte* data = device.allocate(name, static_cast<std::size_t>(like.bytes()));
  return {data, like.dtype(), like.shape(), dense_strides(like.shape())};
}

void fetch(Tensor& to, const OutputView& from, Device& device) {
  device.copy_to_host(to.data(), from.data, static_cast<std::size_t>(to.bytes()));
}

}  // namespace kda::cuda
