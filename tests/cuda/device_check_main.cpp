#include "cuda/prefill.hpp"
#include "cuda/recurrent.hpp"
#include "reference/recurrent.hpp"
#include "reference/types/error.hpp"
#include "tests/cuda/case_pack.hpp"
#include "tests/cuda/device_timing.hpp"
#include "tests/cuda/layout_run.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// device_check --device gpu|cpu [--pack FILE] [--quick] [--json FILE]
// Everything that only a GPU can confirm. With `cpu` the executor stands in, to rehearse. With
// --quick, for compute-sanitizer: every 8th case, no repeats, no times. Needs
// nothing but the compiler, so that it runs on a bare GPU machine. Exit: 0 all passed, 1 not, 2
// usage, 3 no GPU.

namespace kda::cuda {
namespace {

struct Options {
  bool gpu = true;
  bool quick = false;
  std::string pack;
  std::string json;
};

/// One row of both tables.
struct Row {
  std::string group;
  std::string name;
  std::string state;  ///< passed, failed, skipped, measured
  std::string note;
};

std::unique_ptr<Device> open(const Options& options) {
  return options.gpu ? open_gpu() : open_executor({});
}

/// max|got - want| / max|want| over elements; infinite when one is not finite.
class RelativeError {
 public:
  void add(double got, double want) {
    const double error = std::abs(got - want);
    if (!(error <= 1e300)) infinite_ = true;
    worst_ = std::max(worst_, error);
    largest_ = std::max(largest_, std::abs(want));
  }
  [[nodiscard]] double value() const {
    if (infinite_) return INFINITY;
    return worst_ == 0 ? 0 : worst_ / largest_;
  }

 private:
  double worst_ = 0;
  double largest_ = 0;
  bool infinite_ = false;
};

/// Elements [begin, end) of row-major tensors of one shape.
void add_range(RelativeError& error, const Tensor& got, const Tensor& want, std::int64_t begin,
               std::int64_t end) {
  for (std::int64_t i = begin; i < end; ++i) error.add(load(got.view(), i), load(want.view(), i));
}

/// Of the tensors of a result. Rows of o that belong to no sequence hold anything.
struct Errors {
  double o = 0;
  double states = 0;  ///< final state and chunk states
};

Errors errors_of(const Outputs& got, const tests::PackedCase& c, const Semantics& s) {
  RelativeError o_error;
  const Tensor& o = c.expected.at("o");
  if (got.o.shape() != o.shape()) return {INFINITY, INFINITY};
  const std::int64_t row = s.HV * s.V;
  for (const Sequence& sequence : s.sequences) {
    const std::int64_t first = sequence.b * s.T;
    add_range(o_error, got.o, o, (first + sequence.begin) * row, (first + sequence.end) * row);
  }
  double states = 0;
  const auto add_states = [&](const std::optional<Tensor>& state, const char* name) {
    const auto want = c.expected.find(name);
    if (want == c.expected.end()) return;
    RelativeError error;
    if (state && state->shape() == want->second.shape()) {
      add_range(error, *state, want->second, 0, state->size());
    } else {
      error.add(INFINITY, 0);
    }
    states = std::max(states, error.value());
  };
  add_states(got.final_state, "final_state");
  add_states(got.h, "h");
  return {o_error.value(), states};
}

bool is_prefill(const tests::PackedCase& c) { return c.contract == Contract::kKdaPrefill; }

Outputs run(const tests::PackedCase& c, Device& device) {
  return is_prefill(c) ? run_prefill(c.problem(), {}, device)
                       : run_recurrent(c.contract, c.problem(), device);
}

/// What the errors are held against: of the recurrent kernel those of an f32 recurrence; of the
/// prefill those of the same source on the executor, which rounds where the kernel does.
Errors bound_of(const tests::PackedCase& c, const Semantics& s) {
  constexpr double kLeast = 2e-6;
  const bool prefill = is_prefill(c);
  const Outputs peer = prefill ? run_prefill(c.problem(), {}, *open_executor({}))
                               : reference::recurrent_f32(c.problem(), s);
  const Errors errors = errors_of(peer, c, s);
  const double factor = prefill ? 2 : 3;
  return {factor * errors.o + kLeast, factor * errors.states + kLeast};
}

Row judge_case(const tests::PackedCase& c, const Options& options) {
  Row row{"case", c.name, "failed", ""};
  try {
    const auto reason = is_prefill(c) ? std::nullopt : recurrent_unsupported(c.problem());
    if (reason) return {"case", c.name, "skipped", *reason};
    const Outputs got = run(c, *open(options));
    if (!c.error.empty()) {
      row.note = "accepted, wanted " + c.error;
      return row;
    }
    const Semantics semantics = check(c.contract, c.problem());
    const Errors error = errors_of(got, c, semantics);
    const Errors bound = bound_of(c, semantics);
    char note[128];
    std::snprintf(note, sizeof note, "o: error %.2e, bound %.2e; states: %.2e, %.2e", error.o,
                  bound.o, error.states, bound.states);
    row.note = note;
    if (error.o <= bound.o && error.states <= bound.states) row.state = "passed";
  } catch (const Error& error) {
    const bool wanted = !c.error.empty() && name(error.code()) == c.error;
    row.state = wanted ? "passed" : "failed";
    row.note = wanted ? "refused: " + c.error : error.what();
  }
  return row;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  return a.bytes() == b.bytes() &&
         std::memcmp(a.data(), b.data(), static_cast<std::size_t>(a.bytes())) == 0;
}

/// The same bits again and again, while another stream keeps the device busy.
Row repeat_case(const tests::PackedCase& c, const Options& options) {
  constexpr int kTimes = 20;
  std::atomic<bool> stop{false};
  std::thread load([&] {
    const auto device = open(options);
    while (!stop) static_cast<void>(run(c, *device));
  });
  int differing = 0;
  const Outputs first = run(c, *open(options));
  for (int i = 0; i < kTimes; ++i) {
    const Outputs again = run(c, *open(options));
    const bool same = same_bits(first.o, again.o) &&
                      (!first.final_state || same_bits(*first.final_state, *again.final_state)) &&
                      (!first.h || same_bits(*first.h, *again.h));
    if (!same) ++differing;
  }
  stop = true;
  load.join();
  return {"repeat", c.name, differing == 0 ? "passed" : "failed",
          std::to_string(differing) + " of " + std::to_string(kTimes) + " differ"};
}

void add_cases(std::vector<Row>& rows, const Options& options) {
  const std::vector<tests::PackedCase> cases = tests::read_pack(options.pack);
  constexpr std::size_t kRepeated = 8;
  const std::size_t step = options.quick ? 8 : 1;
  std::vector<const tests::PackedCase*> to_repeat[2];  // recurrent and prefill kernel
  for (std::size_t i = 0; i < cases.size(); i += step) {
    const tests::PackedCase& c = cases[i];
    rows.push_back(judge_case(c, options));
    if (c.error.empty() && rows.back().state == "passed") to_repeat[is_prefill(c)].push_back(&c);
  }
  if (options.quick) return;
  for (auto& kernel : to_repeat) {
    kernel.resize(std::min(kRepeated, kernel.size()));
    for (const tests::PackedCase* c : kernel) rows.push_back(repeat_case(*c, options));
  }
}

std::vector<Row> run_all(const Options& options) {
  std::vector<Row> rows;
  const auto device = open(options);
  for (const layout::LayoutResult& r : layout::run_all_layouts(*device)) {
    rows.push_back({"layout", r.name, r.wrong.empty() ? "passed" : "failed", r.wrong});
  }
  if (!options.pack.empty()) add_cases(rows, options);
  if (options.gpu && !options.quick) {
    for (const DecodeTime& t : time_decoding()) {
      char note[96];
      std::snprintf(note, sizeof note, "%.1f us, %.0f GB/s", t.microseconds,
                    t.gigabytes_per_second);
      rows.push_back({"time", t.what, "measured", note});
    }
    for (const PrefillTime& t : time_prefill()) {
      char note[128];
      std::snprintf(note, sizeof note, "%.1f us (factors %.1f, chain %.1f), %.0f GB/s",
                    t.microseconds, t.factors, t.microseconds - t.factors, t.bytes_a_second * 1e-9);
      rows.push_back({"time", t.what, "measured", note});
    }
  }
  return rows;
}

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + "\"";
}

void write_json(const std::string& file, const std::vector<Row>& rows, const Options& options) {
  std::ofstream out(file);
  out << "{\"format\": \"kda-device-check\", \"version\": 1, \"device\": "
      << (options.gpu ? "\"gpu\"" : "\"cpu\"") << ", \"rows\": [";
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& r = rows[i];
    out << (i == 0 ? "\n" : ",\n") << "  {\"group\": " << quoted(r.group)
        << ", \"name\": " << quoted(r.name) << ", \"state\": " << quoted(r.state)
        << ", \"note\": " << quoted(r.note) << "}";
  }
  out << "\n]}\n";
  if (!out) throw Error(ErrorCode::kReportUnwritable, file);
}

int report(const std::vector<Row>& rows, const Options& options) {
  int failed = 0;
  for (const Row& r : rows) {
    std::printf("%-8s %-44s %-9s %s\n", r.group.c_str(), r.name.c_str(), r.state.c_str(),
                r.note.c_str());
    if (r.state == "failed") ++failed;
  }
  if (!options.json.empty()) write_json(options.json, rows, options);
  std::printf("%zu rows, %d failed\n", rows.size(), failed);
  return failed == 0 ? 0 : 1;
}

bool parse(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    const bool has_value = i + 1 < argc;
    if (arg == "--quick") {
      options.quick = true;
    } else if (arg == "--device" && has_value) {
      const std::string device = argv[++i];
      if (device != "gpu" && device != "cpu") return false;
      options.gpu = device == "gpu";
    } else if (arg == "--pack" && has_value) {
      options.pack = argv[++i];
    } else if (arg == "--json" && has_value) {
      options.json = argv[++i];
    } else {
      return false;
    }
  }
  return true;
}

int check_device(int argc, char** argv) {
  Options options;
  if (!parse(argc, argv, options)) {
    std::fprintf(stderr, "device_check --device gpu|cpu [--pack FILE] [--quick] [--json FILE]\n");
    return 2;
  }
  try {
    return report(run_all(options), options);
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return error.code() == ErrorCode::kDeviceUnavailable ? 3 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

}  // namespace
}  // namespace kda::cuda

int main(int argc, char** argv) { return kda::cuda::check_device(argc, argv); }
