#include "tests/cuda/prefill_call.hpp"

#include <algorithm>
#include <cstring>

namespace kda::cuda {
namespace {

using tests::KdaInputs;

/// Rows of `parts`, [1,T,...] each, one after the other.
Tensor joined(const std::vector<KdaInputs>& parts, Tensor KdaInputs::*member) {
  Shape shape = (parts.front().*member).shape();
  shape[1] = 0;
  for (const KdaInputs& part : parts) shape[1] += (part.*member).shape()[1];
  Tensor whole((parts.front().*member).dtype(), shape);
  std::byte* to = whole.data();
  for (const KdaInputs& part : parts) {
    const Tensor& tensor = part.*member;
    to = std::copy_n(tensor.data(), tensor.bytes(), to);
  }
  return whole;
}

template <class T>
T at(const std::byte* bytes, std::int64_t offset) {
  T value;
  std::memcpy(&value, bytes + offset, sizeof value);
  return value;
}

/// Decodes a blob; formats and numbers of parts are its policy's.
template <PrefillPolicy kPolicy>
PrefillBlob decode(const std::byte* bytes) {
  using Format = PrefillFormat<kPolicy>;
  const auto tile = [&](int base, bool f16, int parts) {
    std::vector<double> values;
    for (int row = 0; row < kPrefillChunk; ++row) {
      for (int channel = 0; channel < kPrefillDim; ++channel) {
        double sum = 0;
        for (int part = 0; part < parts; ++part) {
          const int offset = base + part * Format::kTileBytes + prefill_tile_byte(row, channel);
          sum += f16 ? double{to_float(at<F16>(bytes, offset))}
                     : double{to_float(at<Bf16>(bytes, offset))};
        }
        values.push_back(sum);
      }
    }
    return values;
  };
  const auto wide = [&](int base) {
    std::vector<double> values = tile(base, Format::kWideF16, Format::kWideParts);
    for (double& x : values) x /= double{Format::kWideScale};
    return values;
  };
  const auto triangle = [&](int base, int parts) {
    std::vector<double> values(static_cast<std::size_t>(kPrefillChunk * kPrefillChunk), 0.0);
    for (int i = 0; i < kPrefillChunk; ++i) {
      for (int j = 0; j / 16 <= i / 16; ++j) {
        for (int part = 0; part < parts; ++part) {
          const int offset = base + part * Format::kTriangleBytes + prefill_triangle_byte(i, j);
          values[static_cast<std::size_t>(i * kPrefillChunk + j)] +=
              double{to_float(at<Bf16>(bytes, offset))};
        }
      }
    }
    return values;
  };
  const auto floats = [&](int base, int count) {
    std::vector<double> values;
    for (int i = 0; i < count; ++i) values.push_back(double{at<float>(bytes, base + 4 * i)});
    return values;
  };
  PrefillBlob blob{.Kg = wide(Format::kKg),
                   .Qg = wide(Format::kQg),
                   .Kd = tile(Format::kKd, false, Format::kSmallParts),
                   .T = triangle(Format::kT, Format::kTParts),
                   .Q = triangle(Format::kQ, Format::kSmallParts),
                   .kap = floats(Format::kKap, kPrefillDim),
                   .p = floats(Format::kP, kPrefillChunk),
                   .v_scale = floats(Format::kVScale, kPrefillChunk),
                   .o_scale = floats(Format::kOScale, kPrefillChunk)};
  for (double& x : blob.p) x *= double{Format::kWideScale};
  return blob;
}

}  // namespace

KdaInputs prefill_inputs(std::int64_t T, std::int64_t HV, std::uint64_t seed) {
  KdaInputs made =
      tests::random_inputs({.T = T, .H = HV, .HV = HV, .K = 128, .V = 128}, seed, Dtype::kBf16);
  made.initial_state = tests::random_state(made.semantics(), seed + 9);
  return made;
}

Outputs run_prefill_case(const KdaInputs& inputs, const PrefillOptions& options,
                         const simt::Options& executor) {
  return run_prefill_cpu(inputs.problem(), options, executor);
}

void Packing::add(const KdaInputs& source, std::int64_t count) {
  parts_.push_back(tests::cut(source, 0, count));
  bounds_.push_back(bounds_.back() + count);
}

KdaInputs Packing::packed() const {
  KdaInputs whole = like_;
  whole.q = joined(parts_, &KdaInputs::q);
  whole.k = joined(parts_, &KdaInputs::k);
  whole.v = joined(parts_, &KdaInputs::v);
  whole.g = joined(parts_, &KdaInputs::g);
  whole.beta = joined(parts_, &KdaInputs::beta);
  whole.cu_seqlens = tests::bounds(bounds_);
  if (like_.initial_state) {
    Shape shape = like_.initial_state->shape();
    shape[0] = static_cast<std::int64_t>(parts_.size());
    whole.initial_state = Tensor(Dtype::kF32, shape);
    std::byte* to = whole.initial_state->data();
    for (const KdaInputs& part : parts_) {
      to = std::copy_n(part.initial_state->data(), part.initial_state->bytes(), to);
    }
  }
  return whole;
}

bool same_rows(const Tensor& a, std::int64_t a_first, const Tensor& b, std::int64_t b_first,
               std::int64_t count) {
  const std::int64_t row = a.bytes() / a.shape()[1];
  return row == b.bytes() / b.shape()[1] &&
         std::equal(a.data() + a_first * row, a.data() + (a_first + count) * row,
                    b.data() + b_first * row);
}

PrefillCall::PrefillCall(const KdaInputs& inputs, const PrefillOptions& options)
    : inputs_(inputs), device_(open_executor({})) {
  const Problem host = inputs_.problem();
  const Semantics s = check(Contract::kKdaPrefill, host);
  args_.options = options;
  args_.problem = host;
  args_.problem.q = upload("q", host.q);
  args_.problem.k = upload("k", host.k);
  args_.problem.v = upload("v", host.v);
  args_.problem.g = upload("g", host.g);
  args_.problem.beta = upload("beta", host.beta);
  if (host.initial_state) {
    args_.problem.initial_state = upload("initial_state", *host.initial_state);
  }
  outputs_.o = Tensor(Dtype::kBf16, s.o_shape());
  args_.o = make_output("o", outputs_.o);
  if (s.final_state) {
    outputs_.final_state = Tensor(Dtype::kF32, s.state_shape(s.N()));
    args_.final_state = make_output("final_state", *outputs_.final_state);
  }
  if (s.chunk_states) {
    outputs_.h = Tensor(Dtype::kF32, s.state_shape(s.num_chunks));
    args_.h = make_output("h", *outputs_.h);
  }
  args_.workspace_bytes = plan_prefill(args_).workspace.bytes;
  args_.workspace = device_->allocate("workspace", args_.workspace_bytes);
}

TensorView PrefillCall::upload(const char* name, const TensorView& view) {
  const auto bytes = static_cast<std::size_t>(view.size() * size_of(view.dtype));
  std::byte* data = device_->allocate(name, bytes);
  device_->copy_to_device(data, view.data, bytes);
  uploaded_.push_back({data, view});
  return {data, view.dtype, view.shape, view.strides};
}

OutputView PrefillCall::make_output(const char* name, Tensor& tensor) {
  return {device_->allocate(name, static_cast<std::size_t>(tensor.bytes())), tensor.dtype(),
          tensor.shape(), dense_strides(tensor.shape())};
}

void PrefillCall::fetch(Tensor& tensor, const OutputView& view) {
  device_->copy_to_host(tensor.data(), view.data, static_cast<std::size_t>(tensor.bytes()));
}

void PrefillCall::fill_workspace(int byte) {
  const std::vector<std::byte> fill(args_.workspace_bytes, std::byte(byte));
  device_->copy_to_device(args_.workspace, fill.data(), fill.size());
}

Outputs PrefillCall::run() {
  plan_ = prefill(args_, *device_);
  fetch(outputs_.o, args_.o);
  if (outputs_.final_state) fetch(*outputs_.final_state, *args_.final_state);
  if (outputs_.h) fetch(*outputs_.h, *args_.h);
  return outputs_;
}

bool PrefillCall::inputs_unchanged() {
  return std::ranges::all_of(uploaded_, [&](const Input& input) {
    std::vector<std::byte> now(
        static_cast<std::size_t>(input.host.size() * size_of(input.host.dtype)));
    device_->copy_to_host(now.data(), input.device, now.size());
    return std::ranges::equal(now, std::span(input.host.data, now.size()));
  });
}

PrefillBlob PrefillCall::blob(std::int64_t chunk, std::int64_t hv) {
  const std::size_t size = prefill_blob_bytes(plan_.policy);
  std::vector<std::byte> bytes(size);
  const auto index = static_cast<std::size_t>(chunk * plan_.HV + hv);
  device_->copy_to_host(bytes.data(), args_.workspace + plan_.workspace.blobs + index * size, size);
  switch (plan_.policy) {
    case PrefillPolicy::kMixed: return decode<PrefillPolicy::kMixed>(bytes.data());
    case PrefillPolicy::kSplit: return decode<PrefillPolicy::kSplit>(bytes.data());
    case PrefillPolicy::kBf16: break;
  }
  return decode<PrefillPolicy::kBf16>(bytes.data());
}

}  // namespace kda::cuda
