#!/usr/bin/env python3
"""Soak: trains on two ranks that are killed, stopped, hung and paused at random, and starts them again, until time is
over. Each training has to end with the bits of one that nothing disturbed, and each start with a documented code.
`soak.py --minutes 30 --seed 7`; what a seed draws is the same each time, what it hits is up to the clock.
"""

import argparse
import collections
import contextlib
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import training
from cluster import living_ranks, wait_until

DOCUMENTED = (0, 4, 75, 128 + signal.SIGKILL)
STEPS = 100
SAVE_STEPS = 10
WITHOUT_PROGRESS = 2  # starts in a row, after which one may reach its next checkpoint: three would be a crash loop


class Soak:
    def __init__(self, folder, seed):
        self.folder, self.random = folder, random.Random(seed)
        self.train_dir = folder / "train"
        self.mark = f"DTRAIN_SOAK={os.getpid()}"
        self.faults = {"kill": self.kill, "kill in a save": self.kill_in_a_save, "stop": self.stop, "hang": self.hang,
                       "pause": self.pause}
        self.counts, self.codes = collections.Counter(), collections.Counter()
        self.process = None
        training.make_data(folder / "data")
        begun = time.monotonic()
        self.start(folder / "undisturbed", "--collective_timeout=60")
        if code := self.process.wait():
            raise AssertionError(f"the undisturbed training ended with {code}: {self.errors()}")
        self.seconds = time.monotonic() - begun
        self.expected = training.state_of(folder / "undisturbed", STEPS)

    def start(self, train_dir, *flags):
        rank = training.command(self.folder / "data", train_dir, STEPS, f"--save_model_steps={SAVE_STEPS}", *flags)
        command = [training.MPIRUN, *training.IN_ONE_HOST[1:], "-np", "2", *rank]
        name, value = self.mark.split("=")
        with self._log().open("wb") as log:
            self.process = subprocess.Popen(command, env={**os.environ, name: value}, stdin=subprocess.DEVNULL,
                                            stdout=subprocess.DEVNULL, stderr=log)

    def _log(self):
        return self.folder / "errors"

    def errors(self):
        return self._log().read_text(errors="replace")

    def ended(self):
        return self.process.poll() is not None

    def wait_for(self, condition, timeout=600):
        """False where the start has ended, or the time is over, before `condition` was true."""
        deadline = time.monotonic() + timeout
        while not self.ended() and time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(0.001)
        return False

    def sleep(self, seconds):
        self.wait_for(lambda: False, seconds)

    def checkpoints(self):
        with contextlib.suppress(FileNotFoundError):
            return [entry.name for entry in os.scandir(self.train_dir / "checkpoints")]
        return []

    def saved_step(self):
        return max((int(name[5:]) for name in self.checkpoints() if name[5:].isdigit()), default=0)

    def signal_rank(self, rank, number):
        with contextlib.suppress(KeyError, ProcessLookupError):  # it has ended
            os.kill(living_ranks(self.mark)[rank], number)

    # The faults. Those that leave the start alive return.

    def kill(self):
        self.signal_rank(self.random.randrange(2), signal.SIGKILL)
        self.process.wait()

    def kill_in_a_save(self):
        delay = self.random.uniform(0, 0.03)
        if self.wait_for(lambda: any(".tmp-" in name for name in self.checkpoints())):
            self.sleep(delay)
            self.signal_rank(0, signal.SIGKILL)
        self.process.wait()

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()

    def hang(self):
        rank = self.random.randrange(2)
        self.signal_rank(rank, signal.SIGSTOP)
        self.sleep(20)  # four times the limit of a step; that of the set-up is longer
        self.signal_rank(rank, signal.SIGCONT)

    def pause(self):
        rank, seconds = self.random.randrange(2), self.random.uniform(0, 2)
        self.signal_rank(rank, signal.SIGSTOP)
        self.sleep(seconds)
        self.signal_rank(rank, signal.SIGCONT)

    def disturb(self):
        """A start, with faults until it has ended."""
        self.start(self.train_dir)
        self.wait_for(lambda: len(living_ranks(self.mark)) == 2)
        before = self.saved_step()
        while not self.ended():
            name, part = self.random.choice(list(self.faults)), self.random.uniform(0, 0.6)
            if self.without_progress >= WITHOUT_PROGRESS:
                self.wait_for(lambda: self.saved_step() > before)
            self.sleep(part * self.seconds)
            if not self.ended():
                self.counts[name] += 1
                self.faults[name]()
        self.without_progress = self.without_progress + 1 if self.saved_step() == before else 0

    def train(self, deadline):
        """A training from its first step to its last; after the deadline nothing disturbs it any more."""
        shutil.rmtree(self.train_dir, ignore_errors=True)
        self.without_progress = 0
        code = None
        while code != 0:
            if time.monotonic() < deadline:
                self.disturb()
            else:
                self.start(self.train_dir, "--collective_timeout=60")
            code = self.process.wait()
            self.codes[code] += 1
            if code not in DOCUMENTED:
                raise AssertionError(f"a start ended with {code}: {self.errors()}")
            wait_until(lambda: not living_ranks(self.mark), "an end of all ranks")
        left = [name for name in self.checkpoints() if not name[5:].isdigit()]
        if left:
            raise AssertionError(f"left behind: {left}")
        if training.state_of(self.train_dir, STEPS) != self.expected:
            raise AssertionError("the training ended with other bits than the undisturbed one")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    arguments = parser.parse_args()
    if not shutil.which("mpirun"):
        print("SKIPPED: there is no mpirun")
        sys.exit(77)
    print(f"seed {arguments.seed}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        soak = Soak(pathlib.Path(folder), arguments.seed)
        deadline = time.monotonic() + 60 * arguments.minutes
        trainings = 0
        try:
            while time.monotonic() < deadline:
                soak.train(deadline)
                trainings += 1
        finally:
            soak.process.kill()
            print(f"{trainings} trainings of {STEPS} steps; faults: {dict(soak.counts)}; codes: {dict(soak.codes)}")


if __name__ == "__main__":
    main()
