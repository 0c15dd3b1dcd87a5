#include "reference/types/tensor.hpp"

#include "reference/types/error.hpp"

#include <gtest/gtest.h>

namespace kda {
namespace {

TEST(Tensor, StoresRoundedAndLoadsBack) {
  for (const Dtype dtype :
       {Dtype::kBf16, Dtype::kF16, Dtype::kF32, Dtype::kF64, Dtype::kI32, Dtype::kI64}) {
    Tensor tensor(dtype, {2, 3});
    for (std::int64_t i = 0; i < 6; ++i) tensor.store(i, static_cast<double>(i - 2));
    EXPECT_EQ(to_f64(tensor.view()), (std::vector<double>{-2, -1, 0, 1, 2, 3})) << name(dtype);
    EXPECT_EQ(tensor.bytes(), 6 * size_of(dtype));
  }
  Tensor narrow(Dtype::kBf16, {1});
  narrow.store(0, 1.001);
  EXPECT_EQ(load(narrow.view(), 0), 1.0);
}

TEST(Tensor, IntegersLoadExactly) {
  Tensor tensor(Dtype::kI64, {1});
  tensor.as<std::int64_t>()[0] = (std::int64_t{1} << 60) + 1;
  EXPECT_EQ(load_int(tensor.view(), 0), (std::int64_t{1} << 60) + 1);
  Tensor narrow(Dtype::kI32, {1});
  narrow.as<std::int32_t>()[0] = -7;
  EXPECT_EQ(load_int(narrow.view(), 0), -7);
}

TEST(TensorView, StridesAreFollowed) {
  Tensor tensor(Dtype::kF32, {3, 4});
  for (std::int64_t i = 0; i < 12; ++i) tensor.store(i, static_cast<double>(i));
  TensorView column = tensor.view();
  column.shape = {3, 2};
  column.strides = {4, 2};
  EXPECT_EQ(to_f64(column), (std::vector<double>{0, 2, 4, 6, 8, 10}));
  EXPECT_FALSE(column.is_dense());
  TensorView transposed = tensor.view();
  transposed.shape = {4, 3};
  transposed.strides = {1, 4};
  EXPECT_EQ(to_f64(transposed), (std::vector<double>{0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11}));
  TensorView reversed = tensor.view();
  reversed.data += 11 * 4;
  reversed.shape = {12};
  reversed.strides = {-1};
  EXPECT_EQ(to_f64(reversed).front(), 11);
}

TEST(TensorView, ScalarsAndEmptyTensors) {
  Tensor scalar(Dtype::kF64, {});
  scalar.store(0, 3);
  EXPECT_EQ(to_f64(scalar.view()), (std::vector<double>{3}));
  EXPECT_TRUE(to_f64(Tensor(Dtype::kF64, {2, 0, 5}).view()).empty());
}

TEST(Shape, PrintsAsPythonDoes) {
  EXPECT_EQ(to_string(Shape{}), "()");
  EXPECT_EQ(to_string(Shape{5}), "(5,)");
  EXPECT_EQ(to_string(Shape{1, 64, 2}), "(1, 64, 2)");
}

TEST(Shape, TooManyElementsAreAnErrorNotAnOverflow) {
  EXPECT_EQ(num_elements({std::int64_t{1} << 40, 0, std::int64_t{1} << 40}), 0);
  EXPECT_EQ(num_elements({std::int64_t{1} << 31, std::int64_t{1} << 30}), std::int64_t{1} << 61);
  EXPECT_THROW((void)num_elements({std::int64_t{1} << 40, std::int64_t{1} << 40}), Error);
  EXPECT_THROW((void)num_elements({-1}), Error);
}

}  // namespace
}  // namespace kda
