"""kdacheck bench, and bench/record.py, as their users meet them.

    bench_command_test.py KDACHECK RECORD_PY [BENCH_PROGRAM]
"""
import copy
import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM, RECORD = sys.argv[1:3]
BENCH = sys.argv[3] if len(sys.argv) > 3 else None


def run(*words):
    done = subprocess.run(words, capture_output=True, text=True, timeout=300, check=False)
    return done.returncode, done.stdout, done.stderr


def bench(*words):
    return run(PROGRAM, "bench", *words)


class Files(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, data):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(data if isinstance(data, str) else json.dumps(data))
        return self.path(name)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return json.load(file)

    @staticmethod
    def times(factor=1.0, repetitions=9, name="x"):
        return {"context": {"kdacheck_bench": "1", "date": "2026-01-01", "commit": "abc"},
                "benchmarks": [{"name": name, "run_name": name, "run_type": "iteration",
                                "real_time": factor * (100 + 0.1 * i), "cpu_time": 1,
                                "time_unit": "us"} for i in range(repetitions)]}


class Counters(Files):
    def test_two_runs_are_identical_and_one_more_barrier_or_load_fails(self):
        one, two = self.path("1.json"), self.path("2.json")
        self.assertEqual(bench("--counters", "--json", one)[0], 0)
        self.assertEqual(bench("--counters", "--json", two)[0], 0)
        with open(one, "rb") as a, open(two, "rb") as b:
            self.assertEqual(a.read(), b.read())
        self.assertEqual(bench("--compare", one, two)[0], 0)
        for counter in ("path_barriers", "global_load.requests", "global_load.sectors"):
            more = copy.deepcopy(self.read("1.json"))
            more["cases"][0]["launches"][0]["counters"][counter] += 1
            status, out, _ = bench("--compare", one, self.write("more.json", more))
            self.assertEqual(status, 1)
            self.assertIn("grew", out)
            self.assertIn("cuda-recurrent: recurrent (decode_kv_f32", out)
            self.assertIn(counter, out)


class Compare(Files):
    def test_slower_faster_and_same(self):
        base = self.write("base.json", self.times())
        for factor, status, word in ((1.0, 0, "same"), (1.1, 1, "slower"), (0.9, 0, "faster")):
            new = self.write("new.json", self.times(factor))
            got, out, err = bench("--compare", base, new, "--json", self.path("c.json"))
            self.assertEqual(got, status, out + err)
            self.assertIn(word, out)
            self.assertEqual(self.read("c.json")["counts"][word], 1)
        self.assertEqual(bench("--compare", base, new, "--aa", base)[0], 0)

    def test_bad_input_is_named_and_never_the_same(self):
        base = self.write("base.json", self.times())
        later, other = self.times(), self.times()
        later["context"]["kdacheck_bench"] = "99"
        del other["context"]["kdacheck_bench"]
        for name, data in (("later", later), ("other", other), ("text", "not json"), ("empty", ""),
                           ("list", [1]), ("number", "17"), ("null", "null"),
                           ("pytest", {"machine_info": {}, "benchmarks": []}),
                           ("counters", {"format": "kdacheck-counters", "version": 1}),
                           ("deep", "[" * 100000)):
            bad = self.write(name + ".json", data)
            for pair in ((base, bad), (bad, base)):
                status, out, err = bench("--compare", *pair)
                self.assertEqual(status, 2, name + out + err)
                self.assertIn("bench_file_invalid", err)
                self.assertNotIn("same", out)
        status, _, err = bench("--compare", base, self.path("missing.json"))
        self.assertEqual(status, 2)
        self.assertIn("missing.json", err)
        self.assertEqual(bench("--compare", base, self.folder)[0], 2)

    def test_lines_that_cannot_be_compared(self):
        base = self.write("base.json", self.times())
        zero = self.times()
        zero["benchmarks"][4]["real_time"] = 0
        for data, reason in ((self.times(repetitions=1), "too few repetitions"), (zero, "real_time"),
                             (self.times(name="y"), "only in BASE")):
            status, out, _ = bench("--compare", base, self.write("new.json", data))
            self.assertEqual(status, 3, out)
            self.assertIn(reason, out)
            self.assertIn("no verdict", out)
            self.assertIn(" 0 same", out)

    def test_options_that_exclude_each_other(self):
        self.assertEqual(bench("--counters", "--compare", "a", "b")[0], 2)
        self.assertEqual(bench("--interleave", "fast", "no-such")[0], 2)


class Record(Files):
    def test_times_and_counters_become_lines(self):
        history, base = self.path("h.jsonl"), self.path("base.json")
        new = self.write("new.json", self.times())
        for _ in range(2):
            self.assertEqual(run(RECORD, new, "--history", history, "--baseline", base)[0], 0)
        self.assertEqual(self.read("base.json"), self.times())
        counters = self.write("c.json", {"format": "kdacheck-counters", "version": 1, "kernels": [],
                                         "cases": [{"implementation": "i", "case": "c",
                                                    "total": {"mma": 3}}]})
        self.assertEqual(run(RECORD, counters, "--history", history, "--commit", "def")[0], 0)
        with open(history, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        self.assertEqual([line["kind"] for line in lines], ["times", "times", "counters"])
        self.assertAlmostEqual(lines[0]["results"]["x"]["median_s"], 100.4e-6)
        self.assertEqual(lines[2]["results"]["i: c"]["mma"], 3)
        status, out, _ = run(RECORD, "--history", history, "--show", "x")
        self.assertEqual((status, out.count("abc  x")), (0, 2))

    def test_bad_files_leave_the_history_alone(self):
        history = self.path("h.jsonl")
        for data in ("no", [1], {"context": {}}, {"format": "kdacheck-counters", "version": 2}):
            status, _, err = run(RECORD, self.write("bad.json", data), "--history", history)
            self.assertEqual(status, 2, err)
            self.assertIn("bad.json", err)
        self.assertFalse(os.path.exists(history))


@unittest.skipUnless(BENCH, "the benchmarks are not built")
class Measure(Files):
    def test_a_quick_run_of_some_lines(self):
        out_file = self.path("q.json")
        status, out, err = bench("--quick", "--filter", "impl/fast/*", "--repetitions", "2",
                                 "--json", out_file)
        self.assertEqual(status, 0, out + err)
        self.assertIn("impl/fast/T512_H2", out)
        data = self.read("q.json")
        self.assertEqual(data["context"]["kdacheck_bench"], "1")
        line = next(b for b in data["benchmarks"] if b["run_type"] == "iteration")
        for counter in ("tokens/s", "min_bytes", "min_flops", "floor_s", "fraction"):
            self.assertGreater(line[counter], 0)
        self.assertLess(line["fraction"], 1.5)

    def test_nothing_matches(self):
        status, _, err = bench("--filter", "no such line")
        self.assertEqual(status, 2)
        self.assertIn("no such line", err.replace("\\", ""))

    def test_interleaved_implementations(self):
        status, out, err = bench("--interleave", "fast", "reference", "--filter", "T512_H2",
                                 "--quick", "--repetitions", "5", "--json", self.path("i.json"))
        self.assertIn(status, (0, 1, 3), out + err)
        comparison = self.read("i.json")
        self.assertEqual([line["name"] for line in comparison["lines"]],
                         ["impl/*/T512_H2/real_time"])
        self.assertEqual(comparison["lines"][0]["base_repetitions"], 5)
        self.assertEqual(comparison["lines"][0]["band_source"], "A/A run")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
