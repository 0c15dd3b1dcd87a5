#include "harness/hdf5.hpp"

#include <cstddef>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

std::mutex& library_mutex() {
  static std::mutex mutex;
  return mutex;
}

herr_t take_innermost(unsigned index, const H5E_error2_t* error, void* description) {
  if (index == 0) *static_cast<std::string*>(description) = error->desc;
  return 0;
}

/// What went wrong deepest inside the library, from its error stack.
std::string library_message() {
  std::string description;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_UPWARD, take_innermost, &description);
  return description.empty() ? "no reason given" : printable(description);
}

/// Length of the UTF-8 sequence that `bytes` starts with, 0 if it is none.
std::size_t sequence_length(std::string_view bytes) noexcept {
  const auto byte = [bytes](std::size_t i) { return static_cast<unsigned char>(bytes[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return 1;
  const std::size_t length = lead >= 0xF0 ? 4 : lead >= 0xE0 ? 3 : 2;
  if (lead < 0xC2 || lead > 0xF4 || bytes.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0U) != 0x80U) return 0;
  }
  // Over-long forms, surrogates and code points beyond U+10FFFF.
  if (lead == 0xE0 && byte(1) < 0xA0) return 0;
  if (lead == 0xED && byte(1) > 0x9F) return 0;
  if (lead == 0xF0 && byte(1) < 0x90) return 0;
  if (lead == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

}  // namespace

Session::Session() : lock_(library_mutex()) {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  H5PLset_loading_state(0);
}

Place Place::child(std::string_view name) const {
  return {file, fmt::format("{}{}{}", object, object == "/" ? "" : "/", name)};
}

Place Place::attribute(std::string_view name) const {
  return {file, fmt::format("{}@{}", object, name)};
}

void fail(ErrorCode code, const Place& place, const std::string& message) {
  fail(code, place, message, std::string(info(code).fix));
}

void fail(ErrorCode code, const Place& place, const std::string& message, const std::string& fix) {
  throw Error(
      code, fmt::format("{}: {}: {}", place.file.string(), printable(place.object), message), fix);
}

void fail_damaged(const Place& place, const std::string& message) {
  fail(ErrorCode::kFileUnreadable, place, message, "the file is damaged: copy or make it again");
}

Handle own(hid_t id, const Place& place, std::string_view doing, ErrorCode code) {
  check(id >= 0, place, doing, code);
  return Handle(id);
}

void check(bool succeeded, const Place& place, std::string_view doing, ErrorCode code) {
  if (succeeded) return;
  const std::string message = fmt::format("cannot {}, HDF5 says: {}", doing, library_message());
  if (code == ErrorCode::kFileUnreadable) fail_damaged(place, message);
  fail(code, place, message);
}

bool is_text(std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const auto lead = static_cast<unsigned char>(bytes.front());
    const bool control = lead < 0x20 || lead == 0x7F;
    if (control && lead != '\t' && lead != '\n' && lead != '\r') return false;
    const std::size_t length = sequence_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view bytes) {
  if (is_text(bytes)) return std::string(bytes);
  std::string text;
  for (const char c : bytes) {
    const auto code = static_cast<unsigned char>(c);
    if (code >= 0x20 && code < 0x7F) {
      text += c;
    } else {
      text += fmt::format("\\x{:02x}", code);
    }
  }
  return text;
}

}  // namespace kda::harness::hdf5
