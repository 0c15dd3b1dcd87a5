"""Policy `derived` as users meet it: formats, cases that cannot be trusted, the verdict on the run, capsules.

Usage: bound_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import json
import unittest
import xml.etree.ElementTree as ET

import h5py
import numpy as np

from program_testing import ProgramTest, run, spoil


class Bound(ProgramTest):
    def check(self, *arguments):
        report, junit = self.folder / "r.json", self.folder / "r.xml"
        done = run("check", *arguments, "--json", report, "--junit", junit)
        return done, json.loads(report.read_text()), ET.parse(junit).getroot()

    def test_formats_are_named_and_repeated(self):
        done, content, _ = self.check(self.gen(), "--impl", "peer-f32", "--formats", "bf16,state=bf16")
        self.assertEqual(done.returncode, 0, done.stdout)
        result = content["results"][0]
        self.assertIn("operands=bf16,triangle=bf16,solve=tf32", result["formats"])
        self.assertIn("--formats operands=bf16,state=bf16", result["command"])
        for share in ("element", "row", "group"):
            self.assertGreater(result["tensors"][0]["sigma"][share]["share"], 0)
        self.assertIn("used of the bound", done.stdout)

    def test_bad_formats(self):
        for formats in ("operands=fp8", "f99", "state=", "block=1000", "bf16,bf16"):
            self.assert_one_line_error(run("check", self.gen(), "--formats", formats), 2, "formats_invalid")
            self.assert_one_line_error(run("compare", "r.h5", self.gen(), "--formats", formats), 2, "formats_invalid")

    def test_stated_formats_decide(self):
        """A result whose state was rounded to bf16 is right for who says so, and wrong for who says f32."""
        case, result = self.gen(), self.folder / "result.h5"
        with h5py.File(case) as file, h5py.File(result, "w") as out:
            for name, values in file["expected"].items():
                out[name] = values[...].astype(np.float32)
            state = out["final_state"][...].view(np.uint32)
            out["final_state"][...] = ((state + 0x8000) & 0xFFFF0000).astype(np.uint32).view(np.float32)
        self.assertEqual(run("compare", result, case).returncode, 1)
        self.assertEqual(run("compare", result, case, "--formats", "state=bf16").returncode, 0)
        with h5py.File(result, "a") as file:
            file.attrs["formats"] = "state=bf16"
        self.assertEqual(run("compare", result, case).returncode, 0)
        self.assertEqual(run("compare", result, case, "--formats", "state=f32").returncode, 1)

    def test_a_case_that_sees_nothing_is_mistrusted(self):
        for line, words in (("op=chunk_kda T=8 K=8 V=8 scale=0", ["vacuous", "every exact value is 0"]),
                            ("op=chunk_kda T=8 K=8 V=8 scale=0.0001 --policy sglang", ["probe_passed", "o zeros would pass"])):
            line, _, policy = line.partition(" --policy ")
            done, content, junit = self.check("--case", line, *(["--policy", policy] if policy else []))
            self.assertEqual(done.returncode, 1)
            self.assertIn("MISTRUSTED", done.stdout)
            for word in words:
                self.assertIn(word, done.stdout)
            self.assertEqual(content["counts"]["passed"], 0)
            self.assertTrue(all(int(suite.get("failures")) > 0 for suite in junit))

    def test_results_that_lean_fail_the_run(self):
        """No case fails alone: 480 elements each, expected values a third of a rounding too large."""
        for i in range(9):
            path = self.folder / f"case{i}.h5"
            done = run("gen", "--op", "chunk_kda", "--T", 30, "--K", 16, "--V", 16, "--l2norm", "--seed", i, "-o", path)
            self.assertEqual(done.returncode, 0, done.stderr)
            with h5py.File(path, "a") as file:
                file["expected/o"][...] = file["expected/o"][...] * (1 + 0.3 * 2.0**-8)
                del file.attrs["content_sha256"]
        done, content, junit = self.check(self.folder, "--impl", "peer-f32")
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertEqual(content["counts"]["failed"], 0, done.stdout)
        self.assertIn("FAILED  all cases together  peer-f32  biased", done.stdout)
        self.assertIn("lean towards 0", done.stdout)
        self.assertFalse(content["bias"][0]["passed"])
        self.assertLess(content["bias"][0]["mean"], -0.15)
        failure = junit.find(".//testcase[@name='bias']/failure")
        self.assertEqual(failure.get("type"), "biased")
        self.assertEqual(junit[0].get("failures"), "1")

    def test_a_failure_says_where_and_why_and_is_judged_again_offline(self):
        case, capsules = self.gen(), self.folder / "capsules"
        spoil(case, "expected/o", lambda o: o.__imul__(-1))
        done, content, _ = self.check(case, "--impl", "peer-f32", "--capsules", capsules)
        self.assertEqual(done.returncode, 1)
        for words in ("first wrong (n=0, t=0", "by token", "variance of the worst element", "looks like: o is -1 times the right one: the sign is lost"):
            self.assertIn(words, content["results"][0]["diagnosis"] + done.stdout)
        self.assertEqual(sorted(p.name for p in capsules.iterdir()), ["case--peer-f32.case.h5", "case--peer-f32.result.h5"])
        again = run("compare", *content["results"][0]["capsule"].split())
        self.assertEqual(again.returncode, 1, again.stdout)
        self.assertIn(content["results"][0]["detail"], again.stdout)
        with h5py.File(capsules / "case--peer-f32.result.h5") as file:
            self.assertEqual(file.attrs["command"], content["results"][0]["command"])
            self.assertIn("operands=f32", file.attrs["formats"])
            self.assertEqual(file["sigma/o"].shape, file["o"].shape)
            for name in ("implementation", "verdict", "detail", "policy", "environment"):
                self.assertIn(name, file.attrs)


if __name__ == "__main__":
    unittest.main()
