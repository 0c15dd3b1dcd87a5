"""The program as its users meet it: commands, exit status, messages, reports.

Usage: program_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree as ET
from pathlib import Path

import h5py
import numpy as np

PROGRAM = sys.argv.pop(1)
SOURCE = Path(sys.argv.pop(1))
FIXTURES = SOURCE / "data" / "fixtures"


def run(*arguments, env=None, cwd=None):
    return subprocess.run(
        [PROGRAM, *map(str, arguments)], capture_output=True, text=True, timeout=300, cwd=cwd,
        env={**os.environ, "KDACHECK_PROGRAM": PROGRAM, **(env or {})})


class ProgramTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def gen(self, name="case.h5", *arguments):
        path = self.folder / name
        done = run("gen", "--op", "chunk_kda", "--T", 70, "--HV", 2, "--K", 16, "--V", 16, "--dtype", "f32",
                   "--initial_state", "--final_state", "--h", *arguments, "-o", path)
        self.assertEqual(done.returncode, 0, done.stderr)
        return path

    def assert_one_line_error(self, done, status, *words):
        self.assertEqual(done.returncode, status, done.stdout + done.stderr)
        lines = done.stderr.strip().splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        for word in ("Fix:", *words):
            self.assertIn(word, lines[0])


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

    def test_lists(self):
        for what, words in {"impls": ["reference", "chunked", "fast"], "errors": ["beta_shape", "content_hash_mismatch"],
                            "contracts": ["kda_prefill", "head_dim_unsupported"],
                            "policies": ["exact", "fla", "sglang", "derived"], "fixtures": ["kda_prefill"]}.items():
            done = run("list", what)
            self.assertEqual(done.returncode, 0, done.stderr)
            for word in words:
                self.assertIn(word, done.stdout)


class Check(ProgramTest):
    def test_case_line(self):
        done = run("check", "--case", "op=recurrent_kda T=5 K=8 V=8 seed=1")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("passed", done.stdout)
        self.assertEqual(done.stderr, "")

    def test_bad_input_is_one_line(self):
        empty = self.folder / "empty"
        empty.mkdir()
        self.assert_one_line_error(run("check", self.folder / "none"), 2, "path_not_found", "none")
        self.assert_one_line_error(run("check", empty), 2, "no_fixtures")
        self.assert_one_line_error(run("check", "--impl", "nobody"), 2, "implementation_unknown", "reference")
        self.assert_one_line_error(run("check", "--policy", "lenient"), 2, "policy_unknown", "derived")
        self.assert_one_line_error(run("check", "--shard", "3/2"), 2, "--shard")
        self.assert_one_line_error(run("check", "--shard", "two"), 2, "--shard")
        self.assert_one_line_error(run("check", "--case", "op=chunk_kda TT=4"), 2, "case_line_invalid", "TT")

    def test_one_bad_fixture_does_not_stop_the_others(self):
        self.gen("good.h5")
        shutil.copy(self.gen("bad.h5"), self.folder / "cut.h5")
        os.truncate(self.folder / "cut.h5", 3000)
        with h5py.File(self.folder / "bad.h5", "a") as file:
            file["inputs/surplus"] = np.zeros(3)
            del file.attrs["content_sha256"]
        done = run("check", self.folder)
        self.assertEqual(done.returncode, 2)
        self.assertIn("name_unknown", done.stdout)
        self.assertIn("cut.h5", done.stdout)
        self.assertRegex(done.stdout, r"3 cases, [1-9]\d* judged: [1-9]\d* passed, 0 failed")

    def test_damage_that_crashes_or_hangs_the_hdf5_library(self):
        good, damaged = self.gen("good.h5"), self.folder / "damaged.h5"
        source = (FIXTURES / "chunk_k1_v1.h5").read_bytes()
        heap = source.index(b"GCOL")  # of the variable-length strings; an object's size is at + 24
        for place, bit in ((heap + 24, 7), (heap + 25, 3), (heap + 31, 7)):
            content = bytearray(source)
            content[place] ^= 1 << bit
            damaged.write_bytes(content)
            done = run("check", damaged, good)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("FIXTURE_ERROR", done.stdout)
            self.assertRegex(done.stdout, r"2 cases, [1-9]\d* judged: [1-9]\d* passed, 0 failed")

    def test_extreme_cases_are_errors(self):
        for line in ("op=chunk_kda T=2147483647 H=1024 K=128 V=128", "op=chunk_kda T=1 H=1 K=2147483647 V=2147483647"):
            done = run("check", "--case", line)
            self.assertEqual(done.returncode, 2, done.stdout + done.stderr)
            self.assertIn("out_of_memory", done.stdout)

    def test_a_reader_that_leaves_does_not_cost_the_report(self):
        report = self.folder / "r.json"
        case = self.gen()
        process = subprocess.Popen([PROGRAM, "check", str(case), "--json", str(report)], stdout=subprocess.PIPE)
        process.stdout.close()
        process.wait()
        self.assertGreater(json.loads(report.read_text())["counts"]["passed"], 0)

    def test_lost_output_is_no_success(self):
        with open("/dev/full", "w") as full:
            self.assertEqual(subprocess.run([PROGRAM, "list", "impls"], stdout=full, stderr=subprocess.DEVNULL).returncode, 2)

    def test_names_cannot_forge_the_report(self):
        done = run("check", "no\nsuch file")
        self.assert_one_line_error(done, 2, "path_not_found")

    def test_file_names_need_not_be_utf8(self):
        name = os.fsencode(self.folder) + b"/bad\xff.h5"
        shutil.copy(self.gen(), name)
        report, junit = self.folder / "r.json", self.folder / "r.xml"
        done = subprocess.run([PROGRAM, "check", name, "--json", report, "--junit", junit], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertGreater(json.loads(report.read_text())["counts"]["passed"], 0)
        ET.parse(junit)

    def test_empty_lists_do_not_mean_everything(self):
        empty = self.folder / "empty.txt"
        empty.write_text("# nothing\n")
        self.assertEqual(run("check", "--cases", empty).returncode, 3)
        self.assert_one_line_error(run("check", "--shard", ""), 2, "--shard")

    def test_a_bad_list_does_not_stop_the_others(self):
        bad = self.folder / "bad.txt"
        bad.write_text("op=chunk_kda TT=4\n")
        done = run("check", "--cases", bad, self.gen())
        self.assertEqual(done.returncode, 2)
        self.assertIn("bad.txt", done.stderr)
        self.assertIn("1 cases", done.stdout)

    def test_numbers_without_expected_values_are_judged_by_the_other_method(self):
        for name in ("fit", "predict"):
            source = next(p for p in sorted(FIXTURES.glob(f"{name}_*.h5")) if "error" not in h5py.File(p)["expected"].attrs)
            case = self.folder / f"{name}.h5"
            shutil.copy(source, case)
            with h5py.File(case, "a") as file:
                del file["expected"]
                del file.attrs["content_sha256"]
            report = self.folder / "r.json"
            done = run("check", case, "--json", report)
            self.assertEqual(done.returncode, 0, done.stdout)
            for result in json.loads(report.read_text())["results"]:
                self.assertNotEqual(result["oracle"], result["implementation"])

    def test_an_unreadable_path_does_not_stop_the_others(self):
        good = self.gen()
        done = run("check", self.folder / "none", good)
        self.assertEqual(done.returncode, 2)
        self.assertIn("path_not_found", done.stderr)
        self.assertIn("1 cases", done.stdout)

    def test_reports(self):
        case = self.gen()
        junit, report = self.folder / "r.xml", self.folder / "r.json"
        done = run("check", case, "--junit", junit, "--json", report)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        suites = ET.parse(junit).getroot()
        self.assertEqual(suites.tag, "testsuites")
        self.assertTrue(all(suite.get("failures") == "0" for suite in suites))
        content = json.loads(report.read_text())
        self.assertEqual((content["format"], content["version"]), ("kdacheck-report", 1))
        self.assertEqual(content["counts"]["failed"], 0)
        self.assertGreater(content["counts"]["passed"], 0)
        for result in content["results"]:
            for key in ("name", "file", "op", "implementation", "verdict", "seconds", "command", "tensors"):
                self.assertIn(key, result)
        self.assertEqual([p.name for p in self.folder.iterdir() if ".part" in p.name], [])

    def test_unwritable_report_keeps_the_results(self):
        case = self.gen()
        report = self.folder / "r.json"
        done = run("check", case, "--junit", self.folder / "no" / "r.xml", "--json", report)
        self.assert_one_line_error(done, 2, "report_unwritable", "r.xml")
        self.assertIn("passed", done.stdout)
        self.assertGreater(json.loads(report.read_text())["counts"]["passed"], 0)

    def test_full_disk(self):
        done = run("check", self.gen(), "--json", "/dev/full")
        self.assert_one_line_error(done, 2, "report_unwritable")

    def test_a_failure_is_repeated_by_its_command(self):
        case = self.gen()
        spoil(case, "expected/o", lambda o: o.__setitem__((0, 42, 1, 3), o[0, 42, 1, 3] + 1))
        report, junit = self.folder / "r.json", self.folder / "r.xml"
        done = run("check", case, "--impl", "chunked", "--json", report, "--junit", junit)
        self.assertEqual(done.returncode, 1)
        self.assertIn("t=42", done.stdout)
        self.assertIn("FAILED", done.stdout)
        self.assertEqual(len(ET.parse(junit).getroot().findall(".//failure")), 1)
        command = json.loads(report.read_text())["results"][0]["command"]
        self.assertIn(command, done.stdout)
        again = subprocess.run(command, shell=True, capture_output=True, text=True)
        self.assertEqual(again.returncode, 1)
        self.assertIn("t=42", again.stdout)

    def test_a_failing_case_line_is_repeated_too(self):
        line = "op=kda_prefill T=65 H=2 gate=bound l2norm=1 family=identical seed=4"
        report = self.folder / "r.json"
        run("check", "--case", line, "--impl", "reference", "--json", report)
        command = json.loads(report.read_text())["results"][0]["command"]
        again = subprocess.run(command, shell=True, capture_output=True, text=True)
        self.assertEqual(again.returncode, 0, again.stdout + again.stderr)
        self.assertIn("1 cases", again.stdout)

    def test_nothing_compared(self):
        case = self.gen()
        self.assertEqual(run("check", case, "--filter", "no_such_*").returncode, 3)
        self.assertEqual(run("check", case, "--impl", "reference").returncode, 3)  # made by itself
        self.assertEqual(run("check", case, "--filter", "ca*").returncode, 0)

    def test_shards_cover_everything_once(self):
        for i in range(5):
            self.gen(f"case{i}.h5")
        names = []
        for shard in (1, 2, 3):
            report = self.folder / f"shard{shard}.json"
            done = run("check", self.folder, "--impl", "fast", "--shard", f"{shard}/3", "--json", report)
            self.assertEqual(done.returncode, 0)
            names += [r["name"] for r in json.loads(report.read_text())["results"]]
        self.assertEqual(sorted(names), [f"case{i}" for i in range(5)])

    def test_jobs_do_not_change_the_report(self):
        def results(jobs):
            report = self.folder / "r.json"
            done = run("check", FIXTURES, "--filter", "*varlen*", "--jobs", jobs, "--json", report)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            return [{k: v for k, v in r.items() if k != "seconds"} for r in json.loads(report.read_text())["results"]]

        self.assertEqual(results(1), results(4))

    def test_progress_on_a_terminal_only(self):
        case = self.gen()
        leader, follower = pty.openpty()
        process = subprocess.Popen([PROGRAM, "check", str(case)], stdout=subprocess.DEVNULL, stderr=follower)
        os.close(follower)
        shown = b""
        try:
            while chunk := os.read(leader, 4096):
                shown += chunk
        except OSError:
            pass  # the terminal is gone with the program
        self.assertEqual(process.wait(), 0)
        self.assertIn(b"[1/1]", shown)
        self.assertEqual(run("check", case).stderr, "")

    def test_interrupt_reports_what_is_done(self):
        report = self.folder / "r.json"
        lines = [a for i in range(200) for a in ("--case", f"op=kda_prefill T=512 H=4 seed={i}")]
        process = subprocess.Popen([PROGRAM, "check", *lines, "--json", report], stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        time.sleep(1.5)
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", out)
        content = json.loads(report.read_text())
        self.assertTrue(content["interrupted"])
        self.assertGreater(len(content["results"]), 0)
        self.assertLess(content["cases"], 200)


def spoil(path, dataset, change):
    """Rewrites one dataset of a fixture and drops the content hash, as an editor of files would."""
    with h5py.File(path, "a") as file:
        values = file[dataset][...]
        change(values)
        file[dataset][...] = values
        del file.attrs["content_sha256"]


class Bound(ProgramTest):
    """Policy `derived`: formats, cases that cannot be trusted, the verdict on the run, capsules."""

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


class Compare(ProgramTest):
    """Every single-place fault in a result file is found and named."""

    def setUp(self):
        super().setUp()
        self.fixture = self.gen()
        with h5py.File(self.fixture) as file:
            self.expected = {k: file["expected"][k][...] for k in ("o", "final_state", "h")}

    def compare(self, change=None, dtype=np.float32, policy=None, attrs=None, formats=None):
        result = self.folder / "result.h5"
        tensors = {k: v.astype(dtype) for k, v in self.expected.items()}
        if change:
            change(tensors)
        with h5py.File(result, "w") as file:
            for name, tensor in tensors.items():
                file[name] = tensor
            for name, value in (attrs or {}).items():
                file.attrs[name] = value
        return run("compare", result, self.fixture, *(["--policy", policy] if policy else []),
                   *(["--formats", formats] if formats else []))

    def assert_fails(self, change, *words, formats=None):
        done = self.compare(change, formats=formats)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        for word in words:
            self.assertIn(word, done.stdout)

    def above_rms(self, tensor):
        values = self.expected[tensor]
        flat = np.flatnonzero(np.abs(values) > np.sqrt(np.mean(values**2)))
        return np.unravel_index(flat[len(flat) // 2], values.shape)

    def test_the_right_result_passes(self):
        for policy in (None, "derived", "fla", "sglang"):
            done = self.compare(policy=policy)
            self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(self.compare(dtype=np.float64, policy="exact").returncode, 0)

    def test_flipped_bits(self):
        for tensor in ("o", "final_state", "h"):
            place = self.above_rms(tensor)

            def flip(tensors, bit):
                bits = tensors[tensor].view(np.uint32)
                bits[place] ^= np.uint32(1 << bit)

            axis = f"t={place[1]}" if tensor == "o" else f"hv={place[1]}"
            self.assert_fails(lambda t: flip(t, 31), f"{tensor}:", axis)  # sign
            self.assert_fails(lambda t: flip(t, 23), f"{tensor}:", axis)  # lowest exponent bit

    def test_swapped_heads(self):
        self.assert_fails(lambda t: t.update(o=t["o"][:, :, ::-1]), "o:", "t=")
        self.assert_fails(lambda t: t.update(final_state=t["final_state"][:, ::-1]), "final_state:", "hv=")

    def test_transposed_state(self):
        self.assert_fails(lambda t: t.update(final_state=t["final_state"].swapaxes(2, 3)), "final_state:", "k=", "v=")
        self.assert_fails(lambda t: t.update(h=t["h"].swapaxes(2, 3)), "h:", "chunk=")

    def test_nan(self):
        for tensor in ("o", "final_state", "h"):
            self.assert_fails(lambda t: t[tensor].__setitem__((0, 1, 1, 1), np.nan), f"{tensor}:", "non_finite")

    def test_off_by_one_token(self):
        self.assert_fails(lambda t: t.update(o=np.roll(t["o"], 1, axis=1)), "o:", "t=")

    def test_zeros(self):
        for tensor in ("o", "final_state", "h"):
            self.assert_fails(lambda t: t[tensor].fill(0), f"{tensor}:")

    def test_faults_where_keys_coincide(self):
        """Rounding costs most there, so that a bound is widest; faults must not hide under it."""
        for name in ("prefill_identical_keys_t64", "prefill_alternating_keys_t64", "prefill_saturated_t64"):
            self.fixture = FIXTURES / f"{name}.h5"
            with h5py.File(self.fixture) as file:
                self.expected = {k: v[...] for k, v in file["expected"].items()}
            self.assertEqual(self.compare().returncode, 0)
            self.assert_fails(lambda t: t.update(o=np.roll(t["o"], 1, axis=1)), "o:", "t=")
            for tensor in self.expected:
                self.assert_fails(lambda t: t.update({tensor: t[tensor] * 2}), f"{tensor}:")
                self.assert_fails(lambda t: t.update({tensor: t[tensor] * 1.02}), f"{tensor}:", formats="f32")

    def test_wrong_shape_type_and_missing(self):
        self.assert_fails(lambda t: t.update(o=t["o"][:, :-1]), "shape_mismatch")
        self.assert_fails(lambda t: t.pop("final_state"), "missing")
        done = self.compare(lambda t: t.update(o=t["o"].astype(np.int32)))
        self.assertNotEqual(done.returncode, 0)

    def test_refusal_of_an_accepted_case(self):
        done = self.compare(lambda t: t.clear(), attrs={"error": "beta_shape", "message": "no"})
        self.assertEqual(done.returncode, 1)
        self.assertIn("refused", done.stdout)

    def test_refusal_of_a_refused_case(self):
        self.fixture = self.gen("refused.h5", "--chunk", "16")
        right = self.compare(lambda t: t.clear(), attrs={"error": "chunk_size_unsupported", "message": "no"})
        self.assertEqual(right.returncode, 0, right.stdout)
        self.assertEqual(self.compare().returncode, 1)

    def test_json(self):
        report = self.folder / "verdict.json"
        self.compare()
        done = run("compare", self.folder / "result.h5", self.fixture, "--json", report)
        self.assertEqual(done.returncode, 0)
        self.assertEqual(json.loads(report.read_text())["verdict"], "passed")

    def test_unreadable_files(self):
        self.assert_one_line_error(run("compare", self.folder / "none.h5", self.fixture), 2, "none.h5")
        self.assert_one_line_error(run("compare", self.fixture, self.folder / "none.h5"), 2, "none.h5")


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
