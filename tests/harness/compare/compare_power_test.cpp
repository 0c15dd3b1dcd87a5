#include "harness/case/counter_rng.hpp"
#include "tests/harness/compare/compare_emulation.hpp"
#include "tests/harness/compare/compare_judged.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include <gtest/gtest.h>

// What the policies see and what they let pass: faulty results, and results of honest kernels.

namespace kda::harness {
namespace {

/// Index of an element whose size is between one and two RMS of the tensor.
std::int64_t typical_element(const Tensor& tensor, std::int64_t from) {
  double square = 0;
  for (std::int64_t i = 0; i < tensor.size(); ++i) square += get(tensor, i) * get(tensor, i);
  const double rms = std::sqrt(square / static_cast<double>(tensor.size()));
  for (std::int64_t i = from; i < tensor.size(); ++i) {
    if (std::abs(get(tensor, i)) > rms && std::abs(get(tensor, i)) < 2 * rms) return i;
  }
  return -1;
}

/// Flips a bit of an element of f32 or bf16; 0 = lowest mantissa bit of the type.
void flip_bit(Tensor& tensor, std::int64_t i, bool is_sign) {
  if (tensor.dtype() == Dtype::kBf16) {
    tensor.as<Bf16>()[i].bits ^= static_cast<std::uint16_t>(is_sign ? 0x8000 : 0x0080);
  } else {
    std::uint32_t bits = 0;
    std::memcpy(&bits, tensor.as<float>() + i, sizeof bits);
    bits ^= is_sign ? 0x80000000U : 0x00800000U;
    std::memcpy(tensor.as<float>() + i, &bits, sizeof bits);
  }
}

/// new[i] = old[source(i)].
void permute(Tensor& tensor, const std::function<std::int64_t(std::int64_t)>& source) {
  const Tensor old = tensor;
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, get(old, source(i)));
}

/// Multiplies the row (the last axis) with the largest elements by 1.05.
void scale_loudest_row(Tensor& tensor) {
  const std::int64_t width = tensor.shape().back();
  std::int64_t loudest = 0;
  double most = 0;
  for (std::int64_t row = 0; row < tensor.size() / width; ++row) {
    double square = 0;
    for (std::int64_t c = 0; c < width; ++c) square += std::pow(get(tensor, row * width + c), 2);
    if (square > most) loudest = row;
    most = std::max(most, square);
  }
  for (std::int64_t i = loudest * width; i < (loudest + 1) * width; ++i) {
    tensor.store(i, 1.05 * get(tensor, i));
  }
}

/// A way to spoil one tensor of a result.
struct Fault {
  const char* name;
  std::function<void(Tensor&)> apply;
};

std::int64_t inner(const Tensor& tensor) {
  return tensor.shape()[tensor.shape().size() - 1] * tensor.shape()[tensor.shape().size() - 2];
}

/// Faults of any tensor.
std::vector<Fault> common_faults() {
  const auto all = [](double value) {
    return [value](Tensor& x) {
      for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, value);
    };
  };
  const auto one = [](double value) {
    return [value](Tensor& x) { x.store(x.size() / 2, value); };
  };
  return {
      {"zeros", all(0)},
      {"constant", all(0.01)},
      {"nan", one(std::numeric_limits<double>::quiet_NaN())},
      {"inf", one(std::numeric_limits<double>::infinity())},
      {"sign bit", [](Tensor& x) { flip_bit(x, typical_element(x, x.size() / 2), true); }},
      {"exponent bit", [](Tensor& x) { flip_bit(x, typical_element(x, x.size() / 2), false); }},
      {"negated",
       [](Tensor& x) {
         for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, -get(x, i));
       }},
      {"2% too large",
       [](Tensor& x) {
         for (std::int64_t i = 0; i < x.size(); ++i) x.store(i, 1.02 * get(x, i));
       }},
      {"columns reversed",
       [](Tensor& x) {
         const std::int64_t V = x.shape().back();
         permute(x, [V](std::int64_t i) { return i / V * V + V - 1 - i % V; });
       }},
  };
}

std::vector<Fault> output_faults() {
  std::vector<Fault> faults = common_faults();
  const auto extents = [](const Tensor& x) {
    return std::tuple(x.shape()[1], x.shape()[2], x.shape()[3]);
  };
  faults.push_back({"off by one token", [extents](Tensor& x) {
                      const auto [T, HV, V] = extents(x);
                      const std::int64_t row = HV * V;
                      permute(x, [row](std::int64_t i) { return std::max(i - row, i % row); });
                    }});
  faults.push_back({"last token repeated", [extents](Tensor& x) {
                      const auto [T, HV, V] = extents(x);
                      const std::int64_t row = HV * V;
                      permute(x, [row, last = (T - 1) * row](std::int64_t i) {
                        return i >= last ? i - row : i;
                      });
                    }});
  faults.push_back({"two heads swapped", [extents](Tensor& x) {
                      const auto [T, HV, V] = extents(x);
                      permute(x, [heads = HV, width = V](std::int64_t i) {
                        const std::int64_t head = i / width % heads;
                        return head == 0 ? i + width : head == 1 ? i - width : i;
                      });
                    }});
  faults.push_back({"a chunk zeroed", [extents](Tensor& x) {
                      const auto [T, HV, V] = extents(x);
                      for (std::int64_t i = 64 * HV * V; i < 128 * HV * V; ++i) x.store(i, 0);
                    }});
  faults.push_back({"a row scaled by 1.05", scale_loudest_row});
  return faults;
}

std::vector<Fault> state_faults() {
  std::vector<Fault> faults = common_faults();
  faults.push_back({"transposed", [](Tensor& x) {
                      const std::int64_t V = x.shape().back();  // K = V
                      permute(x, [V, size = inner(x)](std::int64_t i) {
                        return i / size * size + i % V * V + i % size / V;
                      });
                    }});
  faults.push_back({"heads rotated", [](Tensor& x) {
                      const std::int64_t per_slot = x.shape()[1] * inner(x);
                      permute(x, [per_slot, size = inner(x)](std::int64_t i) {
                        return i / per_slot * per_slot + (i + size) % per_slot;
                      });
                    }});
  faults.push_back({"a row scaled by 1.05", scale_loudest_row});
  return faults;
}

std::vector<std::pair<std::string, Fault>> all_faults() {
  std::vector<std::pair<std::string, Fault>> faults;
  for (const Fault& fault : output_faults()) faults.emplace_back("o", fault);
  for (const Fault& fault : state_faults()) faults.emplace_back("final_state", fault);
  for (const Fault& fault : state_faults()) faults.emplace_back("h", fault);
  return faults;
}

TEST(ComparePower, DerivedCatchesEveryFaultAndNamesThePlace) {
  for (const auto& [tensor, fault] : all_faults()) {
    Tensors got = ordinary().rounded();
    fault.apply(got.at(tensor));
    const CompareReport report = ordinary().report(got, "derived");
    EXPECT_FALSE(report.passed()) << tensor << ' ' << fault.name;
    for (const TensorReport& part : report.tensors) {
      EXPECT_EQ(part.passed, part.name != tensor) << tensor << ' ' << fault.name << part.detail;
      if (part.name != tensor) continue;
      EXPECT_TRUE(part.worst && part.window) << tensor << ' ' << fault.name;
      EXPECT_FALSE(part.detail.empty());
      EXPECT_GT(part.used_share, 1);
    }
  }
}

// Why the default is not one of the public criteria, on this one case.
TEST(ComparePower, PublicPoliciesMissWhatDerivedCatches) {
  std::map<std::string_view, std::set<std::string>> missed;
  for (const auto& [tensor, fault] : all_faults()) {
    Tensors got = ordinary().rounded();
    fault.apply(got.at(tensor));
    for (const char* policy : {"fla", "sglang"}) {
      if (ordinary().report(got, policy).passed())
        missed[policy].insert(tensor + ": " + fault.name);
    }
  }
  EXPECT_EQ(missed["fla"], (std::set<std::string>{"o: a row scaled by 1.05"}));
  EXPECT_EQ(missed["sglang"],
            (std::set<std::string>{"o: a row scaled by 1.05", "o: 2% too large",
                                   "final_state: 2% too large", "h: 2% too large"}));
}

TEST(ComparePower, LargeTensorsHideAnElementFromRatiosOnly) {
  const Judged judged("op=chunk_kda T=2048 K=16 V=128");
  Tensors got = judged.rounded();
  flip_bit(got.at("o"), typical_element(got.at("o"), 100000), false);
  EXPECT_TRUE(judged.report(got, "fla").passed());
  EXPECT_FALSE(judged.report(got, "derived").passed());
}

bool keys_coincide(Family family) {
  return family == Family::kCollinear || family == Family::kIdentical ||
         family == Family::kAlternating;
}

// Any element above the RMS of its tensor, whatever else is in it.
TEST(ComparePower, EveryLostSignOrExponentBitAboveTheRmsFails) {
  const CounterRng rng(3, "bits");
  for (const FamilyInfo& info : all_families()) {
    const Judged judged(
        "op=chunk_kda T=130 H=2 K=32 V=32 initial_state=1 final_state=1 h=1 family=" +
        std::string(info.name));
    const Tensors clean = judged.rounded();
    for (const char* tensor : {"o", "final_state", "h"}) {
      for (int draw = 0; draw < 3; ++draw) {
        const auto size = static_cast<double>(clean.at(tensor).size());
        const auto from = static_cast<std::int64_t>(0.9 * size * rng.uniform(draw, 0, 0, 0));
        const std::int64_t i = typical_element(clean.at(tensor), from);
        if (i < 0) continue;
        for (const bool is_sign : {true, false}) {
          Tensors got = clean;
          flip_bit(got.at(tensor), i, is_sign);
          EXPECT_FALSE(judged.report(got, "derived", f32_formats()).passed())
              << judged.made.name << ' ' << tensor << ' ' << i << ' ' << is_sign;
          // Where keys coincide, 16-bit operands alone may cost a bit.
          EXPECT_TRUE(keys_coincide(info.family) || !judged.report(got, "derived").passed())
              << judged.made.name << ' ' << tensor << ' ' << i << ' ' << is_sign;
        }
      }
    }
  }
}

/// Honest kernels, whatever the family does to roundings.
class Honest : public testing::TestWithParam<const char*> {};

TEST_P(Honest, ChunkKernelsWithRoundedOperandsPass) {
  const char* shapes[] = {"T=130 K=64 V=32", "lens=1,2,0,5,33,64,65 H=2 HV=4 K=64 V=16 l2norm=1",
                          "T=130 K=64 V=16 dtype=f16", "T=70 K=32 V=16 dtype=f32"};
  for (const char* shape : shapes) {
    for (int seed = 1; seed <= 2; ++seed) {
      const Judged judged(
          "op=chunk_kda final_state=1 h=1 initial_state=" + std::to_string(seed % 2) +
          " seed=" + std::to_string(seed) + " family=" + GetParam() + " " + shape);
      const Outputs got = chunk_kernel(judged.problem, judged.semantics, judged.problem.q.dtype);
      const CompareReport report = judged.report(tensors_of(got), "derived");
      EXPECT_TRUE(report.passed()) << judged.made.name << '\n' << to_text(report);
      const Family family = parse_case_line(judged.made.line).family;
      EXPECT_TRUE(keys_coincide(family) || !judged.doubt("derived")) << judged.made.name;
    }
  }
}

// Left out: identical. Of its 8 results here one has an element at 7.7 sigma, since the errors of a
// state that was written along one key only are alike in all its channels.
INSTANTIATE_TEST_SUITE_P(Families, Honest,
                         testing::Values("ordinary", "slow_gate", "no_decay", "gate_ladder",
                                         "channels", "resets", "collinear", "alternating", "beta2",
                                         "padding", "wild_state"));

TEST(ComparePower, F32RecurrencesPassOnEveryFamily) {
  for (const FamilyInfo& info : all_families()) {
    for (const char* shape : {"T=130 K=32 V=32", "T=200 K=16 V=24 dtype=f32 gate=softplus l2norm=1",
                              "lens=1,2,0,5,65 H=2 HV=4 K=16 V=8 dtype=f16 gate=bound"}) {
      const Judged judged("op=chunk_kda final_state=1 h=1 initial_state=1 family=" +
                          std::string(info.name) + " " + shape);
      const Outputs got = reference::recurrent_f32(judged.problem, judged.semantics);
      for (const StatedFormats& stated : {StatedFormats{}, f32_formats()}) {
        const CompareReport report = judged.report(tensors_of(got), "derived", stated);
        EXPECT_TRUE(report.passed()) << judged.made.name << '\n' << to_text(report);
      }
    }
  }
}

}  // namespace
}  // namespace kda::harness
