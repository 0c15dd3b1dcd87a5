"""Cases of `fit`: samples and the base chunk size."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from kdagen import rng
from kdagen.fixture import Fixture
from kdagen.formats import Tensor

Curve = Callable[[int], float]
LIMIT = 2**53
COLD = 7234.07  # a first sample that took a cold start

# NIST StRD, Pontius: calibration of a load cell, with the certified coefficients of x^2, x and 1.
PONTIUS_LOADS = [150000 * i for i in range(1, 21)] * 2
PONTIUS_CERTIFIED = ("-0.316081871345029E-14", "0.732059160401003E-06", "0.673565789473684E-03")
PONTIUS_DEFLECTIONS = """
 .11019  .21956  .32949  .43899  .54803  .65694  .76562  .87487  .98292 1.09146
1.20001 1.30822 1.41599 1.52399 1.63194 1.73947 1.84646 1.95392 2.06128 2.16844
 .11052  .22018  .32939  .43886  .54798  .65739  .76596  .87474  .98300 1.09150
1.20004 1.30818 1.41613 1.52408 1.63159 1.73965 1.84696 1.95445 2.06177 2.16829
"""


def parabola(a: float, b: float, c: float) -> Curve:
    return lambda x: a * x * x + b * x + c


USUAL = parabola(2e-7, 0.02, 15.0)


def profile_lengths(chunk: int) -> list[int]:
    """The 128 lengths at which a deployment is profiled."""
    span = 1.25 * chunk
    lengths = [int(span - i * (span // 128)) for i in range(128)]
    return [n for n in lengths if n > 0]


def fit(
    name: str, lengths: list[int], latencies: list[float], description: str, tags: str, base: int = 6144
) -> Fixture:
    inputs = {"seq_lens": Tensor.of(np.array(lengths, np.int64), "i64"),
              "latencies": Tensor.of(np.array(latencies, np.float64), "f64")}  # fmt: skip
    tags = f"fit,{tags}" if tags else "fit"
    return Fixture(f"fit_{name}", "fit", inputs, {"base_chunk_size": base}, tags, description, "exact-rational")


def sampled(
    name: str, lengths: list[int], curve: Curve, description: str, tags: str = "", noise: float = 0.0, base: int = 6144,
    change: dict[int, float] | None = None,
) -> Fixture:  # fmt: skip
    """`curve` at `lengths`, with noise, with the latencies in `change` put in by index."""
    jitter = noise * rng.uniform(f"fit_{name}", (len(lengths),), -1.0, 1.0)
    latencies = [curve(x) + float(e) for x, e in zip(lengths, jitter)]
    for index, latency in (change or {}).items():
        latencies[index] = latency
    return fit(name, lengths, latencies, description, tags, base)


def profiles() -> list[Fixture]:
    noise = {512: 1e-3, 1024: 5e-3}
    cases = [
        sampled(f"profile_{chunk}", profile_lengths(chunk), parabola(2e-7, 0.02, 12.0), "a noisy profile, the first "
                "sample cold", "profile", noise.get(chunk, 0.05), chunk, {0: COLD})
        for chunk in (512, 1024, 2048, 4096, 6144, 8192, 16384)
    ]  # fmt: skip
    lengths = profile_lengths(6144)
    last = len(lengths) - 1
    return cases + [
        sampled("profile_clean", lengths, USUAL, "no noise: a = 2e-7, target 130.43 ms", "profile"),
        sampled("profile_cold_first", lengths, USUAL, "no noise but a cold first sample, which is dropped", "profile",
                change={0: COLD}),
        sampled("outlier_largest", lengths, USUAL, "outlier at the largest length kept: target eightfold, b negative",
                "outlier", change={1: COLD}),
        sampled("outlier_middle", lengths, USUAL, "the same outlier in the middle: concave", "outlier",
                change={64: COLD}),
        sampled("outlier_smallest", lengths, USUAL, "the same outlier at the smallest length", "outlier",
                change={last: COLD}),
        sampled("profile_shuffled", lengths[64:] + lengths[:64], USUAL, "the order of samples does not matter",
                "profile", 0.05),
    ]  # fmt: skip


def scales() -> list[Fixture]:
    """Designs that an unscaled system cannot solve."""
    exact = parabola(1e-8, 2e-3, 5.0)
    huge = [i * 2**49 for i in (16, *range(16, 0, -1))]
    deflections = [float(y) for y in PONTIUS_DEFLECTIONS.split()]
    return [
        fit("nist_pontius", [150000, *PONTIUS_LOADS], [9.9, *deflections], "NIST StRD Pontius behind a throwaway sample: "
            "a published parabola that opens downwards", "nist"),
        sampled("narrow_1000000", [1000000, *range(1000000, 1000008)], exact, "lengths 1000000 to 1000007", "narrow"),
        sampled("narrow_131072", [131072 + 64 * i for i in (0, *range(16))], USUAL, "lengths 131072 + 64·i", "narrow"),
        sampled("narrow_steep", [50000, *range(50000, 50008)], lambda x: 0.5 * (x - 50003) ** 2 + (x - 49000), "a deep "
                "parabola on eight neighbours far from 0", "narrow", 1e-3),
        sampled("millions", [4000000 + 250000 * i for i in (0, *range(17))], parabola(3e-11, 4e-5, 8.0), "lengths of "
                "4 to 8 million", "huge", 1e-3, 4000000),
        sampled("hundred_millions", [10**8 + 10**6 * i for i in (0, *range(12))], parabola(1e-14, 1e-6, 3.0), "lengths "
                "of a hundred million", "huge", 1e-4, 10**8),
        sampled("up_to_2_53", huge, parabola(3 * 2.0**-100, 5 * 2.0**-50, 7.0), "lengths up to 2^53 itself", "huge",
                base=2**52),
        sampled("one_to_nine", [1, *range(1, 10)], parabola(0.25, 0.5, 1.0), "lengths 1 to 9", "", base=4),
        sampled("tiny_latencies", list(range(100, 1300, 100)), parabola(1e-18, 1e-13, 1e-12), "picoseconds", "scale"),
        sampled("long_latencies", list(range(100, 1300, 100)), parabola(1e6, 1e8, 1e9), "10^12 ms", "scale", 1e4),
        sampled("negative_c", list(range(100, 1300, 100)), parabola(1e-4, 0.1, -40.0), "c below 0 is no error",
                "scale", 1e-3),
    ]  # fmt: skip


def designs() -> list[Fixture]:
    """Few lengths, repeated lengths, the first sample, the sign of b."""
    ten = [64 * i for i in range(1, 11)]
    nine = [512, *range(512, 4608, 512)]
    bowl = parabola(1e-6, -8e-3, 66.0)
    three = [4096, *[1024, 2048, 4096] * 4]
    first = {"nan": math.nan, "inf": math.inf, "minus_inf": -math.inf}
    return [
        sampled("eight_left", nine, USUAL, "exactly 8 samples left", "boundary"),
        sampled("ten_clean", ten, parabola(1e-4, 0.5, 3.0), "ten clean samples", "smoke", base=512),
        sampled("three_lengths", three, USUAL, "3 distinct lengths, 4 samples each", "rank", 0.01),
        sampled("three_neighbours", [1000, *[1000, 1001, 1002] * 3], parabola(0.5, 2.0, 7.0), "3 neighbouring lengths",
                "rank", 1e-6, 1024),
        sampled("three_lengths_lopsided", [9, *[7] * 6, 8, 4096], USUAL, "3 lengths, one of them far away", "rank"),
        sampled("duplicates", [n for n in ten for _ in range(3)], USUAL, "each length three times", "", 0.01),
        *(
            sampled(f"first_{kind}", nine, USUAL, "a first sample that is not finite is dropped like any first sample",
                    "first", change={0: latency})
            for kind, latency in first.items()
        ),
        sampled("first_length_zero", [0, *nine[1:]], USUAL, "a first length of 0 is dropped too", "first"),
        sampled("first_length_beyond", [LIMIT + 2, *nine[1:]], USUAL, "a first length above 2^53 is dropped too",
                "first"),
        sampled("b_negative", list(range(512, 8704, 512)), bowl, "vertex inside the range: b is negative, set to 0",
                "warning", 0.01),
        sampled("b_negative_narrow", list(range(4000, 4200, 10)), parabola(1e-3, -7.0, 13000.0), "b negative on a "
                "narrow range", "warning", 0.001, 4096),
        sampled("curvature_barely", list(range(1000, 3100, 100)), parabola(1e-16, 1.0, 2.0), "bent by 3e-14 of the "
                "latencies: noise, not curvature", "curvature"),
        sampled("curvature_enough", list(range(1000, 3100, 100)), parabola(1e-13, 1.0, 2.0), "bent by 3e-11 of the "
                "latencies: little, but curvature", "curvature"),
        sampled("base_one", nine, USUAL, "the smallest base", "boundary", base=1),
    ]  # fmt: skip


def errors() -> list[Fixture]:
    ten = [512 * i for i in range(1, 11)]
    good = [USUAL(x) for x in ten]
    kept = 5

    def changed(name: str, description: str, length: int | None = None, latency: float | None = None) -> Fixture:
        lengths, latencies = list(ten), list(good)
        lengths[kept] = ten[kept] if length is None else length
        latencies[kept] = good[kept] if latency is None else latency
        return fit(name, lengths, latencies, description, "error")

    two = [99, *[1024] * 4, *[4096] * 4]
    return [
        fit("mismatch", ten, good[:-1], "ten lengths, nine latencies", "error"),
        fit("mismatch_before_count", ten[:4], good[:3], "too few as well: the mismatch comes first", "error,order"),
        fit("mismatch_empty", [], good[:1], "no lengths, one latency", "error,order"),
        fit("seven_left", ten[:8], good[:8], "8 samples, 7 after the first is dropped", "error"),
        fit("one_sample", ten[:1], good[:1], "one sample, none left", "error"),
        fit("no_samples", [], [], "no samples", "error"),
        fit("seven_left_nan", ten[:8], [*good[:7], math.nan], "too few and a NaN: count comes first", "error,order"),
        changed("kept_nan", "a NaN latency", latency=math.nan),
        changed("kept_inf", "an infinite latency", latency=math.inf),
        changed("kept_minus_inf", "an infinite latency", latency=-math.inf),
        changed("kept_length_zero", "a length of 0", length=0),
        changed("kept_length_negative", "a negative length", length=-512),
        changed("kept_length_beyond", "a length of 2^53 + 1", length=LIMIT + 1),
        fit("nan_before_rank", two, [1.0, *[10.0] * 7, math.nan], "a NaN and 2 lengths: the NaN comes first",
            "error,order"),
        fit("one_length", [4096] * 9, [100.0] * 9, "one length: upstream returns a = 5.96e-6", "error,rank"),
        fit("two_lengths", two, [1.0, *[10.0] * 4, *[70.0] * 4], "two lengths", "error,rank"),
        fit("two_lengths_first_third", [2048, *two[1:]], [1.0, *[10.0] * 4, *[70.0] * 4], "the dropped sample does not "
            "count as a third length", "error,rank"),
        sampled("linear", profile_lengths(6144), parabola(0.0, 0.02, 15.0), "a model without attention: straight",
                "error,curvature"),
        sampled("constant", ten, parabola(0.0, 0.0, 10.0), "constant", "error,curvature"),
        sampled("all_zero", ten, parabola(0.0, 0.0, 0.0), "all latencies 0", "error,curvature"),
        sampled("concave", ten, lambda x: 5.0 * math.sqrt(x), "5·sqrt(l)", "error,curvature"),
        sampled("a_negative", ten, parabola(-2e-7, 0.02, 1.0), "a is clearly negative", "error", 0.001),
        fit("target_base_zero", ten, good, "base 0: the target is 0", "error", base=0),
        fit("target_base_negative", ten, good, "a negative base", "error", base=-64),
    ]  # fmt: skip


def all_cases() -> list[Fixture]:
    return profiles() + scales() + designs() + errors()
