#!/usr/bin/python3
"""Writes the bundled fixtures, or checks that the files still are what this generator makes.

    python3 data/generate.py                    writes data/fixtures/*.h5
    python3 data/generate.py --check            compares; exit 1 and one line for each difference
    python3 data/generate.py --only 'fit_*'     only the fixtures that match
    python3 data/generate.py --list             names and descriptions

Needs NumPy, h5py and mpmath (Debian: python3-numpy python3-h5py python3-mpmath).
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from fnmatch import fnmatchcase
from pathlib import Path

from kdagen import (
    cases_errors,
    cases_faults,
    cases_fit,
    cases_predict,
    cases_prefill,
    cases_small,
    check,
    contracts,
    latency,
    oracle,
    precise,
    store,
)
from kdagen.fixture import Fixture

FIXTURES = Path(__file__).resolve().parent / "fixtures"


def all_fixtures() -> list[Fixture]:
    """Every case, unsolved."""
    orders = {op: [code for code, _ in rules] for op, rules in contracts.RULES.items()}
    fixtures = [
        *cases_prefill.all_cases(),
        *cases_small.all_cases(),
        *cases_faults.all_cases(),
        *cases_errors.all_cases(orders),
        *cases_fit.all_cases(),
        *cases_predict.all_cases(),
    ]
    twice = [name for name, count in Counter(f.name for f in fixtures).items() if count > 1]
    if twice:
        raise ValueError(f"names used twice: {', '.join(twice)}")
    return fixtures


def solve(fixture: Fixture) -> None:
    """Fills in the expected values. What must be refused carries its code from the start."""
    solvers = {"numpy-f64": oracle.answer, "mpmath": precise.answer}
    if fixture.op == "fit":
        fixture.expected = latency.fit(fixture)
    elif fixture.op == "predict":
        fixture.expected = latency.predict(fixture)
    elif fixture.oracle in solvers:
        fixture.expected = solvers[fixture.oracle](fixture)


def write_all(fixtures: list[Fixture]) -> None:
    FIXTURES.mkdir(exist_ok=True)
    for fixture in fixtures:
        solve(fixture)
        store.write(fixture, FIXTURES)
    size = sum(path.stat().st_size for path in FIXTURES.glob("*.h5"))
    print(f"{len(fixtures)} fixtures written, {size / 1e6:.1f} MB in {FIXTURES}")


def check_all(fixtures: list[Fixture], everything: bool) -> int:
    """Prints the differences and returns the exit status."""
    lines: list[str] = []
    for fixture in fixtures:
        solve(fixture)
        lines += check.compare_file(fixture, FIXTURES) + check.confirm(fixture)
    if everything:
        lines += check.strays(fixtures, FIXTURES) + check.coverage(fixtures)
        lines += check.published() + check.causal(fixtures)
    print("\n".join(lines) or f"{len(fixtures)} fixtures agree")
    return 1 if lines else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    parser.add_argument("--only", metavar="GLOB", default="*", help="names to take (default: all)")
    parser.add_argument("--list", action="store_true", help="print the cases and stop")
    options = parser.parse_args()
    fixtures = [fixture for fixture in all_fixtures() if fnmatchcase(fixture.name, options.only)]
    if not fixtures:
        parser.error(f"no fixture is named like {options.only}")
    if options.list:
        print("\n".join(f"{f.name:44} {f.op:14} {f.description}" for f in fixtures))
        return 0
    if options.check:
        return check_all(fixtures, everything=options.only == "*")
    write_all(fixtures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
