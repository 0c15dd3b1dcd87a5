"""The program as its users meet it: help, usage, lists, and the cases that it makes.

Usage: program_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import os
import unittest

import h5py

from program_testing import ProgramTest, run


class Usage(ProgramTest):
    def test_help_has_examples(self):
        for arguments in ([], ["check"], ["compare"], ["gen"], ["fit"], ["predict"]):
            done = run(*arguments, "--help")
            self.assertEqual(done.returncode, 0)
            self.assertIn("Examples:", done.stdout, arguments)

    def test_version(self):
        done = run("--version")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stdout, r"^kdacheck \d+\.\d+\.\d+\n$")

    def test_bad_usage(self):
        for arguments in ([], ["nonsense"], ["check", "--nonsense"], ["list", "nonsense"], ["compare", "one.h5"]):
            self.assert_one_line_error(run(*arguments), 2, "usage")

    def test_bad_usage_points_to_the_help_that_is_about_it(self):
        for arguments, named in (([], ""), (["nonsense"], ""), (["check", "--nonsense"], "check "), (["compare", "one.h5"], "compare "),
                                 (["check", "--timeout", "nan"], "check "),
                                 (["fit", "none.csv", "--seed", "-1"], "fit "),
                                 (["gen", "--op", "chunk_kda", "--name", "two\nlines", "-o", "x.h5"], "gen ")):
            done = run(*arguments)
            self.assertIn(f"kdacheck {named}--help", done.stderr, arguments)
            self.assertEqual(run(*named.split(), "--help").returncode, 0)

    def test_lists(self):
        for what, words in {"impls": ["reference", "chunked", "fast"], "errors": ["beta_shape", "content_hash_mismatch"],
                            "contracts": ["kda_prefill", "head_dim_unsupported"],
                            "policies": ["exact", "fla", "sglang", "derived"], "fixtures": ["kda_prefill"]}.items():
            done = run("list", what)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, done.stdout)


class Gen(ProgramTest):
    def test_what_it_writes_is_judged(self):
        case = self.gen()
        done = run("check", case)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        with h5py.File(case) as file:
            self.assertEqual(file.attrs["oracle"], "kdacheck:reference")

    def test_same_seed_same_bytes(self):
        self.assertEqual(self.gen("one.h5", "--name", "x").read_bytes(), self.gen("two.h5", "--name", "x").read_bytes())
        self.assertNotEqual(self.gen("one.h5", "--name", "x").read_bytes(),
                            self.gen("three.h5", "--name", "x", "--seed", 9).read_bytes())

    def test_refused_cases_expect_the_refusal(self):
        case = self.gen("refused.h5", "--chunk", "16")
        with h5py.File(case) as file:
            self.assertEqual(file["expected"].attrs["error"], "chunk_size_unsupported")
        self.assertEqual(run("check", case, "--impl", "chunked").returncode, 0)

    def test_bad_arguments(self):
        out = self.folder / "x.h5"
        self.assert_one_line_error(run("gen", "--op", "gdn", "-o", out), 2, "gdn")
        self.assert_one_line_error(run("gen", "--op", "chunk_kda", "--family", "odd", "-o", out), 2, "odd")
        self.assert_one_line_error(run("gen", "--op", "chunk_kda", "-o", self.folder / "no" / "x.h5"), 2, "file_unwritable")
        self.assertFalse(out.exists())

    def test_what_is_no_file_is_not_replaced(self):
        pipe = self.folder / "pipe.h5"
        os.mkfifo(pipe)
        self.assert_one_line_error(run("gen", "--op", "chunk_kda", "-o", pipe), 2, "file_unwritable")
        self.assertTrue(pipe.is_fifo())


if __name__ == "__main__":
    unittest.main()
