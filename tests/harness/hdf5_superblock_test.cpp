#include "harness/hdf5_superblock.hpp"

#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace kda::harness::testing {
namespace {

namespace fs = std::filesystem;

/// A small file made with other creation or access settings than ours.
void create_file(const fs::path& file, hsize_t user_block, H5F_libver_t low) {
  const hdf5::Session session;
  const Handle creation(H5Pcreate(H5P_FILE_CREATE));
  const Handle access(H5Pcreate(H5P_FILE_ACCESS));
  ASSERT_GE(H5Pset_userblock(creation.get(), user_block), 0);
  ASSERT_GE(H5Pset_libver_bounds(access.get(), low, H5F_LIBVER_LATEST), 0);
  const Handle id(H5Fcreate(file.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()));
  const Handle group(H5Gcreate2(id.get(), "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  ASSERT_GE(group.get(), 0);
}

class Superblock : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  fs::path target = folder / "file.h5";
};

TEST_F(Superblock, AcceptsWhatOurWriterMakes) {
  write_fixture(target, small_case());
  EXPECT_EQ(hdf5::check_superblock(target), fs::file_size(target));
}

TEST_F(Superblock, CutFilesAreTruncated) {
  write_fixture(target, small_case());
  const std::string whole = read_bytes(target);
  ASSERT_GT(whole.size(), 6200U);
  const std::vector<std::size_t> lengths{
      whole.size() - 1, whole.size() - 100, whole.size() - 6048, whole.size() - 6136, 96, 63, 8};
  for (const std::size_t length : lengths) {
    write_bytes(target, std::string_view(whole).substr(0, length));
    expect_refused(target, ErrorCode::kFileTruncated, "/");
  }
}

TEST_F(Superblock, EmptyAndForeignFilesAreNoHdf5) {
  for (const std::string& bytes :
       {std::string(), std::string("\x89HDF"), std::string(5000, 'x'), std::string("a,b\n1,2\n")}) {
    write_bytes(target, bytes);
    expect_refused(target, ErrorCode::kFileNotHdf5, "/");
  }
}

TEST_F(Superblock, MissingFileFolderAndPipeAreUnreadable) {
  expect_refused(folder / "none.h5", ErrorCode::kFileUnreadable, "/");
  expect_refused(folder.path(), ErrorCode::kFileUnreadable, "/");
  const fs::path pipe = folder / "pipe.h5";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  expect_refused(pipe, ErrorCode::kFileUnreadable, "/");
}

TEST_F(Superblock, EveryVersionKnowsItsEnd) {
  for (const hsize_t user_block : {0U, 512U, 2048U}) {
    for (const H5F_libver_t low : {H5F_LIBVER_EARLIEST, H5F_LIBVER_V18, H5F_LIBVER_LATEST}) {
      create_file(target, user_block, low);
      const std::string whole = read_bytes(target);
      EXPECT_EQ(hdf5::check_superblock(target), whole.size());
      // Readable, only no fixture.
      expect_refused(target, ErrorCode::kFormatUnknown, "/@format");
      write_bytes(target, std::string_view(whole).substr(0, whole.size() - 1));
      expect_refused(target, ErrorCode::kFileTruncated, "/");
    }
  }
}

TEST_F(Superblock, VersionOneHasItsAddressesFurtherBack) {
  {
    const hdf5::Session session;
    const Handle creation(H5Pcreate(H5P_FILE_CREATE));
    ASSERT_GE(H5Pset_istore_k(creation.get(), 64), 0);  // not storable in version 0
    const Handle id(H5Fcreate(target.c_str(), H5F_ACC_TRUNC, creation.get(), H5P_DEFAULT));
    ASSERT_GE(id.get(), 0);
  }
  const std::string whole = read_bytes(target);
  ASSERT_EQ(whole.at(8), 1);
  EXPECT_EQ(hdf5::check_superblock(target), whole.size());
  write_bytes(target, std::string_view(whole).substr(0, whole.size() - 1));
  expect_refused(target, ErrorCode::kFileTruncated, "/");
}

TEST_F(Superblock, NonsenseIsLeftToTheLibrary) {
  write_fixture(target, small_case());
  std::string whole = read_bytes(target);
  whole[8] = 9;  // a superblock version that does not exist
  write_bytes(target, whole);
  EXPECT_EQ(hdf5::check_superblock(target), whole.size());
  expect_refused(target, ErrorCode::kFileUnreadable, "/");
}

TEST_F(Superblock, EndBeyondTheFileIsTruncated) {
  write_fixture(target, small_case());
  std::string whole = read_bytes(target);
  whole[24 + 16 + 7] = '\x7F';  // the top byte of the end-of-file address
  write_bytes(target, whole);
  expect_refused(target, ErrorCode::kFileTruncated, "/");
}

}  // namespace
}  // namespace kda::harness::testing
