"""docs/error_table.py notices a test that is gone: it says which code lost its cover, and which test that was.

Usage: error_table_test.py SOURCE_DIR [unittest arguments]
"""

import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

SOURCE = Path(sys.argv.pop(1))


class ErrorTable(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.root, ignore_errors=True)
        for folder in ("docs", "reference", "harness", "cuda", "tests", "data/fixtures"):
            shutil.copytree(SOURCE / folder, self.root / folder, ignore=shutil.ignore_patterns("__pycache__", "corpus"))
        self.assertEqual(self.check(), "")

    def check(self):
        done = subprocess.run([sys.executable, self.root / "docs/error_table.py", "--check"], capture_output=True, text=True)
        self.assertEqual(done.returncode == 0, done.stderr == "")
        return done.stderr

    def remove(self, path, name):
        file = self.root / "tests" / path
        text = file.read_text()
        test = re.search(rf"^TEST(?:_F|_P)?\(\w+, {name}\) \{{.*?^\}}\n", text, re.M | re.S)
        self.assertIsNotNone(test, f"{path} has no test {name}")
        file.write_text(text[: test.start()] + text[test.end() :])

    def test_each_code_that_loses_its_only_test_is_named(self):
        for path, name, code in (("harness/fixture/fixture_read_test.cpp", "AnotherVersion", "version_unsupported"),
                                 ("cuda/recurrent_args_test.cpp", "Slots", "slot_duplicate"),
                                 ("reference/fit_test.cpp", "NotPositive", "fit_target_latency_not_positive"),
                                 ("reference/types/contract_test.cpp", "RefusesWhatBreaksARule", "beta_dtype")):
            with self.subTest(code):
                self.remove(path, name)
                self.assertRegex(self.check(), rf"{code}: no test provokes it any more; it was .*\b{name}\b")


if __name__ == "__main__":
    unittest.main()
