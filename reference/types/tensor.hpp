#pragma once

#include "reference/types/dtype.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace kda {

using Shape = std::vector<std::int64_t>;

/// Elements of a tensor of this shape; 1 for a scalar. Throws kShapeMismatch beyond 2^62.
[[nodiscard]] std::int64_t num_elements(const Shape& shape);

/// Row-major strides, in elements.
[[nodiscard]] Shape dense_strides(const Shape& shape);

/// As Python prints a tuple: "(1, 64, 2, 128)", "(5,)", "()".
[[nodiscard]] std::string to_string(const Shape& shape);

/// Read-only view of a tensor of any rank and dtype; owns nothing. Strides are in elements and may
/// be anything, so that slices of a pool or columns of a table can be passed as they are.
struct TensorView {
  const std::byte* data = nullptr;
  Dtype dtype = Dtype::kF32;
  Shape shape;
  Shape strides;

  [[nodiscard]] std::int64_t rank() const noexcept {
    return static_cast<std::int64_t>(shape.size());
  }
  [[nodiscard]] std::int64_t size() const { return num_elements(shape); }
  [[nodiscard]] bool is_dense() const { return strides == dense_strides(shape); }
};

/// Element at `offset` (in elements, from `view.data`) as f64; every float type and i32 convert
/// exactly, i64 beyond 2^53 rounds.
[[nodiscard]] double load(const TensorView& view, std::int64_t offset) noexcept;

/// Integer element at `offset`, exact. For kI32 and kI64 only.
[[nodiscard]] std::int64_t load_int(const TensorView& view, std::int64_t offset) noexcept;

/// All elements in row-major order of the shape, as f64.
[[nodiscard]] std::vector<double> to_f64(const TensorView& view);

/// Owning dense row-major tensor.
class Tensor {
 public:
  Tensor() = default;
  /// Zero-filled.
  Tensor(Dtype dtype, Shape shape);

  [[nodiscard]] Dtype dtype() const noexcept { return dtype_; }
  [[nodiscard]] const Shape& shape() const noexcept { return shape_; }
  [[nodiscard]] std::int64_t size() const { return num_elements(shape_); }
  [[nodiscard]] std::int64_t bytes() const noexcept {
    return static_cast<std::int64_t>(storage_.size());
  }

  [[nodiscard]] const std::byte* data() const noexcept { return storage_.data(); }
  [[nodiscard]] std::byte* data() noexcept { return storage_.data(); }

  /// The elements as T; sizeof(T) must be the dtype's size (Bf16, F16, float, double, ints).
  template <class T>
  [[nodiscard]] const T* as() const noexcept {
    return reinterpret_cast<const T*>(storage_.data());
  }
  template <class T>
  [[nodiscard]] T* as() noexcept {
    return reinterpret_cast<T*>(storage_.data());
  }

  [[nodiscard]] TensorView view() const { return {data(), dtype_, shape_, dense_strides(shape_)}; }

  /// Stores `value` at `offset`, rounded once to the dtype (round to nearest even).
  void store(std::int64_t offset, double value) noexcept;

 private:
  Dtype dtype_ = Dtype::kF32;
  Shape shape_;
  std::vector<std::byte> storage_;
};

}  // namespace kda
