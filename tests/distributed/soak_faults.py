"""Faults of a soak test. Each may leave the job alive or not; EXPLAINED lists the exit codes allowed after it besides
0. Any other code is a failure.
"""

import contextlib
import errno
import os
import pathlib
import resource
import signal
import time

from soak_job import Failure

KILLED, CRASHED = 128 + signal.SIGKILL, 128 + signal.SIGSEGV
REQUESTS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2)
# 4: a rank that notices another rank's death may exit before the launcher. Without address space, MPI_Init may hang
# until its time limit ends the start with 4, and oneDNN 2.6 crashes when it cannot allocate memory for generated code.
EXPLAINED = {
    "kill a rank": (KILLED, 4), "kill in a save": (KILLED, 4), "kill the launcher": (KILLED, 4),
    "stop on request": (75, *(128 + number for number in REQUESTS)), "hang": (4,), "pause": (), "sleep": (),
    "full disk": (6,), "slow disk": (), "dead disk": (6,), "address space": (6, 4, CRASHED),
    "out of memory": (KILLED, 4, 6), "damaged checkpoint": (),
}
DESCRIPTIONS = {
    "kill a rank": "SIGKILL of one rank",
    "kill in a save": "SIGKILL of the rank that writes a checkpoint, while it does",
    "kill the launcher": "SIGKILL of dtrain-mpirun, of mpirun, or of the program that started the ranks",
    "stop on request": "SIGTERM, SIGINT, SIGHUP, SIGUSR1 or SIGUSR2 to the launcher",
    "hang": "SIGSTOP of one rank, for longer than --collective_timeout",
    "pause": "SIGSTOP of one rank, then SIGCONT within two seconds",
    "sleep": "SIGSTOP of all ranks, for longer than --collective_timeout as well, then SIGCONT",
    "full disk": "the disk of the checkpoints is filled: ENOSPC",
    "slow disk": "fsync of checkpoints takes up to 14 seconds, more than --collective_timeout",
    "dead disk": "fsync of checkpoints does not return within --checkpoint_timeout",
    "address space": "RLIMIT_AS of a rank is set to its current size",
    "out of memory": "the cgroup's memory limit is set to its current use: the kernel kills a rank",
    "damaged checkpoint": "between two starts a byte of the newest checkpoint is flipped, or the file cut",
}


class MemoryGroup:
    """A cgroup (v1 or v2) for the jobs; `path` is None if none can be created."""

    def __init__(self, name):
        mount = pathlib.Path("/sys/fs/cgroup/memory")
        self.limit, self.usage, self.unlimited = "memory.limit_in_bytes", "memory.usage_in_bytes", "-1"
        if not (mount / self.limit).exists():
            mount, self.limit, self.usage, self.unlimited = mount.parent, "memory.max", "memory.current", "max"
        self.path = mount / name
        try:
            self.path.mkdir(exist_ok=True)
            self.lift()
            int((self.path / self.usage).read_text())
        except OSError:
            with contextlib.suppress(OSError):
                self.path.rmdir()
            self.path = None

    def lift(self):
        if self.path:
            (self.path / self.limit).write_text(self.unlimited)

    def tighten(self, more):
        """Sets the limit to the unreclaimable memory in use plus `more` bytes, if the kernel accepts that."""
        with contextlib.suppress(OSError):  # more is in use meanwhile
            (self.path / self.limit).write_text(str(int((self.path / self.usage).read_text()) + more))

    def before(self):
        return ("sh", "-c", f'echo $$ > {self.path}/cgroup.procs; exec "$@"', "sh") if self.path else ()


class Faults:
    """Applies faults to a job; `disk` holds the checkpoints, the slow disk waits for the file `answers`."""

    def __init__(self, random, disk, answers, group, left_out=()):
        self.random, self.disk, self.answers, self.group = random, disk, answers, group
        self.filler = disk / "filler"
        self.names = [name for name in EXPLAINED if name not in left_out and name != "damaged checkpoint"]
        self.deck = []

    def draw(self):
        """Next fault by name, in random rounds without repetition."""
        if not self.deck:
            self.deck = self.random.sample(self.names, len(self.names))
        return self.deck.pop()

    def apply(self, name, job):
        getattr(self, name.replace(" ", "_"))(job)

    def repair(self):
        """Restores disk and memory for the next start."""
        self.filler.unlink(missing_ok=True)
        self.answers.touch()
        self.group.lift()

    def _rank(self, job):
        return self.random.randrange(job.ranks)

    def kill_a_rank(self, job):
        job.signal_rank(self._rank(job), signal.SIGKILL)
        job.wait_for(lambda: False)

    def kill_in_a_save(self, job):
        delay = self.random.uniform(0, 0.03)
        pids = job.pids()
        folder = self.disk / "train" / "checkpoints"
        if 0 in pids and job.wait_for(lambda: list(folder.glob("*.tmp-*")), pause=0.001):
            time.sleep(delay)
            job.signal(pids[0], signal.SIGKILL)
        job.wait_for(lambda: False)

    def kill_the_launcher(self, job):
        job.signal(self.random.choice(job.launchers()), signal.SIGKILL)
        job.wait_for(lambda: False)

    def stop_on_request(self, job):
        job.signal(job.process.pid, self.random.choice(REQUESTS))
        job.wait_for(lambda: False)

    def _stopped(self, job, pids, seconds):
        for pid in pids:
            job.signal(pid, signal.SIGSTOP)
        job.sleep(seconds)
        for pid in pids:
            job.signal(pid, signal.SIGCONT)

    def hang(self, job):
        noticed, pid = job.ranks > 1 and job.trained(), job.pids().get(self._rank(job))  # start-up has longer limits
        if not pid:
            return
        self._stopped(job, [pid], 60 if noticed else 5)
        if noticed and not job.ended():
            raise Failure("hangs", f"a rank stood still for 60 s, and the others did not end; {job.written()}")

    def pause(self, job):
        rank, seconds = self._rank(job), self.random.uniform(0, 2)
        if pid := job.pids().get(rank):
            self._stopped(job, [pid], seconds)

    def sleep(self, job):
        self._stopped(job, job.pids().values(), self.random.choice((3, 14)))

    def full_disk(self, job):
        left, seconds = self.random.randrange(3 << 20), self.random.choice((1, 5, 20))
        with self.filler.open("wb") as file:
            size = max(0, os.statvfs(self.disk).f_bavail * os.statvfs(self.disk).f_frsize - left)
            try:
                os.posix_fallocate(file.fileno(), 0, max(1, size))
            except OSError as error:  # the job has written meanwhile
                if error.errno != errno.ENOSPC:
                    raise
        job.sleep(seconds)
        self.filler.unlink()

    def slow_disk(self, job):
        self.answers.unlink()
        job.sleep(self.random.uniform(0, 14))
        self.answers.touch()

    def dead_disk(self, job):
        self.answers.unlink()
        job.sleep(60)
        self.answers.touch()

    def address_space(self, job):
        rank, more = self._rank(job), self.random.choice((0, 1 << 20, 16 << 20))
        if pid := job.pids().get(rank):
            with contextlib.suppress(OSError, ValueError):
                pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
                resource.prlimit(pid, resource.RLIMIT_AS, (pages * resource.getpagesize() + more,) * 2)
        job.sleep(2)

    def out_of_memory(self, job):
        self.group.tighten(self.random.choice((0, 1 << 20, 4 << 20)))
        job.sleep(5)
        self.group.lift()

    def damage(self, checkpoint):
        """Damages the newest checkpoint while no job runs."""
        files = ("model.safetensors", "state.safetensors", "state.json", "MANIFEST.json")
        path = checkpoint / self.random.choice(files)
        data = bytearray(path.read_bytes())
        at = self.random.randrange(len(data))
        if self.random.random() < 0.5:
            del data[at:]
        else:
            data[at] ^= 1 << self.random.randrange(8)
        path.write_bytes(data)
