#include "cuda/fit_batch.hpp"

#include <array>

namespace kda::cuda {
namespace {

template <class T>
std::span<T> allocate(const char* name, std::size_t count, Device& device) {
  return {reinterpret_cast<T*>(device.allocate(name, count * sizeof(T))), count};
}

template <class T>
std::span<const T> on_device(const char* name, std::span<const T> host, Device& device) {
  const std::span<T> copy = allocate<T>(name, host.size(), device);
  device.copy_to_device(copy.data(), host.data(), host.size_bytes());
  return copy;
}

template <class T>
std::vector<T> fetch(std::span<const T> from, Device& device) {
  std::vector<T> host(from.size());
  device.copy_to_host(host.data(), from.data(), from.size_bytes());
  return host;
}

}  // namespace

std::vector<FitOutcome> run_fit_batch(const FitBatch& batch, Device& device) {
  const FitBatchPlan extents =
      plan_fit_batch(static_cast<std::int64_t>(batch.offsets.size()) - 1, batch.resamples);
  const auto fits = static_cast<std::size_t>(extents.fits);
  FitBatchArgs args;
  args.batch = batch;
  args.batch.seq_lens = on_device("seq_lens", batch.seq_lens, device);
  args.batch.latencies = on_device("latencies", batch.latencies, device);
  args.coefficients = allocate<double>("coefficients", 3 * fits, device);
  args.codes = allocate<std::int32_t>("codes", fits, device);
  args.workspace = allocate<std::byte>("workspace", extents.workspace_bytes, device);
  // The plan holds what the stream reads until the copies below have waited for it.
  const FitBatchPlan plan = fit_batch(args, device);
  const auto abc = fetch<double>(args.coefficients, device);
  const auto codes = fetch<std::int32_t>(args.codes, device);

  std::vector<FitOutcome> outcomes(fits);
  for (std::size_t i = 0; i < fits; ++i) {
    const auto code = static_cast<ErrorCode>(codes[i]);
    if (codes[i] != 0) outcomes[i].error = code;
    if (codes[i] == 0 || code == ErrorCode::kFitANotPositive) {
      outcomes[i].coefficients = {abc[3 * i], abc[3 * i + 1], abc[3 * i + 2]};
    }
  }
  return outcomes;
}

FitOutcome run_fit(std::span<const std::int64_t> seq_lens, std::span<const double> latencies,
                   Device& device) {
  if (seq_lens.size() != latencies.size()) return {ErrorCode::kFitLengthMismatch, {}};
  const std::array<std::int64_t, 2> offsets{0, static_cast<std::int64_t>(seq_lens.size())};
  const FitBatch one{.seq_lens = seq_lens, .latencies = latencies, .offsets = offsets};
  return run_fit_batch(one, device).front();
}

}  // namespace kda::cuda
