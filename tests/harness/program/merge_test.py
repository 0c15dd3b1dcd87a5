"""Shards put together again: the same report as one run, and what is no whole run refused.

Usage: merge_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import h5py
import numpy as np

PROGRAM = sys.argv.pop(1)
SOURCE = Path(sys.argv.pop(1))
MACHINES = ("environment", "seconds")  # what may differ from the run without shards


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300,
                          env={**os.environ, "KDACHECK_PROGRAM": "kdacheck"})


def without_times(path):
    """The bytes of a report with every time replaced."""
    text = Path(path).read_text()
    if path.suffix == ".xml":
        return re.sub(r'time="[0-9.]+"', 'time=""', text)
    content = json.loads(text)
    for key in MACHINES:
        del content[key]
    for result in content["results"]:
        del result["seconds"]
    return json.dumps(content, indent=1)


def text_without_times(done):
    return re.sub(r"; [0-9.]+ s$", "", done.stdout, flags=re.MULTILINE)


class MergeTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "cases").mkdir()

    def gen(self, name, *arguments, spoil=None):
        path = self.folder / "cases" / name
        done = run("gen", "--op", "chunk_kda", *arguments, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        if spoil:
            with h5py.File(path, "a") as file:
                spoil(file)
                del file.attrs["content_sha256"]
        return path

    def check(self, name, *arguments):
        json_file, junit = self.folder / f"{name}.json", self.folder / f"{name}.xml"
        done = run("check", *arguments, "--json", json_file, "--junit", junit)
        self.assertTrue(json_file.exists(), done.stderr)
        return done, json_file

    def shards(self, count, *arguments):
        return [self.check(f"shard{i}of{count}", *arguments, "--shard", f"{i}/{count}")[1] for i in range(1, count + 1)]

    def merge(self, *files):
        merged = self.folder / "merged.json"
        return run("merge", *files, "-o", merged, "--junit", merged.with_suffix(".xml")), merged

    def assert_same_as_one_run(self, *arguments):
        whole, whole_json = self.check("whole", *arguments)
        for count in (2, 3, 7):
            files = self.shards(count, *arguments)
            random.Random(count).shuffle(files)
            done, merged = self.merge(*files)
            self.assertEqual((done.returncode, done.stderr), (whole.returncode, whole.stderr), count)
            self.assertEqual(text_without_times(done), text_without_times(whole), count)
            self.assertEqual(without_times(merged), without_times(whole_json), count)
            self.assertEqual(without_times(merged.with_suffix(".xml")), without_times(whole_json.with_suffix(".xml")), count)
        return whole, json.loads(whole_json.read_text())


class SameAsOneRun(MergeTest):
    def test_every_kind_of_verdict(self):
        shape = ("--T", 70, "--HV", 2, "--K", 16, "--V", 16, "--final_state", "--h")
        for i in range(9):
            self.gen(f"good{i}.h5", *shape, "--seed", i)
        self.gen("wrong.h5", *shape, spoil=lambda f: f["expected/o"].__setitem__((0, 41, 1), 3.0))
        self.gen("nan.h5", *shape, spoil=lambda f: f["expected/final_state"].__setitem__((0, 1, 3), np.nan))
        self.gen("infinite.h5", *shape, spoil=lambda f: f["expected/o"].__setitem__((0, 5), -np.inf))
        self.gen("zero.h5", *shape, spoil=lambda f: f["expected/o"].__setitem__(..., 0))
        self.gen("known.h5", *shape, spoil=lambda f: f["expected/h"].__setitem__((1, 0, 2), 7.0))
        (self.folder / "cases/broken.h5").write_bytes(self.gen("good9.h5", *shape).read_bytes()[:3000])
        known = self.folder / "known.json"
        entries = [("fast", "known", "*", "2099-01-01"), ("peer-*", "good3", "*", "2099-01-01"), ("nobody", "x", "*", "2099-01-01"),
                   ("fast", "wrong", "*", "2001-01-01")]
        known.write_text(json.dumps({"format": "kdacheck-known-failures", "version": 1, "known_failures": [
            {"implementation": i, "case": c, "code": code, "reason": "bug 7", "expires": day} for i, c, code, day in entries]}))
        cases = [a for seed in (1, 2) for a in ("--case", f"op=kda_prefill T=80 H=1 gate=softplus seed={seed}")]
        whole, content = self.assert_same_as_one_run(
            self.folder / "cases", self.folder / "not_there", *cases, "--case", "op=nonsense", "--known-failures", known,
            "--impl", "fast", "--impl", "peer-f32", "--impl", "peer-bf16", "--impl", "cuda-fit",
            "--impl", "exec:exit 5 # {in} {out}")
        self.assertEqual(whole.returncode, 2)  # a path, a line and a file that are no input
        for verdict in ("passed", "failed", "mistrusted", "crashed", "known_failure", "unsupported", "fixture_error"):
            self.assertGreater(content["counts"][verdict], 0, verdict)
        self.assertEqual(content["idle"], ["cuda-fit"])
        self.assertIn("bias", content)
        self.assertEqual(len(content["input_errors"]), 2)
        self.assertIn("nan", json.dumps(content))

    def test_a_shard_does_not_ask_for_what_another_may_have(self):
        for i in range(3):
            self.gen(f"case{i}.h5", "--T", 10 + i)
        arguments = (self.folder / "cases", "--impl", "fast", "--impl", "cuda-fit")
        part, _ = self.check("part", *arguments, "--shard", "1/2")
        self.assertNotIn("judged no case", part.stdout)
        whole, content = self.assert_same_as_one_run(*arguments)
        self.assertEqual(content["idle"], ["cuda-fit"])
        self.assertEqual(whole.returncode, 3, whole.stdout)

    def test_a_bias_that_no_shard_can_see_fails_the_whole(self):
        def lean(file):
            file["expected/o"][...] = file["expected/o"][...] * (1 + 0.3 * 2.0**-8)

        for i in range(9):
            self.gen(f"case{i}.h5", "--T", 30, "--K", 16, "--V", 16, "--l2norm", "--seed", i, spoil=lean)
        whole, content = self.assert_same_as_one_run(self.folder / "cases", "--impl", "peer-f32")
        self.assertEqual(whole.returncode, 1)
        self.assertFalse(content["bias"][0]["passed"])
        part, _ = self.check("part", self.folder / "cases", "--impl", "peer-f32", "--shard", "1/3")
        self.assertEqual(part.returncode, 0, part.stdout)
        self.assertIn("shard 1 of 3: what all cases together say", part.stdout)
        self.assertIn("kdacheck merge", part.stdout)

    def test_a_whole_run_is_one_shard(self):
        self.gen("case.h5")
        done, whole = self.check("whole", self.folder / "cases", "--impl", "fast")
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("shard", done.stdout)
        done, merged = self.merge(whole)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(merged.read_bytes(), whole.read_bytes())

    def test_machines_that_differ_are_all_named(self):
        for i in range(2):
            self.gen(f"case{i}.h5", "--seed", i)
        files = self.shards(2, self.folder / "cases", "--impl", "fast")
        content = json.loads(files[1].read_text())
        content["environment"]["system"] = "another"
        files[1].write_text(json.dumps(content))
        done, merged = self.merge(*files)
        self.assertEqual(done.returncode, 0, done.stderr)
        environment = json.loads(merged.read_text())["environment"]
        self.assertEqual(len(environment["system"]), 2)
        self.assertEqual(environment["system"][1], "another")
        self.assertIsInstance(environment["machine"], str)

    def test_more_shards_than_cases(self):
        self.gen("case.h5")
        files = self.shards(3, self.folder / "cases", "--impl", "fast")
        done, _ = self.merge(*files)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 cases, 1 judged: 1 passed", done.stdout)


class Refused(MergeTest):
    def setUp(self):
        super().setUp()
        for i in range(4):
            self.gen(f"case{i}.h5", "--seed", i)
        self.files = self.shards(2, self.folder / "cases", "--impl", "fast")

    def refuse(self, code, *files, names=()):
        done, merged = self.merge(*files)
        self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
        self.assertEqual(done.stdout, "")
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        for word in (f"kdacheck: {code}: ", "Fix:", *names):
            self.assertIn(word, done.stderr)
        self.assertFalse(merged.exists())

    def edited(self, change):
        content = json.loads(self.files[1].read_text())
        change(content)
        path = self.folder / "edited.json"
        path.write_text(json.dumps(content))
        return path

    def test_a_missing_shard(self):
        self.refuse("shard_missing", self.files[0], names=["2/2"])
        self.refuse("shard_missing", self.files[1], names=["1/2"])

    def test_a_shard_given_twice(self):
        self.refuse("shard_repeated", *self.files, self.files[1], names=["shard2of2.json", "2/2"])

    def test_another_version(self):
        def older(content):
            content["environment"]["kdacheck"] = "0.0.1"

        self.refuse("shard_version", self.files[0], self.edited(older), names=["edited.json", "0.0.1"])
        self.refuse("shard_version", self.files[0], self.edited(lambda c: c.update(version=7)), names=["version 7"])

    def test_other_options(self):
        for options, named in ((["--impl", "chunked"], "--impl"), (["--impl", "fast", "--policy", "fla"], "--policy"),
                               (["--impl", "fast", "--filter", "c*"], "--filter"), (["--impl", "fast", "--laws"], "--laws"),
                               (["--impl", "fast", "--repeat", "2"], "--repeat"),
                               (["--impl", "fast", "--cp-async", "both"], "--cp-async")):
            _, other = self.check("other", self.folder / "cases", *options, "--shard", "2/2")
            self.refuse("shard_options", self.files[0], other, names=[named, "other.json"])
        _, other = self.check("other", self.folder / "cases", "--impl", "fast", "--shard", "2/3")
        self.refuse("shard_options", self.files[0], other, names=["--shard"])
        _, other = self.check("other", self.folder / "cases", "--impl", "fast", "--shard", "2/2", "--jobs", "2")
        self.assertEqual(self.merge(self.files[0], other)[0].returncode, 0)  # says nothing about verdicts

    def test_another_set_of_cases(self):
        _, other = self.check("other", self.folder / "cases", "--case", "op=chunk_kda T=3", "--impl", "fast", "--shard", "2/2")
        self.refuse("shard_inputs", self.files[0], other, names=["4 cases", "got 5"])
        self.gen("case1.h5", "--T", 99)  # another content under the same name
        _, other = self.check("other", self.folder / "cases", "--impl", "fast", "--shard", "2/2")
        self.refuse("shard_inputs", self.files[0], other, names=["other.json"])

    def test_the_same_files_elsewhere_are_the_same_set(self):
        moved = self.folder / "moved"
        shutil.copytree(self.folder / "cases", moved)
        _, other = self.check("other", moved, "--impl", "fast", "--shard", "2/2")
        self.assertEqual(self.merge(self.files[0], other)[0].returncode, 0)

    def test_a_half_written_file(self):
        text = self.files[1].read_bytes()
        half = self.folder / "half.json"
        for length in (0, 1, 7, len(text) // 3, len(text) // 2, len(text) - 3):
            half.write_bytes(text[:length])
            self.refuse("report_truncated", self.files[0], half, names=["half.json"])

    def test_what_is_no_result(self):
        other = self.folder / "x.json"
        for text in ("hello", "[]", "7", "{}", '{"format": "junit"}', '{"format": 7}', '{"format": 1e999}', "\xff{", '{"format": "kdacheck-report", ]',
                     '{"format": ' + "[" * 200_000 + "]" * 200_000 + "}"):
            other.write_text(text)
            self.refuse("report_unknown", self.files[0], other, names=["x.json"])
        self.refuse("report_unknown", self.files[0], self.folder / "cases/case0.h5")
        self.refuse("file_unreadable", self.files[0], self.folder / "none.json", names=["none.json", "No such file"])
        self.refuse("file_unreadable", self.files[0], self.folder)

    def test_edited_results(self):
        for change in (lambda c: c.pop("results"), lambda c: c.pop("shard"), lambda c: c["results"][0].pop("item"),
                       lambda c: c["results"][0].update(item=0), lambda c: c["results"][0].update(item=400),
                       lambda c: c["results"][0].update(item=1e300), lambda c: c["shard"].update(count=2**63),
                       lambda c: c["results"][0].update(verdict="fine"), lambda c: c["results"][0]["tensors"][0].pop("metrics"),
                       lambda c: c["results"][0]["tensors"][0].update(used_share="much"), lambda c: c["shard"].update(index=0),
                       lambda c: c.update(results=[7]), lambda c: c.update(known_failures=[{}])):
            self.refuse("report_unknown", self.files[0], self.edited(change), names=["edited.json"])

    def test_a_count_of_shards_beyond_all_reason(self):
        def change(content):
            content["shard"].update(index=1, count=2**62)
            content["results"] = []
        self.refuse("shard_missing", self.edited(change), names=[f"2/{2**62}", f"9/{2**62}"])

    def test_usage(self):
        self.assertEqual(run("merge").returncode, 2)
        self.assertEqual(run("merge", self.files[0]).returncode, 2)

    def test_an_interrupted_shard_is_an_interrupted_whole(self):
        done, merged = self.merge(self.files[0], self.edited(lambda c: c.update(interrupted=True)))
        self.assertEqual(done.returncode, 130)
        self.assertTrue(json.loads(merged.read_text())["interrupted"])


if __name__ == "__main__":
    unittest.main()
