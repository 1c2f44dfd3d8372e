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
    """Prints the reason of a skip, and exits."""
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def run(*command, **options):
    """Output of a command; a RuntimeError contains the output of a failed command."""
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, **{"input": "", **options})
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def isolate():
    """Restarts this program as process 1 of new namespaces; skips the test if that is not permitted."""
    if os.environ.get(INSIDE) == "1":
        os.environ[INSIDE] = "made"
        try:
            make_network()
        except RuntimeError as error:
            skip(f"pods cannot be emulated: {error}")
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        skip(f"pods cannot be emulated without {', '.join(missing)}")
    if os.geteuid():
        skip("pods cannot be emulated: namespaces and mounts need root")
    namespaces = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*namespaces, "true"], capture_output=True, text=True)
    if probe.returncode:
        skip(f"pods cannot be emulated: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp(namespaces[0], [*namespaces, sys.executable, "-B", *sys.argv])


def make_network():
    """The node: a bridge for the pods' veth pairs, with the addresses of node and DNS server."""
    run("mount", "-t", "tmpfs", "tmpfs", "/run")
    run("ip", "link", "set", "lo", "up")
    # Without an explicit MAC address a bridge takes the lowest of its ports'. A new pod may then change it, and other
    # pods send to the old one for seconds: packets are lost, including DNS queries.
    run("ip", "link", "add", "pods", "address", "02:00:00:00:00:01", "type", "bridge")
    run("ip", "address", "add", f"{NODE}/16", "dev", "pods")
    run("ip", "address", "add", f"{DNS_SERVER}/32", "dev", "pods")
    run("ip", "link", "set", "pods", "up")


class ControlGroups:
    """Memory and CPU limits of pods through cgroup v1; no limits without it.

    Cgroups are not namespaced: they are removed when the test ends, and leftovers of killed tests by a later test.
    """

    KINDS = ("memory", "cpu")
    PREFIX = "dtrain-k8s-test-"
    STALE = 1800  # seconds, longer than any test

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
        """Removes cgroups without processes."""
        for path in (*folder.glob("*/"), folder):
            try:
                path.rmdir()
            except OSError:
                pass

    def close(self):
        """Removes the cgroups after the killed processes have left them."""
        folders = [CONTROL_GROUPS / kind / self.name for kind in self.KINDS]
        for _ in range(100):
            with contextlib.suppress(ChildProcessError):  # this is process 1, which reaps orphans
                while os.waitpid(-1, os.WNOHANG)[0]:
                    pass
            for folder in filter(pathlib.Path.exists, folders):
                self.remove(folder)
            if not any(folder.exists() for folder in folders):
                return
            time.sleep(0.05)

    def make(self, pod, memory, cores):
        """Creates a pod's cgroups; returns their folders by controller. A limit of None is unlimited."""
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
    """Polls until `condition` returns a true value, and returns it; a TimeoutError says that `what` is missing."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.05)
    return value


def main(functions):
    """Runs the function named on the command line in new namespaces; without a name, all test_* functions in turn."""
    if len(sys.argv) > 1:
        isolate()
        functions[sys.argv[1]]()
        return
    codes = {name: subprocess.run([sys.executable, "-B", sys.argv[0], name]).returncode
             for name in functions if name.startswith("test_")}
    print("\n".join(f"{name}: {code or 'passed'}" for name, code in codes.items()))
    sys.exit(max(codes.values()))
