#!/usr/bin/python3
"""The CI recipes are YAML of the shape that their service takes, and kdacheck takes every command in them.

ci_recipes_test.py KDACHECK FOLDER
"""
import os
import re
import sys
import unittest

import yaml
from commands import Help, words

HELP = Help([os.path.abspath(sys.argv.pop(1))])
FOLDER = sys.argv.pop(1)


def parsed(name):
    with open(os.path.join(FOLDER, name), encoding="utf-8") as file:
        return yaml.safe_load(file)


def scripts(node, keys):
    """Every shell text under one of the keys."""
    if isinstance(node, dict):
        for key, value in node.items():
            if key in keys:
                yield from [value] if isinstance(value, str) else value
            else:
                yield from scripts(value, keys)
    elif isinstance(node, list):
        for value in node:
            yield from scripts(value, keys)


class Recipes(unittest.TestCase):
    def check_commands(self, texts, at_least):
        """No $(...), whose words the shell makes."""
        calls = []
        for text in texts:
            for line in text.splitlines():
                found = words(re.sub(r"\$\([^)]*\)", "FILES", line.strip()))
                if found and found[0].endswith("/kdacheck"):
                    calls.append(found[1:])
        self.assertGreaterEqual(len(calls), at_least)
        for call in calls:
            self.assertIsNone(HELP.complaint(call), call)
        return calls

    def test_github(self):
        flow = parsed("github.yml")
        self.assertIn(True, flow)  # YAML 1.1 reads the key `on` so
        self.assertIn("pull_request", flow[True])
        for name, job in flow["jobs"].items():
            self.assertIn("runs-on", job, name)
            self.assertLessEqual(job["timeout-minutes"], 60)
            for step in job["steps"]:
                self.assertEqual(("uses" in step) + ("run" in step), 1, step)
                if "uses" in step:
                    self.assertRegex(step["uses"], r"^actions/[\w/-]+@v\d+$")
        self.assertEqual(set(flow["jobs"]), {"cpu", "gpu"})
        uploads = " ".join(step["with"]["path"] for job in flow["jobs"].values() for step in job["steps"]
                           if step.get("uses", "").startswith("actions/upload-artifact"))
        for name in ("kdacheck.xml", "check.json", "bench.json", "report.html", "summary.md"):
            self.assertIn(name, uploads)
        calls = self.check_commands(scripts(flow, ("run",)), 6)
        self.assertTrue(any("--device" in call and "gpu" in call for call in calls))

    def test_gitlab(self):
        flow = parsed("gitlab.yml")
        jobs = {name: job for name, job in flow.items() if isinstance(job, dict) and "script" in job}
        self.assertEqual(set(jobs), {"kdacheck", "kdacheck-gpu"})
        for job in jobs.values():
            self.assertIn(job["extends"], flow)
            self.assertIn("image", job)
        self.assertEqual(flow[".kdacheck"]["artifacts"]["reports"]["junit"], "kdacheck.xml")
        self.check_commands(scripts(flow, ("script", "before_script", "after_script")), 4)

    def test_pre_commit(self):
        hooks = [hook for repo in parsed("pre-commit-config.yaml")["repos"] for hook in repo["hooks"]]
        for hook in hooks:
            self.assertLessEqual({"id", "name", "language", "entry"}, set(hook))
            re.compile(hook["files"])
        self.check_commands([hook["entry"] for hook in hooks], 1)

    def test_a_wrong_option_is_seen(self):
        self.assertIn("--jsn", HELP.complaint(["check", "--jsn", "x"]))
        self.assertIn("chek", HELP.complaint(["chek"]))
        self.assertIn("tpu", HELP.complaint(["check", "--device", "tpu"]) + " tpu")
        self.assertIsNotNone(HELP.complaint(["check", "--device", "tpu"]))
        self.assertIsNone(HELP.complaint(["check", "--device", "gpu", "x.h5"]))


if __name__ == "__main__":
    unittest.main()
