#!/usr/bin/python3
"""The page of kdacheck report in headless Chromium: loads from file://, no request leaves, tables sort, no script
error, fits a phone, changes with dark mode, prints.

report_page_test.py REPORT.PY [FOLDER FOR SCREENSHOTS]      exit 77: there is no Chromium
"""
import os
import subprocess
import sys
import tempfile
import unittest

import report_samples as samples
from chromium import Chromium

REPORT = os.path.abspath(sys.argv.pop(1))
SHOTS = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 and not sys.argv[1].startswith("-") else None

COLUMN = """(function (caption, column) {
  const table = Array.from(document.querySelectorAll("table")).find(t => t.caption && t.caption.textContent.startsWith(caption));
  return Array.from(table.tBodies[0].rows).map(row => row.cells[column].textContent);
})"""
PRESS = """(function (caption, column) {
  const table = Array.from(document.querySelectorAll("table")).find(t => t.caption && t.caption.textContent.startsWith(caption));
  table.tHead.rows[0].cells[column].querySelector("button").click();
  return table.tHead.rows[0].cells[column].getAttribute("aria-sort");
})"""


class PageTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        paths = samples.write(cls.folder.name, bad=samples.bad(), bench=samples.bench(), counters=samples.counters(),
                              comparison=samples.comparison(), mutation=samples.mutation(), good=samples.good())
        cls.page = os.path.join(cls.folder.name, "report.html")
        subprocess.run([sys.executable, REPORT, paths["bad"], paths["bench"], paths["counters"], paths["comparison"],
                        paths["mutation"], "--base", paths["good"], "-o", cls.page], check=True)
        cls.browser = Chromium()
        cls.browser.__enter__()

    @classmethod
    def tearDownClass(cls):
        cls.browser.__exit__()
        cls.folder.cleanup()

    def open(self, name, **how):
        self.browser.open(self.page, **how)
        if SHOTS:
            os.makedirs(SHOTS, exist_ok=True)
            self.browser.screenshot(os.path.join(SHOTS, f"{name}.png"))

    def tearDown(self):
        self.assertEqual([url for url in self.browser.requests if url != "data:,"], ["file://" + self.page])
        self.assertEqual(self.browser.problems, [])

    def style(self, selector, name):
        return self.browser.value(f"getComputedStyle(document.querySelector({selector!r})).getPropertyValue({name!r})")

    def column(self, caption, column):
        return self.browser.value(f"{COLUMN}({caption!r}, {column})")

    def test_no_script_of_a_name_runs(self):
        self.open("desktop")
        self.assertEqual(self.browser.value("document.title"), "kdacheck report")

    def test_the_policy_stops_scripts_and_requests(self):
        """What escaping would miss cannot run or load: shown by injecting it."""
        self.open("policy")
        self.browser.value("""(function () {
          const script = document.createElement("script"); script.textContent = "window.owned = 1"; document.body.append(script);
          const image = new Image(); image.src = "http://127.0.0.1:9/x.png"; document.body.append(image);
          fetch("http://127.0.0.1:9/x").catch(() => 0);
          const frame = document.createElement("iframe"); frame.src = "http://127.0.0.1:9/y"; document.body.append(frame); })()""")
        self.assertIsNone(self.browser.value("window.owned"))
        told = " ".join(problem for problem in self.browser.problems if "Content Security Policy" in problem)
        for kind in ("script-src", "img-src", "connect-src", "frame-src"):
            self.assertIn(kind, told)
        self.browser.problems.clear()
        self.browser.requests[:] = [url for url in self.browser.requests if not url.startswith("http://127.0.0.1:9")]

    def test_tables_sort(self):
        self.open("sort")
        for caption, column, key in (("Verdicts by implementation", 1, int), ("The 200 cases", 0, None)):
            before = self.column(caption, column)
            for wanted in ("ascending", "descending"):
                self.assertEqual(self.browser.value(f"{PRESS}({caption!r}, {column})"), wanted)
                after = self.column(caption, column)
                self.assertCountEqual(after, before)
                if key:
                    self.assertEqual(after, sorted(before, key=key, reverse=wanted == "descending"))

    def test_numbers_sort_as_numbers_and_empty_last(self):
        self.open("numbers")
        caption = "Times"
        for wanted in ("ascending", "descending"):
            self.browser.value(f"{PRESS}({caption!r}, 1)")
            times = self.column(caption, 1)
            filled = [t for t in times if t != "\u2013"]
            self.assertEqual(times[len(filled):], ["\u2013"] * (len(times) - len(filled)))
            unit = {"\u00b5s": 1e-6, "ms": 1e-3}
            values = [float(t.split()[0]) * unit[t.split()[1]] for t in filled]
            self.assertEqual(values, sorted(values, reverse=wanted == "descending"))
            self.assertGreater(len(set(values)), 5)

    def test_the_keyboard_sorts(self):
        self.open("keyboard")
        self.browser.value('document.querySelector("thead th button").focus()')
        self.browser.call("Input.dispatchKeyEvent", type="keyDown", key="Enter", code="Enter", windowsVirtualKeyCode=13, text="\r")
        self.browser.call("Input.dispatchKeyEvent", type="keyUp", key="Enter", code="Enter", windowsVirtualKeyCode=13)
        self.assertEqual(self.browser.value('document.querySelector("thead th").getAttribute("aria-sort")'), "ascending")

    def test_fits_a_phone(self):
        self.open("phone", width=360, height=740, phone=True)
        self.assertLessEqual(self.browser.value("document.documentElement.scrollWidth"), 360)
        widest = self.browser.value("Math.max(...Array.from(document.querySelectorAll('figure svg')).map(s => s.getBoundingClientRect().right))")
        self.assertLessEqual(widest, 360)
        self.assertGreaterEqual(float(self.style("p", "font-size").rstrip("px")), 14)

    def test_dark_mode(self):
        self.open("light")
        light = [self.style(s, n) for s, n in (("body", "background-color"), ("body", "color"), ("figure svg text", "fill"))]
        self.open("dark", dark=True)
        dark = [self.style(s, n) for s, n in (("body", "background-color"), ("body", "color"), ("figure svg text", "fill"))]
        self.assertTrue(all(a != b for a, b in zip(light, dark)), (light, dark))
        for background, *inks in (light, dark):
            for ink in inks:
                self.assertGreaterEqual(contrast(background, ink), 7, (background, ink))

    def test_prints(self):
        self.open("print", width=790, media="print", dark=True)
        self.assertEqual(self.style("body", "background-color"), "rgb(255, 255, 255)")
        self.assertEqual(self.style("nav", "display"), "none")
        path = os.path.join(SHOTS or self.folder.name, "report.pdf")
        self.browser.pdf(path)
        self.assertGreater(os.path.getsize(path), 20000)

    def test_every_picture_has_a_name(self):
        self.open("names")
        tree = self.browser.call("Accessibility.getFullAXTree")["nodes"]
        images = [node for node in tree if node.get("role", {}).get("value") in ("image", "img", "graphics-document")]
        self.assertEqual(len(images), self.browser.value("document.querySelectorAll('svg').length"))
        self.assertTrue(all(len(node["name"]["value"]) > 40 for node in images))


def contrast(*colours):
    """WCAG contrast of two rgb(...) colours."""
    def luminance(colour):
        channels = [float(c) / 255 for c in colour[colour.index("(") + 1:-1].split(",")[:3]]
        r, g, b = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
        return 0.2126 * r + 0.7152 * g + 0.0722 * b
    low, high = sorted(map(luminance, colours))
    return (high + 0.05) / (low + 0.05)


if __name__ == "__main__":
    if not Chromium().program:
        print("no chromium here: the page was not looked at (apt-get install -y --no-install-recommends chromium)")
        sys.exit(77)
    unittest.main()
