#include "reference/gate.hpp"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace kda::reference {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

void expect_close(double got, double want) {
  EXPECT_LE(std::abs(got - want), 4e-15 * std::abs(want)) << "got " << got << " want " << want;
}

// Values from 40-digit arithmetic.

TEST(Softplus, IsAccurateAtBothEnds) {
  expect_close(softplus(0.0), 0.6931471805599453);
  expect_close(softplus(1.0), 1.3132616875182228);
  expect_close(softplus(-1.0), 0.31326168751822286);
  expect_close(softplus(20.0), 20.000000002061154);
  expect_close(softplus(-40.0), 4.248354255291589e-18);
  expect_close(softplus(800.0), 800.0);
  EXPECT_EQ(softplus(-kInf), 0.0);
}

TEST(Sigmoid, IsAccurateAtBothEnds) {
  expect_close(sigmoid(0.0), 0.5);
  expect_close(sigmoid(0.5), 0.6224593312018546);
  expect_close(sigmoid(-0.5), 0.3775406687981454);
  expect_close(sigmoid(-40.0), 4.248354255291589e-18);
  EXPECT_EQ(sigmoid(800.0), 1.0);
  EXPECT_EQ(sigmoid(-800.0), 0.0);
}

TEST(SoftplusGate, MatchesTheFormula) {
  expect_close(softplus_gate(0.0, 0.0), -0.6931471805599453);
  expect_close(softplus_gate(-2.0, 1.0), -0.34502610594056116);
  expect_close(softplus_gate(1.0, 5.3), -263.0946571395124);
  expect_close(softplus_gate(-36.5, 0.5), -std::exp(-36.0));
}

TEST(SoftplusGate, NeverMultipliesInfByZero) {
  expect_close(softplus_gate(-800.0, 800.0), -1.0);
  expect_close(softplus_gate(-1000.0, 990.0), -4.539992976248485e-05);
  EXPECT_EQ(softplus_gate(-800.0, 0.0), 0.0);
  EXPECT_EQ(softplus_gate(0.0, 1e30), -kInf);
  EXPECT_EQ(softplus_gate(-kInf, 2.0), 0.0);
  EXPECT_EQ(softplus_gate(-200.0F, 200.0F), -1.0F);
}

TEST(SoftplusGate, IsContinuousWhereTheFormChanges) {
  const double edge = std::log(std::numeric_limits<double>::epsilon());
  const double below = softplus_gate(std::nextafter(edge, -100.0), 3.0);
  // The sum A_log + y = -33 is rounded to 4e-15.
  EXPECT_NEAR(below / softplus_gate(edge, 3.0), 1, 1e-14);
}

TEST(LowerBoundGate, MatchesTheFormula) {
  expect_close(lower_bound_gate(0.0, 0.0, -5.0), -2.5);
  expect_close(lower_bound_gate(0.5, 0.0, -1.0), -0.6224593312018546);
  expect_close(lower_bound_gate(1.0, std::log(2.0), -5.0), -4.403985389889412);
  EXPECT_EQ(lower_bound_gate(1e6, 0.0, -5.0), -5.0);
  EXPECT_EQ(lower_bound_gate(-1e6, 0.0, -5.0), 0.0);
}

TEST(LowerBoundGate, NeverMultipliesInfByZero) {
  EXPECT_EQ(lower_bound_gate(0.0, 1000.0, -5.0), -2.5);
  EXPECT_EQ(lower_bound_gate(1e-300, 1000.0, -5.0), -5.0);
  EXPECT_EQ(lower_bound_gate(-kInf, -1000.0, -5.0), 0.0);
  expect_close(lower_bound_gate(std::exp(-700.0), 700.0, -1.0), -0.7310585786300049);
}

TEST(WriteStrength, FollowsTheForm) {
  EXPECT_EQ(write_strength(0.5, BetaForm::kReady), 0.5);
  EXPECT_EQ(write_strength(1.75, BetaForm::kReady), 1.75);
  expect_close(write_strength(0.5, BetaForm::kLogit), 0.6224593312018546);
  expect_close(write_strength(0.5, BetaForm::kDoubledLogit), 1.2449186624037091);
}

TEST(L2Factor, AddsEpsilonUnderTheRoot) {
  expect_close(l2_factor(0.0), 1000.0);
  expect_close(l2_factor(25.0), 0.19999999600000012);
  expect_close(l2_factor(1e-6), 707.1067811865476);
}

}  // namespace
}  // namespace kda::reference
