#include "harness/implementation/plugin_reply.hpp"

#include "harness/base/text_file.hpp"

#include <fstream>

#include <nlohmann/json.hpp>

namespace kda::harness {

std::optional<PluginReply> read_reply(const std::filesystem::path& file) {
  using nlohmann::json;
  std::ifstream in(file, std::ios::binary);
  const json reply = json::parse(in, nullptr, false);
  if (!reply.is_object()) return std::nullopt;
  for (const char* key : {"verdict", "code", "text"})  // a plugin may have written anything
    if (!reply.contains(key) || !reply[key].is_string()) return std::nullopt;
  PluginReply read{.verdict = {},
                   .code = reply.value("code", std::string()),
                   .text = reply.value("text", std::string())};
  const std::string verdict = reply.value("verdict", std::string());
  for (std::uint8_t i = 0; i < kVerdictCount; ++i) {
    if (name(static_cast<Verdict>(i)) == verdict) read.verdict = static_cast<Verdict>(i);
  }
  return read;
}

void write_reply(const std::filesystem::path& file, const PluginReply& reply) {
  write_text(file, to_file_text({{"verdict", reply.verdict ? name(*reply.verdict) : ""},
                                 {"code", reply.code},
                                 {"text", reply.text}}));
}

}  // namespace kda::harness
