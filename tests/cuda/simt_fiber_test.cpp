#include "cuda/simt/fiber.hpp"
#include "cuda/simt/sanitizer.hpp"

#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

// Compiled once with each way of switching stacks.

namespace kda::cuda::simt {
namespace {

struct Flow {
  Context worker;
  Context fiber;
  std::vector<int> steps;
  char order_tag = 0;

  /// A switch alone orders nothing for TSan.
  void go(Context& from, Context& to) {
    sanitizer::release(&order_tag);
    Context::switch_to(from, to);
    sanitizer::acquire(&order_tag);
  }
};

double sum_of_halves(int n) {
  double sum = 0;
  for (int i = 0; i < n; ++i) sum += 0.5;
  return sum;
}

void two_rounds(void* argument) {
  Flow& flow = *static_cast<Flow*>(argument);
  sanitizer::acquire(&flow.order_tag);
  for (int round = 0;; ++round) {
    // Locals and floating-point state must survive each switch.
    const double before = sum_of_halves(round + 3);
    alignas(16) char local[32] = {};
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(local) % 16, 0U);
    flow.steps.push_back(10 * round);
    flow.go(flow.fiber, flow.worker);
    EXPECT_EQ(before, 0.5 * (round + 3));
    flow.steps.push_back(10 * round + 1);
  }
}

TEST(Fiber, KeepsItsPlaceAndItsLocals) {
  const Stack stack(256 * 1024);
  Flow flow;
  flow.worker.adopt_thread();
  flow.fiber.make(stack, &two_rounds, &flow);
  for (int i = 0; i < 3; ++i) {
    flow.go(flow.worker, flow.fiber);
    flow.steps.push_back(-i);
  }
  EXPECT_EQ(flow.steps, (std::vector<int>{0, 0, 1, 10, -1, 11, 20, -2}));
}

TEST(Fiber, CanBeMadeAgainWhereItWasAbandoned) {
  const Stack stack(256 * 1024);
  Flow flow;
  flow.worker.adopt_thread();
  for (int i = 0; i < 3; ++i) {
    flow.fiber.make(stack, &two_rounds, &flow);
    flow.go(flow.worker, flow.fiber);
  }
  EXPECT_EQ(flow.steps, (std::vector<int>{0, 0, 0}));
}

}  // namespace
}  // namespace kda::cuda::simt
