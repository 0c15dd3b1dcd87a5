/* The interface of kernels that kdacheck loads as shared libraries: plain C, nothing else needed.
 *
 *     kdacheck check --impl plugin:./my_kernel.so
 *
 * A library exports one function, kdacheck_plugin_get (declared below). Everything that kdacheck
 * passes is its own: a plugin keeps no pointer beyond the call and frees nothing.
 *
 * A plugin is called in a process of its own. Each case is called twice, in fresh memory, with
 * different values around and in the buffers: the answers must be the same to the bit, inputs must
 * stay as they were, and nothing outside the buffers may be read or written. */
#ifndef KDACHECK_PLUGIN_H
#define KDACHECK_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Of this header. Fields are only ever added at the end of structs, and `size` says how many a
 * caller knows; this number changes when that is not enough. */
#define KDACHECK_PLUGIN_VERSION 1u

enum kdacheck_dtype {
  KDACHECK_BF16 = 0,
  KDACHECK_F16 = 1,
  KDACHECK_F32 = 2,
  KDACHECK_F64 = 3,
  KDACHECK_I32 = 4,
  KDACHECK_I64 = 5
};

/* Where the elements of tensors lie. */
enum kdacheck_memory {
  KDACHECK_HOST = 0,
  KDACHECK_CUDA = 1 /* memory of the first GPU */
};

/* What a call returns. */
enum kdacheck_status {
  KDACHECK_OK = 0,
  KDACHECK_REFUSED = 1,     /* the case must not be computed: write code and text */
  KDACHECK_UNSUPPORTED = 2, /* a right case that this kernel was not made for: write text */
  KDACHECK_UNAVAILABLE = 3, /* it cannot be run on this machine: write text */
  KDACHECK_ERROR = 4        /* something went wrong: write text */
};

/* A tensor of any rank. Strides count elements. `data` is aligned to 256 bytes; it may be anything
 * when there are no elements. shape and strides always lie in host memory. */
typedef struct kdacheck_tensor {
  void* data;
  const int64_t* shape;
  const int64_t* strides;
  int32_t rank;
  int32_t dtype; /* enum kdacheck_dtype */
} kdacheck_tensor;

/* One call, as the entry point `op` would get it: nothing is checked, so that refusing is part of
 * the kernel. B batch rows of T tokens, H query/key heads, HV value heads, dimensions K and V, N
 * sequences, NT chunks of all sequences. A pointer to a tensor that is not there is NULL. */
typedef struct kdacheck_call {
  size_t size;    /* of this struct */
  const char* op; /* "kda_prefill", "chunk_kda" or "recurrent_kda" */

  const kdacheck_tensor* q;             /* [B,T,H,K] */
  const kdacheck_tensor* k;             /* [B,T,H,K] */
  const kdacheck_tensor* v;             /* [B,T,HV,V] */
  const kdacheck_tensor* g;             /* [B,T,HV,K] log decay, or raw gate */
  const kdacheck_tensor* beta;          /* [B,T,HV] strength, or logits */
  const kdacheck_tensor* A_log;         /* HV elements, or NULL */
  const kdacheck_tensor* dt_bias;       /* HV*K elements, or NULL */
  const kdacheck_tensor* initial_state; /* [N,HV,K,V], [N,HV,V,K] with state_v_first, or NULL */
  const kdacheck_tensor* cu_seqlens;    /* [N+1], or NULL */
  const void* cu_seqlens_host;          /* its elements in host memory, or NULL */

  int64_t chunk_size;
  double scale;       /* K^-0.5 where the caller gave none */
  double lower_bound; /* means something with has_lower_bound only */
  int32_t has_scale;
  int32_t has_lower_bound;
  int32_t use_qk_l2norm_in_kernel;
  int32_t use_gate_in_kernel;
  int32_t safe_gate;
  int32_t use_beta_sigmoid_in_kernel;
  int32_t allow_neg_eigval;
  int32_t state_v_first;
  int32_t cp_context; /* 1 = one was given; it is not passed on */
  int32_t disable_recompute;

  /* To be written, all of it but rows of o that belong to no sequence. Where the case must be
   * refused, o has the shape of v and the others may be NULL although asked for. */
  const kdacheck_tensor* o;           /* [B,T,HV,V], dtype of v */
  const kdacheck_tensor* final_state; /* as initial_state, f32; NULL when not asked for */
  const kdacheck_tensor* h; /* [NT,HV,K,V] or [NT,HV,V,K], f32: before each chunk; or NULL */

  /* Room for text that ends with 0. Codes are those of `kdacheck list errors`. */
  char* code;
  size_t code_size;
  char* text;
  size_t text_size;
} kdacheck_call;

/* What a plugin is. */
typedef struct kdacheck_plugin {
  uint32_t version; /* KDACHECK_PLUGIN_VERSION it was compiled with */
  uint32_t memory;  /* enum kdacheck_memory: where it wants its tensors */
  const char* name; /* for reports */
  /* Returns an enum kdacheck_status. All work must be done when it returns: a kernel on a GPU
   * synchronises its stream first. */
  int32_t (*run)(const kdacheck_call* call);
} kdacheck_plugin;

#if defined(_WIN32)
#define KDACHECK_PLUGIN_EXPORT __declspec(dllexport)
#else
#define KDACHECK_PLUGIN_EXPORT __attribute__((visibility("default")))
#endif

/* The one function that a plugin exports. What it returns lives as long as the library. */
KDACHECK_PLUGIN_EXPORT const kdacheck_plugin* kdacheck_plugin_get(void);

#ifdef __cplusplus
}
#endif

#endif
