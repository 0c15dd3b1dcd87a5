#!/usr/bin/python3
"""kdacheck report without a browser: what it takes, what it refuses, what it writes.

report_test.py REPORT.PY [FILTER...]
"""
import copy
import html.parser
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
import unittest
import warnings

import report_samples as samples

REPORT = os.path.abspath(sys.argv.pop(1))
sys.path.insert(0, os.path.dirname(REPORT))
from kdareport import bench, check, figure, markdown, page, words  # noqa: E402
from kdareport.inputs import InputError, Inputs, load  # noqa: E402


class Page(html.parser.HTMLParser):
    """Elements, attributes and text of a page."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.text, self.stack = [], [], "", []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, key, value or "") for key, value in attrs]
        if tag not in ("meta", "link", "br", "use", "path", "rect"):
            self.stack.append(tag)

    def handle_endtag(self, tag):
        if tag in self.stack:
            while self.stack.pop() != tag:
                pass

    def handle_data(self, data):
        if not self.stack or self.stack[-1] not in ("script", "style"):
            self.text += data


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.out = self.path("report.html")

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def run_report(self, *arguments):
        return subprocess.run([sys.executable, REPORT, *arguments], capture_output=True, text=True, timeout=120)

    def made(self, *arguments):
        """The page and the summary, made without complaint."""
        done = self.run_report(*arguments, "-o", self.out, "--markdown", self.path("summary.md"))
        self.assertEqual((done.returncode, done.stderr, done.stdout), (0, "", ""))
        return read(self.out), read(self.path("summary.md"))

    def refused(self, *arguments, named=()):
        done = self.run_report(*arguments, "-o", self.out, "--markdown", self.path("summary.md"))
        self.assertEqual(done.returncode, 2, done.stderr)
        for line in done.stderr.splitlines():
            self.assertTrue(line.startswith("kdacheck: "), line)
        for word in named:
            self.assertIn(word, done.stderr)
        self.assertFalse(os.path.exists(self.out))
        self.assertFalse(os.path.exists(self.path("summary.md")))
        self.assertEqual([name for name in os.listdir(self.folder.name) if ".part" in name], [])

    def files(self, **data):
        return samples.write(self.folder.name, **data)


class PageTest(Case):
    page = None

    def everything(self):
        """One page with every section, made once."""
        PageTest.page = PageTest.page or self.make_everything()
        return PageTest.page

    def make_everything(self):
        paths = self.files(bad=samples.bad(), bench=samples.bench(), counters=samples.counters(), comparison=samples.comparison(),
                           mutation=samples.mutation(), good=samples.good(), bench0=samples.bench(0.9), counters0=samples.counters(3))
        return self.made(paths["bad"], paths["bench"], paths["counters"], paths["comparison"], paths["mutation"],
                         "--base", paths["good"],
                         "--base", paths["bench0"], "--base", paths["counters0"])

    def test_everything_is_on_it(self):
        text, summary = self.everything()
        page = Page(text)
        for word in ("Verdicts by family", "n=0 t=42 hv=1 v=3", "./kdacheck check over.h5 --impl peer-f32", "Error against bound",
                     "Error against token index", "Share of the bound by family", "Roofline", "Time against tokens T",
                     "impl/fast/T*_H8: slope 1.00", "Time against heads H", "2 impossible", "a single repetition", "the result failed",
                     "skipped: no GPU", "path_barriers", "grew", "a CPU", "none: no driver", "a verdict of tomorrow", "truncated",
                     "nowhere.h5: not found", "11 new", "never-ran was asked for", "a note", "there is no GPU here",
                     "fixed in the next release", "ended by SIGSEGV", "<b>line 2", "no A/A run was given", "2 of 3 faults seen", "0.0123", "of peer-f32 lean to one side", "late_decay survives", "no effect",
                     "recurrent_kernel<float, true, 64>"):
            self.assertIn(word, page.text)
        for word in ("3 failed", "n=0 t=42 hv=1 v=3", "slower", "impl/fast/T512_H8", "repeat: `./kdacheck check over.h5"):
            self.assertIn(word, summary)

    def test_loads_nothing(self):
        text, _ = self.everything()
        for tag, key, value in Page(text).attributes:
            if key in ("src", "srcset", "action", "data", "poster"):
                self.fail(f"{tag} {key}={value}")
            if key == "href":
                self.assertTrue(value.startswith("#") or value == "data:,", value)
        self.assertEqual(re.findall(r"url\((?!#)[^)]*\)|@import", text), [])
        self.assertIn("default-src 'none'", text)

    def test_names_are_no_markup(self):
        text, summary = self.everything()
        self.assertEqual(text.count("<script>"), 1)
        self.assertNotIn("\u202e", text + summary)
        self.assertNotIn("\x1b", text + summary)
        outside = re.sub(r"(`+)(?!`).*?(?<!`)\1(?!`)", "", summary)  # of code spans
        self.assertNotIn("<script", outside)
        self.assertNotIn("@everyone", outside)
        for tag, key, _ in Page(text).attributes:
            self.assertFalse(key.startswith("on"), f"{tag} {key}")

    def test_plots_have_texts_and_ids_of_their_own(self):
        text, _ = self.everything()
        page = Page(text)
        svgs = page.tags.count("svg")
        self.assertGreaterEqual(svgs, 6)
        self.assertEqual(page.tags.count("figcaption"), svgs)
        labels = [value for tag, key, value in page.attributes if tag == "svg" and key == "aria-label"]
        self.assertEqual(len(labels), svgs)
        self.assertTrue(all(len(label) > 40 for label in labels), labels)
        ids = [value for _, key, value in page.attributes if key == "id"]
        self.assertEqual(len(ids), len(set(ids)))
        self.assertEqual(re.findall(r"#f0000\d|#0e000\d", text), [])  # every stand-in colour was replaced

    def test_all_passed(self):
        text, summary = self.made(self.files(good=samples.good())["good"])
        self.assertIn("all 24 results passed", Page(text).text)
        self.assertNotIn("###", summary)

    def test_nothing_compared_is_not_good(self):
        for data in (samples.report([]), samples.report([samples.result("a", verdict="unsupported")])):
            text, _ = self.made(self.files(check=data)["check"])
            self.assertNotIn("passed</p>", text)
            self.assertRegex(Page(text).text, "nothing was compared|no result in it")

    def test_same_input_same_bytes(self):
        path = self.files(good=samples.good())["good"]
        self.assertEqual(self.made(path), self.made(path))

    def test_long_runs_give_short_summaries(self):
        results = [samples.result(f"case{i}" + "x" * 5000, verdict="failed", share=9) for i in range(210)]
        path = self.files(check=samples.report(results))["check"]
        text, summary = self.made(path)
        self.assertLess(len(summary.encode()), 65536)
        self.assertEqual(text.count('<details class="failure"'), 210)

    def test_shards_and_duplicates(self):
        paths = self.files(a=samples.report([samples.result("one")]), b=samples.report([samples.result("two")]))
        self.assertIn("all 2 results passed", self.made(paths["a"], paths["b"])[0])
        self.assertIn("1 result stand in more than one file", self.made(paths["a"], paths["a"])[0])


    def test_parts_of_a_run_say_so(self):
        def part(index, **more):
            return samples.report([samples.result(f"case{index}")], shard={"index": index, "count": 3, "items": 3, "inputs": "ab"}, **more)

        paths = self.files(a=part(1), b=part(2), c=part(3), whole=samples.report([], shard={"index": 1, "count": 1}))
        self.assertIn("2 of 3 shards: not 2", self.made(paths["a"], paths["c"])[0])
        self.assertIn("all 3 shards, each judged alone", self.made(paths["a"], paths["b"], paths["c"])[0])
        self.assertNotIn("shard", self.made(paths["whole"])[1])

    def test_a_run_that_stopped_says_so(self):
        path = self.files(check=samples.report([samples.result("one")], stopped="device_lost at x of y", not_run=7))["check"]
        text, _ = self.made(path)
        self.assertIn("device_lost at x of y: 7 more cases were not run", text)
        self.assertIn("stopped before its last case", text)


class RefusedTest(Case):
    def test_what_is_no_report(self):
        good = json.dumps(samples.good())
        for name, content, named in (
                ("empty", "", "empty file"), ("cut", good[:len(good) // 2], "cut short"), ("list", "[1, 2]", "an object"),
                ("tool", '{"tests": []}', "neither"), ("later", good.replace('"version": 1', '"version": 2'), "version"),
                ("later_true", good.replace('"version": 1', '"version": true'), "version"),
                ("format", '{"format": "junit", "version": 1}', "format"), ("number", '{"format": 7}', "format"),
                ("nested", "[" * 100000, "JSON"), ("results", '{"format": "kdacheck-report", "version": 1}', "results"),
                ("type", good.replace('"name": "case0"', '"name": 7', 1), "results[0].name"),
                ("bench", '{"context": {"kdacheck_bench": "9"}, "benchmarks": []}', "kdacheck_bench"),
                ("context", '{"context": {}}', "benchmarks"), ("digits", '{"format": ' + "9" * 5000 + "}", "JSON"),
                ("counters", '{"format": "kdacheck-counters", "version": 1, "cases": [{}]}', "cases[0].case")):
            with self.subTest(name):
                with open(self.path(f"{name}.json"), "w", encoding="utf-8") as file:
                    file.write(content)
                self.refused(self.path(f"{name}.json"), named=(f"{name}.json", named))

    def test_bytes(self):
        with open(self.path("x.json"), "wb") as file:
            file.write(b'{"format": "\xff"}')
        self.refused(self.path("x.json"), named=("not UTF-8",))

    def test_every_bad_file_is_named(self):
        good = self.files(good=samples.good())["good"]
        for name in ("a", "b"):
            with open(self.path(f"{name}.json"), "w", encoding="utf-8"):
                pass
        self.refused(good, self.path("a.json"), self.path("none.json"), "--base", self.path("b.json"),
                     named=("a.json", "b.json", "none.json: No such file"))

    def test_usage(self):
        good = self.files(good=samples.good())["good"]
        self.refused(named=("usage",))
        self.refused(good, "--no-such-option", named=("usage",))
        for output in (self.path("no/folder.html"), self.folder.name, ""):
            done = self.run_report(good, "-o", output)
            self.assertEqual(done.returncode, 2, output)
        before = read(good)
        self.assertEqual(self.run_report(good, "-o", good).returncode, 2)
        self.assertEqual(read(good), before)

    def test_a_full_disk_leaves_the_old_page(self):
        good = self.files(good=samples.good())["good"]
        with open(self.out, "w", encoding="utf-8") as file:
            file.write("old")
        limited = f"ulimit -f 16; exec {sys.executable} {REPORT} {good} -o {self.out}"
        done = subprocess.run(["bash", "-c", "trap '' XFSZ; " + limited], capture_output=True, text=True)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("report_unwritable", done.stderr)
        self.assertEqual(read(self.out), "old")

    def test_without_matplotlib(self):
        good = self.files(good=samples.good())["good"]
        with open(self.path("matplotlib.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('not here')")
        done = subprocess.run([sys.executable, REPORT, good, "-o", self.out], capture_output=True, text=True,
                              env={**os.environ, "PYTHONPATH": self.folder.name})
        self.assertEqual(done.returncode, 3)
        self.assertIn("python3-matplotlib", done.stderr)
        self.assertFalse(os.path.exists(self.out))


class MeaningTest(Case):
    """The numbers behind the page."""

    def lines(self, data):
        return {line.name: line for line in bench.lines_of(load([self.files(b=data)["b"]]))}

    def test_medians_and_problems(self):
        lines = self.lines(samples.bench())
        self.assertAlmostEqual(lines["impl/fast/T512_H8"].median, 512e-6 * 1.02)
        self.assertEqual(len(lines["impl/fast/T512_H8"].seconds), 5)
        self.assertNotIn("impl/median", lines)
        self.assertTrue(lines["impl/zero"].failed and lines["impl/nan"].failed and lines["impl/unit"].failed)
        self.assertFalse(lines["gpu/recurrent/T1"].failed)

    def test_slopes(self):
        data = {"benchmarks": [samples.bench_line(f"k/T{t}_H{h}", 1e-6 * t ** 2 * h ** 0.5) for t in (64, 256, 512) for h in (1, 4)]}
        found = {(s.axis, s.name): s for s in bench.slopes(list(self.lines(data).values()))}
        self.assertEqual(len(found), 5)
        self.assertAlmostEqual(found["T", "k/T*_H4"].slope, 2)
        self.assertAlmostEqual(found["H", "k/T64_H*"].slope, 0.5)
        self.assertTrue(math.isnan(found["H", "k/T64_H*"].error))
        both = {"benchmarks": [samples.bench_line(f"k/T{t}_H{h}", 1e-6 * t * h) for t, h in ((512, 2), (2048, 4), (8192, 1))]}
        self.assertEqual([(s.axis, s.name, round(s.slope, 9), len(s.points)) for s in bench.slopes(list(self.lines(both).values()))],
                         [("TH", "k/T*_H*", 1, 2)])  # 8192 twice
        self.assertIsNone(bench.extent("impl/fast/HV8", "H"))
        self.assertEqual(bench.extent("x/T:8/H:2", "T"), (8, "x/T:*/H:2"))

    def test_ratios_name_what_is_on_one_side(self):
        now = [bench.Line("a", "", [2.0]), bench.Line("b", "", [1.0])]
        base = [bench.Line("a", "", [1.0, 1.0, 4.0]), bench.Line("c", "", [1.0]), bench.Line("b", "", [])]
        found = {r.name: r for r in bench.ratios(now, base)}
        self.assertEqual(found["a"].ratio, 2)
        self.assertIsNone(found["b"].ratio)
        self.assertIsNone(found["c"].line)

    def test_roofs_are_those_of_the_floors(self):
        bandwidth, rate = 100e9, 1e12
        lines = []
        for i, (moved, flops) in enumerate(((1e9, 1e8), (1e6, 1e9), (1e6, 1e6))):
            lines.append(bench.Line(f"impl/x/{i}", "", [1.0], {"min_bytes": moved, "min_flops": flops,
                                                              "floor_s": max(moved / bandwidth, flops / rate)}))
        (name, *found), = bench.roofs(lines)
        self.assertEqual(name, "impl")
        self.assertAlmostEqual(found[0] / bandwidth, 1)
        self.assertAlmostEqual(found[1] / rate, 1)
        lines.append(bench.Line("rate/gpu", "", [1.0], {"bytes/s": 4e12, "flops/s": 6e13, "mma_flops/s": 8e14}))
        self.assertEqual(bench.roofs(lines), [("gpu", 4e12, 6e13), ("gpu mma", 4e12, 8e14)])

    def test_counters(self):
        self.assertEqual(bench.counter_changes(samples.counters(5), samples.counters(4)),
                         [("cuda-recurrent", "decode_kv_f32", "recurrent", "path_barriers", 4, 5)])
        self.assertEqual(bench.counter_changes(samples.counters(), samples.counters()), [])

    def test_changes(self):
        def runs(**verdicts):
            return [check.Result(samples.result(name, verdict=verdict), "") for name, verdict in verdicts.items()]
        diff = check.changes(runs(a="failed", b="passed", c="passed", e="unsupported", f="failed"),
                             runs(a="passed", b="failed", c="passed", d="passed", e="passed", f="failed"))
        self.assertEqual([[r.name for r, _ in part] for part in (diff.broke, diff.fixed, diff.new, diff.gone)],
                         [["a", "e"], ["b"], [], ["d"]])
        self.assertEqual(diff.same, 2)

    def test_families(self):
        self.assertEqual(check.family_of({"tags": " tail , gate", "op": "chunk_kda"}), "tail")
        self.assertEqual(check.family_of({"case": "op=chunk_kda T=1", "op": "chunk_kda"}), "case lines")
        self.assertEqual(check.family_of({"tags": ",", "op": "fit"}), "fit")

    def test_words(self):
        self.assertEqual(words.escaped("<a href='x'>&\n"), "&lt;a href=&#x27;x&#x27;&gt;&amp; ")
        self.assertEqual(words.code_span("a`b|c"), "``a`b\u2758c``")
        self.assertEqual(words.in_plot("$x$"), r"\$x\$")
        self.assertEqual([words.seconds(x) for x in (0.00158, 2, 1e-12, None, math.inf)], ["1.58 ms", "2 s", "0.001 ns", "\u2013", "inf"])
        self.assertEqual(words.amount(680.5e6, "B"), "680 MB")


class LoadTest(Case):
    def test_lone_surrogates_and_huge_numbers(self):
        results = [samples.result("\ud800", tags="\udfff")]
        results[0]["tensors"][0]["used_share"] = 10 ** 400
        text, _ = self.made(self.files(check=samples.report(results))["check"])
        self.assertIn("\ufffd", text)

    def test_spoilt_files_never_crash(self):
        """Values of the wrong kind anywhere: a page or an InputError. Drawings are made, but not written."""
        self.addCleanup(setattr, figure, "to_svg", figure.to_svg)
        figure.to_svg = lambda fig, prefix: figure.pyplot().close(fig) or '<svg viewBox="0 0 1 1"></svg>'
        makers = (lambda: samples.report(samples.bad()["results"][-8:], bias=samples.bad()["bias"]), samples.bench, samples.counters,
                  samples.comparison, samples.mutation)
        made = 0
        for seed in range(100):
            chance = random.Random(seed)
            make = makers[seed % len(makers)]
            paths = self.files(spoilt=spoilt(make(), chance), base=make())
            try:
                inputs = Inputs(load([paths["spoilt"]]), load([paths["base"]]))
                page.render(inputs, "title").encode("utf-8", "replace")
                markdown.render(inputs, "title")
                made += 1
            except InputError as error:
                self.assertIn("spoilt.json", str(error))
            except Exception as error:
                raise AssertionError(f"seed {seed}") from error
        self.assertGreater(made, 30)
        self.assertLess(made, 100)

    def test_numbers_of_any_size_never_crash(self):
        """Numbers, in their hundreds or one alone, replaced by those that doubles and axes cannot hold."""
        self.addCleanup(setattr, figure, "to_svg", figure.to_svg)
        figure.to_svg = lambda fig, prefix: figure.pyplot().close(fig) or '<svg viewBox="0 0 1 1"></svg>'
        makers = (lambda: samples.report(samples.bad()["results"][-12:], bias=samples.bad()["bias"]), samples.bench, samples.counters,
                  samples.comparison, samples.mutation)
        for seed in range(100):
            chance = random.Random(seed)
            make = makers[seed % len(makers)]
            paths = self.files(extreme=extreme(make(), chance), base=make())
            with self.subTest(seed), warnings.catch_warnings():
                warnings.simplefilter("error")  # matplotlib only warns of a picture that overflows
                inputs = Inputs(load([paths["extreme"]]), load([paths["base"]]))
                page.render(inputs, "title")
                markdown.render(inputs, "title")

    def test_token_steps_of_any_size(self):
        def text(step):
            results = [samples.result("a"), samples.result("b", verdict="failed", share=9)]
            for entry in results:
                entry["tensors"][0]["tokens"]["step"] = step
            return self.made(self.files(check=samples.report(results))["check"])[0]

        for step in (10 ** 15, 2 ** 62):  # there was a range() up to the last token
            self.assertIn("Error against token index", text(step))
        for step in (2 ** 63, 10 ** 400):
            made = text(step)
            self.assertNotIn("Error against token index", made)
            self.assertIn("Share of the bound by family", made)

    def test_shares_that_are_no_numbers(self):
        for value in ("nan", "inf", "-inf", 10 ** 400, -1, 0, 5e-324):
            data = samples.report([samples.result("a")])  # alone: nothing else on the axes that could be drawn
            for entry in data["results"]:
                for tensor in entry["tensors"]:
                    tensor.update(used_share=value, worst={})
                entry["tensors"][0]["tokens"] = {"step": 1, "used_share": [value] * 3}
            with self.subTest(value):
                text, _ = self.made(self.files(check=data)["check"])
                self.assertIn("Error against token index", text)
                self.assertEqual("largest share inf over" in text, value in ("nan", "inf", 10 ** 400))

    def test_times_of_any_size(self):
        lines = [samples.bench_line("impl/fast/odd", 1e-3, real_time=time, repetition=i, time_unit="ns")
                 for time in (1e-320, 5e-324, 1e-145, 1e160, 10 ** 400) for i in range(3)]
        text, _ = self.made(self.files(bench={"benchmarks": samples.bench()["benchmarks"] + lines})["bench"])
        self.assertIn("not between 1e-150 s and 1e+150 s", text)
        for word in ("Roofline", "Time against tokens T", "Time against heads H"):
            self.assertIn(word, text)

    def test_counters_and_rates_of_any_size(self):
        rates = {"bytes/s": 5e-324, "flops/s": 1e149, "mma_flops/s": 1e12}
        for odd in ([samples.bench_line("rate/gpu", 1e-3, **rates)],
                    *([samples.bench_line("odd/a", 1e-3, min_bytes=moved, min_flops=1e149, floor_s=floor)]
                      for moved in (5e-324, 1e149) for floor in (5e-324, 1e149))):
            text, _ = self.made(self.files(bench={"benchmarks": samples.bench()["benchmarks"] + odd})["bench"])
            self.assertIn("Roofline", text)

    def test_extents_of_any_size(self):
        names = [f"k/T{tokens}_H1" for tokens in (10 ** 15, 10 ** 15 + 1, 64, "9" * 400, "9" * 5000, "0" * 5000)]
        names += [f"same/T{10 ** 15 + i}_H1" for i in (0, 1)] + ["\u00b2", "\u0663"]  # digits to isdigit() or to int()
        text, _ = self.made(self.files(bench={"benchmarks": [samples.bench_line(name, 1e-3) for name in names]})["bench"])
        self.assertIn("k/T*_H1: slope", text)
        self.assertNotIn("same/T*", text)
        ordered = ["k/T7", "k/T64", "k/T512", "k/T" + "1" * 5000]
        self.assertEqual(sorted(reversed(ordered), key=bench.natural), ordered)

    def test_windows_of_any_place(self):
        data = samples.report([samples.result("a", verdict="failed", share=9)])
        data["results"][0]["tensors"][0]["window"].update(first_row=int("9" * 4300), first_col=-10 ** 300)
        self.assertIn("RMS error", self.made(self.files(check=data)["check"])[0])

    def test_errors_are_raised_together(self):
        with self.assertRaises(InputError) as raised:
            load(["/nowhere/a.json", "/nowhere/b.json"])
        self.assertEqual(len(str(raised.exception).splitlines()), 2)


ODD = (None, True, 0, -1, 1e308, 10 ** 400, "", "x", "nan", "inf", "-inf", [], {}, [1], {"a": 1}, [[]], 1.5, "\ud800", "$")


def places(node, path=()):
    """Paths to everything inside."""
    members = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in members:
        yield (*path, key)
        yield from places(value, (*path, key))


def spoilt(data, chance):
    """Some values removed or replaced by others."""
    for _ in range(chance.choice((1, 1, 2, 5))):
        *path, last = chance.choice(list(places(data)))
        node = data
        for key in path:
            node = node[key]
        if chance.random() < 0.25:
            del node[last]
        else:
            node[last] = copy.deepcopy(chance.choice(ODD))
    return data


EXTREME = (0, -1, 10 ** 15, 2 ** 63, 10 ** 307, 10 ** 400, -10 ** 400, 1e308, -1e308, 1.1e150, 9e149, 1e-151, 5e-324, -5e-324, -0.0,
           "nan", "inf", "-inf")


def extreme(data, chance):
    """One number, a few, or all of a name, replaced: by one value or each by its own."""
    every = [(path, value) for path, value in valued(data) if path != ("version",)]
    numbers = [path for path, value in every if isinstance(value, (int, float)) and not isinstance(value, bool)]
    name = chance.choice(numbers)[-1]
    some = chance.choice(([chance.choice(numbers)], chance.sample(numbers, max(1, len(numbers) // 5)),
                          [path for path in numbers if path[-1] == name]))
    values = [chance.choice(EXTREME)] if chance.random() < 0.5 else EXTREME
    for *path, last in some:
        node = data
        for key in path:
            node = node[key]
        node[last] = chance.choice(values)
    return data


def valued(data):
    """(path, value) of everything inside."""
    for path in places(data):
        node = data
        for key in path:
            node = node[key]
        yield path, node


if __name__ == "__main__":
    unittest.main()
