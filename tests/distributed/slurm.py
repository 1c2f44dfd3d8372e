"""A Slurm cluster of two emulated nodes on one machine: munged, slurmctld and two slurmd of Debian, in namespaces of
this process (see cluster.isolate()), which end with it. The nodes share host name and network."""

import os
import pathlib
import secrets
import shutil
import subprocess
import time

from cluster import isolate, skip, wait_until

PROGRAMS = ("munged", "sbatch", "scancel", "scontrol", "slurmctld", "slurmd", "squeue", "srun")
FOLDER = pathlib.Path("/run/slurm")
# Without control groups, which belong to the host of a container. cred_expire is also the delay of a requeued job.
CONFIGURATION = f"""\
ClusterName=test
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={FOLDER}/munge.socket,cred_expire=5
StateSaveLocation={FOLDER}/state
SlurmdSpoolDir={FOLDER}/%n
SlurmctldPidFile={FOLDER}/slurmctld.pid
SlurmdPidFile={FOLDER}/%n.pid
SlurmctldLogFile={FOLDER}/slurmctld.log
SlurmdLogFile={FOLDER}/%n.log
ProctrackType=proctrack/linuxproc
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1,bf_interval=1
SlurmdParameters=config_overrides
KillOnBadExit=1
WaitTime=1
KillWait=60
NodeName=node1 NodeHostname=localhost NodeAddr=10.244.0.1 Port=17001 CPUs=4
NodeName=node2 NodeHostname=localhost NodeAddr=10.244.0.2 Port=17002 CPUs=4
PartitionName=main Nodes=node1,node2 Default=YES State=UP
"""


def run(*command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"{' '.join(map(str, command))}: {done.stdout}{done.stderr}\n{logs()}")
    return done.stdout.strip()


def logs():
    return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-3000:]}" for path in FOLDER.glob("*.log"))


def start():
    """Starts the cluster in new namespaces; returns when both nodes are idle."""
    isolate()
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        skip(f"there is no Slurm cluster without {', '.join(missing)}: scripts/setup.sh test installs them")
    for name in ("state", "node1", "node2"):
        (FOLDER / name).mkdir(parents=True)
    # Slurm resolves no name while only the loopback interface has an address.
    for address in ("10.244.0.1/24", "10.244.0.2/24"):
        run("ip", "address", "add", address, "dev", "pods")
    (FOLDER / "hosts").write_text(f"127.0.0.1 localhost\n10.244.0.1 node1 {os.uname().nodename}\n10.244.0.2 node2\n")
    run("mount", "--bind", FOLDER / "hosts", "/etc/hosts")
    key = FOLDER / "munge.key"
    key.touch(mode=0o600)
    key.write_bytes(secrets.token_bytes(128))
    (FOLDER / "slurm.conf").write_text(CONFIGURATION)
    os.environ["SLURM_CONF"] = str(FOLDER / "slurm.conf")
    files = [f"--{name}={FOLDER}/munge.{name}" for name in ("socket", "pid-file", "log-file", "seed-file")]
    daemon("munged", "--foreground", f"--key-file={key}", *files)
    wait_until((FOLDER / "munge.socket").exists, "munged")
    daemon("slurmctld", "-D", "-c")
    daemon("slurmd", "-D", "-N", "node1")
    daemon("slurmd", "-D", "-N", "node2")
    try:
        wait_until(lambda: subprocess.run(["sinfo", "-h", "-N", "-o", "%t"], capture_output=True,
                                          text=True).stdout.split() == ["idle", "idle"], "two idle nodes")
    except TimeoutError as error:
        raise AssertionError(f"{error}\n{logs()}") from None


def daemon(*command):
    log = FOLDER / f"{command[0]}{command[-1] if command[0] == 'slurmd' else ''}.out.log"
    with log.open("wb") as out:
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out)


class BatchJob:
    """A job of sbatch. `options` begin with sbatch's and end with script and command."""

    def __init__(self, folder, *options, **variables):
        self.log = pathlib.Path(folder) / f"{time.monotonic_ns()}.log"
        command = ["sbatch", "--parsable", f"--output={self.log}", f"--chdir={folder}", *map(str, options)]
        done = subprocess.run(command, env=dict(os.environ, **variables), capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"sbatch: {done.stderr}")
        self.number = done.stdout.strip()

    def output(self):
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def wait_for(self, text, timeout=150):
        self._wait(lambda: text in self.output(), f"'{text}'", timeout)

    def facts(self):
        """Fields of `scontrol show job`."""
        words = run("scontrol", "--oneliner", "show", "job", self.number).split()
        return dict(word.split("=", 1) for word in words if "=" in word)

    def ends(self, state, code=None, timeout=150):
        """Expects the final state, such as COMPLETED, and the exit code."""
        final = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")
        self._wait(lambda: self.facts()["JobState"] in final, "the end of the job", timeout)
        facts = self.facts()
        found = f"{facts['JobState']}, {facts['ExitCode']}"
        if not found.startswith(f"{state}, " + ("" if code is None else f"{code}:0")):
            raise AssertionError(f"{found}; expected {state}, {code}\n{self.written()}")
        return facts

    def _wait(self, condition, what, timeout):
        try:
            wait_until(condition, what, timeout)
        except TimeoutError as error:
            raise AssertionError(f"{error}\n{self.written()}") from None

    def written(self):
        return f"{self.facts()}\n{self.output()}\n{logs()}"
