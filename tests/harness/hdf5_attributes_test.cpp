#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

// How attributes may be stored, seen through params and root attributes of a good fixture.

namespace kda::harness::testing {
namespace {

class AttributeAs : public ::testing::Test {
 protected:
  void SetUp() override { write_fixture(target, small_case()); }

  void put(const std::string& object, const std::string& name, hid_t type, const void* value,
           const std::vector<hsize_t>& shape = {}) {
    edit(target, [&](hid_t file) { put_attribute(file, object, name, type, value, shape); });
  }
  [[nodiscard]] Problem read_options() const {
    return std::get<KdaCase>(read_fixture(target).inputs).options;
  }
  void expect_invalid(std::string_view object) const {
    expect_refused(target, ErrorCode::kAttributeInvalid, object);
  }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

TEST_F(AttributeAs, IntegersOfAnyWidthAndOrder) {
  struct Row {
    hid_t type;
    std::array<std::uint8_t, 8> bytes;
  };
  const std::array<Row, 11> rows{{{H5T_STD_I8LE, {32}},
                                  {H5T_STD_U8BE, {32}},
                                  {H5T_STD_I16LE, {32, 0}},
                                  {H5T_STD_I16BE, {0, 32}},
                                  {H5T_STD_U16BE, {0, 32}},
                                  {H5T_STD_I32LE, {32}},
                                  {H5T_STD_U32BE, {0, 0, 0, 32}},
                                  {H5T_STD_U32LE, {32}},
                                  {H5T_STD_I64BE, {0, 0, 0, 0, 0, 0, 0, 32}},
                                  {H5T_STD_U64LE, {32}},
                                  {H5T_STD_U64BE, {0, 0, 0, 0, 0, 0, 0, 32}}}};
  for (const Row& row : rows) {
    put("/params", "chunk_size", row.type, row.bytes.data());
    EXPECT_EQ(read_options().chunk_size, 32);
  }
}

TEST_F(AttributeAs, IntegerIsNothingElse) {
  const std::uint64_t large = std::uint64_t{1} << 63;
  put("/params", "chunk_size", H5T_STD_U64LE, &large);
  expect_invalid("/params@chunk_size");
  const double real = 64;
  put("/params", "chunk_size", H5T_IEEE_F64LE, &real);
  expect_invalid("/params@chunk_size");
  const std::array<std::int64_t, 2> two{64, 64};
  put("/params", "chunk_size", H5T_STD_I64LE, two.data(), {2});
  expect_invalid("/params@chunk_size");
  put("/params", "chunk_size", H5T_STD_I64LE, two.data(), {0});
  expect_invalid("/params@chunk_size");
  edit(target, [](hid_t file) { put_text(file, "/params", "chunk_size", "64"); });
  expect_invalid("/params@chunk_size");
}

TEST_F(AttributeAs, ArraysOfOneElementAreScalars) {
  const std::int64_t value = 32;
  put("/params", "chunk_size", H5T_STD_I64LE, &value, {1});
  EXPECT_EQ(read_options().chunk_size, 32);
  put("/params", "chunk_size", H5T_STD_I64LE, &value, {1, 1});
  EXPECT_EQ(read_options().chunk_size, 32);
}

TEST_F(AttributeAs, RealsOfAnyWidthAndOrder) {
  const float single = -2.5F;
  put("/params", "lower_bound", H5T_IEEE_F32LE, &single);
  EXPECT_EQ(read_options().lower_bound, -2.5);
  const std::array<std::uint8_t, 8> big{0xc0, 0x04, 0, 0, 0, 0, 0, 0};
  put("/params", "lower_bound", H5T_IEEE_F64BE, big.data());
  EXPECT_EQ(read_options().lower_bound, -2.5);
  const std::uint16_t brain = 0xc020;
  put("/params", "lower_bound", bf16_type().get(), &brain);
  EXPECT_EQ(read_options().lower_bound, -2.5);
  const Handle half(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
  H5Tset_ebias(half.get(), 15);
  H5Tset_precision(half.get(), 16);
  H5Tset_size(half.get(), 2);
  const std::uint16_t half_bits = 0xc100;
  put("/params", "lower_bound", half.get(), &half_bits);
  EXPECT_EQ(read_options().lower_bound, -2.5);
  const std::int32_t integer = -5;
  put("/params", "lower_bound", H5T_STD_I32LE, &integer);
  EXPECT_EQ(read_options().lower_bound, -5.0);
}

TEST_F(AttributeAs, RealIsNothingElse) {
  edit(target, [](hid_t file) { put_text(file, "/params", "scale", "0.1"); });
  expect_invalid("/params@scale");
  const long double extended = 0.1L;
  put("/params", "scale", H5T_NATIVE_LDOUBLE, &extended);
  expect_invalid("/params@scale");
}

TEST_F(AttributeAs, FlagsAreZeroOrOne) {
  const std::int64_t one = 1;
  put("/params", "safe_gate", H5T_STD_I64LE, &one);
  EXPECT_TRUE(read_options().safe_gate);
  const std::uint8_t two = 2;
  put("/params", "safe_gate", H5T_STD_U8LE, &two);
  expect_invalid("/params@safe_gate");
}

TEST_F(AttributeAs, H5pyBooleanIsAFlag) {
  const Handle boolean(H5Tenum_create(H5T_STD_I8LE));
  const std::array<std::int8_t, 2> values{0, 1};
  H5Tenum_insert(boolean.get(), "FALSE", &values[0]);
  H5Tenum_insert(boolean.get(), "TRUE", &values[1]);
  put("/params", "safe_gate", boolean.get(), &values[1]);
  EXPECT_TRUE(read_options().safe_gate);
}

TEST_F(AttributeAs, StringsFixedAndVariable) {
  const std::array<std::pair<H5T_str_t, std::string>, 5> rows{
      {{H5T_STR_NULLTERM, std::string("a name\0xy", 9)},
       {H5T_STR_NULLTERM, std::string("a name\0", 7)},
       {H5T_STR_NULLPAD, std::string("a name\0\0\0", 9)},
       {H5T_STR_NULLPAD, "a name"},
       {H5T_STR_SPACEPAD, "a name   "}}};
  for (const auto& [padding, bytes] : rows) {
    const Handle type(H5Tcopy(H5T_C_S1));
    H5Tset_size(type.get(), bytes.size());
    H5Tset_strpad(type.get(), padding);
    put("/", "name", type.get(), bytes.data());
    EXPECT_EQ(read_fixture(target).name, "a name");
    put("/", "name", type.get(), bytes.data(), {1});
    EXPECT_EQ(read_fixture(target).name, "a name");
  }
  const Handle variable(H5Tcopy(H5T_C_S1));
  H5Tset_size(variable.get(), H5T_VARIABLE);
  const char* text = "caf\xc3\xa9";
  put("/", "name", variable.get(), &text);
  EXPECT_EQ(read_fixture(target).name, text);
  text = nullptr;  // the library stores no string at all
  put("/", "name", variable.get(), &text);
  EXPECT_EQ(read_fixture(target).name, "");
}

TEST_F(AttributeAs, StringIsNothingElse) {
  const std::int64_t one = 1;
  put("/", "name", H5T_STD_I64LE, &one);
  expect_invalid("/@name");
}

TEST_F(AttributeAs, StringsAreUtf8WithoutControlCharacters) {
  const std::vector<std::string> bad{
      "bell \x07",         "del \x7f",          "lone \x80",        "cut \xc3",
      "overlong \xc0\xaf", "long \xe0\x80\x80", "bad second \xc3(", "surrogate \xed\xa0\x80",
      "\xf0\x80\x80\x80",  "\xf4\x90\x80\x80",  "\xf5\x80\x80\x80",
  };
  for (const std::string& text : bad) {
    edit(target, [&](hid_t file) { put_text(file, "/", "name", text); });
    expect_invalid("/@name");
  }
  const std::vector<std::string> good{"", "tab\tline\n", "\xe2\x82\xac", "\xf0\x9f\x98\x80"};
  for (const std::string& text : good) {
    edit(target, [&](hid_t file) { put_text(file, "/", "name", text); });
    EXPECT_EQ(read_fixture(target).name, text);
  }
}

TEST_F(AttributeAs, ForeignKindsMatterOnlyWhereTheyAreWanted) {
  const Handle opaque(H5Tcreate(H5T_OPAQUE, 4));
  const std::int32_t bytes = 0;
  put("/", "made_by", opaque.get(), &bytes);
  EXPECT_EQ(read_fixture(target).name, "small");
  put("/", "tags", opaque.get(), &bytes);
  expect_invalid("/@tags");
  // No hash can cover it.
  edit(target, [](hid_t file) {
    remove_attribute(file, "/", "tags");
    put_text(file, "/", "content_sha256", "0");
  });
  expect_invalid("/@made_by");
}

TEST_F(AttributeAs, NullDataspaceHasNoElement) {
  edit(target, [](hid_t file) {
    const Handle space(H5Screate(H5S_NULL));
    remove_attribute(file, "/", "tags");
    const Handle type(H5Tcopy(H5T_C_S1));
    const Handle id(H5Acreate2(file, "tags", type.get(), space.get(), H5P_DEFAULT, H5P_DEFAULT));
    ASSERT_GE(id.get(), 0);
  });
  expect_invalid("/@tags");
}

}  // namespace
}  // namespace kda::harness::testing
