#include "harness/compare/compare.hpp"

#include <algorithm>
#include <utility>

namespace kda::harness {

bool CompareReport::passed() const { return std::ranges::all_of(tensors, &TensorReport::passed); }

const TensorReport* CompareReport::worst() const {
  const auto found = std::ranges::max_element(tensors, {}, [](const TensorReport& report) {
    return std::pair(!report.passed, report.used_share);
  });
  return found == tensors.end() ? nullptr : &*found;
}

const TensorReport* CompareReport::find(std::string_view tensor) const {
  const auto found = std::ranges::find(tensors, tensor, &TensorReport::name);
  return found == tensors.end() ? nullptr : &*found;
}

}  // namespace kda::harness
