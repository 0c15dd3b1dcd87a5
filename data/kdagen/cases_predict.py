"""Cases of `predict`: coefficients, history and limits."""

from __future__ import annotations

from kdagen.fixture import Fixture

USUAL = {"a": 2e-7, "b": 0.02, "c": 15.0}
PLACE = {"history_len": 0, "page_size": 64, "context_len": 131072}


def predict(name: str, description: str, tags: str = "", drop: tuple[str, ...] = (), **params: float) -> Fixture:
    """The usual case with `params` changed and `drop` left out."""
    every = {"base_chunk_size": 6144} | USUAL | PLACE | params
    kept = {key: value for key, value in every.items() if key not in drop}
    tags = f"predict,{tags}" if tags else "predict"
    return Fixture(f"predict_{name}", "predict", {}, kept, tags, description, "exact-rational")


def answers() -> list[Fixture]:
    curve = {"a": 2.0**-20, "b": 0.0, "c": 0.0, "base_chunk_size": 4096, "smooth_factor": 1.0}

    def near(distance: float) -> float:
        return 2.0**-20 * (4096 - distance) ** 2

    return [
        predict("start", "history 0: 6144, where the cancelling form gives 6080", "smoke,root"),
        predict("mid", "history 65536", base_chunk_size=8192, history_len=65536, c=1.0),
        predict("late", "history 120000", history_len=120000),
        predict("tiny_a", "a = 1e-15: the cancelling form drifts", "root", a=1e-15),
        predict("tinier_a", "a = 1e-20: the cancelling form is a hundred off", "root", a=1e-20),
        predict("b_zero", "no linear part", "root", b=0.0, history_len=30000),
        predict("b_negative", "a negative b at history 0", "root", b=-1e-4),
        predict("huge_history", "history 10^9 in a context of 2·10^9: the floor of a quarter", "floor",
                history_len=10**9, context_len=2 * 10**9),
        predict("floor_quarter", "a far history without smoothing: a quarter of the base", "floor",
                history_len=900000, context_len=10**6, smooth_factor=1.0),
        predict("floor_odd_base", "base 4099: the quarter is 1024", "floor", base_chunk_size=4099,
                history_len=900000, context_len=10**6, smooth_factor=1.0),
        predict("nearly_integer_below", "y = 4095.999999 counts as 4096", "integer", **curve,
                target_latency=near(1e-6)),
        predict("not_nearly_integer", "y = 4095.999 is 4095, aligned 4032", "integer", **curve,
                target_latency=near(1e-3)),
        predict("exact_integer", "y = 4096 exactly", "integer", target_latency=16.0, **curve),
        predict("smooth_0", "smoothing 0 keeps the base", "smooth", history_len=65536, smooth_factor=0.0),
        predict("smooth_065", "smoothing 0.65", "smooth", history_len=65536, smooth_factor=0.65),
        predict("smooth_1", "smoothing 1 is the bare root", "smooth", history_len=65536, smooth_factor=1.0),
        predict("page_1", "page 1 still aligns to 64", "align", history_len=40000, page_size=1),
        predict("page_100", "page 100 aligns to 100", "align", history_len=40000, page_size=100),
        predict("page_128", "page 128", "align", history_len=40000, page_size=128),
        predict("page_16384", "a page above the chunk: one page", "align", history_len=40000, page_size=16384),
        predict("base_32", "a base below 64: one alignment unit", "align", base_chunk_size=32),
        predict("base_unaligned", "base 6100", "align", base_chunk_size=6100),
        predict("max_chunk", "capped at 3000, aligned 2944", "cap", max_chunk_size=3000),
        predict("max_chunk_above", "a cap above the chunk changes nothing", "cap", max_chunk_size=10**6),
        predict("target_given", "a given target beats the derived one", "target", target_latency=500.0),
        predict("target_small", "a small given target", "target", target_latency=1.0, smooth_factor=1.0),
        predict("c_without_effect", "c does not enter", c=-1e9, history_len=20000),
        predict("context_edge_64", "130908 of 131072: 64 fit", "context", history_len=130908),
        predict("context_cap", "the context's end caps the chunk", "context", history_len=128000),
    ]  # fmt: skip


def refusals() -> list[Fixture]:
    none = ("a", "b", "c")
    return [
        predict("not_ready", "no coefficients", "none", none),
        predict("not_ready_first", "no coefficients, no target, no room: not_ready comes first", "none,order", none,
                no_target=1, history_len=131072),
        predict("no_target", "no target", "none", no_target=1),
        predict("no_target_first", "no target and a = 0: no_target comes first", "none,order", no_target=1, a=0.0),
        predict("a_zero", "a = 0", "none", a=0.0),
        predict("a_negative", "a < 0", "none", a=-2e-7),
        predict("a_before_discriminant", "a < 0 and no real root", "none,order", a=-2e-7, target_latency=1e6),
        predict("discriminant_negative", "a target far below 0", "none", target_latency=-1e4),
        predict("discriminant_before_room", "no real root and no room", "none,order", target_latency=-1e4,
                history_len=131072, a=2e-9, b=1e-6),
        predict("chunk_zero", "target 0: x = 0", "none", target_latency=0.0),
        predict("chunk_negative", "a target just below 0: x < 0", "none", target_latency=-10.0),
        predict("context_edge_none", "130909 of 131072: 63 fit, none do", "none,context", history_len=130909),
        predict("history_above_context", "a history longer than the context", "none,context", history_len=140000),
        predict("max_chunk_63", "a cap below the alignment", "none,cap", max_chunk_size=63),
        predict("page_above_cap", "page 256, cap 200", "none,align", page_size=256, max_chunk_size=200),
    ]  # fmt: skip


def all_cases() -> list[Fixture]:
    return answers() + refusals()
