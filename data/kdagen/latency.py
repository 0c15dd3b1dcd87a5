"""The latency fit in exact rationals, and the chunk-size prediction to 200 digits."""

from __future__ import annotations

import math
from fractions import Fraction

from mpmath import mp, mpf, sqrt

from kdagen.fixture import Answer, Fixture

FIT_CODES = (
    "fit_length_mismatch",
    "fit_not_enough_points",
    "fit_failed",
    "fit_insufficient_rank",
    "fit_a_not_positive",
    "fit_target_latency_not_positive",
)
FIT_WARNINGS = ("fit_b_negative",)
NO_ANSWER_REASONS = (
    "not_ready",
    "no_target",
    "a_not_positive",
    "discriminant_negative",
    "chunk_not_positive",
    "below_alignment",
)

MIN_POINTS = 8
MAX_LENGTH = 2**53
CURVATURE_FLOOR = Fraction(1, 10**12)
ROUNDING_SHARE = Fraction(1, 10**9)  # of the base: a chunk this near an integer counts as that integer
PREDICT_DIGITS = 200

Coefficients = tuple[Fraction, Fraction, Fraction]


class Ambiguous(Exception):
    """A case so near a threshold that correct implementations could disagree."""


def least_squares(lengths: list[int], values: list[Fraction]) -> Coefficients:
    """a, b, c of the exact least-squares parabola, by Cramer's rule on the normal equations."""
    power = [sum(Fraction(x) ** n for x in lengths) for n in range(5)]
    moment = [sum(Fraction(x) ** n * y for x, y in zip(lengths, values)) for n in range(3)]
    columns = [[power[4], power[3], power[2]], [power[3], power[2], power[1]], [power[2], power[1], power[0]]]
    right = [moment[2], moment[1], moment[0]]
    whole = _determinant(columns)
    return tuple(_determinant(columns[:i] + [right] + columns[i + 1 :]) / whole for i in range(3))


def _determinant(m: list[list[Fraction]]) -> Fraction:
    return (
        m[0][0] * (m[1][1] * m[2][2] - m[1][2] * m[2][1])
        - m[0][1] * (m[1][0] * m[2][2] - m[1][2] * m[2][0])
        + m[0][2] * (m[1][0] * m[2][1] - m[1][1] * m[2][0])
    )


def fit(fixture: Fixture) -> Answer:
    lengths = fixture.inputs["seq_lens"].values().tolist()
    latencies = fixture.inputs["latencies"].values().tolist()
    code = _unusable(lengths, latencies)
    if code:
        return {"error": code}
    kept, values = lengths[1:], [Fraction(y) for y in latencies[1:]]
    a, b, c = least_squares(kept, values)
    raw = {"raw_a": float(a), "raw_b": float(b), "raw_c": float(c)}
    ratio = _curvature_ratio(a, kept, values)
    if ratio <= 1:
        return {"error": "fit_a_not_positive"} | (raw if ratio < -1 else {})
    target = _target(a, max(b, Fraction(0)), int(fixture.params["base_chunk_size"]))
    if target <= 0:
        return {"error": "fit_target_latency_not_positive"} | raw
    answer: Answer = {"a": float(a), "b": max(float(b), 0.0), "c": float(c), "target_latency": float(target)}
    return answer | ({"warning": "fit_b_negative"} if b < 0 else {})


def _unusable(lengths: list[int], latencies: list[float]) -> str:
    """The code of what keeps the samples from being fitted, or nothing."""
    if len(lengths) != len(latencies):
        return "fit_length_mismatch"
    if len(lengths) - 1 < MIN_POINTS:
        return "fit_not_enough_points"
    if not all(math.isfinite(y) for y in latencies[1:]) or not all(0 < x <= MAX_LENGTH for x in lengths[1:]):
        return "fit_failed"
    return "fit_insufficient_rank" if len(set(lengths[1:])) < 3 else ""


def _curvature_ratio(a: Fraction, lengths: list[int], values: list[Fraction]) -> Fraction:
    """The bend over the range against the smallest that counts: above 1 the curve is convex, below −1 concave."""
    half_range = Fraction(max(lengths) - min(lengths), 2)
    floor = CURVATURE_FLOOR * max(abs(y) for y in values)
    if floor == 0:
        return Fraction(0)
    ratio = a * half_range**2 / floor
    if Fraction(1, 5) < abs(ratio) < 5:
        raise Ambiguous(f"curvature {float(ratio):.2g} times the floor")
    return ratio


def _target(a: Fraction, b: Fraction, base: int) -> Fraction:
    return a * base * base + b * base


def predict(fixture: Fixture) -> Answer:
    with mp.workdps(PREDICT_DIGITS):
        answer = _predict(fixture.params, fixture.flag("no_target"))
    return {"none": answer} if isinstance(answer, str) else {"chunk_size": answer}


def _predict(params: dict[str, int | float], no_target: bool) -> int | str:
    if "a" not in params:
        return "not_ready"
    if no_target:
        return "no_target"
    a, b = Fraction(params["a"]), Fraction(params["b"])
    base, history = int(params["base_chunk_size"]), int(params["history_len"])
    if a <= 0:
        return "a_not_positive"
    target = Fraction(params["target_latency"]) if "target_latency" in params else _target(a, b, base)
    slope = 2 * a * history + b
    discriminant = slope * slope + 4 * a * target
    if discriminant < 0:
        return "discriminant_negative"
    x = (_real(-slope) + sqrt(_real(discriminant))) / _real(2 * a)
    if x <= 0:
        return "chunk_not_positive"
    smooth = _real(Fraction(params.get("smooth_factor", 0.75)))
    return _aligned(params, max(_whole(base + smooth * (x - base), base), base // 4))


def _real(value: Fraction) -> mpf:
    return mpf(value.numerator) / mpf(value.denominator)


def _whole(y: mpf, base: int) -> int:
    """Truncated, unless rounding noise alone keeps `y` from the nearest integer."""
    nearest = int(mp.nint(y))
    share = abs(y - nearest) / (_real(ROUNDING_SHARE) * base)
    if mpf("0.5") < share < 2:
        raise Ambiguous(f"chunk {mp.nstr(y, 20)}")
    return nearest if share <= 1 else int(y)


def _aligned(params: dict[str, int | float], chunk: int) -> int | str:
    align = max(int(params["page_size"]), 64)
    chunk = max(chunk // align * align, align)
    limits = [int(params["context_len"]) - int(params["history_len"]) - 100]
    if "max_chunk_size" in params:
        limits.append(int(params["max_chunk_size"]))
    chunk = min(chunk, *limits) // align * align
    return chunk if chunk >= align else "below_alignment"
