"""Emulated hosts on one machine: a launcher and workers as pods of an MPIJob (mpi-operator v2beta1).

Each pod has a network (a veth pair on a bridge), processes, host name, /dev/shm and session folder. A worker runs sshd,
the launcher the tested command with the operator's hostfile and variables. Everything is in namespaces of one process,
see isolate(): when it exits, the kernel removes everything. Parallel clusters are independent.
"""

import contextlib
import os
import pathlib
import shutil
import subprocess
import sys
import time

SKIPPED = 77  # SKIP_RETURN_CODE of ctest
INSIDE = "DTRAIN_TEST_CLUSTER"
PORT = 2222  # unprivileged: mpirun must read it from the ssh configuration
PROGRAMS = ("bridge", "ip", "mount", "mpirun", "nsenter", "ssh", "ssh-keygen", "unshare", "/usr/sbin/sshd")

# Set by image or manifest, not by the operator. Open MPI 4.1's defaults detect a dead host after eight minutes,
# these after seven seconds.
NETWORK_SETTINGS = {
    "OMPI_MCA_oob_tcp_keepalive_time": "5",
    "OMPI_MCA_oob_tcp_keepalive_intvl": "2",
    "OMPI_MCA_oob_tcp_keepalive_probes": "3",
    "OMPI_MCA_oob_tcp_if_include": "eth0",
    "OMPI_MCA_btl_tcp_if_include": "eth0",
}

SSHD_CONFIG = """\
Port {port}
HostKey {folder}/host_key
AuthorizedKeysFile {folder}/user_key.pub
AuthenticationMethods publickey
PermitRootLogin prohibit-password
StrictModes no
UsePAM no
PidFile none
"""
if pathlib.Path("/usr/lib/openssh/sshd-session").exists():  # OpenSSH 9.8 and later block hosts after failed logins
    SSHD_CONFIG += "PerSourcePenalties no\n"

SSH_CONFIG = """\
Host *
  Port {port}
  IdentityFile {folder}/user_key
  UserKnownHostsFile {folder}/known_hosts
  StrictHostKeyChecking yes
  BatchMode yes
"""


def skip(reason):
    """Reports why the test is skipped, and exits."""
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


def isolate():
    """Restarts this program as process 1 of new namespaces; skips the test if that is not permitted."""
    if os.environ.get(INSIDE) == "1":
        os.environ[INSIDE] = "made"
        try:
            _run("mount", "-t", "tmpfs", "tmpfs", "/run")
            _run("ip", "link", "set", "lo", "up")
            _run("ip", "link", "add", "pods", "type", "bridge")
            _run("ip", "link", "set", "pods", "up")
        except RuntimeError as error:
            skip(f"hosts cannot be emulated: {error}")
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    missing = [program for program in PROGRAMS if not shutil.which(program)]
    if missing:
        skip(f"hosts cannot be emulated without {', '.join(missing)}: scripts/setup.sh test installs them")
    if os.geteuid():
        skip("hosts cannot be emulated: network namespaces and sshd need root")
    namespaces = ["unshare", "--net", "--mount", "--pid", "--ipc", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*namespaces, "true"], capture_output=True, text=True)
    if probe.returncode:
        skip(f"hosts cannot be emulated: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    os.execvp(namespaces[0], [*namespaces, sys.executable, "-B", *sys.argv])


def wait_until(condition, what, timeout=60):
    """Polls until `condition` returns a true value, and returns it; a TimeoutError says that `what` is missing."""
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {timeout} s")
        time.sleep(0.05)
    return value


def _run(*command):
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}: {(done.stderr or done.stdout).strip()}")
    return done.stdout


def living_ranks(mark=""):
    """Process ids, in this namespace, of all live ranks, by rank: children of mpirun's daemons, without descendants.
    `mark`, `NAME=value` of the environment, selects one job."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, ValueError, IndexError):
            variables = (process / "environ").read_bytes().split(b"\0")
            if mark and mark.encode() not in variables:
                continue
            rank = [v for v in variables if v.startswith(b"OMPI_COMM_WORLD_RANK=")][0].split(b"=")[1]
            parent = (process / "stat").read_text().rpartition(")")[2].split()[1]
            if b"OMPI_COMM_WORLD_RANK=" not in pathlib.Path(f"/proc/{parent}/environ").read_bytes():
                found[int(rank)] = int(process.name)
    return found


def two_programs(first, second):
    """Arguments of mpirun for two ranks with different commands. mpirun of Open MPI 5.0.7 crashes at `first : second`."""
    choose = 'count=$1; shift; [ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "${@:1:count}"; exec "${@:count+1}"'
    return ["-np", 2, "bash", "-c", choose, "bash", len(first), *first, *second]


class Pod:
    """A host: its network lives as long as the cluster; its process 1 and descendants can be restarted."""

    def __init__(self, cluster, name, index):
        self.cluster, self.name, self.index = cluster, name, index
        self.host = f"{name}.{cluster.job}.default.svc"
        self.address = f"10.244.0.{index + 1}"
        self.port = f"pod{index}"  # the bridge's end of the veth pair
        self.process = None
        _run("ip", "netns", "add", name)
        _run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", name)
        _run("ip", "link", "set", self.port, "master", "pods", "up")
        _run("ip", "-n", name, "address", "add", f"{self.address}/24", "dev", "eth0")
        _run("ip", "-n", name, "link", "set", "eth0", "up")
        _run("ip", "-n", name, "link", "set", "lo", "up")

    def start(self, command, environment):
        """Runs the command as process 1 of the pod."""
        script = f"""set -e
            hostname {self.name}
            mount --bind {self.cluster.folder}/hosts /etc/hosts
            mount --bind {self.cluster.folder}/ssh_config /etc/ssh/ssh_config
            # Hides the user's settings.
            [ ! -d /root/.ssh ] || mount -t tmpfs tmpfs /root/.ssh
            [ ! -e /root/.bashrc ] || mount --bind /dev/null /root/.bashrc
            mount -t tmpfs tmpfs /run/pod
            mount -t tmpfs -o size=64m tmpfs /dev/shm
            exec "$@" """
        with self._file("out").open("wb") as out, self._file("err").open("wb") as err:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.name}", "unshare", "--mount", "--pid", "--uts", "--ipc", "--fork",
                 "--kill-child", "--mount-proc", "bash", "-c", script, "pod", *command],
                env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=err)

    def _file(self, stream):
        return self.cluster.folder / f"{self.name}.{stream}"

    def output(self):
        """Standard output of the pod since its start."""
        return self._file("out").read_text(errors="replace") if self.process else ""

    def errors(self):
        return self._file("err").read_text(errors="replace") if self.process else ""

    def written(self):
        """Last lines of stdout and stderr, for messages."""
        errors, output = ("\n".join(text.splitlines()[-40:]) for text in (self.errors(), self.output()))
        return f"{self.name} wrote as errors:\n{errors}\nand as output:\n{output}"

    def first_process(self):
        """Process id, in this namespace, of the pod's process 1; None if it is not running."""
        children = pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        with contextlib.suppress(OSError, ValueError):
            return int(children.read_text())
        return None

    def signal(self, number):
        """Sends a signal to process 1, like a kubelet: SIGTERM to stop the pod, SIGKILL to end it."""
        os.kill(wait_until(self.first_process, f"a process in {self.name}"), number)

    def end(self):
        """Kills the pod, like a machine failure with a reachable address; no effect if it is not running."""
        if self.process:
            self.process.kill()
            self.process.wait()
            self.process = None

    def cut_off(self):
        """Takes its link down: packets are dropped silently."""
        _run("ip", "link", "set", self.port, "down")

    def reconnect(self):
        _run("ip", "link", "set", self.port, "up")


class Cluster:
    """A launcher and `workers` with `slots` ranks each; a context manager. The command runs in the launcher's pod."""

    job = "job"

    def __init__(self, workers=2, slots=2, start_workers=True):
        self.folder = pathlib.Path("/run/cluster")
        self.folder.mkdir()
        for folder in ("/run/pod", "/run/sshd"):  # session directories; sshd requires an empty /run/sshd
            os.makedirs(folder, exist_ok=True)
        self.launcher = Pod(self, f"{self.job}-launcher", 0)
        self.workers = [Pod(self, f"{self.job}-worker-{i}", i + 1) for i in range(workers)]
        self.slots = slots
        self._write_files()
        if start_workers:
            for worker in self.workers:
                self.start_sshd(worker)
            for worker in self.workers:
                wait_until(lambda: "listening on 0.0.0.0" in worker.errors(), f"sshd of {worker.name}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pod in (self.launcher, *self.workers):
            pod.end()
            _run("ip", "link", "del", pod.port)
            _run("ip", "netns", "del", pod.name)
        shutil.rmtree(self.folder)

    def _write_files(self):
        pods = (self.launcher, *self.workers)
        self.hostfile = self.folder / "hostfile"
        self.hostfile.write_text("".join(f"{worker.host} slots={self.slots}\n" for worker in self.workers))
        (self.folder / "hosts").write_text(
            "127.0.0.1 localhost\n" + "".join(f"{pod.address} {pod.host} {pod.name}\n" for pod in pods))
        for key in ("host_key", "user_key"):
            _run("ssh-keygen", "-q", "-t", "ecdsa", "-b", "521", "-N", "", "-C", key, "-f", self.folder / key)
        host_key = (self.folder / "host_key.pub").read_text()
        (self.folder / "known_hosts").write_text(
            "".join(f"[{worker.host}]:{PORT} {host_key}" for worker in self.workers))
        (self.folder / "sshd_config").write_text(SSHD_CONFIG.format(port=PORT, folder=self.folder))
        (self.folder / "ssh_config").write_text(SSH_CONFIG.format(port=PORT, folder=self.folder))

    def environment(self):
        """Environment of a launcher's process: variables of the operator, the image, and this process."""
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(("OMPI_", "PMIX_", "PRTE_"))},
            "K_MPI_JOB_ROLE": "launcher",
            "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
            "OMPI_MCA_orte_default_hostfile": str(self.hostfile),
            "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
            "OMPI_MCA_orte_set_default_slots": str(self.slots),
            "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
            "OMPI_MCA_orte_tmpdir_base": "/run/pod",
            # ssh does not forward it; ranks of sanitized builds need it.
            "OMPI_MCA_mca_base_env_list": "ASAN_OPTIONS=" + os.environ.get("ASAN_OPTIONS", ""),
            **NETWORK_SETTINGS,
        }

    def start_sshd(self, worker):
        """Starts or restarts a worker."""
        environment = {**os.environ, "K_MPI_JOB_ROLE": "worker"}
        worker.start(["/usr/sbin/sshd", "-De", "-f", str(self.folder / "sshd_config")], environment)

    def start(self, *command, environment=None):
        """Starts a command in the launcher's pod, after ending an earlier one; wait() for it."""
        self.launcher.end()
        self.launcher.start([str(part) for part in command], {**self.environment(), **(environment or {})})

    def wait_for(self, condition, what, timeout=60):
        """Like wait_until; errors include the command's output."""
        try:
            return wait_until(condition, what, timeout)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; {self.launcher.written()}") from None

    def wait_for_output(self, text, timeout=60):
        self.wait_for(lambda: text in self.launcher.output(), f"'{text}' from the launcher", timeout)

    def wait(self, timeout=120):
        """Exit code of the command; a timeout is an error."""
        try:
            return self.launcher.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the command hangs: no end within {timeout} s; {self.launcher.written()}") from None

    def run(self, *command, environment=None, timeout=120):
        self.start(*command, environment=environment)
        return self.wait(timeout)

    def wait_for_ranks(self, count, timeout=60):
        """Waits until `count` ranks are alive (0: none left); returns their process ids by rank."""
        wait_until(lambda: len(living_ranks()) == count, f"{count} living ranks", timeout)
        return living_ranks()

    def signal_rank(self, rank, number):
        """Sends SIGKILL, SIGSTOP, SIGCONT ... to a rank on any host."""
        os.kill(living_ranks()[rank], number)

    def separate_workers(self):
        """Partitions the workers from each other; the launcher still reaches all."""
        for worker in self.workers:
            _run("bridge", "link", "set", "dev", worker.port, "isolated", "on")

    def join_workers(self):
        for worker in self.workers:
            _run("bridge", "link", "set", "dev", worker.port, "isolated", "off")


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
