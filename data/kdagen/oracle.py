"""Kimi Delta Attention answered as one linear system per sequence.

Unroll the recurrence over all earlier tokens. With D[t,s] = exp(g_{s+1} + … + g_t) per channel (1 for s = t), the
state is a sum of decayed writes,

    S_t = D[t,0] S_0 + Σ_{s<=t} (D[t,s] k_s) w_sᵀ,      w_t = beta_t (v_t − u_t),

so the writes w solve the lower triangular system

    w_t + beta_t Σ_{s<t} (Σ_c k_t k_s D[t,s]) w_s = beta_t (v_t − (D[t,0] k_t)ᵀ S_0),

and outputs and states are sums over w. There are no chunks and there is no running state. D is a running product of
factors in [0, 1]: it may underflow, as it should, but never overflows, for g = 0, −1000 or −inf alike. Everything
is vectorised over value heads and computed in `longdouble` (80 bits on x86), then rounded to f64.
"""

from __future__ import annotations

import numpy as np

from kdagen.fixture import Answer, Fixture
from kdagen.formats import Tensor

Array = np.ndarray
Wide = np.longdouble
NORM_EPSILON = Wide(10) ** -6


def sigmoid(x: Array) -> Array:
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, Wide(1)) / (1 + small)


def softplus(x: Array) -> Array:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def wide(fixture: Fixture, name: str) -> Array:
    return fixture.inputs[name].values().astype(Wide)


def queries_and_keys(fixture: Fixture) -> tuple[Array, Array]:
    pair = []
    group = fixture.inputs["v"].shape[2] // fixture.inputs["q"].shape[2]
    for name in ("q", "k"):
        x = wide(fixture, name)
        if fixture.flag("use_qk_l2norm_in_kernel"):
            x = x / np.sqrt((x * x).sum(-1, keepdims=True) + NORM_EPSILON)
        pair.append(np.repeat(x, group, axis=2))
    return pair[0], pair[1]


def decays(fixture: Fixture) -> Array:
    """exp of the log decay, [B,T,HV,K]."""
    g = wide(fixture, "g")
    if not fixture.flag("use_gate_in_kernel"):
        return np.exp(g)
    heads, channels = g.shape[2:]
    slope = np.ones((heads, 1), Wide)
    if "A_log" in fixture.inputs:
        slope = np.exp(wide(fixture, "A_log").reshape(heads, 1))
    if "dt_bias" in fixture.inputs:
        g = g + wide(fixture, "dt_bias").reshape(heads, channels)
    if "lower_bound" in fixture.params:
        return np.exp(Wide(fixture.params["lower_bound"]) * sigmoid(slope * g))
    return np.exp(-slope * softplus(g))


def write_strengths(fixture: Fixture) -> Array:
    beta = wide(fixture, "beta")
    if not fixture.flag("use_beta_sigmoid_in_kernel"):
        return beta
    return sigmoid(beta) * (2 if fixture.flag("allow_neg_eigval") else 1)


def segments(fixture: Fixture) -> list[tuple[int, int, int]]:
    """(batch row, first token, end) of each sequence."""
    batch, tokens = fixture.inputs["q"].shape[:2]
    if "cu_seqlens" not in fixture.inputs:
        return [(row, 0, tokens) for row in range(batch)]
    bounds = fixture.inputs["cu_seqlens"].values().tolist()
    return [(0, first, end) for first, end in zip(bounds, bounds[1:])]


def solve_sequence(
    q: Array, k: Array, v: Array, decay: Array, beta: Array, start: Array, stops: list[int]
) -> tuple[Array, list[Array]]:
    """q k decay [T,HV,K], v [T,HV,V], beta [T,HV], start [HV,K,V].

    Returns scores q_tᵀ S_t as [T,HV,V], and the state after each number of tokens in `stops`.
    """
    tokens, heads, channels = k.shape
    write = np.zeros((heads, tokens, v.shape[2]), Wide)
    out = np.zeros(v.shape, Wide)
    reach = np.ones((heads, channels), Wide)  # D[t,0]
    carried = np.zeros((heads, tokens, channels), Wide)  # D[t,s] k_s in row s
    states = [start] if 0 in stops else []
    for t in range(tokens):
        reach *= decay[t]
        carried[:, :t] *= decay[t][:, None]
        seen = np.einsum("hsc,hc->hs", carried[:, :t], k[t])
        recalled = np.einsum("hs,hsv->hv", seen, write[:, :t])
        recalled += np.einsum("hc,hcv->hv", reach * k[t], start)
        write[:, t] = beta[t][:, None] * (v[t] - recalled)
        carried[:, t] = k[t]
        weight = np.einsum("hsc,hc->hs", carried[:, : t + 1], q[t])
        out[t] = np.einsum("hs,hsv->hv", weight, write[:, : t + 1])
        out[t] += np.einsum("hc,hcv->hv", reach * q[t], start)
        if t + 1 in stops:
            written = np.einsum("hsc,hsv->hcv", carried[:, : t + 1], write[:, : t + 1])
            states.append(reach[..., None] * start + written)
    return out, states


def answer(fixture: Fixture) -> Answer:
    """The exact `o`, and `final_state` and `h` where the case asks for them, rounded to f64."""
    q, k = queries_and_keys(fixture)
    v, decay, beta = wide(fixture, "v"), decays(fixture), write_strengths(fixture)
    scale = Wide(fixture.params["scale"]) if "scale" in fixture.params else 1 / np.sqrt(Wide(k.shape[3]))
    chunk = int(fixture.params.get("chunk_size", 64))
    starts = initial_states(fixture)
    outputs = np.zeros(v.shape, Wide)
    finals, chunk_states = [], []
    for n, (row, first, end) in enumerate(segments(fixture)):
        part = np.s_[row, first:end]
        before_chunks = list(range(0, end - first, chunk))
        stops = sorted({*before_chunks, end - first})
        scores, states = solve_sequence(q[part], k[part], v[part], decay[part], beta[part], starts[n], stops)
        outputs[part] = scale * scores
        finals.append(states[-1])
        chunk_states += states[: len(before_chunks)]
    result: Answer = {"o": Tensor.of(outputs, "f64")}
    if fixture.flag("output_final_state"):
        result["final_state"] = stored_states(fixture, finals)
    if fixture.flag("return_intermediate_states"):
        result["h"] = stored_states(fixture, chunk_states)
    return result


def initial_states(fixture: Fixture) -> Array:
    """[N,HV,K,V], zeros when the case has none."""
    if "initial_state" not in fixture.inputs:
        heads, channels = fixture.inputs["g"].shape[2:]
        count = len(segments(fixture))
        return np.zeros((count, heads, channels, fixture.inputs["v"].shape[3]), Wide)
    state = wide(fixture, "initial_state")
    return state.swapaxes(-1, -2) if fixture.flag("state_v_first") else state


def stored_states(fixture: Fixture, states: list[Array]) -> Tensor:
    heads, channels = fixture.inputs["g"].shape[2:]
    stacked = np.array(states, Wide).reshape(-1, heads, channels, fixture.inputs["v"].shape[3])
    return Tensor.of(stacked.swapaxes(-1, -2) if fixture.flag("state_v_first") else stacked, "f64")
