"""What fuzz and shrink say and return; what they find is tested in C++.

Usage: fuzz_command_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import os
import signal
import subprocess
import time
import unittest

from program_testing import PROGRAM, ProgramTest, run


class Fuzz(ProgramTest):
    WRONG = "exec:printf 'import h5py, sys\\nwith h5py.File(sys.argv[1]) as i, h5py.File(sys.argv[2], \"w\") as o:\\n" \
            " o[\"o\"] = i[\"inputs/v\"].astype(\"f4\")[...] * 0\\n" \
            "' | /usr/bin/python3 - {in} {out}"

    def test_a_clean_search(self):
        done = run("fuzz", "--impl", "fast", "--cases", 3, "--out", self.folder / "new")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("fast: 3 cases, 0 failed", done.stdout)
        self.assertEqual(os.listdir(self.folder / "new"), [])

    def test_a_failure_is_shrunk_and_repeats(self):
        line = "op=recurrent_kda lens=3,4 H=2 K=8 V=8 dtype=f32 gate=softplus seed=1"
        out = self.folder / "small.h5"
        done = run("shrink", line, "--impl", self.WRONG, "--judgements", 40, "-o", out)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("N=1 T=1 H=1", done.stdout)
        self.assertIn("repeat: ", done.stdout)
        self.assertEqual(run("check", out, "--impl", self.WRONG).returncode, 1)

    def test_the_repeat_line_judges_alike(self):
        line = "op=recurrent_kda T=3 H=1 HV=2 K=8 V=8 dtype=f32 seed=1"
        out = self.folder / "small.h5"
        done = run("shrink", line, "--impl", self.WRONG, "--judgements", 20, "--timeout", 33, "--formats", "bf16,output=f32",
                   "--device", "cpu", "-o", out)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn(" HV=1 ", done.stdout)
        repeat = done.stdout.split("repeat: ")[1].strip()
        for part in ("--timeout 33", "--formats bf16,output=f32", "--device cpu"):
            self.assertIn(part, repeat)
        again = subprocess.run(repeat, shell=True, capture_output=True, text=True, timeout=120)
        self.assertEqual(again.returncode, 1, again.stdout + again.stderr)
        self.assertIn("FAILED", again.stdout)

    def test_times_are_finite_and_positive(self):
        for command in (("check",), ("fuzz", "--impl", "fast"), ("shrink", "x.h5", "--impl", "fast")):
            for bad in ("nan", "inf", "-1", "-inf", "0", "1e7", ""):
                self.assert_one_line_error(run(*command, f"--timeout={bad}"), 2, "--timeout")
        for bad in ("nan", "inf", "-1"):
            self.assert_one_line_error(run("fuzz", "--impl", "fast", f"--seconds={bad}"), 2, "--seconds")
            self.assert_one_line_error(run("fuzz", "--impl", "fast", f"--shrink-seconds={bad}"), 2, "--shrink-seconds")
            self.assert_one_line_error(run("shrink", "x.h5", "--impl", "fast", f"--seconds={bad}"), 2, "--seconds")

    def test_shrinking_has_a_time_of_its_own(self):
        begin = time.monotonic()
        done = run("fuzz", "--impl", "exec:sleep 30 # {in} {out}", "--timeout", 1, "--seconds", 2, "--shrink-seconds", 2,
                   "--failures", 1, "--out", self.folder)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("the search was cut short", done.stdout)
        self.assertLess(time.monotonic() - begin, 2 + 2 + 2 * 1 + 10)  # and what a busy machine adds

    def test_bad_input_is_one_line(self):
        line = "op=recurrent_kda T=4 H=1 K=4 V=4"
        self.assert_one_line_error(run("shrink", line, "--impl", "fast"), 2, "wanted a case that fails")
        self.assert_one_line_error(run("fuzz", "--impl", "cuda-fit"), 2, "implementation_unsupported")
        self.assert_one_line_error(run("fuzz", "--impl", "fast", "--seed", "-1"), 2, "--seed")
        self.assert_one_line_error(run("fuzz", "--impl", "fast", "--out", "/proc/none"), 2, "file_unwritable", "--out")
        self.assert_one_line_error(run("shrink", self.folder / "none.h5", "--impl", "fast"), 2, "none.h5")

    def test_nothing_judged_is_no_success(self):
        done = run("fuzz", "--impl", "exec:exit 77; {in} {out}", "--cases", 3, "--seconds", 2, "--out", self.folder)
        self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
        self.assertIn(" 0 cases, 0 failed", done.stdout)

    def test_unwritable_standard_error(self):
        with open("/dev/full", "w") as full:
            done = subprocess.run([PROGRAM, "check", "/nope"], stdout=subprocess.DEVNULL, stderr=full, timeout=60)
        self.assertEqual(done.returncode, 2)

    def test_interrupt(self):
        started = subprocess.Popen([PROGRAM, "fuzz", "--impl", "exec:sleep 30 # {in} {out}", "--out", str(self.folder)],
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        time.sleep(1)
        started.send_signal(signal.SIGINT)
        out, err = started.communicate(timeout=20)
        self.assertEqual((started.returncode, err), (130, ""))
        self.assertIn("0 failed", out)


if __name__ == "__main__":
    unittest.main()
