#pragma once

#include "cuda/simt/launch.hpp"

#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace kda::cuda::planted {

/// What a run of a planted kernel came to.
struct Outcome {
  bool wrong = false;  ///< finished, with a result that is not the right one
  std::optional<simt::Report> fault;
  simt::Counters counters;

  [[nodiscard]] bool found() const { return wrong || fault.has_value(); }
};

enum class PlantKind : std::uint8_t {
  kCorrect,  ///< nothing is planted
  kFault,    ///< no two threads race: wrong addresses, masks, barriers, waits
  kRace,     ///< two threads race
};

/// A kernel with a fault, its inputs and its right result.
struct Plant {
  std::string name;  ///< "gemm: no sync before compute"
  PlantKind kind;
  Outcome (*run)(const simt::Options& options);
};

/// For GoogleTest, which would print the bytes.
inline void PrintTo(const Plant& plant, std::ostream* out) { *out << plant.name; }

/// The fault table, and the kernels without a fault.
[[nodiscard]] std::vector<Plant> plants();

}  // namespace kda::cuda::planted
