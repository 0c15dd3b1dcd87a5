"""A program that is starved, interrupted, or given odd files and numbers: one clear error each.

Usage: robustness_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import contextlib
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import time
import unittest
from pathlib import Path

import h5py
import numpy as np

from program_testing import PROGRAM, SANITIZED, ProgramTest, run

SAMPLES = "\n".join(f"{n},{0.02 * n + 2e-6 * n * n + 10}" for n in [1000, *range(1000, 20000, 1000)]) + "\n"


class RobustnessTest(ProgramTest):
    STATES = ("--h",)


class Starved(RobustnessTest):
    def test_a_limit_on_file_sizes_leaves_no_halves(self):
        case = self.gen()
        before = sorted(os.listdir(self.folder))

        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        done = run("check", case, "--json", self.folder / "r.json", preexec_fn=limited)
        self.assert_one_line_error(done, 2, "report_unwritable", "r.json")
        self.assertIn("passed", done.stdout)
        done = run("gen", "--op", "chunk_kda", "-o", self.folder / "new.h5", preexec_fn=limited)
        self.assert_one_line_error(done, 2, "file_unwritable")
        self.assertEqual(sorted(os.listdir(self.folder)), before)

    def test_a_full_disk_for_private_folders_is_no_verdict_on_the_kernel(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

        done = run("check", "--case", "op=chunk_kda T=5 K=8 V=8", "--impl", "exec:true {in} {out}", preexec_fn=limited)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn("SKIPPED", done.stdout)
        self.assertIn("file_unwritable", done.stdout)
        done = run("check", "--case", "op=chunk_kda T=5 K=8 V=8", "--impl", "exec:true {in} {out}",
                   env={**os.environ, "TMPDIR": "/proc"})
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)

    def test_a_closed_pipe_does_not_cost_the_report(self):
        report = self.folder / "r.json"
        reader, writer = os.pipe()
        process = subprocess.Popen([PROGRAM, "check", self.gen(), "--json", report], stdout=writer, stderr=subprocess.PIPE)
        os.close(reader)
        os.close(writer)
        _, errors = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 2)
        self.assertEqual(len(errors.splitlines()), 1)
        self.assertGreater(json.loads(report.read_text())["counts"]["passed"], 0)

    def test_every_signal_that_asks_to_end_is_an_interrupt(self):
        lines = [a for i in range(200) for a in ("--case", f"op=kda_prefill T=512 H=4 seed={i}")]
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
            report = self.folder / "r.json"
            process = subprocess.Popen([PROGRAM, "check", *lines, "--impl", "reference", "--json", report],
                                       stdout=subprocess.PIPE, text=True)
            time.sleep(1)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, 130, number)
            left = int(re.search(r"interrupted: (\d+) more cases were not run", out)[1])
            content = json.loads(report.read_text())
            self.assertTrue(content["interrupted"])
            self.assertEqual(content["not_run"], left)
            self.assertEqual(len(content["results"]) + left, 200)

    def test_a_hangup_is_ignored_under_nohup(self):
        process = subprocess.Popen(["nohup", PROGRAM, "check", "--case", "op=chunk_kda T=5 K=8 V=8", "--impl",
                                    "exec:sleep 1; exit 77 # {in} {out}"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        time.sleep(0.5)
        process.send_signal(signal.SIGHUP)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 3)

    def descendants(self, mark):
        """Processes whose command line holds the mark."""
        found = []
        for process in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if mark.encode() in process.read_bytes():
                    found.append(process.parent.name)
            except OSError:
                pass
        return found

    def sleeping(self, mark, *arguments):
        """A run whose implementation leaves processes everywhere, once they are all there."""
        command = f"exec:setsid sleep {mark} & (setsid setsid sleep {mark} &); sleep {mark} # {{in}} {{out}}"
        process = subprocess.Popen([PROGRAM, "check", "--case", "op=chunk_kda T=5 K=8 V=8", "--impl", command, *arguments],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        deadline = time.time() + 60
        while time.time() < deadline and len(self.descendants(f"\0{mark}\0")) < 3:
            time.sleep(0.02)
        return process

    def test_no_signal_leaves_a_child_process(self):
        for i, number in enumerate((signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGKILL)):
            mark = f"{100100 + i}.{os.getpid()}"
            process = self.sleeping(mark)
            process.send_signal(number)
            out, _ = process.communicate(timeout=60)
            if number == signal.SIGKILL:
                deadline = time.time() + 10
                while time.time() < deadline and self.descendants(mark):
                    time.sleep(0.02)
            else:
                self.assertEqual(process.returncode, 130)
                self.assertIn("interrupted: 1 more cases", out)
            self.assertEqual(self.descendants(mark), [], number)

    def test_a_timeout_ends_what_went_into_a_session_of_its_own(self):
        mark = f"100200.{os.getpid()}"
        process = self.sleeping(mark, "--timeout", "2")
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 1)
        self.assertIn("TIMED_OUT", out)
        self.assertEqual(self.descendants(mark), [])

    @unittest.skipIf(SANITIZED, "a sanitizer needs terabytes of address space")
    def test_a_small_address_space_is_one_clear_error(self):
        def limited():
            resource.setrlimit(resource.RLIMIT_AS, (64 << 20, 64 << 20))

        case = self.gen()
        for arguments, status in ((["check", "--case", "op=recurrent_kda T=70 H=8", "--impl", "cuda-recurrent"], 1), (["check", "--case", "op=kda_prefill T=4000 H=8"], 2),
                                  (["gen", "--op", "kda_prefill", "--T", "20000", "--H", "8", "-o", self.folder / "new.h5"], 2),
                                  (["mutate"], 2)):
            done = run(*arguments, preexec_fn=limited)
            said = done.stdout + done.stderr
            self.assertEqual(done.returncode, status, said)
            self.assertIn("out_of_memory", said, arguments)
            self.assertEqual(len(re.findall("out_of_memory", said)), 1, said)
            self.assertLessEqual(len(done.stderr.splitlines()), 1, said)
        self.assertFalse((self.folder / "new.h5").exists())
        for arguments in (["check", case, "--impl", "fast", "--jobs", "8"], ["list", "impls"]):
            done = run(*arguments, preexec_fn=limited)  # there is room for these
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_a_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], capture_output=True).returncode:
            self.skipTest("no small file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", disk])
        case = self.gen()
        with contextlib.suppress(OSError), open(disk / "filler", "wb", buffering=0) as filler:
            while True:
                filler.write(b"x" * 512)
        done = run("check", case, "--json", disk / "r.json", "--junit", disk / "r.xml")
        self.assertEqual(done.returncode, 2)
        self.assertIn("passed", done.stdout)
        self.assertIn("report_unwritable: " + str(disk / "r.json"), done.stderr)
        self.assert_one_line_error(run("gen", "--op", "chunk_kda", "--T", "300", "-o", disk / "new.h5"), 2, "file_unwritable", "No space")
        done = run("check", case, "--impl", "exec:true {in} {out}", env={**os.environ, "TMPDIR": str(disk)})
        self.assertEqual(done.returncode, 3, done.stdout)
        self.assertIn("file_unwritable", done.stdout)
        self.assertEqual(os.listdir(disk), ["filler"])

    def test_a_read_only_folder(self):
        place = self.folder / "place"
        place.mkdir()
        if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro,size=64k", "tmpfs", place], capture_output=True).returncode:
            self.skipTest("no read-only file system can be mounted here")
        self.addCleanup(subprocess.run, ["umount", place])
        case = self.gen()
        self.assert_one_line_error(run("check", case, "--json", place / "r.json"), 2, "report_unwritable", "Read-only")
        self.assert_one_line_error(run("gen", "--op", "chunk_kda", "-o", place / "new.h5"), 2, "file_unwritable", "Read-only")
        done = run("check", case, "--json", self.folder / "whole.json")
        self.assertEqual(done.returncode, 0)
        self.assert_one_line_error(run("merge", self.folder / "whole.json", "-o", place / "m.json"), 2, "report_unwritable")

    def test_a_writer_that_is_killed_leaves_no_half_that_is_read(self):
        """At any moment: the file has its name whole, or not at all; what is left beside is named and not read."""
        for i in range(12):
            place = self.folder / f"killed{i}"
            place.mkdir()
            process = subprocess.Popen([PROGRAM, "gen", "--op", "kda_prefill", "--T", "3000", "--H", "2", "-o", place / "new.h5"])
            time.sleep(0.06 * i)
            process.kill()
            process.wait()
            left = os.listdir(place)
            if "new.h5" in left:
                self.assertEqual(run("list", "fixtures", place).returncode, 0)
            else:
                self.assertTrue(all(name.endswith(".part") for name in left), left)
        self.gen("whole.h5")
        (self.folder / ".half.h5.77-0.part").write_bytes(b"half")
        done = run("check", self.folder / "whole.h5", self.folder, "--impl", "fast", "--filter", "case*")
        self.assertIn(".half.h5.77-0.part: left by a writer that was ended", done.stdout)
        self.assertEqual(done.returncode, 3, done.stdout)  # and it is judged no case

    def test_a_report_whose_writer_is_killed(self):
        case, report = self.gen(), self.folder / "r.json"
        self.assertEqual(run("check", case, "--json", report).returncode, 0)
        before = report.read_bytes()
        Path(f"{report}.part77").write_bytes(before[:100])
        self.assertEqual(run("check", case, "--json", report).returncode, 0)
        self.assert_one_line_error(run("merge", f"{report}.part77", "-o", self.folder / "m.json"), 2, "report_truncated")

    def test_a_report_goes_through_a_link(self):
        case = self.gen()
        target, link = self.folder / "target.json", self.folder / "link.json"
        link.symlink_to("target.json")  # to nothing yet, then to a file
        for _ in range(2):
            self.assertEqual(run("check", case, "--json", link).returncode, 0)
            self.assertTrue(link.is_symlink())
            self.assertGreater(json.loads(target.read_text())["counts"]["passed"], 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["case.h5", "link.json", "target.json"])


class OddFiles(RobustnessTest):
    def test_a_subfolder_that_cannot_be_searched_does_not_stop_the_others(self):
        self.gen()
        deep = os.open(self.folder, os.O_RDONLY)  # deeper than any path can say, which stops root too
        for _ in range(22):
            os.mkdir("x" * 200, dir_fd=deep)
            below = os.open("x" * 200, os.O_RDONLY, dir_fd=deep)
            os.close(deep)
            deep = below
        os.close(deep)
        done = run("check", self.folder)
        self.assert_one_line_error(done, 2, "path_not_found", "cannot search")
        self.assertRegex(done.stdout, r"1 cases, [1-9]\d* judged: [1-9]\d* passed, 0 failed")

    def test_links_beside_a_result_are_its_makers_business(self):
        case, result = self.gen(), self.folder / "result.h5"
        with h5py.File(case) as source, h5py.File(result, "w") as file:
            for name, values in source["expected"].items():
                file[name] = values[...]
            file["newest"] = h5py.SoftLink("/o")
            file["elsewhere"] = h5py.ExternalLink("/etc/passwd", "/x")
        self.assertEqual(run("compare", result, case).returncode, 0)
        with h5py.File(result, "a") as file:
            file["kept"] = file["o"][...]
            del file["o"]
            file["o"] = h5py.SoftLink("/kept")
        self.assert_one_line_error(run("compare", result, case), 2, "soft link", "/o")

    def test_expected_values_that_nobody_asked_for_have_the_right_shape_too(self):
        case = self.gen()
        for wrong in ("final_state",):
            with h5py.File(case, "a") as file:
                file[f"expected/{wrong}"] = np.zeros((3, 2))
                del file.attrs["content_sha256"]
            done = run("check", case)
            self.assertEqual(done.returncode, 2)
            self.assertIn("expected_shape", done.stdout)

    def test_a_sparse_file_is_refused_at_once(self):
        case = self.folder / "sparse.h5"
        shutil.copy(self.gen(), case)
        with h5py.File(case, "a") as file:
            del file["inputs/q"]
            file.create_dataset("inputs/q", (1, 70, 1, 500_000_000), "f4")
            file["inputs/q"].id.get_offset()
            file["inputs/q"][0, 69, 0, -1] = 1
            del file.attrs["content_sha256"]
        self.assertGreater(case.stat().st_size, 100 << 30)
        begin = time.time()
        done = run("check", case)
        self.assertEqual(done.returncode, 2, done.stdout)
        self.assertIn("file_unreadable", done.stdout)
        self.assertLess(time.time() - begin, 10)

    def test_names_of_fixtures_are_one_line_of_text(self):
        for name in (b"two\nlines", b"bad\xff", b"bell\x07"):
            done = subprocess.run([PROGRAM, "gen", "--op", "chunk_kda", "--name", name, "-o", self.folder / "x.h5"],
                                  capture_output=True)
            self.assertEqual(done.returncode, 2, name)
            self.assertEqual(len(done.stderr.splitlines()), 1)
            self.assertFalse((self.folder / "x.h5").exists())


class Numbers(RobustnessTest):
    def predict(self, *arguments):
        return run("predict", "--a", "2e-7", "--b", "0.02", *arguments)

    def test_whole_numbers_are_decimal(self):
        plain = self.predict("--base-chunk", "6144", "--history", "0")
        self.assertEqual(plain.returncode, 0, plain.stderr)
        self.assertEqual(self.predict("--base-chunk", "06144", "--history", "00").stdout, plain.stdout)
        for bad in ("0x1800", "6144.5", "six", "99999999999999999999", ""):
            self.assert_one_line_error(self.predict("--base-chunk", bad, "--history", "0"), 2, "base-chunk")

    def test_what_cannot_be_negative(self):
        self.assert_one_line_error(self.predict("--base-chunk", "6144", "--history", "-1"), 2, "history")
        self.assert_one_line_error(self.predict("--base-chunk", "6144", "--history", "1", "--page", "-64"), 2, "page")
        self.assert_one_line_error(self.predict("--base-chunk", "6144", "--history", "1", "--page", "0"), 2, "page")
        samples = self.folder / "samples.csv"
        samples.write_text(SAMPLES)
        self.assert_one_line_error(run("fit", samples, "--seed", "-1"), 2, "seed")
        self.assertEqual(run("fit", samples, "--seed", "08", "--resamples", "0100").returncode, 0)

    def test_samples_from_a_pipe(self):
        piped = run("fit", "/dev/stdin", "--resamples", "100", input=SAMPLES)
        self.assertEqual(piped.returncode, 0, piped.stderr)
        samples = self.folder / "samples.csv"
        samples.write_text(SAMPLES)
        with open(samples) as file:
            self.assertEqual(run("fit", "/dev/stdin", "--resamples", "100", stdin=file).returncode, 0)


if __name__ == "__main__":
    unittest.main()
