#pragma once

#include "reference/types/error.hpp"
#include "reference/types/tensor.hpp"

#include <cstdint>
#include <optional>
#include <string>

// What the interfaces of all kernels check alike. Private to cuda/.

namespace kda::cuda {

/// Throws an Error that says field, wanted and got.
[[noreturn]] void refuse(ErrorCode code, const std::string& field, const std::string& wanted,
                         const std::string& got);

/// kNullPointer, kMisalignedPointer.
void check_pointer(const char* field, const void* data, std::uintptr_t alignment);

/// The same for a tensor with elements, aligned to them.
void check_input(const char* field, const TensorView& view);

/// A tensor that is dense if it is there at all; `code` otherwise.
void check_gate_parameter(const char* field, const std::optional<TensorView>& view, ErrorCode code);

}  // namespace kda::cuda
