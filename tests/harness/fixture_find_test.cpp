#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace kda::harness::testing {
namespace {

namespace fs = std::filesystem;

ErrorCode code_of(const fs::path& path) {
  try {
    (void)find_fixtures(path);
  } catch (const Error& error) {
    EXPECT_NE(error.message().find(path.string()), std::string::npos) << error.what();
    return error.code();
  }
  ADD_FAILURE() << "no error for " << path;
  return ErrorCode::kUsage;
}

TEST(FindFixtures, SortedWithSubfoldersAndNothingElse) {
  const TemporaryFolder folder;
  fs::create_directories(folder / "b/c");
  fs::create_directories(folder / "folder.h5");
  for (const char* name : {"b/c/2.h5", "b/1.h5", "z.h5", "a.h5", "note.txt", "c.hdf5", "h5"}) {
    write_bytes(folder / name, "");
  }
  // What a writer leaves that died before it could rename.
  write_bytes(folder / ".d.h5.123-0.part", "half");
  ASSERT_EQ(mkfifo((folder / "pipe.h5").c_str(), 0600), 0);
  fs::create_symlink("gone.h5", folder / "dangling.h5");
  EXPECT_EQ(find_fixtures(folder.path()),
            (std::vector<fs::path>{folder / "a.h5", folder / "b/1.h5", folder / "b/c/2.h5",
                                   folder / "dangling.h5", folder / "z.h5"}));
}

TEST(FindFixtures, AFileIsItself) {
  const TemporaryFolder folder;
  const fs::path file = folder / "any.name";
  write_bytes(file, "");
  EXPECT_EQ(find_fixtures(file), std::vector<fs::path>{file});
}

TEST(FindFixtures, NothingThere) {
  const TemporaryFolder folder;
  EXPECT_EQ(code_of(folder / "none"), ErrorCode::kPathNotFound);
  EXPECT_EQ(code_of(folder.path()), ErrorCode::kNoFixtures);
  EXPECT_EQ(code_of(folder / std::string(300, 'x')), ErrorCode::kPathNotFound);
}

}  // namespace
}  // namespace kda::harness::testing
