"""The token recurrence in NumPy, in f32: a complete `exec:` program without a GPU or a library.

    kdacheck check --impl 'exec:python3 examples/exec/run_numpy.py {in} {out}'

It serves accepted cases of all three contracts and refuses nothing but a wrong chunk size, which is here as
an example: cases that must be refused fail with it.
"""

import sys

import numpy as np

import kdacheck_exec

F = np.float32


def gates(case):
    """Log decays [B,T,HV,K]."""
    g = case.inputs["g"].astype(F)
    p = case.params
    if not p["use_gate_in_kernel"]:
        return g
    HV, K = g.shape[2:]
    if "dt_bias" in case.inputs:
        g = g + case.inputs["dt_bias"].astype(F).reshape(HV, K)
    slope = np.exp(case.inputs["A_log"].astype(F).reshape(HV, 1)) if "A_log" in case.inputs else F(1)
    if p["lower_bound"] is not None:
        return F(p["lower_bound"]) / (1 + np.exp(-slope * g))
    return -slope * np.logaddexp(F(0), g)


def strengths(case):
    beta = case.inputs["beta"].astype(F)
    if not case.params["use_beta_sigmoid_in_kernel"]:
        return beta
    return (2 if case.params["allow_neg_eigval"] else 1) / (1 + np.exp(-beta))


def normalised(case, name):
    x = case.inputs[name].astype(F)
    if not case.params["use_qk_l2norm_in_kernel"]:
        return x
    return x / np.sqrt((x * x).sum(-1, keepdims=True) + F(1e-6))


def kda(case):
    """o, final_state, h as the case asks for them."""
    q, k, v, g, beta = normalised(case, "q"), normalised(case, "k"), case.inputs["v"].astype(F), gates(case), strengths(case)
    B, T, H, K = q.shape
    HV, V = v.shape[2:]
    p = case.params
    q, k = (np.repeat(x, HV // H, axis=2) for x in (q, k))
    scale = F(K**-0.5 if p["scale"] is None else p["scale"])
    bounds = case.cu_seqlens
    rows = [(b, 0, T) for b in range(B)] if bounds is None else [(0, *pair) for pair in zip(bounds, bounds[1:])]
    o = np.zeros((B, T, HV, V), F)
    states, chunks = [], []
    stored = (lambda s: s.swapaxes(1, 2)) if p["state_v_first"] else (lambda s: s)
    for n, (b, begin, end) in enumerate(rows):
        state = np.zeros((HV, K, V), F)
        if "initial_state" in case.inputs:
            state = stored(case.inputs["initial_state"][n].astype(F)).copy()
        for t in range(begin, end):
            if (t - begin) % p["chunk_size"] == 0:
                chunks.append(stored(state).copy())
            state *= np.exp(g[b, t])[:, :, None]
            u = v[b, t] - np.einsum("hk,hkv->hv", k[b, t], state)
            state += k[b, t][:, :, None] * (beta[b, t][:, None] * u)[:, None, :]
            o[b, t] = scale * np.einsum("hk,hkv->hv", q[b, t], state)
        states.append(stored(state).copy())
    shape = (HV, V, K) if p["state_v_first"] else (HV, K, V)
    return o, np.array(states).reshape(-1, *shape), np.array(chunks).reshape(-1, *shape)


def main():
    source, target = sys.argv[1:]
    case = kdacheck_exec.read_case(source)
    if case.op == "kda_prefill" and case.params["chunk_size"] != 64:
        kdacheck_exec.refuse(target, "chunk_size_unsupported", f"wanted 64, got {case.params['chunk_size']}")
    if case.op == "chunk_kda" and case.params["chunk_size"] not in (32, 64):
        kdacheck_exec.refuse(target, "chunk_size_unsupported", f"wanted 32 or 64, got {case.params['chunk_size']}")
    kdacheck_exec.write_result(target, case, *kda(case))


if __name__ == "__main__":
    main()
