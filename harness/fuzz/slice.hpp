#pragma once

#include "harness/case/case.hpp"

#include <cstdint>
#include <optional>

namespace kda::harness {

/// Smaller calls made of the same numbers. All of them keep every option; a gate parameter that the
/// call ignores is dropped. The call must be one that its contract accepts.

/// Sequences [first, first + count).
[[nodiscard]] KdaCase keep_sequences(const KdaCase& kda_case, std::int64_t first,
                                     std::int64_t count);

/// Tokens [skip, skip + count) of every sequence; nothing when one of them has none of these.
[[nodiscard]] std::optional<KdaCase> keep_tokens(const KdaCase& kda_case, std::int64_t skip,
                                                 std::int64_t count);

/// Query/key heads [first, first + count) with their value heads.
[[nodiscard]] KdaCase keep_heads(const KdaCase& kda_case, std::int64_t first, std::int64_t count);

/// Of the value heads of every query/key head [first, first + count).
[[nodiscard]] KdaCase keep_value_heads(const KdaCase& kda_case, std::int64_t first,
                                       std::int64_t count);

/// Key channels [first, first + count) and value columns [first_v, first_v + count_v).
[[nodiscard]] KdaCase keep_channels(const KdaCase& kda_case, std::int64_t first, std::int64_t count,
                                    std::int64_t first_v, std::int64_t count_v);

}  // namespace kda::harness
