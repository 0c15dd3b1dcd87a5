#include "harness/implementation/plugin_reply.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

namespace kda::harness {
namespace {

class Reply : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(file); }
  [[nodiscard]] std::optional<PluginReply> read(const std::string& text) const {
    std::ofstream(file) << text;
    return read_reply(file);
  }

  std::filesystem::path file = std::filesystem::temp_directory_path() /
                               ("kdacheck_reply_" + std::to_string(getpid()) + ".json");
};

TEST_F(Reply, ComesBackAsItWasWritten) {
  write_reply(file, {.verdict = Verdict::kCrashed, .code = "signal", .text = "a \"text\"\n"});
  const std::optional<PluginReply> reply = read_reply(file);
  ASSERT_TRUE(reply);
  EXPECT_EQ(reply->verdict, Verdict::kCrashed);
  EXPECT_EQ(reply->code, "signal");
  EXPECT_EQ(reply->text, "a \"text\"\n");
}

TEST_F(Reply, HalfOfOneAndOtherThingsAreNone) {
  EXPECT_FALSE(read_reply(file));
  for (const char* text :
       {"", "{", "[]", "{}", R"({"verdict": "", "code": ""})",
        R"({"verdict": 1, "code": "", "text": ""})", R"({"verdict": "", "code": null, "text": ""})",
        R"({"verdict": "", "code": "", "text": []})"}) {
    EXPECT_FALSE(read(text)) << text;
  }
  EXPECT_TRUE(read(R"({"verdict": "", "code": "", "text": ""})"));
}

}  // namespace
}  // namespace kda::harness
