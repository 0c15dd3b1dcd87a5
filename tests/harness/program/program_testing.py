"""What the tests of the program share: its calls, a folder and cases for each test, errors of one line.

Imported by tests that are called as TEST.py PROGRAM SOURCE_DIR [unittest arguments].
"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py

PROGRAM = sys.argv.pop(1)
SOURCE = Path(sys.argv.pop(1))
FIXTURES = SOURCE / "data" / "fixtures"
SANITIZED = any(name in Path(PROGRAM).read_bytes() for name in (b"__asan_init", b"__tsan_init"))


def run(*arguments, env=None, **options):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "KDACHECK_PROGRAM": PROGRAM, **(env or {})}, **options)


class ProgramTest(unittest.TestCase):
    STATES = ("--initial_state", "--final_state", "--h")  # of the cases made

    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def gen(self, name="case.h5", *arguments):
        path = self.folder / name
        done = run("gen", "--op", "chunk_kda", "--T", 70, "--HV", 2, "--K", 16, "--V", 16, "--dtype", "f32",
                   *self.STATES, *arguments, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def assert_one_line_error(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in ("Fix:", *words):
            self.assertIn(word, lines[0])


def spoil(path, dataset, change):
    """Rewrites one dataset of a fixture and drops the content hash, as an editor of files would."""
    with h5py.File(path, "a") as file:
        values = file[dataset][...]
        change(values)
        file[dataset][...] = values
        del file.attrs["content_sha256"]
