// Writes the cases of this folder with their deviations to standard output, for variance_port.py:
// per case one line of JSON, then its arrays as f64. Every case goes with one of the format classes
// in turn, so that all classes meet all kinds of inputs.

#include "reference/variance.hpp"
#include "tests/reference/kda_cases.hpp"
#include "tests/reference/repeated_keys.hpp"

#include <array>
#include <iomanip>
#include <iostream>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace kda::tests {
namespace {

using reference::Formats;
using reference::Rounding;
using reference::StateStorage;

std::vector<Formats> format_classes() {
  std::vector<Formats> classes;
  for (const Dtype dtype : {Dtype::kBf16, Dtype::kF32, Dtype::kF16, Dtype::kF64}) {
    classes.push_back(reference::default_formats(dtype, dtype));
  }
  Formats stored_state = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  stored_state.state = reference::kRoundBf16;
  classes.push_back(stored_state);
  stored_state.state_storage = StateStorage::kPerToken;
  classes.push_back(stored_state);
  Formats small_blocks = reference::default_formats(Dtype::kBf16, Dtype::kF32);
  small_blocks.block = 5;
  small_blocks.triangle = reference::kRoundBf16Pair;
  small_blocks.gate = {0x1p-20, 0x1p-126};
  classes.push_back(small_blocks);
  return classes;
}

/// Extents around vectors, strips and blocks; several heads, states and gates.
std::vector<NamedCase> random_cases() {
  std::vector<NamedCase> cases;
  constexpr std::array<std::int64_t, 5> kK{1, 16, 33, 130, 256};
  constexpr std::array<std::int64_t, 4> kV{7, 24, 65, 8};
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const auto i = static_cast<std::int64_t>(seed);
    KdaInputs inputs = random_inputs({.T = 20 + 13 * i % 80, .K = kK[seed % 5], .V = kV[seed % 4]},
                                     100 + seed, seed % 2 == 0 ? Dtype::kBf16 : Dtype::kF32);
    inputs.initial_state = random_state(inputs.semantics(), seed);
    inputs.options.chunk_size = seed % 3 == 0 ? 32 : 64;
    if (seed % 4 == 1) fill_uniform(inputs.g, seed, -1e-3, 0);
    if (seed % 4 == 2) fill_uniform(inputs.g, seed, -20, 0);
    cases.push_back({"random_" + std::to_string(seed), std::move(inputs)});
  }
  return cases;
}

std::string text(const Formats& formats) {
  std::ostringstream out;
  out << std::setprecision(17) << "{";
  const auto add = [&](const char* name, Rounding rounding) {
    out << '"' << name << "\":[" << rounding.unit << "," << rounding.underflow << "],";
  };
  add("operands", formats.operands);
  add("triangle", formats.triangle);
  add("solve", formats.solve);
  add("accumulation", formats.accumulation);
  add("gate", formats.gate);
  add("state", formats.state);
  add("output", formats.output);
  out << R"("per_token":)" << (formats.state_storage == StateStorage::kPerToken ? "true" : "false")
      << R"(,"block":)" << formats.block << "}";
  return out.str();
}

const char* text(GateForm gate) {
  constexpr std::array<const char*, 3> kNames{"log_decay", "softplus", "lower_bound"};
  return kNames.at(static_cast<std::size_t>(gate));
}

const char* text(BetaForm beta) {
  constexpr std::array<const char*, 3> kNames{"ready", "logit", "doubled"};
  return kNames.at(static_cast<std::size_t>(beta));
}

class Dump {
 public:
  void add(const std::string& name, const Tensor& tensor) {
    separate(names_);
    names_ << "[\"" << name << "\",[";
    for (std::size_t i = 0; i < tensor.shape().size(); ++i) {
      names_ << (i > 0 ? "," : "") << tensor.shape()[i];
    }
    names_ << "]]";
    const std::vector<double> values = to_f64(tensor.view());
    data_.insert(data_.end(), values.begin(), values.end());
  }
  void add(const std::string& name, const std::optional<Tensor>& tensor) {
    if (tensor) add(name, *tensor);
  }

  void write(const NamedCase& named, const Semantics& s, const Formats& formats,
             std::ostream& out) {
    std::ostringstream sequences;
    std::ostringstream first_chunks;
    for (const Sequence& sequence : s.sequences) {
      separate(sequences) << "[" << sequence.b << "," << sequence.begin << "," << sequence.end
                          << "]";
      separate(first_chunks) << sequence.first_chunk;
    }
    out << std::setprecision(17) << R"({"name":")" << named.name << R"(","sequences":[)"
        << sequences.str() << R"(],"first_chunks":[)" << first_chunks.str() << R"(],"gate":")"
        << text(s.gate) << R"(","beta":")" << text(s.beta) << R"(","l2norm":)"
        << (s.qk_norm == QkNorm::kL2 ? "true" : "false") << R"(,"v_first":)"
        << (s.state_layout == StateLayout::kVK ? "true" : "false") << R"(,"lower_bound":)"
        << s.lower_bound << R"(,"scale":)" << s.scale << R"(,"chunk":)" << s.chunk
        << R"(,"formats":)" << text(formats) << R"(,"arrays":[)" << names_.str() << "]}\n";
    out.write(reinterpret_cast<const char*>(data_.data()),
              static_cast<std::streamsize>(data_.size() * sizeof(double)));
  }

 private:
  static std::ostream& separate(std::ostringstream& out) {
    if (out.tellp() > 0) out << ",";
    return out;
  }

  std::ostringstream names_;
  std::vector<double> data_;
};

void dump(const NamedCase& named, const Formats& formats) {
  const KdaInputs& inputs = named.inputs;
  const Problem problem = inputs.problem();
  const Semantics semantics = inputs.semantics();
  const reference::Deviations sigma = reference::deviations(problem, semantics, formats);
  Dump dump;
  dump.add("q", inputs.q);
  dump.add("k", inputs.k);
  dump.add("v", inputs.v);
  dump.add("g", inputs.g);
  dump.add("beta", inputs.beta);
  dump.add("A_log", inputs.A_log);
  dump.add("dt_bias", inputs.dt_bias);
  dump.add("initial_state", inputs.initial_state);
  dump.add("sigma_o", sigma.o);
  dump.add("sigma_final_state", sigma.final_state);
  dump.add("sigma_h", sigma.h);
  dump.write(named, semantics, formats, std::cout);
}

/// Where roundings of T repeat: f32 and f64 kernels, implementations of one block size and of any,
/// numbers that change, and more of them than are carried on.
void dump_repeated() {
  const Formats bf16 = reference::default_formats(Dtype::kBf16, Dtype::kBf16);
  Formats wide = reference::default_formats(Dtype::kF32, Dtype::kF32);
  wide.triangle = reference::kRoundBf16;
  Formats stated = wide;
  stated.block = 64;
  const Formats f16 = reference::default_formats(Dtype::kF16, Dtype::kF16);
  Formats fine = bf16;
  fine.triangle = reference::kRoundBf16Pair;
  const std::vector<RepeatedKeys> kinds{
      {},
      {.T = 200, .K = 17, .V = 9, .beta = 0.3, .initial_state = true},
      {.T = 170, .K = 16, .V = 16, .beta = 0.1, .query_is_key = false},
      {.T = 130, .K = 1, .V = 8, .beta = 1.5, .constant_gate = true},
      {.T = 300, .K = 16, .V = 8, .beta = 0.8, .turn = 64},
      {.T = 200, .K = 32, .V = 8, .beta = 0.5, .period = 3},
  };
  for (const RepeatedKeys& kind : kinds) {
    const NamedCase named{"repeated keys: " + kind.text(), make(kind, 11, Dtype::kBf16)};
    for (const Formats& formats : {bf16, wide, stated, f16, fine}) dump(named, formats);
  }
}

}  // namespace
}  // namespace kda::tests

int main() {
  using kda::tests::NamedCase;
  std::vector<NamedCase> cases = kda::tests::option_cases();
  for (NamedCase& hard : kda::tests::hard_cases()) cases.push_back(std::move(hard));
  for (NamedCase& random : kda::tests::random_cases()) cases.push_back(std::move(random));
  const auto classes = kda::tests::format_classes();
  for (std::size_t i = 0; i < cases.size(); ++i) {
    // All classes in turn, shifted by one every other round: cases of one kind come in runs.
    kda::tests::dump(cases[i], classes[i % classes.size()]);
    kda::tests::dump(cases[i], classes[(i / 2 + 3) % classes.size()]);
  }
  kda::tests::dump_repeated();
  return std::cout ? 0 : 1;
}
