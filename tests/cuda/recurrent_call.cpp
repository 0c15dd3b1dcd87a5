#include "tests/cuda/recurrent_call.hpp"

#include <cstring>

namespace kda::cuda {
namespace {

/// Calls f(offset in a, offset in b) for every index of the shape.
template <class F>
void for_each_offset(const Shape& shape, const Shape& a, const Shape& b, F f) {
  const std::int64_t count = num_elements(shape);
  const Shape dense = dense_strides(shape);
  for (std::int64_t i = 0; i < count; ++i) {
    std::int64_t in_a = 0;
    std::int64_t in_b = 0;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      const std::int64_t index = i / dense[d] % shape[d];
      in_a += index * a[d];
      in_b += index * b[d];
    }
    f(in_a, in_b);
  }
}

/// Elements from the first to the last that the strides reach.
std::int64_t reach(const Shape& shape, const Shape& strides) {
  std::int64_t last = 0;
  for (std::size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return last + 1;
}

}  // namespace

RecurrentCall::RecurrentCall(const tests::KdaInputs& inputs, const simt::Options& options)
    : inputs_(inputs), device_(open_executor(options)) {
  const Problem problem = inputs_.problem();
  args.problem = problem;
  args.problem.q = upload("q", problem.q);
  args.problem.k = upload("k", problem.k);
  args.problem.v = upload("v", problem.v);
  args.problem.g = upload("g", problem.g);
  args.problem.beta = upload("beta", problem.beta);
  const Shape shape = inputs_.semantics().o_shape();
  const auto bytes = static_cast<std::size_t>(num_elements(shape) * size_of(problem.v.dtype));
  args.o = {device_->allocate("o", bytes), problem.v.dtype, shape, dense_strides(shape)};
  args.workspace_bytes = 4096;
  args.workspace = device_->allocate("workspace", args.workspace_bytes);
}

TensorView RecurrentCall::upload(const char* name, const TensorView& view) {
  const auto bytes = static_cast<std::size_t>(view.size() * size_of(view.dtype));
  std::byte* data = device_->allocate(name, bytes);
  device_->copy_to_device(data, view.data, bytes);
  return {data, view.dtype, view.shape, view.strides};
}

void RecurrentCall::make_pool(std::int64_t slots, Dtype dtype) {
  const Shape shape = inputs_.semantics().state_shape(slots);
  const Tensor states = tests::uniform(dtype, shape, 77, -1, 1);
  std::byte* data = device_->allocate("pool", static_cast<std::size_t>(states.bytes()));
  device_->copy_to_device(data, states.data(), static_cast<std::size_t>(states.bytes()));
  args.pool = OutputView{data, dtype, shape, dense_strides(shape)};
}

void RecurrentCall::set_slots(const std::vector<std::int64_t>& slots) {
  slots_ = slots;
  args.slots = TensorView{reinterpret_cast<const std::byte*>(slots_.data()),
                          Dtype::kI64,
                          {static_cast<std::int64_t>(slots_.size())},
                          {1}};
}

void RecurrentCall::spread_pool(std::int64_t factor, std::int64_t extra) {
  const OutputView old = *args.pool;
  const std::int64_t row = old.shape[3] + extra;
  const std::int64_t head = row * old.shape[2] + extra;
  const Shape strides = {factor * head * old.shape[1], head, row, 1};
  const auto element = static_cast<std::size_t>(size_of(old.dtype));
  const auto count = static_cast<std::size_t>(reach(old.shape, strides));
  std::byte* data = device_->allocate("spread pool", count * element);
  for_each_offset(old.shape, old.strides, strides, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(data + static_cast<std::size_t>(to) * element,
                old.data + static_cast<std::size_t>(from) * element, element);
  });
  args.pool = OutputView{data, old.dtype, old.shape, strides};
}

void RecurrentCall::spread_beta(std::int64_t factor) {
  const TensorView old = args.problem.beta;
  Shape strides = old.strides;
  for (std::int64_t& stride : strides) stride *= factor;
  const auto element = static_cast<std::size_t>(size_of(old.dtype));
  const auto count = static_cast<std::size_t>(reach(old.shape, strides));
  std::byte* data = device_->allocate("spread beta", count * element);
  for_each_offset(old.shape, old.strides, strides, [&](std::int64_t from, std::int64_t to) {
    std::memcpy(data + static_cast<std::size_t>(to) * element,
                old.data + static_cast<std::size_t>(from) * element, element);
  });
  args.problem.beta = {data, old.dtype, old.shape, strides};
}

void RecurrentCall::spread_slots(std::int64_t factor) {
  const std::vector<std::int64_t> old = slots_;
  slots_.assign(old.size() * static_cast<std::size_t>(factor), -77);
  for (std::size_t i = 0; i < old.size(); ++i) {
    slots_[i * static_cast<std::size_t>(factor)] = old[i];
  }
  args.slots->data = reinterpret_cast<const std::byte*>(slots_.data());
  args.slots->strides = {factor};
}

void RecurrentCall::run() { static_cast<void>(recurrent(args, *device_)); }

Tensor RecurrentCall::gather(const OutputView& view) {
  Tensor tensor(view.dtype, view.shape);
  const auto element = static_cast<std::size_t>(size_of(view.dtype));
  for_each_offset(
      view.shape, view.strides, dense_strides(view.shape), [&](std::int64_t from, std::int64_t to) {
        device_->copy_to_host(tensor.data() + static_cast<std::size_t>(to) * element,
                              view.data + static_cast<std::size_t>(from) * element, element);
      });
  return tensor;
}

Tensor RecurrentCall::pool() { return gather(*args.pool); }
Tensor RecurrentCall::o() { return gather(args.o); }

}  // namespace kda::cuda
