/* A small, right KDA kernel as a kdacheck plugin: the token recurrence in f32 on the CPU, in plain
 * C. It is made to be read and copied, not to be fast.
 *
 *     kdacheck check --impl plugin:build/dev/examples/plugin/kda_plugin.so
 *
 * The harness checks nothing before it calls a plugin, since refusing is part of a kernel: here are
 * the contracts of `chunk_kda` and `recurrent_kda`. `kda_prefill` is left out, so that there is an
 * example of an unsupported case too. */
#include "kdacheck_plugin.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- elements ---- */

static float bits_to_float(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

static uint32_t float_to_bits(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

static float half_to_float(uint16_t half) {
  const uint32_t sign = (uint32_t)(half & 0x8000u) << 16;
  const uint32_t exponent = (half >> 10) & 0x1Fu;
  const uint32_t mantissa = half & 0x3FFu;
  if (exponent == 31u) return bits_to_float(sign | 0x7F800000u | mantissa << 13);
  if (exponent == 0u) { /* zero or subnormal: mantissa * 2^-24 is exact */
    const float value = ldexpf((float)mantissa, -24);
    return sign ? -value : value;
  }
  return bits_to_float(sign | (exponent + 112u) << 23 | mantissa << 13);
}

static uint16_t float_to_bf16(float value) {
  uint32_t bits = float_to_bits(value);
  if (value != value) return 0x7FC0u;
  bits += 0x7FFFu + ((bits >> 16) & 1u); /* to nearest, ties to even */
  return (uint16_t)(bits >> 16);
}

static uint16_t float_to_half(float value) {
  const uint16_t sign = (uint16_t)((float_to_bits(value) >> 16) & 0x8000u);
  const float size = fabsf(value);
  if (value != value) return 0x7E00u;
  if (size >= 65520.0f) return (uint16_t)(sign | 0x7C00u);
  if (size < ldexpf(1.0f, -14)) return (uint16_t)(sign | (uint16_t)lrintf(ldexpf(size, 24)));
  int exponent;
  const float fraction = frexpf(size, &exponent);     /* in [0.5, 1) */
  const long mantissa = lrintf(ldexpf(fraction, 11)); /* 1024 ... 2048, to nearest even */
  return (uint16_t)(sign | (uint16_t)(((exponent + 14) << 10) + (mantissa - 1024)));
}

/* The element at `offset` of a float tensor. */
static float load(const kdacheck_tensor* tensor, int64_t offset) {
  switch (tensor->dtype) {
    case KDACHECK_BF16:
      return bits_to_float((uint32_t)((const uint16_t*)tensor->data)[offset] << 16);
    case KDACHECK_F16: return half_to_float(((const uint16_t*)tensor->data)[offset]);
    default: return ((const float*)tensor->data)[offset];
  }
}

static void store(const kdacheck_tensor* tensor, int64_t offset, float value) {
  switch (tensor->dtype) {
    case KDACHECK_BF16: ((uint16_t*)tensor->data)[offset] = float_to_bf16(value); break;
    case KDACHECK_F16: ((uint16_t*)tensor->data)[offset] = float_to_half(value); break;
    default: ((float*)tensor->data)[offset] = value; break;
  }
}

/* ---- what is refused ---- */

static int32_t refuse(const kdacheck_call* call, const char* code, const char* text) {
  snprintf(call->code, call->code_size, "%s", code);
  snprintf(call->text, call->text_size, "%s", text);
  return KDACHECK_REFUSED;
}

static int is_float(const kdacheck_tensor* tensor) {
  return tensor->dtype == KDACHECK_BF16 || tensor->dtype == KDACHECK_F16 ||
         tensor->dtype == KDACHECK_F32;
}

static int has_shape(const kdacheck_tensor* tensor, int32_t rank, const int64_t* shape) {
  return tensor->rank == rank && memcmp(tensor->shape, shape, (size_t)rank * sizeof *shape) == 0;
}

/* f32 with `count` elements in any shape. */
static int is_f32_of_size(const kdacheck_tensor* tensor, int64_t count) {
  int64_t size = 1;
  for (int32_t i = 0; i < tensor->rank; ++i) size *= tensor->shape[i];
  return tensor->dtype == KDACHECK_F32 && size == count;
}

static int64_t bound(const kdacheck_call* call, int64_t n) {
  if (call->cu_seqlens->dtype == KDACHECK_I32) return ((const int32_t*)call->cu_seqlens_host)[n];
  return ((const int64_t*)call->cu_seqlens_host)[n];
}

/* Rules on options and on the shapes of q, k, v; then B, T, H, HV, K, V can be relied on. The order
 * of rules is that of `kdacheck list contracts`. */
static int32_t check_heads(const kdacheck_call* call) {
  if (strcmp(call->op, "chunk_kda") == 0) {
    if (call->chunk_size != 32 && call->chunk_size != 64)
      return refuse(call, "chunk_size_unsupported", "chunk_size is not 32 or 64");
    if (call->allow_neg_eigval && !call->use_beta_sigmoid_in_kernel)
      return refuse(call, "neg_eigval_without_fused_beta", "there is no sigmoid to double");
  } else if (call->h && call->chunk_size < 1) {
    return refuse(call, "chunk_size_unsupported", "chunk_size is not positive");
  }
  const kdacheck_tensor* const of_rank_4[] = {call->q, call->k, call->v};
  for (int i = 0; i < 3; ++i) {
    if (of_rank_4[i]->rank != 4 || of_rank_4[i]->shape[3] < 1 || of_rank_4[i]->shape[3] > 256)
      return refuse(call, "head_dim_unsupported", "q, k or v: wanted rank 4, K and V in 1 ... 256");
  }
  const int64_t B = call->q->shape[0], T = call->q->shape[1];
  const int64_t H = call->q->shape[2], HV = call->v->shape[2];
  if (H != 0 && HV % H != 0)
    return refuse(call, "head_count_not_divisible", "HV is no multiple of H");
  if (call->cu_seqlens && B != 1)
    return refuse(call, "varlen_needs_batch_one", "cu_seqlens wants B == 1");
  if (call->use_gate_in_kernel && !call->A_log && !call->has_lower_bound)
    return refuse(call, "gate_params_missing", "neither A_log nor lower_bound is given");
  if (call->safe_gate && call->use_gate_in_kernel && !call->has_lower_bound)
    return refuse(call, "lower_bound_missing", "safe_gate wants a lower_bound");
  if (B == 0 || H == 0 || HV == 0 || (T == 0 && !call->cu_seqlens))
    return refuse(call, "empty_input", "there is nothing to compute");
  return KDACHECK_OK;
}

static int32_t check_tensors(const kdacheck_call* call) {
  const int64_t* q = call->q->shape;
  const int64_t T = q[1], K = q[3], HV = call->v->shape[2], V = call->v->shape[3];
  const int64_t v[] = {q[0], T, HV, V}, g[] = {q[0], T, HV, K};
  if (!has_shape(call->k, 4, q) || !has_shape(call->v, 4, v) || !has_shape(call->g, 4, g))
    return refuse(call, "shape_mismatch", "q, k, v, g do not belong together");
  if (!is_float(call->q) || call->k->dtype != call->q->dtype || call->v->dtype != call->q->dtype ||
      !is_float(call->g))
    return refuse(call, "dtype_unsupported", "q, k, v, g are not bf16, f16 or f32");
  if (!has_shape(call->beta, 3, g)) return refuse(call, "beta_shape", "beta is not [B,T,HV]");
  if (!is_float(call->beta)) return refuse(call, "beta_dtype", "beta is not bf16, f16 or f32");
  if (!call->use_gate_in_kernel) return KDACHECK_OK;
  if (call->A_log && !is_f32_of_size(call->A_log, HV))
    return refuse(call, "a_log_invalid", "A_log is not f32 with HV elements");
  if (call->dt_bias && !is_f32_of_size(call->dt_bias, HV * K))
    return refuse(call, "dt_bias_invalid", "dt_bias is not f32 with HV*K elements");
  return KDACHECK_OK;
}

static int32_t check_sequences(const kdacheck_call* call) {
  const int64_t B = call->q->shape[0], T = call->q->shape[1], K = call->q->shape[3];
  const int64_t HV = call->v->shape[2], V = call->v->shape[3];
  const kdacheck_tensor *cu = call->cu_seqlens, *state = call->initial_state;
  if (cu && (cu->rank != 1 || (cu->dtype != KDACHECK_I32 && cu->dtype != KDACHECK_I64) ||
             cu->shape[0] < 2))
    return refuse(call, "cu_seqlens_shape", "cu_seqlens is not a list of integers");
  const int64_t N = cu ? cu->shape[0] - 1 : B;
  if (cu && (bound(call, 0) != 0 || bound(call, N) > T))
    return refuse(call, "cu_seqlens_span", "cu_seqlens does not start at 0, or ends beyond T");
  for (int64_t n = 0; cu && n < N; ++n) {
    if (bound(call, n + 1) < bound(call, n))
      return refuse(call, "cu_seqlens_not_increasing", "a sequence runs backward");
  }
  if (state && state->rank > 0 && state->shape[0] != N)
    return refuse(call, "state_count_mismatch", "there is not one initial state per sequence");
  const int64_t kv[] = {N, HV, K, V}, vk[] = {N, HV, V, K};
  if (state &&
      (state->dtype != KDACHECK_F32 || !has_shape(state, 4, call->state_v_first ? vk : kv)))
    return refuse(call, "initial_state_invalid", "initial_state is not f32 of the right shape");
  return KDACHECK_OK;
}

static int32_t check_numbers(const kdacheck_call* call) {
  const double bound_given = call->lower_bound;
  if (call->has_lower_bound && !(isfinite(bound_given) && bound_given < 0))
    return refuse(call, "lower_bound_invalid", "lower_bound is not finite and negative");
  if (call->safe_gate && call->use_gate_in_kernel && bound_given < -5)
    return refuse(call, "lower_bound_out_of_range", "lower_bound is outside [-5, 0)");
  if (!isfinite(call->scale)) return refuse(call, "scale_invalid", "scale is not finite");
  return KDACHECK_OK;
}

static int32_t check_call(const kdacheck_call* call) {
  if (strcmp(call->op, "kda_prefill") == 0) {
    snprintf(call->text, call->text_size, "kda_prefill is not served");
    return KDACHECK_UNSUPPORTED;
  }
  int32_t status = check_heads(call);
  if (status == KDACHECK_OK) status = check_tensors(call);
  if (status == KDACHECK_OK) status = check_sequences(call);
  if (status == KDACHECK_OK) status = check_numbers(call);
  return status;
}

/* ---- the recurrence ---- */

/* The log decay of value head `hv`, channel `c`, from what g holds at `offset`. */
static float log_decay(const kdacheck_call* call, int64_t offset, int64_t hv, int64_t c,
                       int64_t K) {
  float g = load(call->g, offset);
  if (!call->use_gate_in_kernel) return g;
  if (call->dt_bias) g += load(call->dt_bias, hv * K + c);
  const float slope = call->A_log ? expf(load(call->A_log, hv)) : 1.0f;
  if (call->has_lower_bound) return (float)call->lower_bound / (1.0f + expf(-slope * g));
  const float softplus = g > 20.0f ? g : log1pf(expf(g));
  return -slope * softplus;
}

static float strength(const kdacheck_call* call, int64_t offset) {
  const float beta = load(call->beta, offset);
  if (!call->use_beta_sigmoid_in_kernel) return beta;
  return (call->allow_neg_eigval ? 2.0f : 1.0f) / (1.0f + expf(-beta));
}

/* Reads a row of q or k into `row`, normalised where the call asks for it. */
static void read_row(const kdacheck_call* call, const kdacheck_tensor* tensor, int64_t offset,
                     int64_t K, float* row) {
  float squares = 0.0f;
  for (int64_t c = 0; c < K; ++c) {
    row[c] = load(tensor, offset + c);
    squares += row[c] * row[c];
  }
  if (!call->use_qk_l2norm_in_kernel) return;
  const float scale = 1.0f / sqrtf(squares + 1e-6f);
  for (int64_t c = 0; c < K; ++c) row[c] *= scale;
}

/* Writes the state, [K,V] in memory, to row `n` of a state tensor; or reads it. */
static void write_state(const kdacheck_call* call, const kdacheck_tensor* tensor, int64_t row,
                        int64_t K, int64_t V, const float* state) {
  for (int64_t c = 0; c < K; ++c)
    for (int64_t j = 0; j < V; ++j)
      store(tensor, row * K * V + (call->state_v_first ? j * K + c : c * V + j), state[c * V + j]);
}

static void read_state(const kdacheck_call* call, int64_t row, int64_t K, int64_t V, float* state) {
  for (int64_t c = 0; c < K; ++c)
    for (int64_t j = 0; j < V; ++j)
      state[c * V + j] =
          load(call->initial_state, row * K * V + (call->state_v_first ? j * K + c : c * V + j));
}

/* One token of one value head: S <- diag(exp(g)) S; S <- S + beta k (v - k S); o = scale q S. */
static void step(const kdacheck_call* call, int64_t token, int64_t hv, float* state, float* work) {
  const int64_t H = call->q->shape[2], HV = call->v->shape[2];
  const int64_t K = call->q->shape[3], V = call->v->shape[3];
  const int64_t qk = (token * H + hv / (HV / H)) * K, row = token * HV + hv;
  float *q = work, *k = work + K, *u = work + 2 * K;
  read_row(call, call->q, qk, K, q);
  read_row(call, call->k, qk, K, k);
  const float beta = strength(call, row);
  memset(u, 0, (size_t)V * sizeof *u);
  for (int64_t c = 0; c < K; ++c) {
    const float decay = expf(log_decay(call, row * K + c, hv, c, K));
    for (int64_t j = 0; j < V; ++j) {
      state[c * V + j] *= decay;
      u[j] += k[c] * state[c * V + j];
    }
  }
  for (int64_t j = 0; j < V; ++j) u[j] = beta * (load(call->v, row * V + j) - u[j]);
  for (int64_t j = 0; j < V; ++j) {
    float o = 0.0f;
    for (int64_t c = 0; c < K; ++c) {
      state[c * V + j] += k[c] * u[j];
      o += q[c] * state[c * V + j];
    }
    store(call->o, row * V + j, (float)call->scale * o);
  }
}

static int32_t run(const kdacheck_call* call) {
  const int32_t status = check_call(call);
  if (status != KDACHECK_OK) return status;
  const int64_t T = call->q->shape[1], HV = call->v->shape[2];
  const int64_t K = call->q->shape[3], V = call->v->shape[3];
  const int64_t N = call->cu_seqlens ? call->cu_seqlens->shape[0] - 1 : call->q->shape[0];
  float* state = malloc((size_t)(K * V + 2 * K + V) * sizeof *state);
  if (!state) {
    snprintf(call->text, call->text_size, "out of memory");
    return KDACHECK_ERROR;
  }
  for (int64_t hv = 0; hv < HV; ++hv) {
    int64_t chunk = 0;
    for (int64_t n = 0; n < N; ++n) {
      const int64_t begin = call->cu_seqlens ? bound(call, n) : n * T;
      const int64_t end = call->cu_seqlens ? bound(call, n + 1) : (n + 1) * T;
      memset(state, 0, (size_t)(K * V) * sizeof *state);
      if (call->initial_state) read_state(call, n * HV + hv, K, V, state);
      for (int64_t token = begin; token < end; ++token) {
        if (call->h && (token - begin) % call->chunk_size == 0)
          write_state(call, call->h, chunk++ * HV + hv, K, V, state);
        step(call, token, hv, state, state + K * V);
      }
      if (call->final_state) write_state(call, call->final_state, n * HV + hv, K, V, state);
    }
  }
  free(state);
  return KDACHECK_OK;
}

static const kdacheck_plugin plugin = {.version = KDACHECK_PLUGIN_VERSION,
                                       .memory = KDACHECK_HOST,
                                       .name = "f32 token recurrence in C",
                                       .run = run};

const kdacheck_plugin* kdacheck_plugin_get(void) { return &plugin; }
