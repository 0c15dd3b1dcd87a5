#include <cctype>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// Kernels reach memory through primitives only. The pointer types (Global, Shared) already have no
// way to be dereferenced; what is left is to find ways round them.

namespace kda::cuda {
namespace {

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

/// The line without string literals and comment.
std::string code_only(const std::string& line) {
  std::string code;
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (line.compare(i, 2, "//") == 0) break;
    code += line[i];
  }
  return code;
}

bool has_word(const std::string& code, const std::string& word) {
  for (std::size_t at = code.find(word); at != std::string::npos; at = code.find(word, at + 1)) {
    const bool starts = at == 0 || !is_word(code[at - 1]);
    const std::size_t end = at + word.size();
    if (starts && (end == code.size() || !is_word(code[end]))) return true;
  }
  return false;
}

/// A pointer type or a dereference; clang-format puts spaces on both sides of a product's star.
bool has_pointer_star(const std::string& code) {
  for (std::size_t at = code.find('*'); at != std::string::npos; at = code.find('*', at + 1)) {
    const char before = at == 0 ? '\n' : code[at - 1];
    const char after = at + 1 == code.size() ? '\n' : code[at + 1];
    if (!(before == ' ' && (after == ' ' || after == '='))) return true;
  }
  return false;
}

/// "line: text" of every line that gets at memory without a primitive.
std::vector<std::string> plain_accesses(const std::string& text) {
  std::vector<std::string> found;
  std::istringstream lines(text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string code = code_only(line);
    bool bad = has_pointer_star(code) || code.find("->") != std::string::npos;
    for (const char* word :
         {"raw", "reinterpret_cast", "const_cast", "__shared__", "asm", "memcpy", "memset", "new",
          "malloc", "ifdef", "ifndef", "if defined", "define"}) {
      bad = bad || has_word(code, word);
    }
    if (bad) found.push_back(std::to_string(number) + ": " + line);
  }
  return found;
}

TEST(KernelSource, TheSearchFindsPlainAccesses) {
  for (const char* bad :
       {"float x = p.raw[3];", "const float* p = q;", "x = *p;", "y = f(*p);", "*p = 1;", "args->q",
        "reinterpret_cast<Foo>(x)", "__shared__ float a[3];", "asm volatile(x);",
        "#ifdef __CUDACC__", "  memcpy(a, b, 4);", "auto* p = q;"}) {
    EXPECT_EQ(plain_accesses(std::string("int a;\n") + bad).size(), 1U) << bad;
  }
  for (const char* good :
       {"x = a * b;", "x = (a + b) * c;", "x = r[i] * (c - d);", "store(p, i, x);  // not *p",
        "static_assert(x, \"a->b\");", "Global<const float> q;", "#pragma once", "x *= 2;"}) {
    EXPECT_TRUE(plain_accesses(good).empty()) << good;
  }
}

TEST(KernelSource, KernelsHaveNoPlainAccess) {
  const std::filesystem::path root = KDA_SOURCE_DIR;
  std::vector<std::filesystem::path> files = {root / "tests/cuda/layout_kernels.hpp",
                                              root / "tests/cuda/planted_kernels.hpp"};
  if (std::filesystem::exists(root / "cuda/kernels")) {
    for (const auto& entry : std::filesystem::directory_iterator(root / "cuda/kernels")) {
      files.push_back(entry.path());
    }
  }
  for (const auto& file : files) {
    std::ifstream in(file);
    ASSERT_TRUE(in) << file;
    std::stringstream text;
    text << in.rdbuf();
    for (const std::string& line : plain_accesses(text.str())) {
      ADD_FAILURE() << file.filename().string() << ":" << line;
    }
  }
}

}  // namespace
}  // namespace kda::cuda
