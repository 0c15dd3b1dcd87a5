// Index arithmetic beyond 2^31 elements, without that much memory: strides that far apart in
// address space of which a few pages are touched, and plans and contracts, which look at extents
// only.

#include "reference/chunked.hpp"
#include "reference/fast.hpp"
#include "reference/peer_prefill.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/contract.hpp"
#include "tests/reference/kda_inputs.hpp"

#include <cstring>
#include <deque>
#include <memory>

#include <gtest/gtest.h>
#include <sys/mman.h>

namespace kda::tests {
namespace {

constexpr std::int64_t kFar = (std::int64_t{1} << 31) + 4096;  // elements

/// A tensor [B,T,H,...] with its elements kFar and more apart in T; reads as zero in between.
class FarApart {
 public:
  explicit FarApart(const Tensor& tensor) : view_(tensor.view()) {
    const std::int64_t T = view_.shape[1];
    view_.strides[1] = kFar;
    view_.strides[0] = T * kFar;
    bytes_ = static_cast<std::size_t>(view_.shape[0] * T * kFar * size_of(view_.dtype));
    // Address space only: nothing is reserved, and pages come with the first write.
    memory_ = static_cast<std::byte*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (memory_ == MAP_FAILED) {
      memory_ = nullptr;
      return;
    }
    view_.data = memory_;
    const std::int64_t row = dense_strides(view_.shape)[1] * size_of(view_.dtype);
    for (std::int64_t i = 0; i < view_.shape[0] * T; ++i) {
      std::memcpy(memory_ + i * kFar * size_of(view_.dtype), tensor.data() + i * row,
                  static_cast<std::size_t>(row));
    }
  }
  FarApart(const FarApart&) = delete;
  FarApart& operator=(const FarApart&) = delete;
  ~FarApart() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }

  [[nodiscard]] bool there() const { return memory_ != nullptr; }
  [[nodiscard]] const TensorView& view() const { return view_; }

 private:
  TensorView view_;
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

/// A call with all its large inputs far apart.
class FarProblem {
 public:
  explicit FarProblem(const KdaInputs& inputs) : problem_(inputs.problem()) {
    replace(problem_.q, inputs.q);
    replace(problem_.k, inputs.k);
    replace(problem_.v, inputs.v);
    replace(problem_.g, inputs.g);
    replace(problem_.beta, inputs.beta);
  }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  [[nodiscard]] bool there() const { return there_; }

 private:
  void replace(TensorView& view, const Tensor& tensor) {
    there_ = tensors_.emplace_back(tensor).there() && there_;
    view = tensors_.back().view();
  }

  Problem problem_;
  std::deque<FarApart> tensors_;
  bool there_ = true;
};

TEST(LargeIndex, EveryReferenceReadsTheSameWhereElementsAreFarApart) {
  const KdaInputs inputs =
      random_inputs({.B = 2, .T = 9, .H = 2, .HV = 4, .K = 16, .V = 12}, 1, Dtype::kBf16);
  const FarProblem far(inputs);
  if (!far.there()) GTEST_SKIP() << "the address space is limited here";
  ASSERT_GT(far.problem().q.strides[0], std::int64_t{1} << 34);
  const Semantics semantics = inputs.semantics();
  const Semantics far_semantics = check(Contract::kRecurrentKda, far.problem());
  const Problem near = inputs.problem();
  using namespace reference;
  EXPECT_TRUE(same_bits(recurrent(far.problem(), far_semantics), recurrent(near, semantics)));
  EXPECT_TRUE(
      same_bits(recurrent_f32(far.problem(), far_semantics), recurrent_f32(near, semantics)));
  EXPECT_TRUE(same_bits(chunked(far.problem(), far_semantics), chunked(near, semantics)));
  EXPECT_TRUE(same_bits(fast(far.problem(), far_semantics), fast(near, semantics)));
}

TEST(LargeIndex, ThePeerOfThePrefillKernelToo) {
  const KdaInputs inputs =
      random_inputs({.B = 1, .T = 70, .H = 2, .HV = 2, .K = 128, .V = 128}, 2, Dtype::kBf16);
  const FarProblem far(inputs);
  if (!far.there()) GTEST_SKIP() << "the address space is limited here";
  EXPECT_TRUE(same_bits(
      reference::peer_prefill(far.problem(), check(Contract::kKdaPrefill, far.problem())),
      reference::peer_prefill(inputs.problem(), check(Contract::kKdaPrefill, inputs.problem()))));
}

/// Extents alone: nothing is behind the views.
Problem of_extents(const Extents& x) {
  Problem problem;
  const auto view = [](Shape shape) {
    return TensorView{nullptr, Dtype::kBf16, shape, dense_strides(shape)};
  };
  problem.q = view({x.B, x.T, x.H, x.K});
  problem.k = problem.q;
  problem.v = view({x.B, x.T, x.HV, x.V});
  problem.g = view({x.B, x.T, x.HV, x.K});
  problem.beta = view({x.B, x.T, x.HV});
  problem.output_final_state = true;
  return problem;
}

TEST(LargeIndex, ContractsTakeMoreThanTwoToThe31Elements) {
  const Extents x{.B = 4, .T = 1 << 25, .H = 64, .HV = 64, .K = 128, .V = 128};
  const Problem problem = of_extents(x);
  EXPECT_EQ(problem.q.size(), std::int64_t{1} << 40);
  for (const Contract contract :
       {Contract::kKdaPrefill, Contract::kChunkKda, Contract::kRecurrentKda}) {
    const Semantics semantics = check(contract, problem);
    EXPECT_EQ(semantics.num_chunks, std::int64_t{4} << 19);
    EXPECT_EQ(semantics.sequences.back().first_chunk, std::int64_t{3} << 19);
    EXPECT_EQ(num_elements(semantics.o_shape()), std::int64_t{1} << 40);
    EXPECT_EQ(num_elements(semantics.state_shape(semantics.num_chunks)), std::int64_t{1} << 41);
  }
  EXPECT_EQ(dense_strides(problem.q.shape).front(), std::int64_t{1} << 38);
}

}  // namespace
}  // namespace kda::tests
