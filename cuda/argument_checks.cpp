#include "cuda/argument_checks.hpp"

namespace kda::cuda {

void refuse(ErrorCode code, const std::string& field, const std::string& wanted,
            const std::string& got) {
  throw Error(code, field + ": wanted " + wanted + ", got " + got);
}

void check_pointer(const char* field, const void* data, std::uintptr_t alignment) {
  if (data == nullptr) refuse(ErrorCode::kNullPointer, field, "a buffer", "null");
  if (reinterpret_cast<std::uintptr_t>(data) % alignment != 0) {
    refuse(ErrorCode::kMisalignedPointer, field,
           "a multiple of " + std::to_string(alignment) + " bytes", "another address");
  }
}

void check_input(const char* field, const TensorView& view) {
  if (view.size() == 0) return;
  check_pointer(field, view.data, static_cast<std::uintptr_t>(size_of(view.dtype)));
}

void check_gate_parameter(const char* field, const std::optional<TensorView>& view,
                          ErrorCode code) {
  if (!view) return;
  if (!view->is_dense()) refuse(code, field, "a dense tensor", "strides");
  check_input(field, *view);
}

}  // namespace kda::cuda
