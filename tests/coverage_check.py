#!/usr/bin/env python3
"""Holds the coverage of a build with preset `coverage` to its limits and to the list of what is uncovered.

    python3 tests/coverage_check.py SOURCE BUILD            fails where a limit or the list does not hold
    python3 tests/coverage_check.py SOURCE BUILD --missing  prints the lines that the list lacks, to fill in

Each line of tests/uncovered.txt is FILE | text of the source line | reason. A line that no test runs and that
is not listed fails, and so does one that is listed and runs, or is no longer there.

Branches are those of the source: gcovr leaves out the ones that the compiler makes for exceptions
(--exclude-throw-branches) and those of lines without code of their own (--exclude-unreachable-branches).
"""

import json
import subprocess
import sys
from collections import Counter, defaultdict
from pathlib import Path

LEAST_LINES, LEAST_BRANCHES = 98.0, 90.0
GROUPS = {
    "contract": ("reference/types/",),
    "fixture": ("harness/fixture/", "harness/case/"),
    "fit": ("reference/fit", "reference/predictor", "harness/fit/",
            "harness/program/command_fit"),
    "launch": ("cuda/",),
}
NOT_MEASURED = ("cuda/simt/", "cuda/kernels/", "cuda/device/", "harness/case/fill", "harness/case/counter_rng")
COPIES = {"tests/cuda/gpu_device.cpp": "cuda/gpu_device.cu"}  # compiled as C++ from the build folder


def measured(source, build):
    """File -> lines of gcovr, for the files of the groups."""
    out = build / "coverage.json"
    command = ["gcovr", "--root", "/", "--json", str(out), "--exclude-throw-branches", "--exclude-unreachable-branches",
               "--filter", f"{source}/(reference|harness|cuda)/", "--filter", f"{build}/tests/cuda/gpu_device.cpp", "."]
    done = subprocess.run(command, cwd=build, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"gcovr failed:\n{done.stderr}")
    files = {}
    for entry in json.loads(out.read_text())["files"]:
        path = Path("/") / entry["file"]
        name = path.relative_to(build if path.is_relative_to(build) else source).as_posix()
        name = COPIES.get(name, name)
        if group_of(name):
            files[name] = [line for line in entry["lines"] if not line.get("gcovr/noncode")]
    return files


def group_of(name):
    if name.startswith(NOT_MEASURED):
        return None
    return next((group for group, starts in GROUPS.items() if name.startswith(starts)), None)


def read_list(path):
    listed = Counter()
    problems = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line or line.startswith("#"):
            continue
        parts = [part.strip() for part in line.rsplit(" | ", 1)]
        file, _, text = parts[0].partition(" | ")
        if len(parts) != 2 or not text or len(parts[1]) < 10:
            problems.append(f"{path.name}:{number}: wanted FILE | line | reason")
        else:
            listed[file, text.strip()] += 1
    return listed, problems


def share(part, whole):
    return 100.0 * part / whole if whole else 100.0


def main():
    source, build = (Path(argument).resolve() for argument in sys.argv[1:3])
    files = measured(source, build)
    uncovered, places = Counter(), defaultdict(list)
    totals = {group: [0, 0, 0, 0] for group in GROUPS}
    for name, lines in sorted(files.items()):
        text = (source / name).read_text().splitlines()
        total = totals[group_of(name)]
        for line in lines:
            total[0] += line["count"] > 0
            total[1] += 1
            total[2] += sum(branch["count"] > 0 for branch in line["branches"])
            total[3] += len(line["branches"])
            if line["count"] == 0:
                key = name, text[line["line_number"] - 1].strip()
                uncovered[key] += 1
                places[key].append(line["line_number"])
    listed, problems = read_list(source / "tests/uncovered.txt")
    if "--missing" in sys.argv:
        for (name, text), count in sorted((uncovered - listed).items()):
            print(f"{name} | {text} | \n" * count, end="")
        return 0
    print(f"{'':10} {'files':>5} {'lines':>16} {'branches':>16}")
    for group, (lines, all_lines, branches, all_branches) in totals.items():
        number = sum(group_of(name) == group for name in files)
        print(f"{group:10} {number:5} {lines:5}/{all_lines:<5}{share(lines, all_lines):5.1f}%"
              f" {branches:5}/{all_branches:<5}{share(branches, all_branches):5.1f}%")
        if number == 0:
            problems.append(f"{group}: nothing was measured")
        if share(lines, all_lines) < LEAST_LINES:
            problems.append(f"{group}: {share(lines, all_lines):.2f}% of lines, wanted at least {LEAST_LINES}%")
        if share(branches, all_branches) < LEAST_BRANCHES:
            problems.append(f"{group}: {share(branches, all_branches):.2f}% of branches, wanted at least {LEAST_BRANCHES}%")
    for name, text in sorted((uncovered - listed)):
        problems.append(f"{name}:{places[name, text][0]}: no test runs this, and tests/uncovered.txt has no reason: {text}")
    for name, text in sorted(listed - uncovered):
        problems.append(f"{name}: tests run this, or it is gone: take it out of tests/uncovered.txt: {text}")
    print(f"{sum(uncovered.values())} lines uncovered, {sum(listed.values())} listed with a reason")
    for problem in problems:
        print("coverage: " + problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
