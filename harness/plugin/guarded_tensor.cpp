#include "harness/plugin/guarded_tensor.hpp"

#include <cstring>
#include <new>
#include <utility>

#include <fmt/format.h>
#include <sys/mman.h>

namespace kda::harness {
namespace {

constexpr std::size_t kPage = 4096;  // also the alignment of elements and the least guard
constexpr std::size_t kForbidden = std::size_t{1} << 20;  // on either side; takes addresses only

std::size_t round_up(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

std::int32_t plugin_dtype(Dtype dtype) {
  switch (dtype) {
    case Dtype::kBf16: return KDACHECK_BF16;
    case Dtype::kF16: return KDACHECK_F16;
    case Dtype::kF32: return KDACHECK_F32;
    case Dtype::kF64: return KDACHECK_F64;
    case Dtype::kI32: return KDACHECK_I32;
    case Dtype::kI64: return KDACHECK_I64;
  }
  return -1;
}

}  // namespace

std::byte guard_byte(GuardFill fill, Dtype dtype, std::size_t offset) noexcept {
  if (fill == GuardFill::kNan) return std::byte{0xFF};
  // 65504 where 0x7F in every byte would be a NaN; else some 3e38, 1e306, or 2e9.
  if (dtype == Dtype::kF16) return offset % 2 == 0 ? std::byte{0xFF} : std::byte{0x7B};
  return std::byte{0x7F};
}

GuardedTensor::GuardedTensor(std::string name, const Tensor& content, GuardFill fill,
                             cuda::Device* device)
    : name_(std::move(name)),
      dtype_(content.dtype()),
      shape_(content.shape()),
      strides_(dense_strides(shape_)),
      fill_(fill),
      device_(device),
      content_(&content) {
  allocate();
}

GuardedTensor::GuardedTensor(std::string name, Dtype dtype, Shape shape, GuardFill fill,
                             cuda::Device* device)
    : name_(std::move(name)),
      dtype_(dtype),
      shape_(std::move(shape)),
      strides_(dense_strides(shape_)),
      fill_(fill),
      device_(device) {
  allocate();
}

GuardedTensor::~GuardedTensor() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

void GuardedTensor::allocate() {
  bytes_ = static_cast<std::size_t>(num_elements(shape_) * size_of(dtype_));
  const std::size_t region_bytes = kPage + round_up(bytes_) + kPage;
  mapping_bytes_ = region_bytes + 2 * kForbidden;
  void* mapping = mmap(nullptr, mapping_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapping == MAP_FAILED) throw std::bad_alloc();
  mapping_ = static_cast<std::byte*>(mapping);
  region_ = {mapping_ + kForbidden, region_bytes};
  if (mprotect(region_.data(), region_bytes, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
  for (std::size_t i = 0; i < region_.size(); ++i) region_[i] = fill_at(i);
  if (content_ != nullptr && bytes_ > 0)
    std::memcpy(region_.data() + kPage, content_->data(), bytes_);
  std::byte* place = region_.data();
  if (device_ != nullptr) {
    on_device_ = device_->allocate(name_.c_str(), region_bytes);
    device_->copy_to_device(on_device_, region_.data(), region_bytes);
    place = on_device_;
  }
  view_ = {.data = place + kPage,
           .shape = shape_.data(),
           .strides = strides_.data(),
           .rank = static_cast<std::int32_t>(shape_.size()),
           .dtype = plugin_dtype(dtype_)};
}

std::byte GuardedTensor::fill_at(std::size_t offset) const noexcept {
  return guard_byte(fill_, dtype_, offset);
}

void GuardedTensor::fetch() {
  if (device_ != nullptr) device_->copy_to_host(region_.data(), on_device_, region_.size());
}

std::optional<std::string> GuardedTensor::guard_change() const {
  for (std::size_t i = kPage; i-- > 0;) {
    if (region_[i] != fill_at(i)) return fmt::format("{} bytes before its begin", kPage - i);
  }
  for (std::size_t i = kPage + bytes_; i < region_.size(); ++i) {
    if (region_[i] != fill_at(i)) return fmt::format("{} bytes behind its end", i - kPage - bytes_);
  }
  return std::nullopt;
}

std::optional<std::int64_t> GuardedTensor::input_change() const {
  if (content_ == nullptr || bytes_ == 0) return std::nullopt;
  const std::byte* now = region_.data() + kPage;
  if (std::memcmp(now, content_->data(), bytes_) == 0) return std::nullopt;
  std::size_t i = 0;
  while (now[i] == content_->data()[i]) ++i;
  return static_cast<std::int64_t>(i) / size_of(dtype_);
}

Tensor GuardedTensor::take() const {
  Tensor tensor(dtype_, shape_);
  if (bytes_ > 0) std::memcpy(tensor.data(), region_.data() + kPage, bytes_);
  return tensor;
}

}  // namespace kda::harness
