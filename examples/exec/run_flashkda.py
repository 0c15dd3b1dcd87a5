"""FlashKDA's `flash_kda.fwd` (github.com/MoonshotAI/FlashKDA; a Hopper or newer GPU).

    kdacheck check --impl 'exec:python3 examples/exec/run_flashkda.py {in} {out}'

The kernel is one corner of KDA: bf16, K = V = 128, as many value heads as query heads, raw gates with a lower bound,
logits as beta, normalised q and k, states [N,H,V,K]. Any other case is unsupported. It has not been run by the
authors of this script.
"""

import sys

import kdacheck_exec


def why_not(case):
    """Why this kernel was not made for the case, or None."""
    p, x = case.params, case.inputs
    wanted = {"use_qk_l2norm_in_kernel": True, "use_gate_in_kernel": True, "use_beta_sigmoid_in_kernel": True,
              "allow_neg_eigval": False, "return_intermediate_states": False, "cp_context": False}
    for name, value in wanted.items():
        if p[name] != value:
            return f"{name} must be {value}"
    if p["lower_bound"] is None or not -5 <= p["lower_bound"] < 0 or "A_log" not in x or "dt_bias" not in x:
        return "A_log, dt_bias and a lower_bound in [-5, 0) are needed"
    if any(case.dtypes[name] != "bf16" for name in ("q", "k", "v", "g", "beta")):
        return "q, k, v, g and beta must be bf16"
    if any(x[name].ndim != 4 or x[name].shape != x["q"].shape for name in ("k", "v", "g")) or x["q"].shape[-1] != 128:
        return "q, k, v and g must be [B,T,H,128]"
    return None


def main():
    source, target = sys.argv[1:]
    case = kdacheck_exec.read_case(source)
    if (why := why_not(case)) is not None:
        kdacheck_exec.refuse(target, "implementation_unsupported", why)
    torch = kdacheck_exec.need_cuda("FlashKDA")
    try:
        import flash_kda
    except ImportError as error:
        kdacheck_exec.unavailable(f"flash_kda cannot be imported: {error}")
    x = kdacheck_exec.torch_inputs(torch, case, "cuda")
    B, _, H, K = x["q"].shape
    bounds, start = x.get("cu_seqlens"), x.get("initial_state")
    if start is not None and not case.params["state_v_first"]:
        start = start.transpose(2, 3).contiguous()
    N = B if bounds is None else bounds.numel() - 1
    o = torch.empty_like(x["v"])
    final_state = torch.empty(N, H, K, K, dtype=torch.float32, device="cuda")
    scale = case.params["scale"]
    flash_kda.fwd(x["q"], x["k"], x["v"], x["g"], x["beta"], K**-0.5 if scale is None else scale, o,
                  x["A_log"].reshape(H), x["dt_bias"].reshape(H, K), case.params["lower_bound"], initial_state=start,
                  final_state=final_state, cu_seqlens=None if bounds is None else bounds.long())
    torch.cuda.synchronize()
    if not case.params["state_v_first"]:
        final_state = final_state.transpose(2, 3)
    kdacheck_exec.write_result(target, case, o, final_state)


if __name__ == "__main__":
    main()
