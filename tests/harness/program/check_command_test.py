"""kdacheck check as its users meet it: exit status, messages, reports.

Usage: check_command_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest
import xml.etree.ElementTree as ET

import h5py
import numpy as np

from program_testing import FIXTURES, PROGRAM, ProgramTest, run, spoil


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
        self.assert_one_line_error(run("check", "--shard", "1/99999999999999999999"), 2, "--shard")
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


if __name__ == "__main__":
    unittest.main()
