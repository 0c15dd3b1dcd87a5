#pragma once

#include "cuda/simt/block.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

namespace kda::cuda::simt {

/// A kernel with its arguments bound.
struct Body {
  void (*call)(void*);
  void* argument;
};

/// Runs blocks of one size, one after another, on the OS thread that bound it. Stacks and shared
/// memory are kept between launches, since making them costs milliseconds.
class Worker {
 public:
  explicit Worker(unsigned threads);

  [[nodiscard]] unsigned threads() const;
  /// For one launch. Everything referred to must live until its end.
  void bind(const LaunchConfig& config, const Options& options, const Memory& memory, Body body);
  /// False when the block failed; the worker is then of no further use.
  [[nodiscard]] bool run(std::uint64_t block_number);

  [[nodiscard]] const Counters& counters() const { return block_.counters; }
  [[nodiscard]] const Report& report() const { return block_.report; }

 private:
  void reset(std::uint64_t block_number);

  std::vector<std::unique_ptr<Stack>> stacks_;  ///< outlive the contexts on them
  Block block_;
};

}  // namespace kda::cuda::simt
