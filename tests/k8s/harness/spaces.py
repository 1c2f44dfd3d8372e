"""Namespaces of one process for a test's pods: when the process exits, the kernel kills everything in them."""

import atexit
import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time
import uuid

SKIPPED = 77  # SKIP_RETURN_CODE of ctest
INSIDE = "DTRAIN_TEST_PODS"
PROGRAMS = ("ip", "kubectl", "mount", "nsenter", "ssh-keygen", "unshare")
NODE = "10.244.0.1"
DNS_SERVER = "10.96.0.10"
CONTROL_GROUPS = pathlib.Path("/sys/fs/cgroup")


def skip(reason):
    """Says loudly why nothing was tested, and ends the process."""
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def run(*command, **options):
    """The output of a command; a RuntimeError has what a command that fails has written."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **{"input": "", **options})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def isolate():
    """Starts this program again as process 1 of namespaces of its own; skips where that is not permitted."""
    if os.environ.get(INSIDE) == "1":
        os.environ[INSIDE] = "made"
        try:
            make_network()
        except RuntimeError as error:
            skip(f"pods cannot be imitated: {error}")
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        skip(f"pods cannot be imitated without {', '.join(missing)}")
    if os.geteuid():
        skip("pods cannot be imitated: namespaces and mounts need root")
    namespaces = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*namespaces, "true"], capture_output=True, text=True)
    if probe.returncode:
        skip(f"pods cannot be imitated: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp(namespaces[0], [*namespaces, sys.executable, "-B", *sys.argv])


def make_network():
    """The node: a bridge for the pods' cables, with the addresses of the node and of the DNS server."""
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("ip", "link", "set", "lo", "up")
    # Without an address of its own a bridge takes the lowest of its ports', so that a pod that comes may change it: the
    # others go on writing to the old one for seconds, and their packets, DNS queries among them, are lost.
    run("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
    run("ip", "address", "add", f"{NODE}/16", "dev", "pods")
    run("ip", "address", "add", f"{DNS_SERVER}/32", "dev", "pods")
    run("ip", "link", "set", "pods", "up")


class ControlGroups:
    """Limits of memory and processor time for pods, by version 1 of control groups; none where those are missing.

    They are no namespace: their folders go when the test ends, and those of a test that was killed with a later one.
    """

    KINDS = ("memory", "cpu")
    PREFIX = "dtrain-k8s-test-"
    STALE = 1800  # seconds: no test takes as long

    def __init__(self):
        folders = [CONTROL_GROUPS / kind for kind in self.KINDS]
        self.available = all((folder / "cgroup.procs").is_file() and os.access(folder, os.W_OK) for folder in folders)
        self.name = self.PREFIX + uuid.uuid4().hex[:8]
        if self.available:
            for folder in folders:
                for found in folder.glob(self.PREFIX + "*"):
                    if time.time() - found.stat().st_mtime > self.STALE:
                        self.remove(found)
            atexit.register(self.close)

    @staticmethod
    def remove(folder):
        """Removes groups that hold no process."""
        for path in (*folder.glob("*/"), folder):
            try:
                path.rmdir()
            except OSError:
                pass

    def close(self):
        """Removes the groups, once the processes that were killed have left them."""
        folders = [CONTROL_GROUPS / kind / self.name for kind in self.KINDS]
        for _ in range(100):
            with contextlib.suppress(ChildProcessError):  # this is process 1, which inherits what pods leave
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            for folder in filter(pathlib.Path.exists, folders):
                self.remove(folder)
            if not any(folder.exists() for folder in folders):
                return
            time.sleep(0.05)

    def make(self, pod, memory, cores):
        """The folders of a pod's groups by kind; a limit is None where there is none."""
        if not self.available:
            return {}
        folders = {kind: CONTROL_GROUPS / kind / self.name / pod for kind in self.KINDS}
        for folder in folders.values():
            folder.mkdir(parents=True, exist_ok=True)
        if memory is not None:
            (folders["memory"] / "memory.limit_in_bytes").write_text(str(memory))
        if cores is not None:
            (folders["cpu"] / "cpu.cfs_quota_us").write_text(str(round(cores * 100000)))
        return folders


def wait_until(condition, what, timeout=100):
    """Polls until `condition` returns something true, and returns that; a TimeoutError says `what` is missing."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.05)
    return value


def main(functions):
    """Runs the function that the command line names in namespaces of its own; without a name, each test_* in turn."""
    if len(sys.argv) > 1:
        isolate()
        functions[sys.argv[1]]()
        return
    codes = {name: subprocess.run([sys.executable, "-B", sys.argv[0], name]).returncode
             for name in functions if name.startswith("test_")}
    print("\n".join(f"{name}: {code or 'passed'}" for name, code in codes.items()))
    sys.exit(max(codes.values()))
