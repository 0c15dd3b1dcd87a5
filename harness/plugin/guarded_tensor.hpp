#pragma once

#include "cuda/runtime.hpp"
#include "harness/plugin/kdacheck_plugin.h"
#include "reference/types/tensor.hpp"

#include <cstddef>
#include <optional>
#include <span>
#include <string>

namespace kda::harness {

/// What lies around tensors, and in outputs before they are written. A call that reads any of it
/// gives other results under the other one.
enum class GuardFill { kNan, kLarge };

/// A tensor for a plugin with at least 4 KiB of guard before and behind its elements, and beyond
/// those, in host memory, 1 MiB that nobody can touch. Lies in `device` where one is given, which
/// must outlive it.
class GuardedTensor {
 public:
  /// An input: a copy of `content`, which must outlive this.
  GuardedTensor(std::string name, const Tensor& content, GuardFill fill, cuda::Device* device);
  /// An output, filled like its guards.
  GuardedTensor(std::string name, Dtype dtype, Shape shape, GuardFill fill, cuda::Device* device);
  GuardedTensor(const GuardedTensor&) = delete;
  GuardedTensor& operator=(const GuardedTensor&) = delete;
  ~GuardedTensor();

  [[nodiscard]] const kdacheck_tensor* view() const noexcept { return &view_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }

  /// Looks at the memory as it is now; before this the members below see what was put there.
  void fetch();
  /// Where the first changed guard byte lies: "3 bytes behind its end"; nothing when none is.
  [[nodiscard]] std::optional<std::string> guard_change() const;
  /// First element of an input that is not what it was.
  [[nodiscard]] std::optional<std::int64_t> input_change() const;
  /// The elements as they are now.
  [[nodiscard]] Tensor take() const;

 private:
  void allocate();
  [[nodiscard]] std::byte fill_at(std::size_t offset) const noexcept;

  std::string name_;
  Dtype dtype_;
  Shape shape_;
  Shape strides_;
  GuardFill fill_;
  cuda::Device* device_;
  const Tensor* content_ = nullptr;
  std::size_t bytes_ = 0;         ///< of the elements
  std::byte* mapping_ = nullptr;  ///< guards, elements and the pages that nobody can touch
  std::size_t mapping_bytes_ = 0;
  std::span<std::byte> region_;     ///< guards and elements
  std::byte* on_device_ = nullptr;  ///< the region there
  kdacheck_tensor view_{};
};

/// The byte that a fill has at `offset` from an aligned address.
[[nodiscard]] std::byte guard_byte(GuardFill fill, Dtype dtype, std::size_t offset) noexcept;

}  // namespace kda::harness
