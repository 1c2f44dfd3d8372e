"""A job of a soak test: one start of a training, by mpirun or --num_gpus, its processes, and its invariants."""

import contextlib
import os
import pathlib
import subprocess
import time

import training

PROGRAM = "dtrain-cnn-benchmarks"
MARK = f"DTRAIN_SOAK={os.getpid()}"
LIMIT = 600  # seconds until a start counts as hanging: ten times the longest one
BATCH = 4  # per rank and micro-step; the first start, with 4 ranks, determines the global batch
COMMAND = (PROGRAM, "--model=resnet20", "--data_name=cifar10", "--num_classes=11", "--device=cpu",
           "--num_intra_threads=1", "--optimizer=momentum", "--init_learning_rate=0.01", "--num_warmup_batches=0",
           "--display_every=1", f"--batch_size={BATCH}", "--max_ckpts_to_keep=3")
# On a busy machine a rank may wait for seconds.
LIMITS = ("--collective_timeout=10", "--checkpoint_timeout=20")
CALM = ("--collective_timeout=120", "--checkpoint_timeout=120")


class Failure(Exception):
    """A failure that the soak test detects. `kind`: counter of the result."""

    def __init__(self, kind, text):
        super().__init__(text)
        self.kind = kind


def marked():
    """Live processes of the jobs, with their environments, by process id. Zombies have none."""
    found = {}
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            variables = (process / "environ").read_bytes().decode(errors="replace").split("\0")
            if MARK in variables:
                found[int(process.name)] = variables
    return found


def program_of(pid):
    with contextlib.suppress(OSError):
        return os.path.basename(os.readlink(f"/proc/{pid}/exe"))
    return ""


class Job:
    """`before`: command prefix that moves a process into a cgroup; `poll` is called in every loop."""

    def __init__(self, folder, train_dir, ranks, steps, *flags, mpi=True, before=(), variables=None, poll=lambda: None):
        self.ranks, self.mpi, self.poll = ranks, mpi, poll
        self.files = [folder / "stdout", folder / "stderr"]
        command = [training.BINARIES / PROGRAM, *COMMAND[1:], f"--data_dir={folder}/data", f"--train_dir={train_dir}",
                   f"--num_batches={steps}", *flags]
        if mpi:
            command = [training.MPIRUN, *training.IN_ONE_HOST[1:], "-np", str(ranks), *command,
                       "--variable_update=horovod"]
        else:
            command += [f"--num_gpus={ranks}", "--variable_update=replicated"]
        name, value = MARK.split("=")
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self.process = subprocess.Popen([*before, *map(str, command)], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env={**os.environ, **(variables or {}), name: value})
        self.begun = time.monotonic()

    def output(self):
        return self.files[0].read_text(errors="replace")

    def trained(self):
        return "images/sec: " in self.output()

    def written(self):
        """Last lines of stdout and stderr, for messages."""
        return "\n".join("\n".join(file.read_text(errors="replace").splitlines()[-15:]) for file in self.files)

    def ended(self):
        self.poll()
        if time.monotonic() > self.begun + LIMIT and self.process.poll() is None:
            raise Failure("hangs", f"no end within {LIMIT} s; {self.written()}")
        return self.process.poll() is not None

    def wait_for(self, condition, timeout=LIMIT, pause=0.01):
        """Waits for `condition`; False if the job exits or the time is over before."""
        deadline = time.monotonic() + timeout
        while not self.ended() and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(pause)
        return False

    def sleep(self, seconds):
        self.wait_for(lambda: False, seconds)

    def end(self):
        """Exit code, as in a shell, after the last process of the job is gone."""
        self.wait_for(lambda: False)
        deadline = time.monotonic() + 60
        while left := marked():
            if time.monotonic() > deadline:
                raise Failure("orphans", f"{[program_of(pid) for pid in left]} live a minute after their job ended; "
                                         f"{self.written()}")
            time.sleep(0.02)
        code = self.process.wait()
        return code if code >= 0 else 128 - code

    def pids(self):
        """Process ids of the live ranks, by rank."""
        if not self.mpi and self.ranks == 1:
            return {} if self.process.poll() is not None else {0: self.process.pid}
        variable = "OMPI_COMM_WORLD_RANK=" if self.mpi else "DTRAIN_LOCAL_RANK="
        found = {}
        for pid, variables in marked().items():
            for text in variables:
                if text.startswith(variable) and program_of(pid) == PROGRAM:
                    found[int(text.split("=")[1])] = pid
        return found

    def launchers(self):
        """Processes that start the ranks: the wrapper and mpirun, or the program itself."""
        pids = [self.process.pid]
        if self.mpi:
            pids += [pid for pid in marked() if program_of(pid) in ("mpirun", "orterun", "prte")]
        return pids

    def signal(self, pid, number):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)

    def signal_rank(self, rank, number):
        if pid := self.pids().get(rank):
            self.signal(pid, number)
