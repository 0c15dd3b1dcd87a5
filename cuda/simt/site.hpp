#pragma once

namespace kda::cuda::simt {

/// Where a kernel calls a primitive.
struct Site {
  const char* file = "";
  int line = 0;

  /// As the default argument of a primitive this names the primitive's caller. A bare
  /// Site{__builtin_FILE(), __builtin_LINE()} would name the primitive's own header.
  static constexpr Site here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return Site{file, line};
  }

  /// One call always passes one literal, so the pointer identifies the file.
  friend constexpr bool operator==(const Site& a, const Site& b) {
    return a.line == b.line && a.file == b.file;
  }
};

}  // namespace kda::cuda::simt
