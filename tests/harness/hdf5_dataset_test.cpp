#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

// How a dataset may be stored: types, byte orders, layouts. Every test replaces /inputs/A_log of a
// good fixture, which may have any shape.

namespace kda::harness::testing {
namespace {

constexpr const char* kObject = "/inputs/A_log";

class StoredAs : public ::testing::Test {
 protected:
  void SetUp() override { write_fixture(target, small_case()); }

  void store(const Dataset& dataset) {
    edit(target, [&](hid_t file) { add_dataset(file, kObject, dataset); });
  }
  [[nodiscard]] Tensor read() const {
    return std::get<KdaCase>(read_fixture(target).inputs).inputs.at("A_log");
  }
  [[nodiscard]] std::vector<double> read_values() const { return to_f64(read().view()); }
  void expect_refused_as(ErrorCode code) const { expect_refused(target, code, kObject); }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

constexpr std::array<std::uint16_t, 5> kBf16Bits{0x3f80, 0x4000, 0xff80, 0x0001, 0x7fc0};

void expect_bf16_values(const Tensor& tensor) {
  Tensor wanted(Dtype::kBf16, {5});
  std::memcpy(wanted.data(), kBf16Bits.data(), sizeof kBf16Bits);
  EXPECT_TRUE(same(tensor, wanted));
  std::vector<double> values = to_f64(tensor.view());
  EXPECT_TRUE(std::isnan(values.back()));
  values.pop_back();
  EXPECT_EQ(values, (std::vector{1.0, 2.0, -std::numeric_limits<double>::infinity(), 0x1p-133}));
}

TEST_F(StoredAs, Bf16Float) {
  const Handle type = bf16_type();
  store({type.get(), {5}, kBf16Bits.data()});
  expect_bf16_values(read());
}

TEST_F(StoredAs, BigEndianBf16Float) {
  const std::array<std::uint8_t, 10> bytes{0x3f, 0x80, 0x40, 0x00, 0xff,
                                           0x80, 0x00, 0x01, 0x7f, 0xc0};
  const Handle type = bf16_type(true);
  store({type.get(), {5}, bytes.data()});
  expect_bf16_values(read());
}

TEST_F(StoredAs, Unsigned16NeedsTheAttribute) {
  store({H5T_STD_U16LE, {5}, kBf16Bits.data()});
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  edit(target, [](hid_t file) { put_text(file, kObject, "dtype", "f16"); });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  edit(target, [](hid_t file) { put_text(file, kObject, "dtype", "bf16"); });
  expect_bf16_values(read());
}

TEST_F(StoredAs, Signed16IsRefusedWithAnyAttribute) {
  store({H5T_STD_I16LE, {5}, kBf16Bits.data()});
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  edit(target, [](hid_t file) { put_text(file, kObject, "dtype", "bf16"); });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(StoredAs, OpaqueBf16IsRefused) {  // numpy's "V2"
  const Handle type(H5Tcreate(H5T_OPAQUE, 2));
  store({type.get(), {5}, kBf16Bits.data()});
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(StoredAs, BigEndianNumbersAreConverted) {
  const Handle half(H5Tcopy(H5T_IEEE_F32BE));
  H5Tset_fields(half.get(), 15, 10, 5, 0, 10);
  H5Tset_ebias(half.get(), 15);
  H5Tset_precision(half.get(), 16);
  H5Tset_size(half.get(), 2);
  struct Row {
    hid_t type;
    Dtype dtype;
    std::array<std::uint8_t, 8> bytes;  // 1.5, or 258 for integers
    double value;
  };
  const std::array<Row, 5> rows{{{half.get(), Dtype::kF16, {0x3e, 0x00}, 1.5},
                                 {H5T_IEEE_F32BE, Dtype::kF32, {0x3f, 0xc0}, 1.5},
                                 {H5T_IEEE_F64BE, Dtype::kF64, {0x3f, 0xf8}, 1.5},
                                 {H5T_STD_I32BE, Dtype::kI32, {0, 0, 1, 2}, 258},
                                 {H5T_STD_I64BE, Dtype::kI64, {0, 0, 0, 0, 0, 0, 1, 2}, 258}}};
  for (const Row& row : rows) {
    store({row.type, {1}, row.bytes.data()});
    EXPECT_EQ(read().dtype(), row.dtype);
    EXPECT_EQ(read_values(), std::vector{row.value}) << kda::name(row.dtype);
  }
}

TEST_F(StoredAs, ForeignTypesAreRefused) {
  const std::array<std::uint8_t, 64> zeros{};
  const Handle compound(H5Tcreate(H5T_COMPOUND, 8));
  H5Tinsert(compound.get(), "r", 0, H5T_IEEE_F32LE);
  const Handle string(H5Tcopy(H5T_C_S1));
  H5Tset_size(string.get(), 4);
  const hsize_t two = 2;
  const Handle array(H5Tarray_create2(H5T_IEEE_F32LE, 1, &two));
  const Handle packed(H5Tcopy(H5T_STD_I32LE));
  H5Tset_precision(packed.get(), 20);
  const Handle odd_float(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_ebias(odd_float.get(), 126);
  const Handle unnormalised(H5Tcopy(H5T_IEEE_F32LE));
  H5Tset_norm(unnormalised.get(), H5T_NORM_NONE);
  const Handle three_bytes(H5Tcopy(H5T_STD_I32LE));
  H5Tset_size(three_bytes.get(), 3);
  const Handle vlen(H5Tvlen_create(H5T_IEEE_F32LE));
  for (const hid_t type : {compound.get(), string.get(), array.get(), packed.get(), odd_float.get(),
                           unnormalised.get(), three_bytes.get(), vlen.get(), H5T_STD_I8LE,
                           H5T_STD_U32LE, H5T_STD_B32LE, H5T_STD_REF_OBJ, H5T_NATIVE_LDOUBLE}) {
    store({type, {2}, zeros.data()});
    expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  }
}

TEST_F(StoredAs, FloatOfAnyRankAndEmptyOnes) {
  const std::vector<float> values{1, 2, 3, 4, 5, 6};
  store({H5T_IEEE_F32LE, {}, values.data()});
  EXPECT_EQ(read().shape(), Shape{});
  EXPECT_EQ(read_values(), std::vector{1.0});
  store({H5T_IEEE_F32LE, {1, 3, 1, 2, 1}, values.data()});
  EXPECT_EQ(read().shape(), (Shape{1, 3, 1, 2, 1}));
  store({H5T_IEEE_F32LE, {3, 0}, nullptr});
  EXPECT_EQ(read().shape(), (Shape{3, 0}));
}

TEST_F(StoredAs, NullDataspaceIsRefused) {
  edit(target, [](hid_t file) {
    const Handle space(H5Screate(H5S_NULL));
    const Handle id(H5Dcreate2(file, kObject, H5T_IEEE_F32LE, space.get(), H5P_DEFAULT, H5P_DEFAULT,
                               H5P_DEFAULT));
    ASSERT_GE(id.get(), 0);
  });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(StoredAs, CompactAndNamedType) {
  const std::vector<float> values{7, 8};
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_layout(properties.get(), H5D_COMPACT);
  store({H5T_IEEE_F32LE, {2}, values.data(), properties.get()});
  EXPECT_EQ(read_values(), (std::vector{7.0, 8.0}));

  edit(target, [&](hid_t file) {
    const Handle named(H5Tcopy(H5T_IEEE_F32LE));
    H5Tcommit_anon(file, named.get(), H5P_DEFAULT, H5P_DEFAULT);
    add_dataset(file, kObject, {named.get(), {2}, values.data()});
  });
  EXPECT_EQ(read_values(), (std::vector{7.0, 8.0}));
}

TEST_F(StoredAs, UnwrittenContiguousIsAnError) {
  store({H5T_IEEE_F32LE, {2, 2}, nullptr});
  expect_refused_as(ErrorCode::kDatasetUnwritten);
  store({H5T_IEEE_F32LE, {}, nullptr});
  expect_refused_as(ErrorCode::kDatasetUnwritten);
}

TEST_F(StoredAs, GroupInPlaceOfADatasetAndTheReverse) {
  edit(target, [](hid_t file) {
    const Handle group(H5Gcreate2(file, kObject, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  edit(target, [](hid_t file) {
    remove(file, kObject);
    const Handle type(H5Tcopy(H5T_IEEE_F32LE));
    H5Tcommit2(file, kObject, type.get(), H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  const float one = 1;
  edit(target, [&](hid_t file) { add_dataset(file, "/params", {H5T_IEEE_F32LE, {1}, &one}); });
  expect_refused(target, ErrorCode::kDatasetTypeUnsupported, "/params");
}

TEST_F(StoredAs, DataElsewhereIsRefused) {
  const Handle external(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_external(external.get(), "/etc/hostname", 0, 8);
  store({H5T_IEEE_F32LE, {2}, nullptr, external.get()});
  expect_refused_as(ErrorCode::kFileUnreadable);

  const hsize_t extent = 2;
  const Handle space(H5Screate_simple(1, &extent, nullptr));
  const Handle virtual_layout(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_virtual(virtual_layout.get(), space.get(), "other.h5", "/x", space.get());
  store({H5T_IEEE_F32LE, {2}, nullptr, virtual_layout.get()});
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredAs, LinksAreRefused) {
  edit(target, [](hid_t file) {
    H5Lcreate_external("other.h5", "/x", file, kObject, H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused_as(ErrorCode::kFileUnreadable);
  edit(target, [](hid_t file) {
    remove(file, kObject);
    H5Lcreate_soft("/inputs/q", file, kObject, H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused_as(ErrorCode::kFileUnreadable);
  // A second hard link is an object of this file.
  edit(target, [](hid_t file) {
    remove(file, kObject);
    H5Lcreate_hard(file, "/inputs/q", file, kObject, H5P_DEFAULT, H5P_DEFAULT);
  });
  EXPECT_EQ(read().shape(), (Shape{1, 3, 1, 2}));
}

TEST_F(StoredAs, LinkToItsOwnGroupEnds) {
  edit(target, [](hid_t file) {
    H5Lcreate_hard(file, "/inputs", file, "/inputs/loop", H5P_DEFAULT, H5P_DEFAULT);
  });
  expect_refused(target, ErrorCode::kNameUnknown, "/inputs/loop");
  expect_error([&] { (void)content_sha256(target); }, ErrorCode::kNameUnknown, target,
               "/inputs/loop");
}

TEST_F(StoredAs, ExtentsBeyondTheFileAreRefused) {
  // 2^40 elements of which the file holds a chunk: 4 TiB if believed.
  const Handle properties(H5Pcreate(H5P_DATASET_CREATE));
  const hsize_t chunk = 16;
  H5Pset_chunk(properties.get(), 1, &chunk);
  edit(target, [&](hid_t file) {
    const Handle id =
        add_dataset(file, kObject, {H5T_IEEE_F32LE, {hsize_t{1} << 40}, nullptr, properties.get()});
    const std::array<float, 16> values{};
    const hsize_t offset = 0;
    ASSERT_GE(H5Dwrite_chunk(id.get(), H5P_DEFAULT, 0, &offset, sizeof values, values.data()), 0);
  });
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredAs, EmptyWithAnExtentBeyondAllIntegersIsRefused) {
  store({H5T_IEEE_F32LE, {0x12345678, 0}, nullptr});
  EXPECT_EQ(read().shape(), (Shape{0x12345678, 0}));
  std::string whole = read_bytes(target);
  const std::string_view extent("\x78\x56\x34\x12\0\0\0\0", 8);
  std::size_t at = whole.find(extent);
  ASSERT_NE(at, std::string::npos);
  for (; at != std::string::npos; at = whole.find(extent, at + 1)) whole[at + 7] = '\x80';
  write_bytes(target, whole);
  expect_refused_as(ErrorCode::kFileUnreadable);
}

}  // namespace
}  // namespace kda::harness::testing
