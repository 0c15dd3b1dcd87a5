"""The recurrence in 60-digit arithmetic, token by token, for cases small enough.

A third formulation beside the C++ and `oracle`: the state moves by its transition matrix,
S <- (I − beta k kᵀ) diag(exp g) S + beta k vᵀ.
"""

from __future__ import annotations

import numpy as np
from mpmath import exp, log1p, matrix, mp, mpf, sqrt

from kdagen.fixture import Answer, Fixture
from kdagen.formats import Tensor
from kdagen.oracle import segments

DIGITS = 60
WORK_LIMIT = 40_000  # multiplications of a case that is still "tiny"


def work(fixture: Fixture) -> int:
    batch, tokens, heads, columns = fixture.inputs["v"].shape
    channels = fixture.inputs["k"].shape[3]
    return batch * tokens * heads * channels * channels * columns


def _sigmoid(x: mpf) -> mpf:
    return 1 / (1 + exp(-x))


class _Case:
    """Activated inputs of one (batch row, value head)."""

    def __init__(self, fixture: Fixture, row: int, head: int) -> None:
        self.fixture, self.row, self.head = fixture, row, head
        self.values = {name: tensor.values() for name, tensor in fixture.inputs.items()}
        self.query_head = head // (fixture.inputs["v"].shape[2] // fixture.inputs["q"].shape[2])

    def vector(self, name: str, token: int) -> list[mpf]:
        x = [mpf(float(e)) for e in self.values[name][self.row, token, self.query_head]]
        if not self.fixture.flag("use_qk_l2norm_in_kernel"):
            return x
        length = sqrt(sum(e * e for e in x) + mpf(10) ** -6)
        return [e / length for e in x]

    def decay(self, token: int) -> list[mpf]:
        raw = [mpf(float(e)) for e in self.values["g"][self.row, token, self.head]]
        if not self.fixture.flag("use_gate_in_kernel"):
            return [exp(e) for e in raw]
        heads, channels = self.values["g"].shape[2:]
        slope = mpf(1)
        if "A_log" in self.values:
            slope = exp(mpf(float(self.values["A_log"].reshape(heads)[self.head])))
        if "dt_bias" in self.values:
            bias = self.values["dt_bias"].reshape(heads, channels)[self.head]
            raw = [e + mpf(float(b)) for e, b in zip(raw, bias)]
        if "lower_bound" in self.fixture.params:
            bound = mpf(float(self.fixture.params["lower_bound"]))
            return [exp(bound * _sigmoid(slope * e)) for e in raw]
        return [exp(-slope * log1p(exp(e))) for e in raw]

    def strength(self, token: int) -> mpf:
        beta = mpf(float(self.values["beta"][self.row, token, self.head]))
        if not self.fixture.flag("use_beta_sigmoid_in_kernel"):
            return beta
        return _sigmoid(beta) * (2 if self.fixture.flag("allow_neg_eigval") else 1)

    def column(self, token: int) -> list[mpf]:
        return [mpf(float(e)) for e in self.values["v"][self.row, token, self.head]]

    def start(self, sequence: int) -> matrix:
        channels, columns = self.values["k"].shape[3], self.values["v"].shape[3]
        if "initial_state" not in self.values:
            return matrix(channels, columns)
        state = self.values["initial_state"][sequence, self.head]
        state = state.T if self.fixture.flag("state_v_first") else state
        return matrix([[mpf(float(e)) for e in line] for line in state])


def _step(case: _Case, token: int, state: matrix) -> matrix:
    k, decay, v, beta = case.vector("k", token), case.decay(token), case.column(token), case.strength(token)
    size = len(k)
    moved = matrix(size, size)
    for i in range(size):
        for j in range(size):
            moved[i, j] = ((i == j) - beta * k[i] * k[j]) * decay[j]
    return moved * state + beta * matrix(k) * matrix(v).T


def answer(fixture: Fixture) -> Answer:
    """As `oracle.answer`."""
    with mp.workdps(DIGITS):
        return _answer(fixture)


def _answer(fixture: Fixture) -> Answer:
    shape = fixture.inputs["v"].shape
    chunk = int(fixture.params.get("chunk_size", 64))
    scale = mpf(float(fixture.params["scale"])) if "scale" in fixture.params else None
    out = np.zeros(shape)
    finals: dict[tuple[int, int], np.ndarray] = {}
    rows: list[np.ndarray] = []
    for n, (row, first, end) in enumerate(segments(fixture)):
        heads = []
        for head in range(shape[2]):
            case = _Case(fixture, row, head)
            state = case.start(n)
            befores = []
            for token in range(first, end):
                if (token - first) % chunk == 0:
                    befores.append(_floats(fixture, state))
                state = _step(case, token, state)
                q = case.vector("q", token)
                factor = 1 / sqrt(mpf(len(q))) if scale is None else scale
                score = matrix(q).T * state
                out[row, token, head] = [float(factor * score[0, j]) for j in range(shape[3])]
            finals[n, head] = _floats(fixture, state)
            heads.append(befores)
        rows += [np.array(column) for column in zip(*heads)]
    result: Answer = {"o": Tensor.of(out, "f64")}
    if fixture.flag("output_final_state"):
        count = len(segments(fixture))
        stacked = [[finals[n, head] for head in range(shape[2])] for n in range(count)]
        result["final_state"] = Tensor.of(np.array(stacked), "f64")
    if fixture.flag("return_intermediate_states"):
        size = result_state_shape(fixture)
        result["h"] = Tensor.of(np.array(rows).reshape(-1, shape[2], *size), "f64")
    return result


def result_state_shape(fixture: Fixture) -> tuple[int, int]:
    sizes = fixture.inputs["k"].shape[3], fixture.inputs["v"].shape[3]
    return sizes[::-1] if fixture.flag("state_v_first") else sizes


def _floats(fixture: Fixture, state: matrix) -> np.ndarray:
    dense = np.array([[float(state[i, j]) for j in range(state.cols)] for i in range(state.rows)])
    return dense.T if fixture.flag("state_v_first") else dense
