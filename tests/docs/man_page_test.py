#!/usr/bin/python3
"""The man page has every subcommand and option of --help, and troff takes it without a warning.

man_page_test.py PROGRAM MAN_PAGE.PY
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM, SCRIPT = (os.path.abspath(path) for path in sys.argv[1:3])


def ask(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


class ManPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.path = os.path.join(cls.folder.name, "kdacheck.1")
        subprocess.run([sys.executable, SCRIPT, PROGRAM, cls.path], check=True)
        with open(cls.path, encoding="utf-8") as file:
            cls.text = file.read()
        cls.plain = cls.text.replace("\\-", "-").replace("\\(aq", "'").replace("\\e", "\\")

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def test_every_subcommand_and_option(self):
        names = re.findall(r"^  (\w+)\s", ask("--help").split("Subcommands:")[1].split("\n\n")[0], re.MULTILINE)
        self.assertGreaterEqual(len(names), 6)
        for name in names:
            part = self.plain.split(f'.SS "kdacheck {name}"')
            self.assertEqual(len(part), 2, name)
            part = re.split(r"^\.S[SH] ", part[1], flags=re.MULTILINE)[0]
            options = set(re.findall(r"(?<![\w-])--[a-zA-Z][\w-]*", ask(name, "--help").split("Examples:")[0])) - {"--help"}
            for option in options:
                self.assertIn(option, part, name)

    def test_sections(self):
        found = re.findall(r"^\.SH (.*)$", self.text, re.MULTILINE)
        self.assertEqual(found, ["NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "EXAMPLES", "SEE ALSO"])
        self.assertIn(ask("--version").split()[-1], self.text.splitlines()[1])

    @unittest.skipUnless(shutil.which("groff"), "groff is not here")
    def test_troff_takes_it(self):
        done = subprocess.run(["groff", "-man", "-Tutf8", "-ww", self.path], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("KDACHECK(1)", done.stdout)

    def test_a_program_that_fails_leaves_no_page(self):
        path = os.path.join(self.folder.name, "none.1")
        done = subprocess.run([sys.executable, SCRIPT, "/bin/false", path], capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertFalse(os.path.exists(path))


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
