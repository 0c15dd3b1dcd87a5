#pragma once

#include "harness/implementation/implementation.hpp"
#include "harness/mutate/activated.hpp"
#include "harness/mutate/chunk_loop.hpp"
#include "harness/mutate/token_loop.hpp"

#include <initializer_list>
#include <string>
#include <vector>

namespace kda::harness::mutate {

/// A wrong kernel: an honest form of the recurrence with one mistake, which may lie in how it reads
/// its inputs, in the activated values, in the recurrence, or in how it writes its results.
struct Mutant {
  enum class Form : std::uint8_t { kTokens, kChunks };

  std::string name;
  std::string what;  ///< the mistake, in a few words
  Form form = Form::kTokens;
  TokenFault token = TokenFault::kNone;
  ChunkFault chunk = ChunkFault::kNone;
  void (*read)(Call&) = nullptr;
  void (*edit)(Activated&) = nullptr;
  void (*write)(Outputs&, const Activated&) = nullptr;
};

/// What the mutant makes of a case; an Error is a refusal by the contract, as of any kernel.
[[nodiscard]] Outputs run(const Mutant& mutant, const KdaCase& kda_case, Precision precision);

/// The form without a mistake.
[[nodiscard]] Mutant honest(Mutant::Form form);

/// The mutant, in working precision, as something that can be judged.
[[nodiscard]] Implementation implementation_of(const Mutant& mutant);

/// The parts in one list.
[[nodiscard]] std::vector<Mutant> together(std::initializer_list<std::vector<Mutant>> parts);

// The catalogue, by what is mistaken. Names are unique and stay as they are.
[[nodiscard]] std::vector<Mutant> option_mutants();    ///< options read wrongly
[[nodiscard]] std::vector<Mutant> norm_mutants();      ///< l2norm
[[nodiscard]] std::vector<Mutant> gate_mutants();      ///< log decays
[[nodiscard]] std::vector<Mutant> token_mutants();     ///< values taken from another token
[[nodiscard]] std::vector<Mutant> head_mutants();      ///< heads, channels and batch rows
[[nodiscard]] std::vector<Mutant> sequence_mutants();  ///< bounds of sequences and their states
[[nodiscard]] std::vector<Mutant> order_mutants();     ///< the token recurrence
[[nodiscard]] std::vector<Mutant> chunk_mutants();     ///< the chunked form
[[nodiscard]] std::vector<Mutant> output_mutants();    ///< o as written
[[nodiscard]] std::vector<Mutant> state_mutants();     ///< final_state and h as written
/// All of these.
[[nodiscard]] std::vector<Mutant> value_mutants();

/// Implementations that break the rules of being called: wrong shapes, changed inputs, answers
/// that differ from call to call, refusals, ... `what` is in the description.
[[nodiscard]] std::vector<Implementation> protocol_mutants();
/// Programs that hang, crash, write nothing or half of it.
[[nodiscard]] std::vector<Implementation> external_mutants();

}  // namespace kda::harness::mutate
