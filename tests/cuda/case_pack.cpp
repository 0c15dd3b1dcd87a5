#include "tests/cuda/case_pack.hpp"

#include <cstdint>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <type_traits>

namespace kda::tests {
namespace {

constexpr std::uint64_t kMagic = 0x31'4B'43'41'50'41'44'4B;  // "KDAPACK1"

/// Writes or reads the same fields in the same order, so that the two cannot drift apart.
class Archive {
 public:
  Archive(const std::filesystem::path& file, bool writes)
      : writes_(writes), stream_(file, (writes ? std::ios::out : std::ios::in) | std::ios::binary) {
    if (!stream_) throw std::runtime_error("cannot open " + file.string());
  }

  [[nodiscard]] bool writes() const { return writes_; }

  void bytes(void* data, std::size_t size) {
    if (writes_) {
      stream_.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
    } else {
      stream_.read(static_cast<char*>(data), static_cast<std::streamsize>(size));
    }
    if (!stream_) throw std::runtime_error("a pack of cases ends early");
  }

  template <class T>
  requires std::is_trivially_copyable_v<T>
  void field(T& value) { bytes(&value, sizeof value); }

  void field(std::optional<double>& value) {
    bool has = value.has_value();
    double x = value.value_or(0);
    field(has);
    field(x);
    value = has ? std::optional(x) : std::nullopt;
  }

  std::uint64_t count(std::size_t size) {
    std::uint64_t n = size;
    field(n);
    return n;
  }

  void field(std::string& text) {
    text.resize(count(text.size()));
    bytes(text.data(), text.size());
  }

  void field(Tensor& tensor) {
    Dtype dtype = tensor.dtype();
    Shape shape = tensor.shape();
    field(dtype);
    shape.resize(count(shape.size()));
    for (std::int64_t& extent : shape) field(extent);
    if (!writes_) tensor = Tensor(dtype, shape);
    bytes(tensor.data(), static_cast<std::size_t>(tensor.bytes()));
  }

  void field(std::map<std::string, Tensor>& tensors) {
    const std::uint64_t n = count(tensors.size());
    if (writes_) {
      for (auto& [name, tensor] : tensors) {
        std::string copy = name;
        field(copy);
        field(tensor);
      }
      return;
    }
    for (std::uint64_t i = 0; i < n; ++i) {
      std::string name;
      field(name);
      field(tensors[name]);
    }
  }

 private:
  bool writes_;
  std::fstream stream_;
};

void transfer(Archive& archive, PackedCase& c) {
  archive.field(c.name);
  archive.field(c.contract);
  Problem& o = c.options;
  archive.field(o.chunk_size);
  archive.field(o.scale);
  archive.field(o.lower_bound);
  for (bool* flag :
       {&o.use_qk_l2norm_in_kernel, &o.use_gate_in_kernel, &o.safe_gate,
        &o.use_beta_sigmoid_in_kernel, &o.allow_neg_eigval, &o.state_v_first, &o.output_final_state,
        &o.return_intermediate_states, &o.cp_context, &o.disable_recompute}) {
    archive.field(*flag);
  }
  archive.field(c.inputs);
  archive.field(c.error);
  archive.field(c.expected);
}

}  // namespace

Problem PackedCase::problem() const {
  Problem p = options;
  const auto view = [&](const char* key) { return inputs.at(key).view(); };
  const auto maybe = [&](const char* key) {
    return inputs.count(key) != 0 ? std::optional(view(key)) : std::nullopt;
  };
  p.q = view("q");
  p.k = view("k");
  p.v = view("v");
  p.g = view("g");
  p.beta = view("beta");
  p.A_log = maybe("A_log");
  p.dt_bias = maybe("dt_bias");
  p.initial_state = maybe("initial_state");
  p.cu_seqlens = maybe("cu_seqlens");
  return p;
}

void write_pack(const std::filesystem::path& file, const std::vector<PackedCase>& cases) {
  Archive archive(file, true);
  std::uint64_t magic = kMagic;
  archive.field(magic);
  archive.count(cases.size());
  for (PackedCase c : cases) transfer(archive, c);
}

std::vector<PackedCase> read_pack(const std::filesystem::path& file) {
  Archive archive(file, false);
  std::uint64_t magic = 0;
  archive.field(magic);
  if (magic != kMagic) throw std::runtime_error(file.string() + " is no pack of cases");
  std::vector<PackedCase> cases(archive.count(0));
  for (PackedCase& c : cases) transfer(archive, c);
  return cases;
}

}  // namespace kda::tests
