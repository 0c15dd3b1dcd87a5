#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kda::cuda::simt {

/// The global memory that a launch may touch: named buffers, each exactly as large as it was
/// passed.
///
/// Buffers made here start at a multiple of 256 bytes, as cudaMalloc's do (so counted sectors do
/// not depend on the host's heap), are filled with 0xFF (NaN in every float type), and lie between
/// guard bands, so that an index beyond one buffer never falls into the next. Host memory can be
/// mapped where it lies; then only the exact bounds protect it.
class Memory {
 public:
  enum class Access : std::uint8_t { kRead, kReadWrite };

  /// One buffer; `address` is what a kernel gets.
  struct Buffer {
    std::string name;
    std::byte* address = nullptr;
    std::size_t bytes = 0;
    Access access = Access::kReadWrite;
  };

  Memory() = default;
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  /// A new buffer, owned by this object. Never null, also for 0 bytes.
  [[nodiscard]] std::byte* allocate(std::string name, std::size_t bytes,
                                    Access access = Access::kReadWrite);
  template <class T>
  [[nodiscard]] T* allocate_array(std::string name, std::size_t count) {
    return reinterpret_cast<T*>(allocate(std::move(name), count * sizeof(T)));
  }

  /// Host memory, which must outlive every launch. A read-only buffer is never written.
  void map(std::string name, const void* address, std::size_t bytes);
  void map(std::string name, void* address, std::size_t bytes);

  /// The buffer around or nearest below this address; nullptr when there is none.
  [[nodiscard]] const Buffer* find(const void* address) const noexcept;

  /// The buffer whose guard bands were written to, if any.
  [[nodiscard]] const Buffer* damaged() const noexcept;

 private:
  struct Owned {
    std::byte* block = nullptr;
    std::size_t block_bytes = 0;
    Buffer buffer;
  };

  void insert(Buffer buffer);

  std::vector<Buffer> buffers_;  ///< by address
  std::vector<Owned> owned_;
};

}  // namespace kda::cuda::simt
