"""cuLA's `cula_kda_prefill` (github.com/inclusionAI/cuLA; a Hopper GPU).

    kdacheck check --impl 'exec:python3 examples/exec/run_cula.py {in} {out}'

The kernel takes bf16, K = V = 128 and raw gates with a lower bound (safe_gate), and applies no sigmoid to beta.
Where the library keeps the function has changed between its versions: `PLACES` are tried in turn. It has not been
run by the authors of this script.
"""

import importlib
import sys

import kdacheck_exec

PLACES = ("cula.kda", "cula.kda.flashkda", "cula.kda.hopper_fused_fwd")


def why_not(case):
    """Why this kernel was not made for the case, or None."""
    p, x = case.params, case.inputs
    wanted = {"use_gate_in_kernel": True, "safe_gate": True, "use_qk_l2norm_in_kernel": True,
              "use_beta_sigmoid_in_kernel": False, "return_intermediate_states": False, "cp_context": False}
    for name, value in wanted.items():
        if p[name] != value:
            return f"{name} must be {value}"
    if p["lower_bound"] is None or "A_log" not in x or "dt_bias" not in x:
        return "A_log, dt_bias and lower_bound are needed"
    if any(case.dtypes[name] != "bf16" for name in ("q", "k", "v")) or x["q"].ndim != 4 or x["q"].shape[-1] != 128:
        return "q, k and v must be bf16 [B,T,H,128]"
    return None


def import_function():
    errors = []
    for place in PLACES:
        try:
            return importlib.import_module(place).cula_kda_prefill
        except (ImportError, AttributeError) as error:
            errors.append(f"{place}: {error}")
    kdacheck_exec.unavailable("cuLA's cula_kda_prefill cannot be imported: " + "; ".join(errors))


def main():
    source, target = sys.argv[1:]
    case = kdacheck_exec.read_case(source)
    if (why := why_not(case)) is not None:
        kdacheck_exec.refuse(target, "implementation_unsupported", why)
    torch = kdacheck_exec.need_cuda("cuLA")
    prefill = import_function()
    x = kdacheck_exec.torch_inputs(torch, case, "cuda")
    swap = (lambda s: s.transpose(2, 3).contiguous()) if case.params["state_v_first"] else (lambda s: s)
    if "initial_state" in x:
        x["initial_state"] = swap(x["initial_state"])
    if "cu_seqlens" in x:
        x["cu_seqlens"] = x["cu_seqlens"].int()
    o, final_state = prefill(**x, scale=case.params["scale"], output_final_state=True, use_qk_l2norm_in_kernel=True,
                             use_gate_in_kernel=True, safe_gate=True, lower_bound=case.params["lower_bound"])
    torch.cuda.synchronize()
    kdacheck_exec.write_result(target, case, o, swap(final_state))


if __name__ == "__main__":
    main()
