#pragma once

#include "harness/base/verdict.hpp"

#include <filesystem>
#include <optional>
#include <string>

namespace kda::harness {

/// What `plugin-host` says to the process that started it, beside the tensors: nothing for an
/// answer, a code alone for a refusal, a verdict for a fault.
struct PluginReply {
  std::optional<Verdict> verdict;
  std::string code;
  std::string text;
};

/// Nothing when there is no whole reply.
[[nodiscard]] std::optional<PluginReply> read_reply(const std::filesystem::path& file);

/// Throws kReportUnwritable.
void write_reply(const std::filesystem::path& file, const PluginReply& reply);

}  // namespace kda::harness
