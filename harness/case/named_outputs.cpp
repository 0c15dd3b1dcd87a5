#include "harness/case/named_outputs.hpp"

#include <utility>

namespace kda::harness {

std::map<std::string, Tensor> by_name(Outputs outputs) {
  std::map<std::string, Tensor> tensors;
  tensors.emplace("o", std::move(outputs.o));
  if (outputs.final_state) tensors.emplace("final_state", std::move(*outputs.final_state));
  if (outputs.h) tensors.emplace("h", std::move(*outputs.h));
  return tensors;
}

Outputs outputs_of(std::map<std::string, Tensor> tensors) {
  Outputs outputs{.o = std::move(tensors.at("o")), .final_state = {}, .h = {}};
  if (tensors.contains("final_state")) outputs.final_state = std::move(tensors.at("final_state"));
  if (tensors.contains("h")) outputs.h = std::move(tensors.at("h"));
  return outputs;
}

}  // namespace kda::harness
