#pragma once

#include "reference/types/error.hpp"

#include <cstdint>
#include <limits>
#include <string>

#include <nlohmann/json.hpp>

namespace kda::harness {

/// The integer under a key of a report. get<std::int64_t>() would take 1e300 too, and what a
/// conversion makes of that is undefined. Throws kReportUnknown; json::exception without the key.
inline std::int64_t integer(const nlohmann::json& object, const char* key) {
  const nlohmann::json& value = object.at(key);
  constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (!value.is_number_integer() ||
      (value.is_number_unsigned() && value.get<std::uint64_t>() > kMost)) {
    throw Error(ErrorCode::kReportUnknown,
                std::string(key) + ": wanted an integer of 64 bits, got " + value.dump());
  }
  return value.get<std::int64_t>();
}

}  // namespace kda::harness
