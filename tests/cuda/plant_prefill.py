#!/usr/bin/env python3
"""Plants one fault at a time in the prefill kernel and prints by what each is caught.

    tests/cuda/plant_prefill.py --dry                 every fault still applies to the sources
    nice tests/cuda/plant_prefill.py --build build/dev [NAME ...]

Each fault is one textual change to a copy of cuda/kernels. Only the kernels are compiled again and
linked into kdacheck and prefill_kernel_test, which must have been built. Columns:

    check     kdacheck check --impl cuda-prefill on a few case lines, threads in order
    pct       the same under random priorities, copies late and eager
    tests     prefill_kernel_test, a fast part: names of the tests that fail

A cell says "wrong" (values over the bound) and the first stage that is, "bits differ" (between
schedules), the executor's report, "-" for nothing, or is empty where a column before it has caught
the fault (--all runs everything). Exit status 1 when a fault that changes results is caught by nothing.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
KERNELS = ROOT / "cuda" / "kernels"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from prefill_faults import FAULTS  # noqa: E402

CASES = [
    "op=kda_prefill T=140 H=2 initial_state=1 final_state=1 h=1 seed=1",
    "op=kda_prefill lens=70,1,130 H=1 l2norm=1 gate=softplus beta_sigmoid=1 v_first=1 "
    "initial_state=1 final_state=1 seed=2",
    "op=kda_prefill T=100 H=1 gate=bound family=gate_ladder l2norm=1 final_state=1 seed=3",
    "op=kda_prefill T=130 H=1 family=identical g_dtype=f32 final_state=1 seed=4",
    "op=kda_prefill T=130 H=1 family=padding beta_dtype=f32 final_state=1 seed=5",
    "op=kda_prefill B=2 T=70 H=1 final_state=1 seed=6",
]
POLICIES = ["cuda-prefill", "cuda-prefill-x"]
TESTS = ":".join([
    "PrefillExact.Tails*", "PrefillExact.CausalAroundTheThirdChunk", "PrefillExact.Packed*",
    "PrefillExact.Split*", "PrefillExact.PadRows*", "PrefillExact.Segments*",
    "PrefillExact.MemoryBefore*", "PrefillExact.NaN*", "PrefillStages.*", "PrefillInverse.*",
    "PrefillAccuracy.PoliciesAgree",
])


def stale_in(fault):
    """What of a fault is no longer found in the sources."""
    text = (KERNELS / fault["file"]).read_text()
    for old, new in fault["change"]:
        if text.count(old) != fault.get("times", 1) or old == new:
            return f"{fault['name']}: {fault['file']} has {text.count(old)} of\n{old}"
    return None


def patched(fault):
    """The changed text of the fault's file."""
    text = (KERNELS / fault["file"]).read_text()
    for old, new in fault["change"]:
        text = text.replace(old, new)
    return text


def link_command(build, target):
    """The command that links a target, as arguments with its output last."""
    lines = subprocess.run(["ninja", "-C", build, "-t", "commands", target], text=True,
                           capture_output=True, check=True).stdout.strip().splitlines()
    command = lines[-1].split(" && ")[1].split()
    at = command.index("-o")
    return command[:at], command[at + 2:]


class Bench:
    """Compiles, links and runs one fault after another in a folder of its own."""

    def __init__(self, build, folder):
        self.build = build
        self.folder = folder
        commands = json.loads((build / "compile_commands.json").read_text())
        entry = next(c for c in commands if c["file"].endswith("cuda/prefill_kernels.cpp"))
        self.compile = [a for a in entry["command"].split() if a != "ccache"]
        self.links = {t: link_command(build, t) for t in ("kdacheck_program",
                                                          "prefill_kernel_test")}

    def make(self, fault):
        kernels = self.folder / "cuda" / "kernels"
        shutil.rmtree(kernels, ignore_errors=True)
        shutil.copytree(KERNELS, kernels)
        if fault:
            (kernels / fault["file"]).write_text(patched(fault))
        argv = list(self.compile)
        argv[argv.index("-o") + 1] = str(self.folder / "kernels.o")
        argv[argv.index("-c") + 1] = str(KERNELS.parent / "prefill_kernels.cpp")
        argv[1:1] = ["-I", str(self.folder), "-I", str(KERNELS.parents[1]), "-w", "-g0"]
        argv = [re.sub(r"^-O\d$", "-O1", a) for a in argv]
        self.must(argv)
        self.link("kdacheck_program")

    def link(self, target):
        before, after = self.links[target]
        self.must(before + ["-Wl,-s", "-o", str(self.folder / target),
                            str(self.folder / "kernels.o")] + after)

    def must(self, argv):
        done = subprocess.run(argv, cwd=self.build, text=True, capture_output=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr[-2000:])

    def check(self, more):
        argv = [str(self.folder / "kdacheck_program"), "check"]
        for name in POLICIES:
            argv += ["--impl", name]
        for line in CASES:
            argv += ["--case", line]
        return self.caught(argv + more)

    def caught(self, argv):
        try:
            done = subprocess.run(argv, text=True, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "does not end"
        text = done.stdout + done.stderr
        if done.returncode == 0:
            return "-"
        if "depend on the schedule" in text:
            return "bits differ"
        found = re.search(r"kernel prefill_\w+ block \S+(?: thread \S+)?(?: at (\S+))?: ([^:\n]+)", text)
        if found:
            return found.group(2) + (f" ({found.group(1)})" if found.group(1) else "")
        if done.returncode < 0:
            return "crash"
        stage = re.search(r"first wrong stage: (?:the )?([^(]*?) \(", text)
        return "wrong" + (f", {stage.group(1)}" if stage else "")

    def tests(self):
        self.link("prefill_kernel_test")
        argv = [str(self.folder / "prefill_kernel_test"), "--gtest_filter=" + TESTS]
        try:
            done = subprocess.run(argv, text=True, capture_output=True, timeout=300)
        except subprocess.TimeoutExpired:
            return "do not end"
        failed = sorted(set(re.findall(r"\[  FAILED  \] Prefill\w*\.(\w+)", done.stdout)))
        if done.returncode == 0:
            return "-"
        if not failed:
            return "crash"
        return ", ".join(failed[:2]) + (f" and {len(failed) - 2} more" if len(failed) > 2 else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--build", default="build/dev", type=pathlib.Path)
    parser.add_argument("--dry", action="store_true", help="only look whether they apply")
    parser.add_argument("--all", action="store_true", help="run what comes after a catch too")
    parser.add_argument("--tree", default=ROOT, type=pathlib.Path, help="where cuda/kernels is")
    options = parser.parse_args()
    global KERNELS
    KERNELS = options.tree.resolve() / "cuda" / "kernels"
    faults = [f for f in FAULTS if not options.names or f["name"] in options.names]
    stale = [e for e in map(stale_in, faults) if e]
    if stale:
        raise SystemExit("\n".join(stale))
    if len({f["name"] for f in FAULTS}) != len(FAULTS):
        raise SystemExit("two faults of one name")
    if options.dry:
        print(f"{len(faults)} faults apply")
        return 0
    missed = 0
    print("| fault | check, in order | check, pct | tests |\n|---|---|---|---|", flush=True)
    with tempfile.TemporaryDirectory(prefix="plant") as folder:
        bench = Bench(options.build.resolve(), pathlib.Path(folder))
        bench.make(None)
        for found in (bench.check([]), bench.tests()):
            if found != "-":
                raise SystemExit(f"without a fault: {found}")
        for fault in faults:
            try:
                bench.make(fault)
            except RuntimeError as error:
                print(f"| {fault['name']} | does not compile: {error} |", flush=True)
                missed += 1
                continue
            cells = [bench.check([]), "", ""]
            if options.all or cells[0] == "-" or "barrier" in fault["name"]:
                cells[1] = bench.check(["--exec-order", "pct", "--exec-seeds", "2", "--cp-async",
                                        "both"])
            if options.all or (cells[0] == "-" and cells[1] == "-"):
                cells[2] = bench.tests()
            if all(c in ("-", "") for c in cells) and not fault.get("harmless"):
                missed += 1
            note = f" ({fault['harmless']})" if fault.get("harmless") else ""
            print(f"| {fault['name']}{note} | " + " | ".join(cells) + " |", flush=True)
    print(f"{len(faults)} faults, {missed} missed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
