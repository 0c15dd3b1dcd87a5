#pragma once

#include "reference/types/problem.hpp"
#include "reference/types/tensor.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

// KDA cases in one flat file, for a machine that has no HDF5. Native byte order and types: the file
// is made for one trip, not for keeping.

namespace kda::tests {

struct PackedCase {
  std::string name;
  Contract contract = Contract::kRecurrentKda;
  Problem options;                       ///< params only
  std::map<std::string, Tensor> inputs;  ///< as named in Problem
  std::string error;                     ///< code that must be raised; empty when there is none
  std::map<std::string, Tensor> expected;

  /// Views live as long as this case.
  [[nodiscard]] Problem problem() const;
};

/// Both throw std::runtime_error when the file cannot be written or read to its end.
void write_pack(const std::filesystem::path& file, const std::vector<PackedCase>& cases);
[[nodiscard]] std::vector<PackedCase> read_pack(const std::filesystem::path& file);

}  // namespace kda::tests
