#include "harness/fit/fit_run.hpp"

#include "harness/base/text_file.hpp"
#include "harness/fit/fit_input.hpp"
#include "harness/fit/fit_plot.hpp"
#include "harness/fit/fit_report.hpp"
#include "harness/fit/fit_schedule.hpp"
#include "harness/fixture/fixture.hpp"
#include "reference/fit_diagnostics.hpp"
#include "reference/predictor.hpp"

#include <array>
#include <cmath>
#include <exception>
#include <filesystem>
#include <fstream>
#include <functional>
#include <system_error>

#include <fmt/format.h>

namespace kda::harness {
namespace {

/// HDF5 files start with these bytes; the name of the file does not matter. A pipe is none: what is
/// read from it here would be lost.
bool is_hdf5(const std::string& file) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;
  constexpr std::string_view kSignature = "\x89HDF\r\n\x1a\n";
  std::array<char, kSignature.size()> head{};
  std::ifstream in(file, std::ios::binary);
  in.read(head.data(), head.size());
  return in && std::string_view(head.data(), head.size()) == kSignature;
}

LatencySamples load(const std::string& file, std::optional<std::int64_t>& base_chunk_size) {
  if (!is_hdf5(file) && !file.ends_with(".h5")) return read_samples(file);
  const Case fixture = read_fixture(file);
  if (fixture.op != Op::kFit) {
    throw Error(ErrorCode::kFitInputInvalid,
                fmt::format("{}: wanted a fixture of op fit, got {}", file, name(fixture.op)),
                "give samples or a fit fixture");
  }
  const auto& inputs = std::get<FitCase>(fixture.inputs);
  if (!base_chunk_size) base_chunk_size = inputs.base_chunk_size;
  return {inputs.seq_lens, inputs.latencies};
}

void require(bool holds, std::string_view option, std::string_view wanted) {
  if (!holds) throw Error(ErrorCode::kUsage, fmt::format("{}: wanted {}", option, wanted));
}

void check_options(const FitCommand& command, const std::optional<std::int64_t>& base) {
  require(command.confidence > 0 && command.confidence < 1, "--confidence", "0 < confidence < 1");
  require(std::isfinite(command.smooth_factor), "--smooth", "a finite number");
  require(!command.prompt_len || base, "--prompt", "--base-chunk beside it");
}

void print_error(std::ostream& err, ErrorCode code, const std::string& message) {
  err << fmt::format("kdacheck: {}: {}{} Fix: {}\n", name(code), message,
                     message.ends_with('.') ? "" : ".", info(code).fix);
}

/// The schedule where one is asked for and there is a target.
void add_schedule(const FitCommand& command, FitReport& report) {
  if (!command.prompt_len || !report.target || report.target->error) return;
  report.query = ScheduleQuery{.prompt_len = *command.prompt_len,
                               .base_chunk_size = *report.base_chunk_size,
                               .page_size = command.page_size,
                               .context_len = command.context_len,
                               .max_chunk_size = command.max_chunk_size,
                               .smooth_factor = command.smooth_factor};
  report.schedule = make_schedule(*report.fit.corrected, report.target->value, *report.query);
}

/// Writes every file even if an earlier one fails, then throws what the first one threw.
void write_files(const FitCommand& command, const FitReport& report, std::ostream& err) {
  std::exception_ptr first;
  const auto attempt = [&first](const std::string& file, const std::function<std::string()>& text) {
    if (file.empty()) return;
    try {
      write_text(file, text());
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  };
  attempt(command.json, [&] { return to_file_text(to_json(report)); });
  if (report.fit.raw) {
    attempt(command.plot, [&] { return to_svg(report); });
  } else if (!command.plot.empty()) {
    err << "kdacheck: " << command.plot << " not written: there is no fit to draw\n";
  }
  if (first) std::rethrow_exception(first);
}

}  // namespace

Exit run_fit(const FitCommand& command, std::ostream& out, std::ostream& err) {
  FitReport report;
  report.source = command.samples;
  report.base_chunk_size = command.base_chunk_size;
  report.samples = load(command.samples, report.base_chunk_size);
  check_options(command, report.base_chunk_size);
  report.options = {.base_chunk_size = report.base_chunk_size,
                    .confidence = command.confidence,
                    .bootstrap = {.resamples = command.resamples, .seed = command.seed}};

  const auto& [seq_lens, latencies] = report.samples;
  report.fit = reference::fit_quadratic(seq_lens, latencies);
  report.diagnostics = diagnose(seq_lens, latencies, report.fit, report.options);
  if (report.fit.corrected && report.base_chunk_size) {
    report.target = target_latency(*report.fit.corrected, *report.base_chunk_size);
  }
  add_schedule(command, report);

  out << to_text(report);
  Exit exit = Exit::kSuccess;
  if (report.fit.error) {
    print_error(err, *report.fit.error, report.fit.message);
    exit = Exit::kFailed;
  } else if (report.target && report.target->error) {
    print_error(err, *report.target->error, report.target->message);
    exit = Exit::kFailed;
  }
  write_files(command, report, err);
  return exit;
}

Exit run_predict(const PredictCommand& command, std::ostream& out, std::ostream& err) {
  require(std::isfinite(command.a) && std::isfinite(command.b), "--a, --b", "finite numbers");
  require(std::isfinite(command.smooth_factor), "--smooth", "a finite number");
  require(std::isfinite(command.target_latency.value_or(0)), "--target", "a finite number");
  const reference::Coefficients f{command.a, command.b, 0};
  std::optional<double> target = command.target_latency;
  if (!target) {
    const auto derived = target_latency(f, command.base_chunk_size);
    if (derived.error) {
      print_error(err, *derived.error, derived.message);
      return Exit::kFailed;
    }
    target = derived.value;
  }
  const auto prediction = predict_chunk(f, target,
                                        {.history_len = command.history_len,
                                         .base_chunk_size = command.base_chunk_size,
                                         .page_size = command.page_size,
                                         .context_len = command.context_len,
                                         .max_chunk_size = command.max_chunk_size,
                                         .smooth_factor = command.smooth_factor});
  if (prediction.none) {
    err << "kdacheck: no chunk size: " << name(*prediction.none) << '\n';
    return Exit::kFailed;
  }
  out << *prediction.chunk_size << '\n';
  return Exit::kSuccess;
}

}  // namespace kda::harness
