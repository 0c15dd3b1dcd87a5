#!/usr/bin/python3
"""Runs examples/slurm on a Slurm of one node that this test starts, and compares the merged report with one run.

slurm_test.py PROGRAM SOURCE_ROOT

Skipped (status 77) where Slurm's daemons are not installed or may not be started:
apt-get install -y --no-install-recommends slurmd slurmctld slurm-client munge
"""
import json
import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM, ROOT = (os.path.abspath(path) for path in sys.argv[1:3])
NEEDED = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "squeue", "sinfo")
PATH = os.environ["PATH"] + ":/usr/sbin"
SHARDS = 3
CASES = ["--filter", "chunk_c32*", "--impl", "fast", "--impl", "peer-f32"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Slurm:
    """munged, slurmctld and slurmd in a folder of their own, apart from any that the machine has."""

    def __init__(self, folder):
        self.folder, self.daemons = folder, []
        self.environment = {**os.environ, "PATH": PATH, "SLURM_CONF": self.path("slurm.conf")}
        host = socket.gethostname().split(".")[0]
        for name in ("state", "spool", "munge"):
            os.mkdir(self.path(name), 0o755)
        with open(self.path("munge/key"), "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(self.path("munge/key"), 0o400)
        with open(self.path("slurm.conf"), "w", encoding="utf-8") as file:
            file.write(f"""ClusterName=kdacheck
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
SlurmctldPort={free_port()}
SlurmdPort={free_port()}
AuthType=auth/munge
AuthInfo=socket={self.path("munge/socket")}
CryptoType=crypto/munge
StateSaveLocation={self.path("state")}
SlurmdSpoolDir={self.path("spool")}
SlurmctldPidFile={self.path("slurmctld.pid")}
SlurmdPidFile={self.path("slurmd.pid")}
SlurmctldLogFile={self.path("slurmctld.log")}
SlurmdLogFile={self.path("slurmd.log")}
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MailProg=/bin/true
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=1
MinJobAge=300
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs={os.cpu_count()} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
""")
        self.start("munged", "--foreground", "--force", f"--key-file={self.path('munge/key')}",
                   f"--socket={self.path('munge/socket')}", f"--pid-file={self.path('munge/pid')}",
                   f"--seed-file={self.path('munge/seed')}", f"--log-file={self.path('munge/log')}")
        self.wait_for("munge's socket", lambda: os.path.exists(self.path("munge/socket")))
        self.start("slurmctld", "-D", "-i")
        self.start("slurmd", "-D", "-N", host)
        self.wait_for("an idle node", lambda: "idle" in self.run("sinfo", "-h", "-o", "%T").stdout)

    def path(self, name):
        return os.path.join(self.folder, name)

    def start(self, program, *arguments):
        with open(self.path(f"{program}.out"), "w", encoding="utf-8") as log:
            self.daemons.append(subprocess.Popen([shutil.which(program, path=PATH), *arguments], env=self.environment, stdout=log,
                                                 stderr=log, stdin=subprocess.DEVNULL))

    def run(self, *command, **more):
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env={**self.environment, **more})

    def wait_for(self, what, there, seconds=60):
        end = time.monotonic() + seconds
        while not there():
            ended = [daemon.args[0] for daemon in self.daemons if daemon.poll() is not None]
            if ended or time.monotonic() > end:
                raise unittest.SkipTest(f"no {what} on this machine ({', '.join(ended) or 'after a minute'}): {self.logs()}")
            time.sleep(0.2)

    def logs(self):
        text = ""
        for name in ("munged.out", "slurmctld.out", "slurmd.out"):
            if os.path.exists(self.path(name)):
                with open(self.path(name), encoding="utf-8", errors="replace") as file:
                    text += "".join(line for line in file if "rror" in line or "fatal" in line)
        return text[-600:]

    def state(self, job):
        """What became of a job, as Slurm says: (state, exit status)."""
        said = self.run("scontrol", "show", "job", job, "--oneliner").stdout
        state, status = (re.search(rf"\b{key}=(\S+)", said) for key in ("JobState", "ExitCode"))
        return (state[1], status[1]) if state and status else ("?", said)

    def finished(self, job):
        end = time.monotonic() + 180
        while time.monotonic() < end:
            state, status = self.state(job)
            if state not in ("PENDING", "RUNNING", "COMPLETING", "CONFIGURING"):
                return state, status
            time.sleep(0.2)
        raise AssertionError(f"job {job} does not end: {self.state(job)}\n{self.run('squeue').stdout}\n{self.logs()}")

    def stop(self):
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(timeout=20)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


class JobArray(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        missing = [name for name in NEEDED if not shutil.which(name, path=PATH)]
        if missing:
            raise unittest.SkipTest(f"not installed: {', '.join(missing)}")
        if os.geteuid() != 0:
            raise unittest.SkipTest("Slurm's daemons are started by root only")
        cls.folder = tempfile.mkdtemp(prefix="kdacheck-slurm-")
        cls.addClassCleanup(shutil.rmtree, cls.folder, ignore_errors=True)
        os.chmod(cls.folder, 0o755)
        began = time.monotonic()
        cls.slurm = Slurm(cls.folder)
        cls.addClassCleanup(cls.slurm.stop)
        print(f"slurm: started in {time.monotonic() - began:.1f} s", file=sys.stderr)

    def submit(self, results, *arguments):
        done = self.slurm.run(os.path.join(ROOT, "examples/slurm/submit.sh"), str(SHARDS), results, *arguments, KDACHECK=PROGRAM,
                              KDACHECK_PROGRAM="kdacheck")
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout.strip()

    def test_the_array_reports_what_one_run_does(self):
        results, whole = os.path.join(self.folder, "results"), os.path.join(self.folder, "whole.json")
        state = self.slurm.finished(self.submit(results, *CASES))
        log = os.path.join(results, "check.log")
        with open(log, encoding="utf-8") as file:
            said = file.read()
        self.assertEqual(state, ("COMPLETED", "0:0"), said)
        one = subprocess.run([PROGRAM, "check", *CASES, "--json", whole], capture_output=True, text=True, timeout=120,
                             env={**os.environ, "KDACHECK_PROGRAM": "kdacheck"})
        self.assertEqual(one.returncode, 0, one.stdout)
        self.assertEqual(re.sub(r"; [0-9.]+ s$", "", said, flags=re.M), re.sub(r"; [0-9.]+ s$", "", one.stdout, flags=re.M))
        self.assertEqual(results_of(os.path.join(results, "check.json")), results_of(whole))
        self.assertTrue(os.path.exists(os.path.join(results, "check.xml")))

    def test_a_failure_is_the_status_of_the_merge_alone(self):
        results = os.path.join(self.folder, "failing")
        job = self.submit(results, *CASES[:2], "--impl", "exec:exit 5 # {in} {out}")
        self.assertEqual(self.slurm.finished(job), ("FAILED", "1:0"))
        self.assertEqual(len([name for name in os.listdir(results) if re.fullmatch(r"shard-\d.json", name)]), SHARDS)

    def test_a_task_without_a_report_is_named(self):
        results = os.path.join(self.folder, "missing")
        job = self.submit(results, "--impl", "no-such-implementation")
        self.assertEqual(self.slurm.finished(job)[0], "FAILED")
        with open(os.path.join(results, "shard-1.log"), encoding="utf-8") as file:
            self.assertIn("implementation_unknown", file.read())


def results_of(path):
    with open(path, encoding="utf-8") as file:
        content = json.load(file)
    for key in ("environment", "seconds"):
        del content[key]
    return [{key: value for key, value in result.items() if key != "seconds"} for result in content.pop("results")], content


if __name__ == "__main__":
    program = unittest.main(argv=sys.argv[:1], exit=False, verbosity=2)
    if program.result.skipped and program.result.testsRun == 0:
        sys.exit(77)
    sys.exit(not program.result.wasSuccessful())
