#include "harness/content_hash.hpp"
#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <array>
#include <string>

#include <gtest/gtest.h>

// content_sha256: what it covers, and that it never changes.

namespace kda::harness::testing {
namespace {

class Hash : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

std::string hash_of(const ContentRecord& record) {
  ContentHash hash;
  hash.add(record);
  return hash.finish();
}

TEST(ContentHash, IsSha256OfTheRecords) {
  // printf '' | sha256sum
  EXPECT_EQ(ContentHash().finish(),
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  // "A/params" "chunk_size" "i64" "" "8", each ended by NUL, then the eight bytes.
  const std::array<std::byte, 8> value{std::byte{64}};
  EXPECT_EQ(hash_of({"/params", "chunk_size", hdf5::ElementType::kI64, {}, value}),
            "d601e77fdaf866cec5957d462f0c946fce54b76ed1ffb7d6150ae025bc81131b");
  // "D/inputs/q" "" "bf16" "2,1" "4", each ended by NUL, then the four bytes.
  const std::array<std::byte, 4> bits{std::byte{0x80}, std::byte{0x3f}, std::byte{0},
                                      std::byte{0x40}};
  EXPECT_EQ(hash_of({"/inputs/q", "", hdf5::ElementType::kBf16, {2, 1}, bits}),
            "6a5a1f616bdac7e5f3bdc618a382a419ac8d064b9ff22e370ce0435e544c915b");
}

TEST_F(Hash, OfAWholeFileNeverChanges) {
  write_fixture(target, small_case());
  EXPECT_EQ(content_sha256(target),
            "a55e8ac4ad24cae28d409cf95d8c84763dd4e14a4c92336be07c59bc03045756");
}

TEST_F(Hash, DoesNotDependOnStorage) {
  write_fixture(target, small_case());
  const std::string before = content_sha256(target);
  const Tensor values = count_up(Dtype::kF32, {1, 3, 1, 2});
  edit(target, [&](hid_t file) {  // contiguous instead of chunked, made in another order
    add_dataset(file, "/inputs/g", {H5T_IEEE_F32LE, {1, 3, 1, 2}, values.data()});
  });
  EXPECT_EQ(content_sha256(target), before);
}

TEST_F(Hash, SeesWhatNoFilterCovers) {
  write_fixture(target, small_case());
  const std::string original = read_bytes(target);
  const std::string stored = content_sha256(target);
  const auto expect_caught = [&](const std::function<void(hid_t)>& change) {
    write_bytes(target, original);
    edit(target, [&](hid_t file) {
      change(file);
      put_text(file, "/", "content_sha256", stored);
    });
    expect_refused(target, ErrorCode::kContentHashMismatch, "/@content_sha256");
  };
  write_bytes(target, original);
  edit(target, [&](hid_t file) { put_text(file, "/", "content_sha256", stored); });
  EXPECT_EQ(read_fixture(target).name, "small");

  expect_caught([](hid_t f) { put_text(f, "/", "name", "smalm"); });
  expect_caught([](hid_t f) { put_text(f, "/", "remark", ""); });
  expect_caught([](hid_t f) { put_integer(f, "/params", "chunk_size", 32); });
  expect_caught([](hid_t f) { put_integer(f, "/params", "safe_gate", 0); });  // i64 instead of u8
  expect_caught([](hid_t f) { remove_attribute(f, "/params", "safe_gate"); });
  expect_caught([](hid_t f) { put_text(f, "/inputs/q", "remark", "x"); });
  expect_caught([](hid_t f) { remove(f, "/expected/h"); });
  const float value = 1;
  expect_caught([&](hid_t f) { add_dataset(f, "/inputs/A_log", {H5T_IEEE_F32LE, {1}, &value}); });
  expect_caught([](hid_t f) { add_dataset(f, "/inputs/A_log", {H5T_IEEE_F32LE, {0}}); });
}

TEST_F(Hash, FlippedBitInAStoredAttribute) {
  Case fixture = small_case();
  fixture.oracle = "an oracle of this length";
  write_fixture(target, fixture);
  std::string whole = read_bytes(target);
  const std::size_t at = whole.find("an oracle of this length");
  ASSERT_NE(at, std::string::npos);
  whole[at] = 'A';
  write_bytes(target, whole);
  expect_refused(target, ErrorCode::kContentHashMismatch, "/@content_sha256");
}

TEST_F(Hash, CoversRootDatasetsAndArraysOfAttributes) {
  write_result(target, {{{"o", count_up(Dtype::kF32, {2})}}, std::nullopt, ""});
  const std::string before = content_sha256(target);
  const std::array<double, 2> values{1, 2};
  edit(target,
       [&](hid_t f) { put_attribute(f, "/o", "pair", H5T_IEEE_F64LE, values.data(), {2}); });
  const std::string with_pair = content_sha256(target);
  EXPECT_NE(with_pair, before);
  edit(target, [&](hid_t f) {
    put_attribute(f, "/o", "pair", H5T_IEEE_F64LE, values.data(), {1, 2});
  });
  EXPECT_NE(content_sha256(target), with_pair);
}

}  // namespace
}  // namespace kda::harness::testing
