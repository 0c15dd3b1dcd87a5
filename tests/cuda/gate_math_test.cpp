#include "cuda/kernels/gate_math.hpp"

#include "cuda/simt/launch.hpp"

#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

// The gates' functions against f64, over ranges that the fast hardware functions get wrong.

namespace kda::cuda::kernels {
namespace {

using device::Global;

constexpr double kBound = 1e-6;     // a few ulp
constexpr double kFlush = 1.2e-38;  // .ftz

struct Point {
  float A_log;
  float y;
};

/// out [4]: e^y, softplus gate, bounded gate with -5, sigmoid.
KDA_KERNEL(32) gate_kernel(Global<const Point> in, Global<float> out, int count) {
  for (int i = static_cast<int>(device::lane_id()); i < count; i += 32) {
    const Point p = device::load(in, i);
    device::store(out, i * 4, exp_accurate(p.y));
    device::store(out, i * 4 + 1, softplus_gate(p.A_log, p.y));
    device::store(out, i * 4 + 2, bounded_gate(p.A_log, -5.F, p.y));
    device::store(out, i * 4 + 3, sigmoid(p.y));
  }
}

void expect_close(float got, double want, double bound, const char* what, const Point& p) {
  if (std::isinf(want)) {
    EXPECT_EQ(got, want) << what;
    return;
  }
  EXPECT_LE(std::abs(got - want), bound * std::abs(want) + kFlush)
      << what << " A_log " << p.A_log << " y " << p.y << ": got " << got << ", want " << want;
}

/// Infinite from where f32 is.
double to_range(double x) { return std::abs(x) > 3.4028235e38 ? std::copysign(INFINITY, x) : x; }

TEST(GateMath, AgreesWithF64OverTheWholeRange) {
  std::vector<Point> in;
  for (const float A_log : {-20.F, -1.F, 0.F, 0.7F, 5.3F, 80.F}) {
    for (const float y : {-200.F, -99.F, -87.F, -40.F, -20.F, -16.7F, -15.F, -8.F, -1.F, -0.1F,
                          -1e-6F, 0.F, 1e-6F, 0.3F, 1.F, 8.F, 20.F, 88.F, 200.F}) {
      in.push_back({A_log, y});
    }
  }
  std::vector<float> out(in.size() * 4);
  simt::Memory memory;
  memory.map("in", std::as_const(in).data(), in.size() * sizeof(Point));
  memory.map("out", out.data(), out.size() * sizeof(float));
  simt::launch({"gate", {}, {32, 1, 1}}, {}, memory, &gate_kernel, Global<const Point>{in.data()},
               Global<float>{out.data()}, static_cast<int>(in.size()));
  for (std::size_t i = 0; i < in.size(); ++i) {
    const double y = in[i].y;
    const double slope = std::exp(static_cast<double>(in[i].A_log));
    const double soft = y > 30 ? y + std::log1p(std::exp(-y)) : std::log1p(std::exp(y));
    expect_close(out[i * 4], to_range(std::exp(y)), kBound, "exp", in[i]);
    expect_close(out[i * 4 + 1], to_range(-slope * soft), kBound, "softplus gate", in[i]);
    const double x = slope * y;
    // The argument itself is rounded: |x| 2^-24 of e^-x.
    const double bound = kBound + std::min(std::abs(x), 100.0) * 2e-7;
    expect_close(out[i * 4 + 2], -5.0 / (1.0 + std::exp(-x)), bound, "bounded gate", in[i]);
    expect_close(out[i * 4 + 3], 1.0 / (1.0 + std::exp(-y)), kBound, "sigmoid", in[i]);
  }
}

/// out [2]: decayed(1), decayed(s) with s = 3.
KDA_KERNEL(32) decay_kernel(Global<const float> g, Global<float> out, int count) {
  for (int i = static_cast<int>(device::lane_id()); i < count; i += 32) {
    const float code = decay_code(device::load(g, i));
    device::store(out, i * 2, decayed(code, 1.F));
    device::store(out, i * 2 + 1, code);
  }
}

TEST(GateMath, DecayIsExactAtItsEndsAndKeepsTheDistanceFromOne) {
  const float infinite = std::numeric_limits<float>::infinity();
  const std::vector<float> g = {0.F,   -0.F,   -1e-30F, -1e-6F, -0.01F, -0.5F,   -0.6999F,
                                -0.7F, -0.71F, -5.F,    -80.F,  -200.F, -1000.F, -infinite};
  std::vector<float> out(g.size() * 2);
  simt::Memory memory;
  memory.map("g", g.data(), g.size() * sizeof(float));
  memory.map("out", out.data(), out.size() * sizeof(float));
  simt::launch({"decay", {}, {32, 1, 1}}, {}, memory, &decay_kernel, Global<const float>{g.data()},
               Global<float>{out.data()}, static_cast<int>(g.size()));
  for (std::size_t i = 0; i < g.size(); ++i) {
    const double x = g[i];
    EXPECT_LE(std::abs(out[i * 2] - std::exp(x)), 1.5e-7 * std::exp(x) + kFlush) << x;
    if (x <= 0 && x > -0.7F) {
      EXPECT_TRUE(std::signbit(out[i * 2 + 1])) << x;
      EXPECT_LE(std::abs(out[i * 2 + 1] - std::expm1(x)), -2e-7 * std::expm1(x)) << x;
    } else {
      EXPECT_FALSE(std::signbit(out[i * 2 + 1])) << x;
    }
  }
  EXPECT_EQ(out[0], 1.F);
  EXPECT_EQ(out[2 * (g.size() - 1)], 0.F) << "g = -inf";
}

}  // namespace
}  // namespace kda::cuda::kernels
