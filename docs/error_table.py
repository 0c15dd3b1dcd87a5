#!/usr/bin/env python3
"""Writes docs/errors.md: every error code, who raises it, with which words, the fix, and what provokes it.

    python3 docs/error_table.py            writes the table
    python3 docs/error_table.py --check    fails when a row is missing or wrong, when a code is raised nowhere
                                           or provoked by no test, or when an error is thrown without a code
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from pathlib import Path

import h5py

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/errors.md"
SOURCES = ("reference", "harness", "cuda")
NOT_RAISED_HERE = ("reference/types/error.hpp", "reference/types/error.cpp")

# Why a class of codes has no fixture: a fixture holds inputs of a call, not the way it was made.
NO_FIXTURE = {
    2: "samples with this fault are made by the tests",
    3: "the command line and the machine are in no fixture",
    4: "pointers, pools and devices are in no fixture",
    5: "broken files are made by the tests",
}
# A test that names more codes than this only lists them.
MOST_PROVOKED = 10
# What may be thrown without naming a code: an Error caught before, or that memory is out (its handler gives the code).
CODELESS = re.compile(r"throw\s*;|throw\s+\*error\b|throw\s+std::bad_alloc\(\)|throw\s+(kda::)?(harness::)?(Error|Failure|Fault|Refusal|Interrupted)\b")


def sources(*folders: str) -> list[Path]:
    files = [sorted((ROOT / folder).rglob("*")) for folder in folders]
    return [p for folder in files for p in folder if p.suffix in (".cpp", ".hpp", ".cu")]


def declared() -> list[tuple[str, int]]:
    text = (ROOT / "reference/types/error.hpp").read_text()
    return [(name, int(number)) for name, number in re.findall(r"^  (k\w+) = (\d+),", text, re.M)]


def literal(text: str) -> str:
    """Adjacent C++ string literals as one."""
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', text)).replace('\\"', '"')


def described() -> dict[str, tuple[str, str, str]]:
    """Enumerator -> name, meaning, fix."""
    text = (ROOT / "reference/types/error.cpp").read_text()
    string = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
    rows = re.findall(r"\{(k\w+),\s*" + ",\\s*".join([string] * 3) + r"\}", text)
    return {row[0]: (literal(row[1]), literal(row[2]), literal(row[3])) for row in rows}


def raised() -> dict[str, list[tuple[str, str]]]:
    """Enumerator -> (file, first words of the message there)."""
    found = defaultdict(list)
    for path in sources(*SOURCES):
        name = path.relative_to(ROOT).as_posix()
        if name in NOT_RAISED_HERE:
            continue
        text = re.sub(r"//.*", "", path.read_text())
        for match in re.finditer(r"\bk[A-Z]\w+\b", text):
            statement = text[match.end() : match.end() + 400].split(";")[0]
            words = re.findall(r'"((?:[^"\\\n]|\\.)+)"', statement)
            found[match.group()].append((name, next((word for word in words if word.count(" ") > 1), "")))
    return found


def tests_by_word() -> dict[str, set[str]]:
    """Enumerator or code name -> tests whose body mentions it."""
    found = defaultdict(set)
    codes = {enumerator for enumerator, _ in declared()}
    for path in sources("tests"):
        text = path.read_text()
        tests = list(re.finditer(r"^(?:TYPED_)?TEST(?:_[FP])?\(\s*(\w+),\s*(\w+)\)", text, re.M))
        for i, test in enumerate(tests):
            end = tests[i + 1].start() if i + 1 < len(tests) else len(text)
            mentioned = set(re.findall(r"\bk[A-Z]\w+\b|\"[a-z_0-9]+\"", text[test.start() : end]))
            if len(mentioned & codes) > MOST_PROVOKED:  # a list of codes, not a provocation
                continue
            for word in mentioned:
                found[word.strip('"')].add(f"{test[1]}.{test[2]}")
        # Tables of parameters stand above their tests; those that go through them expect what the table says.
        through = re.findall(r"^TEST_P\(\s*(\w+),\s*(\w+)\) \{(?:\n .*|\n)*?.*\bexpect_\w+\(", text, re.M)
        head = text[: tests[0].start()] if tests else text
        for word in re.findall(r"\bErrorCode::(k[A-Z]\w+)\b|\b(k[A-Z]\w+),", head):
            found[word[0] or word[1]].update(f"{group}.{name}" for group, name in through)
    for path in sorted((ROOT / "tests").rglob("*_test.py")):
        if path.name == "error_table_test.py":  # names codes, and provokes none
            continue
        group = ""
        for line in path.read_text().splitlines():
            if match := re.match(r"\s*(class|def) (\w+)", line):
                group = match[2] if match[1] == "class" else group.split(".")[0] + "." + match[2]
            for word in re.findall(r"\b[a-z]+(?:_[a-z0-9]+)+\b", line):
                found[word].add(f"{path.stem}: {group}")
    return found


def fixtures_by_code() -> dict[str, list[str]]:
    found = defaultdict(list)
    for path in sorted((ROOT / "data/fixtures").rglob("*.h5")):
        with h5py.File(path) as file:
            error = file["expected"].attrs.get("error") if "expected" in file else None
            warning = file["expected"].attrs.get("warning") if "expected" in file else None
        for code in (error, warning):
            if code is not None:
                found[code.decode() if isinstance(code, bytes) else str(code)].append(path.stem)
    return found


def codeless() -> list[str]:
    bad = []
    for path in sources(*SOURCES):
        if path.name.startswith("faults_"):  # planted on purpose
            continue
        for number, line in enumerate(path.read_text().splitlines(), 1):
            code = line.split("//")[0]
            if re.search(r"\bthrow\b", code) and not CODELESS.search(code) and not re.search(r"\bthrow\s*$", code):
                bad.append(f"{path.relative_to(ROOT)}:{number}: {line.strip()}")
    return bad


def few(items: list[str], most: int = 3) -> str:
    shown = ", ".join(f"`{item}`" for item in items[:most])
    return shown + (f" and {len(items) - most} more" if len(items) > most else "")


def cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\\n", " ").replace("{}", "…")


def tests_before(table: str) -> dict[str, str]:
    """Name -> the tests that the table gives for it."""
    rows = [re.split(r"(?<!\\)\|", line) for line in table.splitlines() if re.match(r"\| \d", line)]
    return {row[2].strip(" `"): row[7].strip() for row in rows}


def lasting(table: str) -> set[tuple[str, str, str]]:
    """Name, meaning and fix of every row: what must be up to date in every commit. Names of tests and places
    change with every refactoring and are brought up to date when the table is next made."""
    rows = [re.split(r"(?<!\\)\|", line) for line in table.splitlines() if re.match(r"\| \d", line)]
    return {(row[2].strip(), row[3].strip(), row[6].strip()) for row in rows}


def main() -> int:
    problems = [f"an error without a code: {place}" for place in codeless()]
    words, places, tests, fixtures = described(), raised(), tests_by_word(), fixtures_by_code()
    before = tests_before(TABLE.read_text()) if TABLE.exists() else {}
    lines = [
        "# Error codes",
        "",
        "Made by `docs/error_table.py` from the sources; a test keeps it up to date. `kdacheck list errors` prints codes and fixes.",
        "The words are those of one place that raises the code, else what it means; … stands for what was got.",
        "",
        "| code | name | means | raised by | words | fix | tests | fixtures |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for enumerator, number in declared():
        name, meaning, fix = words[enumerator]
        raisers = list(dict.fromkeys(file for file, _ in places[enumerator]))
        message = next((text for _, text in places[enumerator] if text), meaning)
        provoking = sorted(tests[enumerator] | tests[name])
        if not raisers:
            problems.append(f"{name}: nothing raises it")
        if not provoking:
            was = before.get(name)
            problems.append(f"{name}: no test provokes it" + (f" any more; it was {was}" if was else ""))
        held = fixtures[name]
        if not held and number // 100 not in NO_FIXTURE:
            problems.append(f"{name}: no fixture provokes it")
        fixture = f"{len(held)}: {few(held, 2)}" if held else f"none: {NO_FIXTURE.get(number // 100, '')}"
        row = (str(number), f"`{name}`", meaning, few(raisers, 2), message, fix, few(provoking), fixture)
        lines.append("| " + " | ".join(cell(text) for text in row) + " |")
    text = "\n".join(lines) + "\n"
    if "--check" not in sys.argv:
        TABLE.write_text(text)
    else:
        old = lasting(TABLE.read_text()) if TABLE.exists() else set()
        changed = sorted(name for name, _, _ in lasting(text) ^ old)
        if changed:
            problems.append(f"docs/errors.md is out of date ({', '.join(changed)}); run python3 docs/error_table.py")
    for problem in problems:
        print("error_table: " + problem, file=sys.stderr)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
