#include "harness/fixture.hpp"
#include "tests/harness/fixture_testing.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include <gtest/gtest.h>
#include <zlib.h>

// Data stored in chunks: shapes, filters, damage. Every test replaces /inputs/A_log of a good
// fixture, which may have any shape.

namespace kda::harness::testing {
namespace {

constexpr const char* kObject = "/inputs/A_log";
using Filters = std::function<void(hid_t)>;

const Filters kNoFilter = [](hid_t) {};
const Filters kFletcher = [](hid_t properties) { H5Pset_fletcher32(properties); };
const Filters kDeflate = [](hid_t properties) { H5Pset_deflate(properties, 6); };
const Filters kShuffleDeflateFletcher = [](hid_t properties) {
  H5Pset_shuffle(properties);
  H5Pset_deflate(properties, 6);
  H5Pset_fletcher32(properties);
};
const Filters kFletcherShuffleDeflate = [](hid_t properties) {
  H5Pset_fletcher32(properties);
  H5Pset_shuffle(properties);
  H5Pset_deflate(properties, 6);
};

Handle properties_of(const std::vector<hsize_t>& chunk, const Filters& filters) {
  Handle properties(H5Pcreate(H5P_DATASET_CREATE));
  H5Pset_chunk(properties.get(), static_cast<int>(chunk.size()), chunk.data());
  filters(properties.get());
  return properties;
}

class StoredInChunks : public ::testing::Test {
 protected:
  void SetUp() override { write_fixture(target, small_case()); }

  /// Elements 1, 2, 3, ... in f64.
  void store(const std::vector<hsize_t>& shape, const std::vector<hsize_t>& chunk,
             const Filters& filters) {
    const Handle properties = properties_of(chunk, filters);
    const Tensor values = count_up(Dtype::kF64, {shape.begin(), shape.end()});
    edit(target, [&](hid_t file) {
      add_dataset(file, kObject, {H5T_IEEE_F64LE, shape, values.data(), properties.get()});
    });
  }
  /// One chunk of a vector of f64, as raw bytes past the filters.
  void store_raw(hsize_t extent, hsize_t chunk, const Filters& filters, const std::string& bytes,
                 std::uint32_t skipped = 0) {
    const Handle properties = properties_of({chunk}, filters);
    edit(target, [&](hid_t file) {
      // Growable, which lets a chunk be larger than the dataset.
      const Dataset dataset{H5T_IEEE_F64LE, {extent}, nullptr, properties.get(), {H5S_UNLIMITED}};
      const Handle id = add_dataset(file, kObject, dataset);
      const hsize_t offset = 0;
      ASSERT_GE(H5Dwrite_chunk(id.get(), H5P_DEFAULT, skipped, &offset, bytes.size(), bytes.data()),
                0);
    });
  }
  /// Flips the lowest bit of the only place where the file holds these bytes.
  void flip_bit_of(std::string_view bytes) {
    std::string whole = read_bytes(target);
    const std::size_t at = whole.find(bytes);
    ASSERT_NE(at, std::string::npos);
    ASSERT_EQ(whole.find(bytes, at + 1), std::string::npos);
    whole[at] = static_cast<char>(whole[at] ^ 1);
    write_bytes(target, whole);
  }
  [[nodiscard]] Tensor read() const {
    return std::get<KdaCase>(read_fixture(target).inputs).inputs.at("A_log");
  }
  void expect_counts_up(const std::vector<hsize_t>& shape) const {
    EXPECT_TRUE(same(read(), count_up(Dtype::kF64, {shape.begin(), shape.end()})));
  }
  void expect_refused_as(ErrorCode code) const { expect_refused(target, code, kObject); }

  TemporaryFolder folder;
  std::filesystem::path target = folder / "file.h5";
};

std::string deflated(const std::string& plain) {
  uLongf length = compressBound(plain.size());
  std::string packed(length, '\0');
  EXPECT_EQ(compress(reinterpret_cast<Bytef*>(packed.data()), &length,
                     reinterpret_cast<const Bytef*>(plain.data()), plain.size()),
            Z_OK);
  packed.resize(length);
  return packed;
}

TEST_F(StoredInChunks, EveryShapeAndFilter) {
  const std::vector<std::pair<std::vector<hsize_t>, std::vector<hsize_t>>> shapes{
      {{7}, {7}},
      {{7}, {3}},
      {{5, 7}, {2, 3}},
      {{5, 7}, {1, 7}},
      {{3, 4, 5}, {2, 3, 2}},
      {{2, 3, 1, 4, 2}, {1, 2, 1, 3, 2}},
  };
  for (const auto& [shape, chunk] : shapes) {
    for (const Filters& filters :
         {kNoFilter, kFletcher, kDeflate, kShuffleDeflateFletcher, kFletcherShuffleDeflate}) {
      store(shape, chunk, filters);
      expect_counts_up(shape);
    }
  }
}

TEST_F(StoredInChunks, EveryIndexOfLaterFileFormats) {
  const Tensor values = count_up(Dtype::kF64, {5, 7});
  struct Row {
    std::vector<hsize_t> chunk;
    std::vector<hsize_t> most;
    bool early;
  };
  const hsize_t u = H5S_UNLIMITED;
  const std::vector<Row> rows{{{5, 7}, {5, 7}, false},   // single chunk
                              {{2, 3}, {5, 7}, true},    // implicit
                              {{2, 3}, {9, 9}, false},   // fixed array
                              {{2, 3}, {u, 7}, false},   // extensible array
                              {{2, 3}, {u, u}, false}};  // B-tree of version 2
  for (const Row& row : rows) {
    for (const Filters& filters : {kNoFilter, kShuffleDeflateFletcher}) {
      const Handle properties = properties_of(row.chunk, filters);
      if (row.early) H5Pset_alloc_time(properties.get(), H5D_ALLOC_TIME_EARLY);
      const Dataset dataset{H5T_IEEE_F64LE, {5, 7}, values.data(), properties.get(), row.most};
      edit(
          target, [&](hid_t file) { add_dataset(file, kObject, dataset); }, H5F_LIBVER_LATEST);
      expect_counts_up({5, 7});
    }
  }
}

TEST_F(StoredInChunks, UnwrittenChunksAreAnError) {
  const Handle properties = properties_of({2, 3}, kFletcher);
  edit(target, [&](hid_t file) {
    add_dataset(file, kObject, {H5T_IEEE_F64LE, {4, 6}, nullptr, properties.get()});
  });
  expect_refused_as(ErrorCode::kDatasetUnwritten);
  edit(target, [&](hid_t file) {  // three of four
    const Handle id =
        add_dataset(file, kObject, {H5T_IEEE_F64LE, {4, 6}, nullptr, properties.get()});
    const std::string bytes(6 * 8 + 4, '\0');
    for (const std::array<hsize_t, 2> offset : {std::array<hsize_t, 2>{0, 0}, {0, 3}, {2, 0}}) {
      ASSERT_GE(H5Dwrite_chunk(id.get(), H5P_DEFAULT, 0, offset.data(), bytes.size(), bytes.data()),
                0);
    }
  });
  expect_refused_as(ErrorCode::kDatasetUnwritten);
}

TEST_F(StoredInChunks, FlippedBitUnderAChecksum) {
  for (const Filters& filters : {kFletcher, kShuffleDeflateFletcher}) {
    store({40}, {40}, filters);
    std::string stored;
    edit(target, [&](hid_t file) {
      hsize_t length = 0;
      const Handle id(H5Dopen2(file, kObject, H5P_DEFAULT));
      const hsize_t offset = 0;
      std::uint32_t skipped = 0;
      H5Dget_chunk_storage_size(id.get(), &offset, &length);
      stored.resize(length);
      H5Dread_chunk(id.get(), H5P_DEFAULT, &offset, &skipped, stored.data());
    });
    flip_bit_of(stored);
    expect_refused_as(ErrorCode::kChecksumMismatch);
  }
}

TEST_F(StoredInChunks, ChecksumOfAnOddNumberOfBytes) {
  const Handle properties = properties_of({5}, kFletcher);
  const std::array<std::uint8_t, 5> values{1, 2, 3, 4, 255};
  edit(target, [&](hid_t file) {
    add_dataset(file, kObject, {H5T_STD_U8LE, {5}, values.data(), properties.get()});
  });
  // Readable as such, which the hash shows, though no tensor holds bytes.
  EXPECT_EQ(content_sha256(target).size(), 64U);
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(StoredInChunks, ChunkTooShortForItsChecksum) {
  store_raw(4, 4, kFletcher, "abc");
  expect_refused_as(ErrorCode::kChecksumMismatch);
}

TEST_F(StoredInChunks, ChunkOfAnotherLength) {
  store_raw(4, 4, kNoFilter, std::string(24, '\0'));
  expect_refused_as(ErrorCode::kFileUnreadable);
  store_raw(4, 4, kDeflate, deflated(std::string(24, '\0')));
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredInChunks, DamagedCompressedData) {
  store_raw(4, 4, kDeflate, "this was never compressed");
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredInChunks, CompressedDataThatInflatesBeyondItsChunk) {
  store_raw(4, 4, kDeflate, deflated(std::string(std::size_t{1} << 20, '\0')));
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredInChunks, FilterSkippedForAChunk) {
  std::string bytes(32, '\0');
  const double one = 1;
  for (std::size_t i = 0; i < 4; ++i) std::memcpy(&bytes[8 * i], &one, 8);
  store_raw(4, 4, kDeflate, bytes, 1);
  EXPECT_EQ(to_f64(read().view()), (std::vector{1.0, 1.0, 1.0, 1.0}));
}

TEST_F(StoredInChunks, ChunkBeyondTheFileIsRefused) {
  // One element, but in a chunk of 512 MiB that a kilobyte of zeros would inflate to.
  store_raw(1, hsize_t{64} << 20, kDeflate, deflated(std::string(std::size_t{1} << 20, '\0')));
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredInChunks, StoredChunkLongerThanItsChunkIsRefused) {
  // A reader that trusts the nominal size would overrun its buffer here.
  store_raw(1, 1, kNoFilter, std::string(std::size_t{1} << 20, '\0'));
  expect_refused_as(ErrorCode::kFileUnreadable);
}

TEST_F(StoredInChunks, OtherFiltersAreRefused) {
  store({40}, {40}, [](hid_t properties) { H5Pset_nbit(properties); });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
  store({40}, {40}, [](hid_t properties) {
    H5Pset_deflate(properties, 6);
    H5Pset_deflate(properties, 6);
  });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

TEST_F(StoredInChunks, UnfilteredEdgeChunksAreRefused) {
  store({7}, {4}, [](hid_t properties) {
    H5Pset_fletcher32(properties);
    H5Pset_chunk_opts(properties, H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS);
  });
  expect_refused_as(ErrorCode::kDatasetTypeUnsupported);
}

}  // namespace
}  // namespace kda::harness::testing
