#!/usr/bin/python3
"""Runs every kdacheck command in the code blocks of the documents, in the order in which they stand, in a folder
that holds what they name.

docs_test.py PROGRAM SOURCE_ROOT [DOCUMENT...]
"""
import fnmatch
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

from commands import Help, commands

PROGRAM, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
ONLY = sys.argv[3:]
sys.path.insert(0, os.path.join(ROOT, "tests/bench"))
import report_samples  # noqa: E402

# Not run: pattern of the line -> why. A pattern that matches no line fails the test, so that none outlives its reason.
NOT_RUN = {
    "./kdacheck check    #*": "the test check_bundled_fixtures runs it",
    "./kdacheck test*": "it would run this test",
    "./kdacheck bench --quick*": "takes a minute; tests of bench run it on a few lines",
    "./kdacheck bench --filter *": "takes minutes",
    "./kdacheck bench --interleave A B*": "A and B stand for two programs",
    "./kdacheck bench --counters*": "takes a minute; the test of the counters runs it",
    "./kdacheck mutate*": "takes a minute; tests of mutate run it",
    "./kdacheck merge * #*": "docs/check-your-kernel.md makes the shards first, and runs it",
    "*my_kernel*": "my_kernel stands for the reader's own",
    "*plugin:./kda_plugin.so*": "a test builds that example and runs it",
}
# Run with more arguments, so that they end soon: pattern -> what is added.
SHORTENED = {
    "./kdacheck fuzz --impl fast*": ["--cases", "3"],
    "./kdacheck check --laws*": ["--filter", "chunk_c32*"],
    "./kdacheck check --json check.json": ["--filter", "chunk_c32*"],
    "./kdacheck check --impl cuda-recurrent --exec-order pct --exec-seeds 8 *": ["--filter", "recurrent_hand_case*"],
    "./kdacheck check --cases data/cases/ci.txt --shard 1/4 *": ["--filter", "none of them"],
}
# Exit status, where it is not 0: pattern -> (status, why).
STATUS = {
    "./kdacheck check --cases data/cases/ci.txt --shard 1/4 *": (3, "shortened to nothing: nothing was compared"),
    "./kdacheck bench --compare base.json new.json*": (1, "new.json is 30 % slower"),
    "./kdacheck bench --compare base_counters.json counters.json*": (1, "a counter grew"),
}


def documents():
    """Every Markdown file of the tree that people read."""
    out = []
    for folder, folders, files in os.walk(ROOT):
        folders[:] = [f for f in folders if f not in (".git", "build") and not f.startswith(".")]
        out += [os.path.relpath(os.path.join(folder, name), ROOT) for name in files if name.endswith(".md")]
    return sorted(out)


def matching(table, line):
    return next((value for pattern, value in table.items() if fnmatch.fnmatchcase(line, pattern)), None)


def furnished(folder):
    """What the documents' commands name: kdacheck, the data, files of the user's."""
    with open(os.path.join(folder, "kdacheck"), "w", encoding="utf-8") as file:
        file.write(f'#!/bin/sh\nKDACHECK_PROGRAM=./kdacheck exec "{PROGRAM}" "$@"\n')
    os.chmod(os.path.join(folder, "kdacheck"), 0o755)
    for name in ("data", "examples", "docs"):
        os.symlink(os.path.join(ROOT, name), os.path.join(folder, name))
    fixture = os.path.join(ROOT, "data/fixtures/prefill_fused_bound_t64.h5")
    os.mkdir(os.path.join(folder, "my_fixtures"))
    shutil.copy(fixture, os.path.join(folder, "my_fixtures"))
    shutil.copy(fixture, os.path.join(folder, "my_case.h5"))
    with open(os.path.join(folder, "samples.csv"), "w", encoding="utf-8") as file:
        file.writelines(f"{n},{2e-7 * n * n + 0.02 * n + 12 + 0.1 * (i % 7)}\n" for i, n in enumerate(range(10240, 0, -80)))
    report_samples.write(folder, bench=report_samples.bench(), old_check=report_samples.good(), old_bench=report_samples.bench(0.9),
                         base=slow_bench(1.0), new=slow_bench(1.3), base_counters=report_samples.counters(3),
                         counters=report_samples.counters(4))
    exact_result(fixture, os.path.join(folder, "result.h5"))


def slow_bench(scale):
    return {"context": {"kdacheck_bench": "1"},
            "benchmarks": [report_samples.bench_line("impl/fast/T512_H8", scale * 1e-3 * (1 + 0.001 * i), repetition=i) for i in range(9)]}


def exact_result(fixture, path):
    """A result file as a perfect kernel would write it."""
    import h5py
    with h5py.File(fixture) as exact, h5py.File(path, "w") as result:
        for name, data in exact["expected"].items():
            result[name] = data[...].astype("float32")


class Documents(unittest.TestCase):
    def test_every_command_runs(self):
        used, seconds, count = set(), 0.0, 0
        for document in ONLY or documents():
            with open(os.path.join(ROOT, document), encoding="utf-8") as file:
                found = commands(file.read())
            if not found:
                continue
            with tempfile.TemporaryDirectory() as folder:
                furnished(folder)
                for number, line, arguments in found:
                    used |= {p for table in (NOT_RUN, SHORTENED, STATUS) for p in table if fnmatch.fnmatchcase(line, p)}
                    if matching(NOT_RUN, line):
                        continue
                    with self.subTest(f"{document}:{number}: {line}"):
                        began = time.monotonic()
                        self.run_one(folder, line, arguments)
                        count += 1
                        seconds += time.monotonic() - began
        if not ONLY:
            self.assertEqual({p for table in (NOT_RUN, SHORTENED, STATUS) for p in table} - used, set(),
                             "match no command")
            self.assertGreater(count, 20)
        print(f"docs: {count} commands run in {seconds:.1f} s, {len(NOT_RUN)} kinds not run", file=sys.stderr)

    def run_one(self, folder, line, arguments):
        status, _ = matching(STATUS, line) or (0, "")
        done = subprocess.run(["./kdacheck", *arguments, *(matching(SHORTENED, line) or [])], cwd=folder, capture_output=True,
                              text=True, timeout=120, env={**os.environ, "PATH": "/usr/bin:" + os.environ["PATH"]})
        self.assertEqual(done.returncode, status, done.stdout[-1500:] + done.stderr[-1500:])

    def test_links_lead_somewhere(self):
        for document in ONLY or documents():
            with open(os.path.join(ROOT, document), encoding="utf-8") as file:
                text = file.read()
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                if re.match(r"https?:|#|mailto:", target):
                    continue
                path = os.path.join(ROOT, os.path.dirname(document), target.split("#")[0])
                self.assertTrue(os.path.exists(path), f"{document}: {target}")

    def test_commands_that_are_not_run_have_known_options(self):
        known = Help([PROGRAM])
        for document in ONLY or documents():
            with open(os.path.join(ROOT, document), encoding="utf-8") as file:
                for number, line, arguments in commands(file.read()):
                    with self.subTest(f"{document}:{number}"):
                        self.assertIsNone(known.complaint(arguments), line)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
