"""The program on 200 fixtures that something went wrong with (mutated_files.py): no crash, no hang, no memory
beyond what the size of the file allows, no other file opened, and each a named error or the right verdict.

Usage: mutated_files_test.py PROGRAM SOURCE_DIR [unittest arguments]
"""

import collections
import ctypes
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from dataclasses import dataclass
from pathlib import Path

import h5py

import mutated_files
from program_testing import PROGRAM, SANITIZED, SOURCE

SECONDS = 10  # of processor time; a busy machine may take longer
MOST_BYTES = 1 << 30
# What AddressSanitizer says of a fault inside libhdf5, called by nobody but libhdf5: an error of the file, in a child.
IN_LIBRARY = re.compile(r"==\d+==ERROR: AddressSanitizer.*?\n    #0 [^\n]*\n    #1 [^\n]*libhdf5.*?==\d+==ABORTING", re.S)


@dataclass
class Done:
    status: int  # exit status, or minus a signal
    output: str
    peak_bytes: int  # of the largest process
    seconds: float  # of processor time


def run(*arguments):
    """Runs the program; its peak memory is that of the largest among it and its children."""
    with tempfile.TemporaryFile() as output:
        begin = time.monotonic()
        process = subprocess.Popen([PROGRAM, *map(str, arguments)], stdout=output, stderr=output, start_new_session=True)
        while True:
            pid, status, usage = os.wait4(process.pid, os.WNOHANG)
            if pid != 0:
                break
            if time.monotonic() - begin > 12 * SECONDS:
                os.killpg(process.pid, signal.SIGKILL)
                os.wait4(process.pid, 0)
                raise AssertionError(f"does not come back: {arguments}")
            time.sleep(0.002)
        process.returncode = os.waitstatus_to_exitcode(status)
        output.seek(0)
        return Done(process.returncode, output.read().decode(), usage.ru_maxrss * 1024,
                    usage.ru_utime + usage.ru_stime)


class Opened:
    """Which files of some folders anybody opens, by inotify."""

    IN_OPEN = 0x20

    def __init__(self, *folders):
        libc = ctypes.CDLL(None, use_errno=True)
        self.descriptor = libc.inotify_init1(os.O_NONBLOCK)
        self.folders = {libc.inotify_add_watch(self.descriptor, str(f).encode(), self.IN_OPEN): f for f in folders}
        if self.descriptor < 0 or -1 in self.folders:
            raise OSError(ctypes.get_errno(), "inotify")

    def names(self):
        try:
            events = os.read(self.descriptor, 1 << 20)
        except BlockingIOError:
            return []
        names, at = [], 0
        while at < len(events):
            watch = int.from_bytes(events[at : at + 4], "little", signed=True)
            length = int.from_bytes(events[at + 12 : at + 16], "little")
            name = events[at + 16 : at + 16 + length].rstrip(b"\0").decode()
            names.append(f"{self.folders[watch].name}/{name}")
            at += 16 + length
        return names


class MutatedFiles(unittest.TestCase):
    def setUp(self):
        root = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, root, ignore_errors=True)
        self.folder, canary = root / "files", root / "canary"
        self.folder.mkdir()
        canary.mkdir()
        with h5py.File(canary / "canary.h5", "w") as file:
            file["x"] = [[[[1.0, 2.0]]]]
        self.mutants = mutated_files.make(SOURCE, self.folder, canary / "canary.h5")
        self.codes = set(re.findall(r"^\d+  (\w+)", run("list", "errors").output, re.M))
        self.opened = Opened(canary, self.folder)
        self.opened.names()
        self.assertEqual((canary / "canary.h5").read_bytes()[:4], b"\x89HDF")
        self.assertEqual(self.opened.names(), ["canary/canary.h5"])  # the watch works
        self.faults = []

    def require(self, holds, mutant, what):
        if not holds:
            self.faults.append(f"{mutant.path.name} ({mutant.base}): {what}")

    def common(self, mutant, done, most_bytes):
        self.require(done.status >= 0, mutant, f"ended by signal {-done.status}")
        self.require(done.seconds <= SECONDS, mutant, f"took {done.seconds} s")
        self.require(SANITIZED or done.peak_bytes <= most_bytes, mutant, f"took {done.peak_bytes >> 20} MiB")
        ours = IN_LIBRARY.sub("", done.output)
        self.require("Sanitizer" not in ours and "unexpected" not in ours, mutant, done.output)
        others = {name for name in self.opened.names() if name not in ("files/", f"files/{mutant.path.name}")}
        self.require(not others, mutant, f"opened {others}")

    def report(self, title, tally):
        counts = ", ".join(f"{count} {outcome}" for outcome, count in tally.most_common())
        print(f"{title}: {sum(tally.values())} files: {counts}", flush=True)
        self.assertEqual(self.faults, [], f"{len(self.faults)} faults:\n" + "\n".join(self.faults[:20]))
        self.assertEqual(sum(tally.values()), 200)
        self.assertGreater(len(tally), 4)  # not all refused for one reason

    def plain_peak(self, *arguments):
        done = run(*arguments)
        self.opened.names()
        return done.peak_bytes

    def test_check(self):
        tally = collections.Counter()
        plain = max(self.plain_peak("check", SOURCE / base, "--impl", "chunked") for base in mutated_files.BASES)
        for mutant in self.mutants:
            done = run("check", mutant.path, "--impl", "chunked")
            size = mutant.path.stat().st_size
            self.common(mutant, done, min(MOST_BYTES, plain + max(64 << 20, 1000 * size)))
            outcome = self.outcome_of_check(mutant, done)
            tally[outcome] += 1
            self.require(outcome in mutant.allowed, mutant, f"wanted one of {mutant.allowed}, got {outcome}: {done.output[:400]}")
        self.report("check", tally)

    def outcome_of_check(self, mutant, done):
        if done.status == 2:
            found = re.search(r"^FIXTURE_ERROR .* (\w+)$", done.output, re.M)
            return found[1] if found and found[1] in self.codes else "no code"
        for verdict in ("FAILED", "REFUSED", "MISTRUSTED"):
            if done.status == 1 and f"{verdict}  " in done.output:
                return verdict.lower()
        return "passed" if done.status == 0 and "1 passed" in done.output else f"exit status {done.status}"

    def test_list_and_compare(self):
        """What else reads fixtures and results."""
        listed, compared = collections.Counter(), collections.Counter()
        fixture = SOURCE / "data/fixtures/chunk_hand_case_f32.h5"
        plain = self.plain_peak("compare", fixture, fixture)
        for mutant in self.mutants:
            size = mutant.path.stat().st_size
            for tally, arguments in ((listed, ("list", "fixtures", mutant.path)), (compared, ("compare", mutant.path, fixture))):
                done = run(*arguments)
                self.common(mutant, done, min(MOST_BYTES, plain + max(64 << 20, 1000 * size)))
                codes = [word for word in re.findall(r"\b[a-z0-9]+(?:_[a-z0-9]+)+\b", done.output) if word in self.codes]
                outcome = "read" if done.status == 0 else next(iter(codes), "no code")
                tally[outcome] += 1
                self.require(outcome != "no code", mutant, f"{arguments[0]}: {done.output}")
        self.report("list fixtures", listed)
        print("compare:", dict(compared))


if __name__ == "__main__":
    unittest.main()
