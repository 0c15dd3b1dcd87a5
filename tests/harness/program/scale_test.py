"""Runs far beyond the bundled fixtures: many files, long sequences, many sequences; time and memory of each.

Usage: scale_test.py PROGRAM SOURCE_DIR [Scale|Nightly...]
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from program_testing import PROGRAM, SANITIZED


def run(*arguments):
    """Exit status, output, seconds, and the most memory that the program itself held, in MiB."""
    began = time.monotonic()
    with tempfile.TemporaryFile("w+") as out:
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=out, stderr=subprocess.STDOUT)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        text = out.read()
    seconds, memory = time.monotonic() - began, used.ru_maxrss / 1024
    print(f"scale: {' '.join(map(str, arguments))[:110]}: {seconds:.1f} s, {memory:.0f} MiB", file=sys.stderr)
    return process.returncode, text, seconds, memory


class ScaleTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def fixtures(self, count):
        """A folder tree of so many fixtures with names and contents of their own."""
        folder = self.folder / f"of{count}"
        made = []
        for i in range(min(count, 20)):
            path = self.folder / f"seed{i}.h5"
            if not path.exists():
                done = subprocess.run([PROGRAM, "gen", "--op", "chunk_kda", "--T", str(10 + i), "--K", "8", "--V", "8", "--seed",
                                       str(i), "--final_state", "-o", path], capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, done.stderr)
            made.append(path)
        for i in range(count):
            place = folder / f"{i // 100:02}"
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(made[i % len(made)], place / f"case{i:04}.h5")
        return folder

    def streams(self, small, large, *arguments):
        """Ten times the files take no more memory than their results."""
        report = self.folder / "r.json"
        _, _, _, at_small = run("check", self.fixtures(small), *arguments, "--json", report)
        status, text, _, at_large = run("check", self.fixtures(large), *arguments, "--json", report)
        self.assertEqual(status, 0, text[-2000:])
        self.assertIn(f"{large} cases, ", text)
        # Kept of every result: its numbers and texts, and its part of the report while that is written.
        if not SANITIZED:  # AddressSanitizer holds back what was freed
            self.assertLess(at_large - at_small, 4 + 4 * report.stat().st_size / 2**20)

    def all_pass(self, *arguments):
        status, text, _, memory = run("check", *arguments)
        self.assertEqual(status, 0, text[-2000:])
        self.assertRegex(text, r"1 cases, [1-9]\d* judged: [1-9]\d* passed, 0 failed")
        return memory


class Scale(ScaleTest):
    def test_two_thousand_fixtures(self):
        self.streams(200, 2000, "--impl", "fast")

    def test_a_filter_looks_at_names_only(self):
        """Of 300 fixtures of 4 MB one is wanted: its contents are read, not those of the others."""
        folder = self.folder / "large"
        folder.mkdir()
        for name in ("wanted", "other"):
            done = subprocess.run([PROGRAM, "gen", "--op", "kda_prefill", "--T", "2000", "--H", "1", "--name", name, "-o",
                                   folder / f"{name}.h5"], capture_output=True, text=True)
            self.assertEqual(done.returncode, 0, done.stderr)
        _, _, one, _ = run("check", folder / "wanted.h5", "--impl", "fast")
        for i in range(299):
            os.link(folder / "other.h5", folder / f"other{i}.h5")
        status, text, seconds, _ = run("check", folder, "--filter", "want*", "--impl", "fast")
        self.assertEqual(status, 0, text)
        self.assertIn("1 cases, 1 judged: 1 passed", text)
        self.assertLess(seconds - one, 300 * one / 2)

    def test_a_hundred_thousand_tokens(self):
        self.all_pass("--case", "op=chunk_kda T=100000 K=16 V=16 gate=softplus l2norm=1 final_state=1 seed=1", "--impl", "fast",
                      "--impl", "peer-f32")

    def test_4096_sequences(self):
        lens = ",".join(str(i % 4) for i in range(4096))  # empty ones too
        self.all_pass("--case", f"op=recurrent_kda lens={lens} K=8 V=8 initial_state=1 final_state=1 seed=1")


class Nightly(ScaleTest):
    def test_two_thousand_fixtures_by_all(self):
        self.streams(200, 2000, "--jobs", "2")

    def test_a_million_tokens(self):
        self.all_pass("--case", "op=chunk_kda T=1000000 K=16 V=16 gate=softplus l2norm=1 final_state=1 seed=1", "--impl", "fast",
                      "--impl", "peer-f32", "--impl", "chunked")

    def test_a_million_tokens_of_the_recurrent_kernel(self):
        self.all_pass("--case", "op=recurrent_kda T=1000000 K=8 V=8 dtype=f32 final_state=1 seed=1", "--impl", "cuda-recurrent")

    def test_a_million_tokens_of_the_prefill_kernel(self):
        self.all_pass("--case", "op=kda_prefill T=1000000 H=1 final_state=1 seed=1", "--impl", "cuda-prefill")

    def test_4096_sequences_of_the_prefill_kernel(self):
        lens = ",".join(str(1 + i % 3) for i in range(4096))
        self.all_pass("--case", f"op=kda_prefill lens={lens} initial_state=1 final_state=1 seed=1")


if __name__ == "__main__":
    unittest.main()
