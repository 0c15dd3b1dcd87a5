#!/usr/bin/env python3
"""Keeps results of `kdacheck bench --json` (times or counters) as a history of JSON lines.

    bench/record.py new.json --history history.jsonl                      one more line
    bench/record.py new.json --history history.jsonl --baseline base.json and new.json becomes the base
    bench/record.py --history history.jsonl --show 'impl/fast/*'          medians, oldest first

A line of the history: {"format": "kdacheck-history", "version": 1, "kind": "times" or "counters", "date",
"commit", "host", "cpu", "gpu", "compiler", "results"}; results are {name: {"median_s", "repetitions"}} of
times and {"implementation: case": totals} of counters. Exit status: 0 done, 2 unreadable input.
"""
import argparse
import datetime
import fnmatch
import json
import os
import shutil
import statistics
import subprocess
import sys

UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


class Bad(Exception):
    pass


def read_json(path):
    try:
        with open(path, encoding="utf-8") as file:
            return json.load(file)
    except (OSError, ValueError) as error:
        raise Bad(f"{path}: {error}") from error


def medians(path, data):
    """Of the lines that have usable times; others are left out and named on standard error."""
    times, problems = {}, {}
    for entry in data["benchmarks"]:
        if not isinstance(entry, dict) or entry.get("run_type") == "aggregate":
            continue
        name = entry.get("run_name") or entry.get("name")
        time, unit = entry.get("real_time"), UNITS.get(entry.get("time_unit", "ns"))
        if entry.get("error_occurred"):
            problems[name] = entry.get("error_message", "an error")
        elif unit is None or not isinstance(time, (int, float)) or not 0 < time < float("inf"):
            problems[name] = "no positive time"
        else:
            times.setdefault(name, []).append(time * unit)
    for name, problem in problems.items():
        if not problem.startswith("skipped: "):
            print(f"{path}: {name} is left out: {problem}", file=sys.stderr)
        times.pop(name, None)
    return {name: {"median_s": statistics.median(t), "repetitions": len(t)}
            for name, t in times.items()}


def line_of(path, commit):
    data = read_json(path)
    line = {"format": "kdacheck-history", "version": 1}
    if isinstance(data, dict) and data.get("format") == "kdacheck-counters":
        if data.get("version") != 1:
            raise Bad(f"{path}: expected counters of version 1, got {data.get('version')}")
        return line | {"kind": "counters", "date": now(), "commit": commit or git_commit(),
                       "results": {f"{case['implementation']}: {case['case']}": case["total"]
                                   for case in data["cases"]}}
    if not isinstance(data, dict) or not isinstance(data.get("benchmarks"), list) \
            or not isinstance(data.get("context"), dict):
        raise Bad(f"{path}: expected a file of kdacheck bench --json")
    context = data["context"]
    if context.get("kdacheck_bench", "1") != "1":
        raise Bad(f"{path}: expected kdacheck_bench 1, got {context['kdacheck_bench']}")
    results = medians(path, data)
    if not results:
        raise Bad(f"{path}: no benchmark has times")
    return line | {"kind": "times", "date": context.get("date") or now(),
                   "commit": commit or context.get("commit", "unknown"),
                   "host": context.get("host_name"), "cpu": context.get("cpu"),
                   "gpu": context.get("gpu"), "compiler": context.get("compiler"),
                   "results": results}


def now():
    return datetime.datetime.now().astimezone().isoformat(timespec="seconds")


def git_commit():
    said = subprocess.run(["git", "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True,
                          check=False)
    return said.stdout.strip() or "unknown"


def show(path, pattern):
    try:
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(text) for text in file if text.strip()]
    except (OSError, ValueError) as error:
        raise Bad(f"{path}: {error}") from error
    for line in lines:
        for name, result in sorted(line.get("results", {}).items()):
            if not fnmatch.fnmatch(name, pattern):
                continue
            value = f"{result['median_s']:.6g} s" if "median_s" in result else \
                " ".join(f"{k}={v}" for k, v in sorted(result.items()) if v)
            print(f"{line['date']}  {line['commit']}  {name}  {value}")


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("result", nargs="?", help="a file of kdacheck bench --json")
    parser.add_argument("--history", required=True, help="file of JSON lines, made when missing")
    parser.add_argument("--baseline", help="copy the result here, as the base of --compare")
    parser.add_argument("--commit", help="what was measured (default: what the result says)")
    parser.add_argument("--show", metavar="GLOB", help="print what the history has of these names")
    arguments = parser.parse_args()
    if (arguments.result is None) == (arguments.show is None):
        parser.error("expected either a result or --show")
    if arguments.show is not None:
        show(arguments.history, arguments.show)
        return
    text = json.dumps(line_of(arguments.result, arguments.commit), sort_keys=True) + "\n"
    with open(arguments.history, "a", encoding="utf-8") as file:
        file.write(text)
    if arguments.baseline:
        part = arguments.baseline + ".part"
        shutil.copyfile(arguments.result, part)
        os.replace(part, arguments.baseline)


if __name__ == "__main__":
    try:
        main()
    except Bad as bad:
        print(f"record.py: {bad}", file=sys.stderr)
        sys.exit(2)
