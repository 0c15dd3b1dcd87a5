#include "tests/harness/fixture_testing.hpp"

#include "harness/fixture.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>

#include <gtest/gtest.h>

namespace kda::harness::testing {
namespace {

namespace fs = std::filesystem;

Handle must(hid_t id) {
  if (id < 0) throw std::runtime_error("HDF5 refused to build a test file");
  return Handle(id);
}

void must_succeed(herr_t status) {
  if (status < 0) throw std::runtime_error("HDF5 refused to build a test file");
}

Handle make_space(const std::vector<hsize_t>& shape, const std::vector<hsize_t>& most = {}) {
  if (shape.empty()) return must(H5Screate(H5S_SCALAR));
  return must(H5Screate_simple(static_cast<int>(shape.size()), shape.data(),
                               most.empty() ? nullptr : most.data()));
}

}  // namespace

TemporaryFolder::TemporaryFolder() {
  std::string pattern = (fs::temp_directory_path() / "kdacheck-test-XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

std::vector<std::string> TemporaryFolder::entries() const {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(path_)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

Tensor count_up(Dtype dtype, const Shape& shape) {
  Tensor tensor(dtype, shape);
  for (std::int64_t i = 0; i < tensor.size(); ++i) tensor.store(i, static_cast<double>(i + 1));
  return tensor;
}

Case small_case() {
  KdaCase kda_case;
  kda_case.contract = Contract::kChunkKda;
  kda_case.inputs.emplace("q", count_up(Dtype::kF32, {1, 3, 1, 2}));
  kda_case.inputs.emplace("k", count_up(Dtype::kF32, {1, 3, 1, 2}));
  kda_case.inputs.emplace("v", count_up(Dtype::kF32, {1, 3, 1, 4}));
  kda_case.inputs.emplace("g", count_up(Dtype::kF32, {1, 3, 1, 2}));
  kda_case.inputs.emplace("beta", count_up(Dtype::kF32, {1, 3, 1}));
  kda_case.options.output_final_state = true;
  kda_case.options.return_intermediate_states = true;
  Case fixture;
  fixture.name = "small";
  fixture.op = Op::kChunkKda;
  fixture.inputs = std::move(kda_case);
  fixture.expected.emplace();
  fixture.expected->tensors.emplace("o", count_up(Dtype::kF64, {1, 3, 1, 4}));
  fixture.expected->tensors.emplace("final_state", count_up(Dtype::kF64, {1, 1, 2, 4}));
  fixture.expected->tensors.emplace("h", count_up(Dtype::kF64, {1, 1, 2, 4}));
  return fixture;
}

Case small_fit() {
  Case fixture;
  fixture.name = "small fit";
  fixture.op = Op::kFit;
  fixture.inputs = FitCase{{100, 200, 300}, {1.5, 2.5, 4.5}, 512};
  fixture.expected.emplace();
  fixture.expected->fit.a = 1e-4;
  fixture.expected->fit.b = 0.5;
  fixture.expected->fit.c = 3;
  return fixture;
}

Case small_predict() {
  PredictCase question;
  question.a = 1e-4;
  question.b = 0.5;
  question.c = 3;
  question.base_chunk_size = 512;
  question.context_len = 4096;
  Case fixture;
  fixture.name = "small predict";
  fixture.op = Op::kPredict;
  fixture.inputs = question;
  fixture.expected.emplace();
  fixture.expected->predict.chunk_size = 512;
  return fixture;
}

void edit(const fs::path& file, const std::function<void(hid_t)>& change, H5F_libver_t format) {
  const hdf5::Session session;
  const Handle access = must(H5Pcreate(H5P_FILE_ACCESS));
  must_succeed(H5Pset_libver_bounds(access.get(), format, H5F_LIBVER_LATEST));
  const Handle id = must(H5Fopen(file.c_str(), H5F_ACC_RDWR, access.get()));
  if (H5Aexists(id.get(), "content_sha256") > 0) H5Adelete(id.get(), "content_sha256");
  change(id.get());
}

std::string read_bytes(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void write_bytes(const fs::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

Handle add_dataset(hid_t file, const std::string& path, const Dataset& dataset) {
  if (H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0) remove(file, path);
  const Handle space = make_space(dataset.shape, dataset.most);
  Handle id = must(H5Dcreate2(file, path.c_str(), dataset.type, space.get(), H5P_DEFAULT,
                              dataset.properties, H5P_DEFAULT));
  if (dataset.data != nullptr) {
    must_succeed(H5Dwrite(id.get(), dataset.type, H5S_ALL, H5S_ALL, H5P_DEFAULT, dataset.data));
  }
  return id;
}

void remove(hid_t file, const std::string& path) {
  must_succeed(H5Ldelete(file, path.c_str(), H5P_DEFAULT));
}

void put_attribute(hid_t file, const std::string& object, const std::string& name, hid_t type,
                   const void* value, const std::vector<hsize_t>& shape) {
  if (H5Aexists_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT) > 0) {
    remove_attribute(file, object, name);
  }
  const Handle space = make_space(shape);
  const Handle id = must(H5Acreate_by_name(file, object.c_str(), name.c_str(), type, space.get(),
                                           H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  must_succeed(H5Awrite(id.get(), type, value));
}

void put_text(hid_t file, const std::string& object, const std::string& name,
              const std::string& value) {
  const Handle type = must(H5Tcopy(H5T_C_S1));
  must_succeed(H5Tset_size(type.get(), H5T_VARIABLE));
  const char* text = value.c_str();
  put_attribute(file, object, name, type.get(), &text);
}

void put_integer(hid_t file, const std::string& object, const std::string& name,
                 std::int64_t value) {
  put_attribute(file, object, name, H5T_STD_I64LE, &value);
}

void put_real(hid_t file, const std::string& object, const std::string& name, double value) {
  put_attribute(file, object, name, H5T_IEEE_F64LE, &value);
}

void remove_attribute(hid_t file, const std::string& object, const std::string& name) {
  must_succeed(H5Adelete_by_name(file, object.c_str(), name.c_str(), H5P_DEFAULT));
}

Handle bf16_type(bool big_endian) {
  Handle type = must(H5Tcopy(big_endian ? H5T_IEEE_F32BE : H5T_IEEE_F32LE));
  must_succeed(H5Tset_fields(type.get(), 15, 7, 8, 0, 7));
  must_succeed(H5Tset_ebias(type.get(), 127));
  must_succeed(H5Tset_precision(type.get(), 16));
  must_succeed(H5Tset_size(type.get(), 2));
  return type;
}

void expect_error(const std::function<void()>& call, ErrorCode code, const fs::path& file,
                  std::string_view object) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    const std::string place = file.string() + ": " + std::string(object) + ": ";
    EXPECT_TRUE(error.message().starts_with(place)) << error.what() << "\nwanted " << place;
    return;
  }
  ADD_FAILURE() << "no error for " << object << ", wanted " << name(code);
}

void expect_refused(const fs::path& file, ErrorCode code, std::string_view object) {
  expect_error([&] { (void)read_fixture(file); }, code, file, object);
}

bool same(const Tensor& a, const Tensor& b) {
  return a.dtype() == b.dtype() && a.shape() == b.shape() &&
         std::equal(a.data(), a.data() + a.bytes(), b.data());
}

}  // namespace kda::harness::testing
