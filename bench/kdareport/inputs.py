"""Reads the JSON files of other subcommands and says what each of them is.

Whatever is wrong with a file ends as one InputError that names the file, the field, what was wanted
and what was got; a file of another tool or of a later version is never taken for one of ours.
"""
import json
import math
import os
from dataclasses import dataclass, field

MOST_BYTES = 512 << 20

# "format" of a file -> (kind, versions that this page understands)
FORMATS = {
    "kdacheck-report": ("check", (1,)),
    "kdacheck-mutation": ("mutate", (1,)),
    "kdacheck-counters": ("counters", (1,)),
    "kdacheck-bench-comparison": ("comparison", (1,)),
}
BENCH_VERSIONS = ("1",)


class InputError(Exception):
    """One line that names the file and what is wrong with it."""


@dataclass
class Source:
    """One file that was read."""
    path: str
    kind: str  # "check", "mutate", "bench", "counters", "comparison"
    data: dict


@dataclass
class Inputs:
    """What a page is made from, by kind, in the order of the command line."""
    sources: list = field(default_factory=list)
    base: list = field(default_factory=list)

    def of(self, kind):
        return [source for source in self.sources if source.kind == kind]

    def base_of(self, kind):
        return [source for source in self.base if source.kind == kind]


def shown(value):
    """A value from a file, short enough for an error line."""
    text = json.dumps(value, ensure_ascii=True, default=str)
    return text if len(text) <= 60 else text[:57] + "..."


def want(path, where, value, types, what):
    """The value, when it has one of the types; bool is no number here."""
    wrong_bool = isinstance(value, bool) and bool not in (types if isinstance(types, tuple) else (types,))
    if wrong_bool or not isinstance(value, types):
        raise InputError(f"{path}: {where}: wanted {what}, got {shown(value)}")
    return value


def number(value):
    """A float from JSON as kdacheck writes it ("inf", "-inf", "nan" are strings); None if it is none."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    if value in ("inf", "-inf", "nan"):
        return float(value)
    return None


def read_json(path):
    """The object in the file."""
    try:
        if os.path.getsize(path) > MOST_BYTES:
            raise InputError(f"{path}: larger than {MOST_BYTES >> 20} MiB, which no report is")
        with open(path, "rb") as file:
            raw = file.read()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None
    if not raw.strip():
        raise InputError(f"{path}: empty file, wanted JSON. Did the run that writes it end early?")
    try:
        data = json.loads(raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not UTF-8 at byte {error.start}, wanted JSON") from None
    except json.JSONDecodeError as error:
        raise InputError(f"{path}: no JSON, or cut short: {error.msg} at line {error.lineno}, "
                         f"column {error.colno}") from None
    except (RecursionError, ValueError) as error:  # nested too deep; integers of too many digits
        raise InputError(f"{path}: JSON that no subcommand writes: {error}") from None
    return want(path, "top level", data, dict, "an object")


def classify(path, data):
    """The kind of file, with what every reader relies on checked."""
    name = data.get("format")
    if name is not None:
        if not isinstance(name, str) or name not in FORMATS:
            raise InputError(f"{path}: format: wanted one of {', '.join(FORMATS)}, or a file of Google "
                             f"Benchmark, got {shown(name)}")
        kind, versions = FORMATS[name]
        version = data.get("version")
        if isinstance(version, bool) or version not in versions:
            raise InputError(f"{path}: version: wanted {' or '.join(map(str, versions))} of {name}, got "
                             f"{shown(version)}. Use the kdacheck that wrote it")
        CHECKS[kind](path, data)
        return kind
    if "benchmarks" in data or "context" in data:
        check_bench(path, data)
        return "bench"
    raise InputError(f"{path}: neither `format` of a kdacheck file nor `benchmarks` of Google Benchmark is in "
                     f"it; its keys are {shown(sorted(map(str, data)))}")


def objects(path, where, value):
    """The list, when it holds objects only."""
    want(path, where, value, list, "a list")
    for i, entry in enumerate(value):
        want(path, f"{where}[{i}]", entry, dict, "an object")
    return value


def strings(path, where, entry, required, optional=()):
    for key in required:
        want(path, f"{where}.{key}", entry.get(key), str, "a string")
    for key in optional:
        if key in entry:
            want(path, f"{where}.{key}", entry[key], str, "a string")


def check_check(path, data):
    want(path, "environment", data.get("environment", {}), dict, "an object")
    want(path, "input_errors", data.get("input_errors", []), list, "a list")
    for i, bias in enumerate(objects(path, "bias", data.get("bias", []))):
        strings(path, f"bias[{i}]", bias, ("implementation",))
    for i, result in enumerate(objects(path, "results", data.get("results"))):
        where = f"results[{i}]"
        strings(path, where, result, ("name", "op", "implementation", "verdict"),
                ("command", "file", "case", "code", "detail", "oracle", "policy", "tags", "formats", "output",
                 "known_failure"))
        for j, tensor in enumerate(objects(path, f"{where}.tensors", result.get("tensors", []))):
            strings(path, f"{where}.tensors[{j}]", tensor, ("name",), ("reason", "detail", "dtype"))
            for key in ("worst", "first_bad", "metrics", "window", "tokens", "sigma"):
                want(path, f"{where}.tensors[{j}].{key}", tensor.get(key, {}), dict, "an object")


def check_mutate(path, data):
    for name, counts in want(path, "counts", data.get("counts", {}), dict, "an object").items():
        want(path, f"counts.{name}", counts, dict, "an object")
    for i, mutant in enumerate(objects(path, "mutants", data.get("mutants"))):
        strings(path, f"mutants[{i}]", mutant, ("name", "state"))


def check_counters(path, data):
    for i, case in enumerate(objects(path, "cases", data.get("cases"))):
        strings(path, f"cases[{i}]", case, ("case",), ("implementation",))
        for j, launch in enumerate(objects(path, f"cases[{i}].launches", case.get("launches", []))):
            strings(path, f"cases[{i}].launches[{j}]", launch, ("kernel",))
            want(path, f"cases[{i}].launches[{j}].counters", launch.get("counters"), dict, "an object")
    for i, kernel in enumerate(objects(path, "kernels", data.get("kernels", []))):
        strings(path, f"kernels[{i}]", kernel, ("kernel",), ("arch", "file", "limited_by"))


def check_comparison(path, data):
    for i, line in enumerate(objects(path, "lines", data.get("lines"))):
        strings(path, f"lines[{i}]", line, ("verdict",), ("name", "reason"))


def check_bench(path, data):
    context = want(path, "context", data.get("context", {}), dict, "an object")
    version = context.get("kdacheck_bench", BENCH_VERSIONS[0])
    if version not in BENCH_VERSIONS:
        raise InputError(f"{path}: context.kdacheck_bench: wanted {' or '.join(BENCH_VERSIONS)}, got "
                         f"{shown(version)}. Use the kdacheck that wrote it")
    for i, entry in enumerate(objects(path, "benchmarks", data.get("benchmarks"))):
        strings(path, f"benchmarks[{i}]", entry, ("name",),
                ("run_name", "run_type", "time_unit", "error_message", "label"))


CHECKS = {"check": check_check, "mutate": check_mutate, "counters": check_counters,
          "comparison": check_comparison}


def load(paths):
    """Reads every file; all that is wrong with any of them is raised as one error of several lines."""
    sources, problems = [], []
    for path in paths:
        try:
            data = read_json(path)
            sources.append(Source(path, classify(path, data), data))
        except InputError as error:
            problems.append(str(error))
    if problems:
        raise InputError("\n".join(problems))
    return sources
