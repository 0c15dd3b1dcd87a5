"""Compares fixture files with freshly built fixtures, and the set of fixtures with what it must cover."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import numpy as np

from kdagen import oracle, precise, store
from kdagen.cases_fit import PONTIUS_CERTIFIED, PONTIUS_DEFLECTIONS, PONTIUS_LOADS
from kdagen.contracts import RULES, first_broken
from kdagen.fixture import Answer, Fixture
from kdagen.formats import Tensor
from kdagen.latency import FIT_CODES, FIT_WARNINGS, NO_ANSWER_REASONS, least_squares

TOLERANCE = 1e-13
HASH_KEY = (b"/", b"A", store.HASH.encode())


def relative_difference(got: np.ndarray, wanted: np.ndarray) -> float:
    """max|Δ| / max|wanted|; NaN or Inf on one side only is infinitely far."""
    if got.size == 0 or np.array_equal(got, wanted):
        return 0.0
    size = np.abs(wanted).max()
    with np.errstate(divide="ignore", invalid="ignore"):
        distance = np.abs(got - wanted).max() / size
    return float(distance) if np.isfinite(distance) else float("inf")


def compare_file(fixture: Fixture, folder: Path) -> list[str]:
    """What differs between the file of `fixture` and the fixture."""
    path = folder / f"{fixture.name}.h5"
    if not path.exists():
        return [f"{path.name}: missing"]
    try:
        stored = store.read(path)
    except (OSError, ValueError) as error:
        return [f"{path.name}: {error}"]
    lines = []
    digest = stored.pop(HASH_KEY, None)
    if digest is None or digest.data.decode() != store.content_sha256(stored):
        lines.append(f"{path.name}: content_sha256 does not match the content")
    wanted = store.records(fixture)
    for key in sorted(stored.keys() | wanted.keys()):
        difference = _record_difference(key, stored.get(key), wanted.get(key))
        if difference:
            place = "@".join(part.decode() for part in (key[0], key[2]) if part)
            lines.append(f"{path.name}: {place}: {difference}")
    return lines


def _record_difference(key: store.Key, got: store.Record | None, wanted: store.Record | None) -> str:
    if got is None or wanted is None:
        return "missing" if got is None else "not generated"
    if got == wanted:
        return ""
    if (got.dtype, got.shape) != (wanted.dtype, wanted.shape):
        return f"is {got.dtype} {got.shape}, generated {wanted.dtype} {wanted.shape}"
    if not key[0].startswith(b"/expected") or got.dtype != "f64":
        return "differs"
    distance = relative_difference(got.tensor().data, wanted.tensor().data)
    return "" if distance <= TOLERANCE else f"differs by {distance:.1e} of the largest"


def strays(fixtures: list[Fixture], folder: Path) -> list[str]:
    names = {f"{fixture.name}.h5" for fixture in fixtures}
    return [f"{path.name}: no such case" for path in sorted(folder.glob("*")) if path.name not in names]


def confirm(fixture: Fixture) -> list[str]:
    """A second opinion on a solved fixture: 60 digits on tiny cases, the contract's rules on all of them."""
    if fixture.op not in RULES:
        return []
    code = first_broken(fixture)
    if code or "error" in fixture.expected:
        wanted = fixture.expected.get("error", "")
        return [] if code == wanted else [f"{fixture.name}: the rules say {code!r}, the case {wanted!r}"]
    if precise.work(fixture) > precise.WORK_LIMIT:
        return []
    other = oracle.answer(fixture) if fixture.oracle == "mpmath" else precise.answer(fixture)
    return _answer_differences(fixture, other)


def _answer_differences(fixture: Fixture, other: Answer) -> list[str]:
    lines = []
    for name, tensor in fixture.expected.items():
        assert isinstance(tensor, Tensor)
        distance = relative_difference(tensor.data, other[name].data)
        if not distance <= TOLERANCE:
            lines.append(f"{fixture.name}: {name}: oracle and 60 digits differ by {distance:.1e}")
    return lines


def coverage(fixtures: list[Fixture]) -> list[str]:
    """Every code of every contract, every code of fit, every reason of predict occurs."""
    seen = {(f.op, value) for f in fixtures for value in f.expected.values() if isinstance(value, str)}
    required = [(op, code) for op, rules in RULES.items() for code, _ in rules]
    required += [("fit", code) for code in (*FIT_CODES, *FIT_WARNINGS)]
    required += [("predict", reason) for reason in NO_ANSWER_REASONS]
    return [f"no {op} fixture for {code}" for op, code in required if (op, code) not in seen]


def published(digits: float = 1e-14) -> list[str]:
    """The NIST data, taken as decimals, must give NIST's certified coefficients."""
    deflections = [Fraction(y) for y in PONTIUS_DEFLECTIONS.split()]
    fitted = least_squares(PONTIUS_LOADS, deflections)
    wrong = any(abs(got / Fraction(wanted) - 1) > digits for got, wanted in zip(fitted, PONTIUS_CERTIFIED))
    return ["the Pontius data do not give the certified coefficients"] if wrong else []


def causal(fixtures: list[Fixture]) -> list[str]:
    """The first 6 outputs of the solved cases *_causality_{base,edited,cut} are equal to the bit."""
    lines = []
    outputs = {fixture.name: fixture.expected["o"].data[:, :6] for fixture in fixtures if "family6" in fixture.tags}
    for name, output in outputs.items():
        base = outputs[name.rsplit("_", 1)[0] + "_base"]
        if not np.array_equal(output, base):
            lines.append(f"{name}: the first 6 outputs differ from those of the base")
    return lines
