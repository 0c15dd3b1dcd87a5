"""Other people's kernels: programs and plugins that are right, wrong, and worse, through `kdacheck check`.

Usage: external_test.py PROGRAM SOURCE_DIR EXAMPLE_PLUGIN FAULTY_PLUGIN [unittest arguments]
"""

import glob
import json
import os
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

PROGRAM = sys.argv.pop(1)
SOURCE = Path(sys.argv.pop(1))
EXAMPLE = sys.argv.pop(1)
FAULTY = sys.argv.pop(1)
PYTHON = sys.executable
EXAMPLES = SOURCE / "examples" / "exec"
CASE = "op=recurrent_kda T=5 K=8 V=8 final_state=1 seed=1"
REFUSED = "op=chunk_kda T=4 K=8 V=8 chunk=16"


class ExternalTest(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "tmp").mkdir()
        self.report = self.folder / "r.json"

    def environment(self, **more):
        return {**os.environ, "KDACHECK_PROGRAM": PROGRAM, "TMPDIR": str(self.folder / "tmp"), **more}

    def run_check(self, *arguments, **environment):
        done = subprocess.run([PROGRAM, "check", *map(str, arguments), "--json", self.report], capture_output=True,
                              text=True, timeout=300, env=self.environment(**environment))
        self.assertEqual(os.listdir(self.folder / "tmp"), [], "a private folder was left behind")
        return done

    def results(self):
        return json.loads(self.report.read_text())["results"]

    def judge_one(self, implementation, *arguments, case=CASE, **environment):
        """The one result of one case."""
        done = self.run_check("--case", case, "--impl", implementation, *arguments, **environment)
        results = self.results() if self.report.exists() else []
        self.assertEqual(len(results), 1, done.stdout + done.stderr)
        self.report.unlink()
        return done, results[0]

    def script(self, body):
        """An exec: implementation of Python lines that know `source` and `target`."""
        path = self.folder / f"script{len(list(self.folder.iterdir()))}.py"
        path.write_text(f"import sys\nsys.path.insert(0, {str(EXAMPLES)!r})\nimport h5py, numpy as np\n"
                        "import kdacheck_exec, run_numpy\nsource, target = sys.argv[1:]\n"
                        "case = kdacheck_exec.read_case(source)\n" + body)
        return f"exec:{PYTHON} {path} {{in}} {{out}}"

    def assert_verdict(self, result, verdict, code, detail=""):
        self.assertEqual((result["verdict"], result["code"]), (verdict, code), result)
        self.assertIn(detail, result["detail"])


class Exec(ExternalTest):
    def test_four_ways_to_fail_and_the_cases_after_them_are_run(self):
        sleeper = "exec:echo dreaming >&2; sleep 1000; {in} {out}"
        crasher = "exec:echo falling >&2; kill -SEGV $$; {in} {out}"
        halver = "exec:head -c 900 {in} > {out}"
        liar = self.script("o, s, _ = run_numpy.kda(case)\n"
                           "with h5py.File(target, 'w') as f:\n    f['o'], f['final_state'] = o.astype(np.int32), s\n")
        wanted = {sleeper: ("timed_out", "timed_out"), crasher: ("crashed", "signal"),
                  halver: ("malformed", "file_truncated"), liar: ("failed", "dataset_type_unsupported")}
        junit = self.folder / "r.xml"
        impls = [a for name in wanted for a in ("--impl", name)]
        cases = [a for seed in (1, 2) for a in ("--case", f"op=recurrent_kda T=5 K=8 V=8 seed={seed}")]
        done = self.run_check(*cases, *impls, "--impl", "fast", "--timeout", 3, "--jobs", 2, "--junit", junit)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        results = self.results()
        self.assertEqual(len(results), 10)
        for result in results:
            if result["implementation"] == "fast":
                self.assertEqual(result["verdict"], "passed")
            else:
                self.assert_verdict(result, *wanted[result["implementation"]])
        self.assertIn("falling", done.stdout)
        self.assertIn("falling", next(r for r in results if r["implementation"] == crasher)["output"])
        self.assertRegex(done.stdout, r"2 cases, 10 judged: 2 passed, 2 failed, .*2 crashed, 2 timed out, 2 malformed")
        counts = json.loads(self.report.read_text())["counts"]
        self.assertEqual((counts["crashed"], counts["timed_out"], counts["malformed"], counts["failed"]), (2, 2, 2, 2))
        self.assertEqual(len(ET.parse(junit).getroot().findall(".//failure")), 8)

    def test_what_no_xml_may_hold_is_left_out(self):
        junit = self.folder / "r.xml"
        done = self.run_check("--case", "op=recurrent_kda T=5 K=8 V=8", "--impl",
                              r"exec:printf 'a\357\277\277b\357\277\276\001c'; exit 5 # {in} {out}", "--junit", junit)
        self.assertEqual(done.returncode, 1, done.stdout + done.stderr)
        self.assertIn("abc", ET.parse(junit).getroot().find(".//failure").text)

    def test_the_example_in_numpy_is_right(self):
        fixtures = ["recurrent_varlen", "chunk_c32_v_first", "prefill_fused_bound_t64"]
        files = [p for name in fixtures for p in glob.glob(str(SOURCE / "data/fixtures" / f"{name}*.h5"))[:1]]
        self.assertGreaterEqual(len(files), 2)
        done = self.run_check(*files, "--impl", f"exec:{PYTHON} {EXAMPLES}/run_numpy.py {{in}} {{out}}", "--repeat", 2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_malformed_results(self):
        head = "o, s, _ = run_numpy.kda(case)\nf = h5py.File(target, 'w')\n"
        for body, code in (("f['o'], f['final_state'] = o[:, :-1], s", "shape_mismatch"),
                           ("f['o'], f['final_state'] = o[0], s", "shape_mismatch"),
                           ("f['o'], f['final_state'] = o, s.swapaxes(0, 1)[:, :, :, :4]", "shape_mismatch"),
                           ("f['o'] = o", "missing"),
                           ("f['p'] = o", "result_malformed"),
                           ("f['o'] = o; f.attrs['error'] = 'beta_shape'", "result_malformed")):
            self.assert_verdict(self.judge_one(self.script(head + body + "\nf.close()\n"))[1], "malformed", code)
        self.assert_verdict(self.judge_one("exec:true {in} {out}")[1], "malformed", "result_missing")
        self.assert_verdict(self.judge_one("exec:echo words > {out}; true {in}")[1], "malformed", "file_not_hdf5")

    def test_a_wrong_value_fails_as_anywhere(self):
        done, result = self.judge_one(self.script("o, s, _ = run_numpy.kda(case)\no[0, 3, 0, 2] += 1\n"
                                                  "kdacheck_exec.write_result(target, case, o, s)\n"))
        self.assert_verdict(result, "failed", "over_bound")
        self.assertIn("t=3", done.stdout)

    def test_refusals_are_judged_by_the_contract(self):
        refuse = self.script("kdacheck_exec.refuse(target, 'chunk_size_unsupported', 'not such chunks')\n")
        self.assert_verdict(self.judge_one(refuse)[1], "refused", "chunk_size_unsupported", "not such chunks")
        self.assert_verdict(self.judge_one(refuse, case=REFUSED)[1], "passed", "chunk_size_unsupported")
        other = self.script("kdacheck_exec.refuse(target, 'my_own_code', 'no')\n")
        self.assert_verdict(self.judge_one(other, case=REFUSED)[1], "failed", "my_own_code", "chunk_size_unsupported")
        accept = self.script("kdacheck_exec.write_result(target, case, np.zeros((1, 4, 1, 8), np.float32))\n")
        self.assert_verdict(self.judge_one(accept, case=REFUSED)[1], "failed", "accepted")

    def test_what_cannot_be_run_here_is_no_pass(self):
        for name in ("run_fla", "run_sglang", "run_flashkda", "run_cula"):
            fused = ("op=kda_prefill T=64 l2norm=1 gate=bound safe_gate=1 final_state=1 seed=1"
                     + (" beta_sigmoid=1" if name == "run_flashkda" else ""))
            done, result = self.judge_one(f"exec:{PYTHON} {EXAMPLES}/{name}.py {{in}} {{out}}", case=fused,
                                          CUDA_VISIBLE_DEVICES="")
            self.assertEqual(done.returncode, 3, done.stdout + done.stderr)
            self.assert_verdict(result, "skipped", "unavailable")
            self.assertRegex(result["detail"], "PyTorch|GPU|imported")
            self.assertIn("was asked for and judged no case", done.stdout)

    def test_a_skipped_implementation_beside_a_right_one_is_exit_3(self):
        done = self.run_check("--case", CASE, "--impl", "fast", "--impl", "exec:exit 77 {in} {out}")
        self.assertEqual(done.returncode, 3)
        self.assertIn("1 passed", done.stdout)

    def test_cases_that_a_kernel_was_not_made_for_are_unsupported(self):
        program = self.script("kdacheck_exec.refuse(target, 'implementation_unsupported', 'too short')\n")
        done, result = self.judge_one(program)
        self.assert_verdict(result, "unsupported", "implementation_unsupported", "too short")
        self.assertEqual(done.returncode, 3)

    def test_ends_of_the_process(self):
        self.assert_verdict(self.judge_one("exec:echo why >&2; exit 5; {in} {out}")[1], "crashed", "exit_status", "5")
        self.assert_verdict(self.judge_one("exec:/no/such/program {in} {out}")[1], "crashed", "exit_status", "127")

    def test_a_changed_input_is_found(self):
        program = self.script("kdacheck_exec.write_result(target, case, *run_numpy.kda(case))\n"
                              "with h5py.File(source, 'a') as f:\n    f['inputs/q'][...] *= 2\n")
        self.assert_verdict(self.judge_one(program)[1], "failed", "input_changed")

    def test_other_bits_in_a_second_run_are_found(self):
        program = self.script("import os\no, s, _ = run_numpy.kda(case)\no[0, 0, 0, 0] *= 1 + os.getpid() % 7 * 1e-6\n"
                              f"n = {str(self.folder / 'n')!r}\nopen(n, 'a').write('x')\n"
                              "s[0, 0, 0, 0] *= 1 + len(open(n).read()) * 1e-6\n"
                              "kdacheck_exec.write_result(target, case, o, s)\n")
        self.assertEqual(self.judge_one(program)[1]["verdict"], "passed")
        self.assert_verdict(self.judge_one(program, "--repeat", 3)[1], "failed", "not_repeatable")

    def test_a_result_states_its_formats(self):
        program = self.script("import os\no, s, _ = run_numpy.kda(case)\nkdacheck_exec.write_result(target, case, o, s)\n"
                              "if 'STATED' in os.environ:\n    with h5py.File(target, 'a') as f:\n"
                              "        f.attrs['formats'] = os.environ['STATED']\n")
        self.assertIn("operands=bf16,triangle=bf16", self.judge_one(program)[1]["formats"])
        stated = self.judge_one(program, STATED="f32,state=bf16/token")[1]["formats"]
        self.assertIn("operands=f32,", stated)
        self.assertIn("state=bf16/token", stated)
        both = self.judge_one(program, "--formats", "bf16x2", STATED="f32")[1]["formats"]
        self.assertIn("operands=bf16x2,", both, "--formats decides")
        self.assert_verdict(self.judge_one(program, STATED="bf17")[1], "malformed", "formats_invalid", "got 'bf17'")

    def test_bad_usage_is_one_line(self):
        for arguments, word in ((["--impl", "exec:true {in}"], "{out}"), (["--impl", "exec:true"], "{in}"),
                                (["--impl", "plugin:/no/such.so"], "path_not_found"), (["--timeout", "0"], "timeout"),
                                (["--impl", "exec:true {in} {out}", "--timeout", "soon"], "timeout")):
            done = subprocess.run([PROGRAM, "check", "--case", CASE, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done.stdout)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
            self.assertIn(word, done.stderr)

    def test_the_program_sees_no_answer_and_the_repeat_command_works(self):
        program = self.script("with h5py.File(source) as f:\n    assert 'expected' not in f, list(f)\n"
                              "o, s, _ = run_numpy.kda(case)\nkdacheck_exec.write_result(target, case, o + 1, s)\n")
        case = self.folder / "case.h5"
        subprocess.run([PROGRAM, "gen", "--op", "recurrent_kda", "--T", "5", "--K", "8", "--V", "8", "-o", case], check=True)
        done = self.run_check(case, "--impl", program, "--timeout", 77)
        self.assertEqual(done.returncode, 1)
        result, = self.results()
        self.assert_verdict(result, "failed", "over_bound")
        self.assertIn("--timeout 77", result["command"])
        again = subprocess.run(result["command"], shell=True, capture_output=True, text=True, env=self.environment())
        self.assertEqual(again.returncode, 1)
        self.assertIn("over_bound", again.stdout)

    def test_other_ops_are_unsupported(self):
        fit = next((SOURCE / "data/fixtures").glob("fit_*.h5"))
        done = self.run_check(fit, "--impl", "exec:true {in} {out}")
        self.assertEqual(self.results()[0]["verdict"], "unsupported")
        self.assertEqual(done.returncode, 3)

    def test_an_interrupt_kills_the_child_and_reports(self):
        mark = self.folder / "mark"
        command = f"exec:touch {mark}; sleep 6; touch {mark}2; {{in}} {{out}}"
        process = subprocess.Popen([PROGRAM, "check", "--case", CASE, "--impl", "fast", "--impl", command, "--json",
                                    self.report], stdout=subprocess.PIPE, text=True, env=self.environment())
        deadline = time.time() + 60
        while not mark.exists() and time.time() < deadline:
            time.sleep(0.02)
        begin = time.time()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
        self.assertLess(time.time() - begin, 5)
        self.assertEqual(process.returncode, 130)
        self.assertIn("interrupted", out)
        self.assertEqual([r["implementation"] for r in self.results()], ["fast"])
        self.assertEqual(os.listdir(self.folder / "tmp"), [])
        time.sleep(max(0, begin + 7 - time.time()))
        self.assertFalse(Path(f"{mark}2").exists())


class Plugin(ExternalTest):
    def test_the_example_in_c_is_right(self):
        """On every option and every refusal of the two contracts that it serves."""
        files = [f for f in sorted((SOURCE / "data/fixtures").glob("*.h5")) if served(f)][::4]
        self.assertGreater(len(files), 60)
        done = self.run_check(*files, "--impl", f"plugin:{EXAMPLE}", "--jobs", 2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        verdicts = {r["verdict"] for r in self.results()}
        self.assertEqual(verdicts, {"passed"})

    def test_what_it_does_not_serve_is_unsupported(self):
        _, result = self.judge_one(f"plugin:{EXAMPLE}", case="op=kda_prefill T=5 seed=1")
        self.assert_verdict(result, "unsupported", "unsupported", "not served")

    def test_everything_that_a_plugin_can_do_wrong(self):
        for fault, verdict, code, detail in (
                ("crash", "crashed", "signal", "SIGABRT"), ("far", "crashed", "signal", "SIGSEGV"),
                ("hang", "timed_out", "timed_out", "2 s"), ("exit", "crashed", "exited", "ended the process"),
                ("behind", "failed", "wrote_outside", "outside o: 3 bytes behind its end"),
                ("before", "failed", "wrote_outside", "outside q: 5 bytes before its begin"),
                ("input", "failed", "input_changed", "input k: element 3"),
                ("unwritten", "failed", "output_unwritten", "o: element 38 was never written"),
                ("peek", "failed", "read_outside", "o: element 0"), ("race", "failed", "not_repeatable", "o: element 0"),
                ("refuse", "refused", "beta_shape", "not this beta"),
                ("unsupported", "unsupported", "unsupported", "not made for it"),
                ("unavailable", "skipped", "unavailable", "no such machine"),
                ("error", "failed", "plugin_error", "a wire came loose"),
                ("status", "malformed", "status_unknown", "99"), ("version", "malformed", "plugin_version", "7")):
            with self.subTest(fault):
                done, result = self.judge_one(f"plugin:{FAULTY}", "--timeout", 2 if fault == "hang" else 60, FAULT=fault)
                self.assert_verdict(result, verdict, code, detail)
                if fault == "crash":
                    self.assertIn("about to fall", done.stdout)

    def test_a_plugin_of_zeros_fails_by_value(self):
        self.assertEqual(self.judge_one(f"plugin:{FAULTY}")[1]["verdict"], "failed")

    def test_a_gpu_that_is_not_there(self):
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("there is a GPU")
        done, result = self.judge_one(f"plugin:{FAULTY}", FAULT="cuda")
        self.assert_verdict(result, "skipped", "device_unavailable")
        self.assertEqual(done.returncode, 3)

    def test_libraries_that_are_no_plugins(self):
        text = self.folder / "text.so"
        text.write_text("no library")
        self.assert_verdict(self.judge_one(f"plugin:{text}")[1], "skipped", "plugin_unloadable")
        libm = next(iter(glob.glob("/lib/*/libm.so.6") + glob.glob("/usr/lib/*/libm.so.6")), None)
        if libm:
            self.assert_verdict(self.judge_one(f"plugin:{libm}")[1], "malformed", "plugin_symbol")

    def test_the_host_command_is_hidden(self):
        helped = subprocess.run([PROGRAM, "--help"], capture_output=True, text=True).stdout
        self.assertNotIn("plugin-host", helped)


def served(file):
    with h5py.File(file) as content:
        op = content.attrs["op"]
        return op in ("chunk_kda", "recurrent_kda") and content["inputs/v"].size < 200_000


class KnownFailures(ExternalTest):
    def list_of(self, *entries):
        path = self.folder / "known.json"
        keys = ("implementation", "case", "reason", "expires")
        path.write_text(json.dumps({"format": "kdacheck-known-failures", "version": 1,
                                    "known_failures": [dict(zip(keys, e)) for e in entries]}))
        return path

    def check_crash(self, known, *more):
        return self.run_check("--case", CASE, "--impl", "fast", "--impl", "exec:exit 5 {in} {out}", "--known-failures",
                              known, *more)

    def test_a_known_failure_is_no_pass_and_no_failure(self):
        junit = self.folder / "r.xml"
        done = self.check_crash(self.list_of(("exec:*", "op=recurrent*", "bug 7", "2099-01-01")), "--junit", junit)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("bug 7", done.stdout)
        self.assertIn("1 passed", done.stdout)
        self.assertIn("1 known failure", done.stdout)
        self.assertEqual([r["verdict"] for r in self.results()], ["passed", "known_failure"])
        self.assertEqual(len(ET.parse(junit).getroot().findall(".//skipped")), 1)

    def test_an_expired_one_counts_again(self):
        done = self.check_crash(self.list_of(("exec:*", "op=recurrent*", "bug 7", "2001-01-01")))
        self.assertEqual(done.returncode, 1)
        self.assertIn("expired on 2001-01-01", done.stdout)

    def test_one_that_passes_now_fails_the_run(self):
        name = "op=recurrent_kda B=1 T=5 H=1 HV=1 K=8 V=8 final_state=1 seed=1"
        known = self.list_of(("fast", name, "bug 8", "2099-01-01"), ("nobody", "x", "bug 9", "2099-01-01"))
        done = self.run_check("--case", CASE, "--impl", "fast", "--known-failures", known)
        self.assertEqual(self.results()[0]["name"], name)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("passes now", done.stdout)
        self.assertIn("matched no result", done.stdout)

    def test_nothing_but_known_failures_is_nothing(self):
        known = self.list_of(("exec:*", "*", "bug 7", "2099-01-01"))
        done = self.run_check("--case", CASE, "--impl", "exec:exit 5 {in} {out}", "--known-failures", known)
        self.assertEqual(done.returncode, 3)

    def test_a_broken_list_stops_the_run(self):
        done = self.check_crash(self.list_of(("exec:*", "*", "bug 7", "soon")))
        self.assertEqual(done.returncode, 2)
        self.assertIn("known_failures_invalid", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1)


if __name__ == "__main__":
    unittest.main()
