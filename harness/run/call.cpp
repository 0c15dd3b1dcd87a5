#include "harness/run/call.hpp"

#include "harness/case/same_bits.hpp"
#include "harness/implementation/fault.hpp"

#include <bit>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

namespace kda::harness {
namespace {

/// A quick hash: it has to notice a kernel that writes where it reads, not an adversary.
class Hash {
 public:
  void add(std::span<const std::byte> bytes) {
    std::size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, 8);
      add(word);
    }
    for (; i < bytes.size(); ++i) add(std::to_integer<std::uint64_t>(bytes[i]));
  }
  void add(std::uint64_t word) { value_ = std::rotl((value_ ^ word) * 0x9E3779B97F4A7C15U, 29); }
  [[nodiscard]] std::uint64_t value() const noexcept { return value_; }

 private:
  std::uint64_t value_ = 1;
};

std::uint64_t input_hash(const Case& test_case) {
  Hash hash;
  if (const auto* kda_case = std::get_if<KdaCase>(&test_case.inputs)) {
    for (const auto& [name, tensor] : kda_case->inputs)
      hash.add({tensor.data(), static_cast<std::size_t>(tensor.bytes())});
  } else if (const auto* fit = std::get_if<FitCase>(&test_case.inputs)) {
    hash.add(std::as_bytes(std::span(fit->seq_lens)));
    hash.add(std::as_bytes(std::span(fit->latencies)));
  }
  return hash.value();
}

bool same(const std::optional<double>& a, const std::optional<double>& b) {
  using Bits = std::uint64_t;
  return a.has_value() == b.has_value() &&
         (!a || std::bit_cast<Bits>(*a) == std::bit_cast<Bits>(*b));
}

/// What differs between two answers to the same question; nullptr when nothing does.
const char* difference(const Answer& first, const Answer& second) {
  if (first.index() != second.index()) return "the kind of answer";
  if (const auto* a = std::get_if<Outputs>(&first))
    return harness::difference(*a, std::get<Outputs>(second));
  if (const auto* a = std::get_if<FitAnswer>(&first)) {
    const auto& b = std::get<FitAnswer>(second);
    const bool equal = same(a->a, b.a) && same(a->b, b.b) && same(a->c, b.c) &&
                       same(a->target_latency, b.target_latency) && a->warning == b.warning &&
                       a->error == b.error;
    return equal ? nullptr : "the fit";
  }
  const auto& a = std::get<PredictAnswer>(first);
  const auto& b = std::get<PredictAnswer>(second);
  return a.chunk_size == b.chunk_size && a.none == b.none ? nullptr : "the prediction";
}

Outcome call_once(const Implementation& implementation, const Case& test_case,
                  const KernelSettings& settings) {
  try {
    if (!implementation.run_stating) return {implementation.run(test_case, settings), {}, {}};
    StatedAnswer stated = implementation.run_stating(test_case, settings);
    return {std::move(stated.answer), {}, std::move(stated.formats)};
  } catch (const Error& error) {
    return {{}, Raised{std::string(name(error.code())), error.message()}, {}};
  } catch (const Refusal& refusal) {
    return {{}, Raised{refusal.code(), refusal.what()}, {}};
  }
}

void require_same(const Outcome& first, const Outcome& other, std::int64_t repetition) {
  const char* what = nullptr;
  if (first.error.has_value() != other.error.has_value()) {
    what = "whether it answers";
  } else if (first.error) {
    what = first.error->code == other.error->code ? nullptr : "the error";
  } else {
    what = first.formats == other.formats ? difference(*first.answer, *other.answer)
                                          : "the formats that it states";
  }
  if (what == nullptr) return;
  throw Fault(Verdict::kFailed, "not_repeatable",
              std::string(what) + ": run " + std::to_string(repetition) +
                  " on the same inputs differs from the first");
}

}  // namespace

Outcome call(const Implementation& implementation, const Case& test_case,
             const KernelSettings& settings, std::int64_t repeats, double& seconds) {
  using Clock = std::chrono::steady_clock;
  const std::uint64_t before = input_hash(test_case);
  const auto begin = Clock::now();
  const auto add_time = [&] {
    seconds += std::chrono::duration<double>(Clock::now() - begin).count();
  };
  Outcome outcome;
  try {
    outcome = call_once(implementation, test_case, settings);
  } catch (...) {
    add_time();
    throw;
  }
  add_time();
  for (std::int64_t i = 2; i <= repeats; ++i)
    require_same(outcome, call_once(implementation, test_case, settings), i);
  if (input_hash(test_case) != before)
    throw Fault(Verdict::kFailed, "input_changed", "changed an input that it may only read");
  return outcome;
}

}  // namespace kda::harness
