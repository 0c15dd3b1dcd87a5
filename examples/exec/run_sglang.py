"""SGLang's Triton `chunk_kda` (pip install sglang; a CUDA GPU).

    kdacheck check --impl 'exec:python3 examples/exec/run_sglang.py {in} {out}'

SGLang keeps states in a pool that the call updates in place: this script makes a pool with one row per sequence and
reads the final states from it. The function takes ready-made beta, chunks of 64, and either log decays or raw gates.
How the pool lays out a state has changed between versions: KDACHECK_SGLANG_STATE=kv or vk (the default) says it.
It has not been run by the authors of this script.
"""

import importlib
import os
import sys

import kdacheck_exec

PLACES = ("sglang.kernels.ops.attention.fla.kda", "sglang.srt.layers.attention.fla.kda")


def why_not(case):
    """Why this kernel was not made for the case, or None."""
    p, x = case.params, case.inputs
    for name in ("use_beta_sigmoid_in_kernel", "return_intermediate_states", "cp_context", "disable_recompute"):
        if p[name]:
            return f"{name} is not there"
    if p["chunk_size"] != 64:
        return "chunks of 64 only"
    if x["q"].ndim != 4 or x["v"].ndim != 4 or x["v"].shape[2] != x["q"].shape[2]:
        return "as many value heads as query heads"
    if p["use_gate_in_kernel"] and "A_log" not in x:
        return "raw gates need A_log"
    return None


def import_function():
    errors = []
    for place in PLACES:
        try:
            return importlib.import_module(place).chunk_kda
        except (ImportError, AttributeError) as error:
            errors.append(f"{place}: {error}")
    kdacheck_exec.unavailable("SGLang's chunk_kda cannot be imported: " + "; ".join(errors))


def main():
    source, target = sys.argv[1:]
    case = kdacheck_exec.read_case(source)
    if (why := why_not(case)) is not None:
        kdacheck_exec.refuse(target, "implementation_unsupported", why)
    torch = kdacheck_exec.need_cuda("SGLang")
    chunk_kda = import_function()
    x = kdacheck_exec.torch_inputs(torch, case, "cuda")
    (B, T, H, K), V = x["q"].shape, x["v"].shape[-1]
    if "cu_seqlens" in x:
        bounds = x["cu_seqlens"].long()
    else:  # the pool wants a flattened batch
        bounds = torch.arange(B + 1, device="cuda") * T
        for name in ("q", "k", "v", "g", "beta"):
            x[name] = x[name].reshape(1, B * T, *x[name].shape[2:])
    N = bounds.numel() - 1
    v_first = os.environ.get("KDACHECK_SGLANG_STATE", "vk") == "vk"
    swap = (lambda s: s.transpose(2, 3).contiguous()) if v_first != case.params["state_v_first"] else (lambda s: s)
    pool = torch.zeros(N, H, *((V, K) if v_first else (K, V)), dtype=torch.float32, device="cuda")
    if "initial_state" in x:
        pool.copy_(swap(x["initial_state"]))
    gate = {"A_log": x["A_log"], "dt_bias": x.get("dt_bias"), "lower_bound": case.params["lower_bound"]}
    o = chunk_kda(x["q"], x["k"], x["v"], x["g"], x["beta"], scale=case.params["scale"], initial_state=pool,
                  initial_state_indices=torch.arange(N, dtype=torch.int32, device="cuda"),
                  use_qk_l2norm_in_kernel=case.params["use_qk_l2norm_in_kernel"], cu_seqlens=bounds,
                  **(gate if case.params["use_gate_in_kernel"] else {}))
    torch.cuda.synchronize()
    kdacheck_exec.write_result(target, case, o.reshape(B, T, H, V), swap(pool))


if __name__ == "__main__":
    main()
