#!/usr/bin/env python3
"""Soak test of training: a small ResNet trains on 4, 2 and 1 ranks in turn. It is randomly killed, stopped, or starved
of disk and memory, and restarted until it is done. Called by scripts/soak.sh.

A round is a training of --steps steps in parts. The seed determines the ranks of each part, which resumes from
the checkpoint of the previous part with the same global batch. The order of additions depends on the number of ranks,
and so do the bits; on as many ranks a resumed training has the same bits. An undisturbed training with the same parts
runs once per seed and is kept beside the result. Each checkpoint of a round must have its bits.

The result gets a line per minute; if this program is killed, the same command resumes it. Exit code 0: no failure; 1: a
failure, with the jobs' files in FILE.failed; 77: namespaces cannot be created.
"""

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import random
import shutil
import subprocess
import sys

import soak_faults
import soak_result
import training
from soak_faults import CRASHED, EXPLAINED, KILLED, Faults, MemoryGroup
from soak_job import BATCH, CALM, COMMAND, LIMIT, LIMITS, PROGRAM, Failure, Job
from soak_reference import Reference, digest, steps_in

INSIDE = "DTRAIN_SOAK_INSIDE"
WORK = pathlib.Path("/run/soak")
DISK_MIB = 16  # three checkpoints of 2.2 MB, and an unfinished one
PARTS, PART_STEPS = 5, 10  # maximum number of parts, minimum steps of a part
WITHOUT_PROGRESS = 2  # failures in a row before an undisturbed start: crash-loop detection refuses a fourth one


def isolate():
    """Restarts this program in new namespaces and exits with its code: when either process ends, the kernel ends all jobs
    and mounts."""
    if os.environ.pop(INSIDE, None):
        for folder in ("/run", "/dev/shm"):
            subprocess.run(["mount", "-t", "tmpfs", "tmpfs", folder], check=True)
        for folder in ("tmp", "disk"):
            (WORK / folder).mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MIB}m", "tmpfs", WORK / "disk"], check=True)
        os.environ.update(TMPDIR=str(WORK / "tmp"), OMPI_MCA_orte_tmpdir_base=str(WORK / "tmp"))
        return
    namespaces = ["setpriv", "--pdeathsig", "KILL", "unshare", *(["--user", "--map-root-user"] if os.geteuid() else []),
                  "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    probe = subprocess.run([*namespaces, "true"], capture_output=True, text=True)
    if probe.returncode or not shutil.which("mpirun"):
        print(f"SKIPPED: hosts cannot be emulated: {probe.stderr.strip() or 'there is no mpirun'}")
        sys.exit(77)
    sys.exit(subprocess.run([*namespaces, sys.executable, "-B", *sys.argv], env={**os.environ, INSIDE: "1"}).returncode)


def slow_disk():
    """Path of the library that slows fsync; None if it is neither given nor can be compiled."""
    if given := os.environ.get("DTRAIN_SLOW_DISK"):
        return given
    shim, source = WORK / "slow_disk.so", pathlib.Path(__file__).with_name("slow_disk.cpp")
    command = ["c++", "-std=c++20", "-O1", "-shared", "-fPIC", "-o", shim, source]
    return str(shim) if shutil.which("c++") and subprocess.run(command).returncode == 0 else None


def numbers_of_ranks(seed, steps):
    """Numbers of ranks of the parts; the first has the global batch without micro-steps."""
    draw, ranks = random.Random(seed), [4]
    while len(ranks) < max(2, min(PARTS, steps // PART_STEPS)):
        ranks.append(draw.choice([number for number in (1, 2, 2, 4) if number != ranks[-1]]))
    return ranks


class Round:
    """A training with faults until `is_over`, and without them to its end."""

    def __init__(self, soak, draw, is_over):
        self.soak, self.result, self.random, self.is_over = soak, soak.result, draw, is_over
        self.folder = WORK / "disk" / "train"
        self.faults = Faults(draw, WORK / "disk", WORK / "answers", soak.group, soak.left_out)
        self.damaged, self.failures, self.seen = set(), 0, set()
        shutil.rmtree(self.folder, ignore_errors=True)

    def run(self):
        while (step := self.sound()) < self.soak.steps:
            self.start(self.damage(step))
        if left := [entry.name for entry in os.scandir(self.folder / "checkpoints") if not entry.name[5:].isdigit()]:
            raise Failure("leftovers", f"left behind: {left}")

    def poll(self):
        found = steps_in(self.folder)
        for step in found.keys() - self.seen:
            self.result.count("checkpoints")
        if self.seen != found.keys():
            self.seen = set(found)
            self.result.set(step=max(found, default=0))

    def sound(self):
        """Step of the newest sound checkpoint, or 0. Checkpoints that no fault damaged must be sound."""
        for step, path in sorted(steps_in(self.folder).items(), reverse=True):
            if (step, path.stat().st_ino) in self.damaged:
                continue
            if digest(path) != self.soak.reference.digests[step]:
                raise Failure("unequal", f"step {step}: the bits differ from the undisturbed training")
            return step
        return 0

    def damage(self, step):
        """Damages the newest checkpoint if there is an older one; returns the step of the newest sound one."""
        found = steps_in(self.folder)
        if self.is_over() or "damaged checkpoint" in self.soak.left_out or len(found) < 2 or step != max(found):
            return step
        if self.random.random() > 0.2:
            return step
        self.result.count("faults", "damaged checkpoint")
        self.damaged.add((step, found[step].stat().st_ino))
        self.faults.damage(found[step])
        return self.sound()

    def start(self, step):
        """A start from `step`, with faults until it has exited."""
        soak, mpi = self.soak, self.random.random() < 0.5
        part = min(part for part, end in enumerate(soak.ends) if step < end)
        calm = self.is_over()
        flags = (f"--save_model_steps={max(2, soak.steps // 100)}", *(CALM if calm else LIMITS))
        job = Job(WORK, self.folder, soak.ranks[part], soak.ends[part], *flags, mpi=mpi, before=soak.group.before(),
                  variables=soak.variables, poll=self.poll)
        self.result.count("starts")
        explained = set() if calm else self.disturb(job, step)
        code = job.end()
        self.faults.repair()
        self.result.count("exit_codes", code)
        self.judge(job, step, soak.ends[part], code, explained)

    def disturb(self, job, step):
        """Applies faults until the job has exited; returns their names."""
        names = set()
        job.wait_for(lambda: len(job.pids()) == job.ranks)
        if self.failures >= WITHOUT_PROGRESS:
            job.wait_for(lambda: max(self.seen, default=0) > step)
        while not job.ended() and not self.is_over():
            name, seconds = self.faults.draw(), self.random.uniform(0, 0.4) * self.soak.seconds
            job.sleep(seconds)
            if not job.ended():
                names.add(name)
                self.result.count("faults", name)
                self.faults.apply(name, job)
        return names

    def judge(self, job, step, end, code, names):
        what = f"a start from step {step} on {job.ranks} ranks, {'mpirun' if job.mpi else '--num_gpus'}, faults " \
               f"{sorted(names)}, ended with {code}"
        unheard = code - 128 in soak_faults.REQUESTS and job.trained()  # stopped before the signal handler was installed
        if unheard or code not in {0}.union(*(EXPLAINED[name] for name in names)):
            raise Failure("undocumented_codes", f"{what}, which they do not explain; {job.written()}")
        restored = [int(line.split()[2]) for line in job.output().splitlines() if line.startswith("Restored step ")]
        damaged = {number for number, _ in self.damaged}
        if restored and restored[0] != step:
            raise Failure("damaged_checkpoints_used" if restored[0] in damaged else "checkpoints_lost",
                          f"{what}: it restored step {restored[0]}")
        if restored and max(damaged, default=0) > step:
            self.result.count("damaged_checkpoints_passed_over")
        for path in (self.folder / "checkpoints").glob("step-*.superseded-*"):
            shutil.rmtree(path)
        present = {(number, path.stat().st_ino) for number, path in steps_in(self.folder).items()}
        self.damaged &= present
        reached = self.sound()
        if reached < step or (code == 0 and reached != end):
            raise Failure("checkpoints_lost", f"{what}: afterwards there is step {reached}")
        self.result.count("steps", by=reached - step)
        failed = code in (4, 6, CRASHED) or (code == KILLED and "out of memory" in names)
        self.failures = 0 if reached > step else self.failures + failed


class Soak:
    def __init__(self, arguments):
        self.steps, self.seed, out = arguments.steps, arguments.seed, arguments.out
        self.ranks = numbers_of_ranks(self.seed, self.steps)
        self.ends = [self.steps * (part + 1) // len(self.ranks) for part in range(len(self.ranks))]
        self.group = MemoryGroup(f"dtrain-soak-{hashlib.sha256(str(out).encode()).hexdigest()[:12]}")
        shim, sanitized = slow_disk(), "DTRAIN_SANITIZED" in os.environ
        (WORK / "answers").touch()
        self.variables = {"LD_PRELOAD": shim, "DTRAIN_DISK_ANSWERS": str(WORK / "answers"),
                          "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0"} if shim else {}
        self.left_out = {name: "by --faults" for name in EXPLAINED if name not in (arguments.faults or EXPLAINED)}
        if not shim:
            self.left_out.update({"slow disk": "no compiler", "dead disk": "no compiler"})
        if not self.group.path:
            self.left_out["out of memory"] = "no cgroup can be created here"
        if sanitized:
            self.left_out["address space"] = "sanitizers reserve it"
        identity = {"soak": "training", "seed": self.seed, "steps_of_a_round": self.steps,
                    "build": soak_result.build(PROGRAM)}
        self.result = soak_result.Result(out, {**identity, **self.header(arguments)})
        training.make_data(WORK / "data", train=192, size=32)
        self.reference = Reference(out.with_suffix(".reference.json"), WORK, identity, self.ranks, self.ends)
        self.seconds = self.reference.seconds / len(self.ranks)
        self.result.write({"reference_seconds": self.reference.seconds, "weights": self.reference.digests[self.steps]})

    def header(self, arguments):
        return {
            "what": "rounds of one training each, with random faults and restarts until it is done; each checkpoint is "
                    "compared with an undisturbed training after the same step",
            "commit": arguments.commit, "machine": soak_result.machine(), "minutes": arguments.minutes,
            "command": " ".join((*COMMAND, *LIMITS)), "ranks": self.ranks, "part_ends_at_step": self.ends,
            "launchers": "dtrain-mpirun or --num_gpus, drawn for each start", "global_batch": self.ranks[0] * BATCH,
            "disk": f"tmpfs of {DISK_MIB} MiB", "hang_limit_s": LIMIT,
            "faults": {name: text for name, text in soak_faults.DESCRIPTIONS.items() if name not in self.left_out},
            "faults_left_out": self.left_out, "exit_codes": soak_result.MEANINGS}

    def run(self, minutes):
        def is_over():  # at least one fault, also in a short soak on a slow machine
            return self.result.minutes() >= minutes and self.result.counters["faults"]

        self.result.every_minute()
        while not is_over() or not self.result.counters["rounds_equal"]:
            number = self.result.counters["round"]
            Round(self, random.Random(f"{self.seed}/{number}"), is_over).run()
            self.result.count("rounds_equal")
            self.result.set(step=0, round=number + 1)
            self.result.write({"end_of_round": number, "weights": self.reference.digests[self.steps]}, counters=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=45)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--steps", type=int, default=300, help="of a round")
    parser.add_argument("--out", type=lambda text: pathlib.Path(text).resolve(), default="soak.jsonl")
    parser.add_argument("--faults", type=lambda text: text.split(","), help="comma-separated names of faults to apply")
    parser.add_argument("--commit", default="", help="commit of the programs, for the header")
    arguments = parser.parse_args()
    if unknown := set(arguments.faults or ()) - EXPLAINED.keys():
        parser.error(f"unknown faults {sorted(unknown)}; expected some of {list(EXPLAINED)}")
    isolate()
    lock = arguments.out.with_suffix(".lock").open("w")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit(f"{arguments.out}: another soak test is writing it")
    soak = Soak(arguments)
    if soak.result.verdict:
        sys.exit(f"{arguments.out} is complete: {soak.result.verdict}")
    try:
        soak.run(arguments.minutes)
    except Failure as failure:
        soak.result.count(failure.kind)
        evidence = arguments.out.with_suffix(".failed")
        shutil.copytree(WORK, evidence, ignore=shutil.ignore_patterns("tmp", "filler"), dirs_exist_ok=True)
        soak.result.end("failed", str(failure))
        sys.exit(1)
    finally:
        if soak.group.path:
            with contextlib.suppress(OSError):
                soak.group.path.rmdir()
    soak.result.end("passed", "all rounds have the weights of the undisturbed training; no hang, no orphan, all exit "
                   "codes documented and explained by the preceding faults")
    os.unlink(lock.name)


if __name__ == "__main__":
    main()
