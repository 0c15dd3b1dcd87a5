#pragma once

#include "reference/types/error.hpp"

#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include <hdf5.h>

namespace kda::harness::hdf5 {

/// Debian builds HDF5 without thread safety. Whoever uses this layer holds a Session meanwhile: one
/// thread at a time, with HDF5's own error printing off and without filter plug-ins.
class Session {
 public:
  Session();

 private:
  std::lock_guard<std::mutex> lock_;
};

/// Owns any HDF5 identifier: file, group, dataset, type, space, property list.
class Handle {
 public:
  explicit Handle(hid_t id) noexcept : id_(id) {}
  ~Handle() {
    if (id_ >= 0) H5Idec_ref(id_);
  }
  Handle(const Handle&) = delete;
  Handle& operator=(const Handle&) = delete;
  Handle(Handle&& other) noexcept : id_(std::exchange(other.id_, H5I_INVALID_HID)) {}
  Handle& operator=(Handle&& other) noexcept {
    std::swap(id_, other.id_);
    return *this;
  }

  [[nodiscard]] hid_t get() const noexcept { return id_; }

 private:
  hid_t id_;
};

/// What a message is about: a file and an object in it ("/inputs/q", "/params@scale").
struct Place {
  std::filesystem::path file;
  std::string object = "/";

  [[nodiscard]] Place child(std::string_view name) const;
  [[nodiscard]] Place attribute(std::string_view name) const;
};

/// Throws Error(code) with the message "FILE: OBJECT: message".
[[noreturn]] void fail(ErrorCode code, const Place& place, const std::string& message);
[[noreturn]] void fail(ErrorCode code, const Place& place, const std::string& message,
                       const std::string& fix);

/// kFileUnreadable with the fix for files that are damaged rather than out of reach.
[[noreturn]] void fail_damaged(const Place& place, const std::string& message);

/// Takes what an HDF5 call returned; on failure throws `code` with what HDF5 has to say.
[[nodiscard]] Handle own(hid_t id, const Place& place, std::string_view doing,
                         ErrorCode code = ErrorCode::kFileUnreadable);
void check(bool succeeded, const Place& place, std::string_view doing,
           ErrorCode code = ErrorCode::kFileUnreadable);

/// UTF-8 without control characters other than tab and line ends: what reports can carry.
[[nodiscard]] bool is_text(std::string_view bytes) noexcept;

/// `bytes` itself when it is text, else with everything beyond ASCII as \xNN.
[[nodiscard]] std::string printable(std::string_view bytes);

}  // namespace kda::harness::hdf5
