"""Failures of a rank, by DTRAIN_FAULT or signals: every rank ends in time, the exit code and a line on stderr state
cause and place, and the last checkpoint loads. ctest runs each test_* function on its own, with the folder of the
programs in DTRAIN_BIN_DIR.
"""

import contextlib
import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import tempfile
import time
import uuid

PROGRAMS = pathlib.Path(os.environ["DTRAIN_BIN_DIR"])
HAS_FAULTS = os.environ.get("DTRAIN_FAULTS") == "1"
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
WRAPPER = (pathlib.Path(__file__).resolve().parents[2] / "scripts" / "dtrain-mpirun", *MPIRUN[1:])
HOST = os.uname().nodename
SKIPPED = 77
TWO_BUCKETS = ("--bucket_mb=0.6", "--last_bucket_mb=0.1")  # of gradients
LIMIT = 120  # seconds until a job counts as hanging


def wait_until(condition, what, timeout=LIMIT):
    deadline = time.monotonic() + timeout
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {timeout} s")
        time.sleep(0.02)
    return value


def preloaded(shim, **variables):
    """Environment that preloads the library named by the variable `shim`."""
    return {"LD_PRELOAD": os.environ[shim], "ASAN_OPTIONS": "detect_leaks=0:verify_asan_link_order=0", **variables}


class Job:
    """A running command with all of its processes."""

    def __init__(self, folder, command, environment):
        self.mark = f"DTRAIN_TEST_JOB={uuid.uuid4()}"
        self.files = [folder / f"{self.mark[-12:]}.{stream}" for stream in ("out", "err")]
        variables = dict(os.environ, OMP_WAIT_POLICY="passive", **environment)
        variables.update([self.mark.split("=")])
        with self.files[0].open("wb") as out, self.files[1].open("wb") as err:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=err, env=variables)

    def output(self):
        return self.files[0].read_text(errors="replace")

    def errors(self):
        return self.files[1].read_text(errors="replace")

    def written(self):
        return f"stdout:\n{self.output()}\nstderr:\n{self.errors()}"

    def processes(self):
        """Environments of the live processes of this job, by process id."""
        found = {}
        for process in pathlib.Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                variables = (process / "environ").read_text(errors="replace").split("\0")
                if self.mark in variables:
                    found[int(process.name)] = variables
        return found

    def pid_of_rank(self, rank):
        """Process id of a rank, after mpirun has started it."""
        return wait_until(lambda: [pid for pid, variables in self.processes().items()
                                   if f"OMPI_COMM_WORLD_RANK={rank}" in variables], f"rank {rank}")[0]

    def wait_for_step(self, step):
        wait_until(lambda: f"\n{step}\timages/sec" in self.output() or self.process.poll() is not None, f"step {step}")

    def ends(self, code, *texts):
        """Expects the exit code, lines with `texts`, and no remaining process."""
        try:
            found = self.process.wait(LIMIT)
            found = 128 - found if found < 0 else found
            if found != code:
                raise AssertionError(f"exit code {found}, expected {code}; {self.written()}")
            for text in texts:
                if text not in self.written():
                    raise AssertionError(f"no '{text}'; {self.written()}")
            wait_until(lambda: not self.processes(), "an end of all ranks", 10)
        finally:
            for pid in self.processes():
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
        return self


class Training:
    """Repeated trainings on the same synthetic images in train_dir `name`. Gradients are small: on a busy machine each
    message waits for the CPU, and a step must stay far below the time limits of collectives."""

    def __init__(self, folder, *flags, name="run", validation=7, train=96):
        self.folder, self.flags, self.name = pathlib.Path(folder), flags, name
        self.metrics = self.folder / f"{name}.json"
        if not (self.folder / "data").exists():
            subprocess.run([PROGRAMS / "dtrain-data", "synthesize", f"--output={folder}/data", f"--train={train}",
                            f"--validation={validation}", "--image_size=32", "--shards=2"], check=True,
                           stdout=subprocess.DEVNULL)

    def start(self, ranks, *flags, fault="", launcher=MPIRUN, before=(), environment=None, batch=4):
        """`before`: command prefix without launcher."""
        return Job(self.folder, (
            *before, *(launcher if ranks > 1 else ()), *(("-np", ranks) if ranks > 1 else ()),
            PROGRAMS / "dtrain-cnn-benchmarks", f"--data_dir={self.folder}/data", "--model=lenet", "--image_size=8",
            "--num_classes=11", "--device=cpu", "--num_intra_threads=1", "--num_warmup_batches=0", "--display_every=1",
            "--variable_update=horovod", "--optimizer=momentum", "--init_learning_rate=0.01", f"--batch_size={batch}",
            f"--metrics_file={self.metrics}", f"--train_dir={self.folder / self.name}", *self.flags, *flags),
            dict({"DTRAIN_FAULT": fault} if fault else {}, **(environment or {})))

    def begin(self, ranks, **arguments):
        """Runs to step 5, whose checkpoint is then on disk; an unfinished checkpoint is lost with its job."""
        self.start(ranks, "--num_batches=5", **arguments).ends(0)

    def wait_for_checkpoint(self, job):
        """Waits for a checkpoint on disk; steps may be far ahead of it."""
        folder = self.folder / self.name / "checkpoints"
        wait_until(lambda: [path for path in folder.glob("step-*/MANIFEST.json") if ".tmp-" not in str(path)]
                   or job.process.poll() is not None, "a checkpoint")

    def losses(self):
        """Losses by step. Each step occurs once; a truncated last line is skipped."""
        found = {}
        lines = self.metrics.read_text().split("\n")
        for line in lines[:-1]:
            metrics = json.loads(line)
            if "loss" not in metrics:
                continue  # a line about a checkpoint
            if metrics["step"] in found:
                raise AssertionError(f"step {metrics['step']} twice in the metrics")
            found[metrics["step"]] = metrics["loss"]
        return found

    def weights(self, step):
        return (self.folder / self.name / "checkpoints" / f"step-{step}" / "model.safetensors").read_bytes()

    def expect_same_end(self, step, ranks, *flags):
        """Weights are bitwise equal to an undisturbed run."""
        calm = Training(self.folder, *self.flags, name="calm")
        calm.start(ranks, *flags).ends(0)
        if self.weights(step) != calm.weights(step):
            raise AssertionError("the weights differ from an undisturbed run")
        if self.losses() != calm.losses():
            raise AssertionError(f"losses {self.losses()}, of an undisturbed run {calm.losses()}")


def resume_after_kill(folder, rank):
    training = Training(folder, "--num_batches=12", "--save_model_steps=5")
    training.begin(3)
    training.start(3, fault=f"rank={rank},step=8,kind=kill").ends(128 + signal.SIGKILL, f"process rank {rank}",
                                                                  "signal 9")
    training.losses()
    training.start(3).ends(0, "Restored step 5")
    training.expect_same_end(12, 3)


def test_killed_rank(folder):
    resume_after_kill(folder, 1)


def test_killed_chief(folder):
    resume_after_kill(folder, 0)


def test_other_numbers_of_ranks(folder):
    training = Training(folder, "--num_batches=15", "--save_model_steps=5")
    training.begin(4, batch=3)
    training.start(4, fault="rank=3,step=7,kind=kill", batch=3).ends(137, "Restored step 5")
    training.start(2, "--num_batches=10", batch=3).ends(0, "Restored step 5", "2 micro-steps")
    training.start(2, fault="rank=1,step=12,kind=kill", batch=3).ends(137, "Restored step 10")
    training.start(3, batch=3).ends(1, "global batch of 12", "numbers of ranks that can are 1, 2, 4")
    training.start(1, batch=3).ends(0, "Restored step 10", "4 micro-steps")
    calm = Training(folder, "--num_batches=15", name="calm")
    calm.start(4, batch=3).ends(0)
    found, expected = training.losses(), calm.losses()
    # The same terms, added in another order.
    worst = max(abs(found[step] / expected[step] - 1) for step in range(1, 16))
    if list(found) != list(expected) or worst > 1e-5:
        raise AssertionError(f"losses differ by {worst}: {found}, of four ranks {expected}")


def test_fewer_ranks_than_expected(folder):
    Training(folder, "--num_batches=3").start(2, "--expect_ranks=3").ends(1, "expected 3 ranks, found 2",
                                                                          f"error: rank 0 on {HOST}: ")


def test_slow_rank(folder):
    training = Training(folder, "--num_batches=6")
    job = training.start(3, fault="rank=1,step=1,kind=slow,seconds=1").ends(0, f"rank 1 on {HOST} is slow: it takes ")
    if job.errors().count("is slow") != 1:
        raise AssertionError(f"not once: {job.written()}")
    last = [line for line in map(json.loads, training.metrics.read_text().splitlines()) if "loss" in line][-1]
    if last["slowest_rank"] != 1 or last["slowest_rank_factor"] <= 1.5:
        raise AssertionError(f"metrics: {last}")


def test_slow_by_a_factor(folder):
    Training(folder, "--num_batches=6").start(2, fault="rank=0,step=2,kind=slow,factor=3").ends(0)


def test_stopped_rank(folder):
    training = Training(folder, "--num_batches=1000000", "--save_model_steps=5")
    job = training.start(3, "--collective_timeout=6")
    training.wait_for_checkpoint(job)
    os.kill(job.pid_of_rank(1), signal.SIGSTOP)
    job.ends(4, "error: rank ", f"rank 1 on {HOST} did not answer: stopped, or cut off", "its last collectives: ",
             "of step ")
    training.start(1, "--num_batches=1").ends(0, "Restored step ")


def test_rank_that_hangs_at_start(folder):
    shim = os.environ["DTRAIN_SILENT_RANK"]
    Job(pathlib.Path(folder), (*MPIRUN, "-x", f"LD_PRELOAD={shim}", "-np", 2, PROGRAMS / "dtrain-info", "--ranks",
                               "--collective_timeout=6"), {}).ends(4, "MPI did not answer within 6 s")


# Open MPI has been observed to do this on both ends of a reset connection.
def test_mpi_that_never_returns(folder):
    training = Training(folder, "--num_batches=1000000", "--save_model_steps=5", "--collective_timeout=6")
    silent = pathlib.Path(folder) / "silent"
    launcher = (*MPIRUN, "-x", f"LD_PRELOAD={os.environ['DTRAIN_SILENT_RANK']}")
    job = training.start(2, launcher=launcher, environment={"DTRAIN_SILENT_FILE": str(silent)})
    training.wait_for_checkpoint(job)
    silent.touch()
    job.ends(4, "error: rank ", " bytes, of ", ": a call of MPI does not return")
    # The limit, or more: a busy core may delay the watchdog.
    if not re.search(rf" on {HOST} has waited (?:[6-9]|\d\d+) s for ", job.errors()):
        raise AssertionError(f"no wait of 6 s or more; {job.written()}")
    training.start(2, "--num_batches=11").ends(0, "Restored step ")


def test_hanging_rank(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5", "--collective_timeout=6", *TWO_BUCKETS)
    training.begin(3)
    training.start(3, fault="rank=1,step=8,kind=hang").ends(
        4, f"warning: rank 0 on {HOST}: waiting for gradients #", f"rank 1 on {HOST} did not reach it", "'bucket 1 of ",
        "of step 8", f"rank 1 on {HOST}: in step 8")
    training.start(3).ends(0, "Restored step 5")


def test_exception_on_one_rank(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5")
    training.begin(3)
    training.start(3, fault="rank=1,step=8,kind=exception").ends(
        2, f"error: rank 1 on {HOST}: step 8: an injected fault\n")
    training.start(3).ends(0, "Restored step 5")


def test_skipped_collective(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5", *TWO_BUCKETS)
    training.begin(3)
    job = training.start(3, fault="rank=1,step=8,kind=skip_collective").ends(
        4, "ranks are out of step: ", f"rank 1 on {HOST} does ", " bytes, of step 8")
    report = next(line for line in job.errors().splitlines() if "ranks are out of step" in line)
    if report.split("; last collectives")[0].count(" bytes, of ") != 2:
        raise AssertionError(f"not both sides: {report}")
    training.start(3).ends(0, "Restored step 5")


def test_uneven_data(folder):
    # 50 images in batches of 12; 7 validation images, two per rank on two ranks and three on one.
    training = Training(folder, "--num_epochs=2", "--eval_during_training_every_n_epochs=1", train=50, validation=7)
    job = training.start(3).ends(0)
    if job.output().count("Accuracy @ 1") < 2:
        raise AssertionError(job.written())
    for line in (line for line in job.output().splitlines() if line.startswith("Accuracy @ 1")):
        if "[7 examples]" not in line:
            raise AssertionError(line)


def test_jumping_clock(folder):
    training = Training(folder, "--num_batches=12", "--save_model_steps=5", "--collective_timeout=40")
    job = training.start(3, environment=preloaded("DTRAIN_JUMPING_CLOCK")).ends(0)
    if "waiting for" in job.errors():
        raise AssertionError(job.written())
    training.expect_same_end(12, 3)


def sleep_and_go_on(folder, with_launcher):
    """Suspends ranks beyond their timeout while two wait for the third."""
    limit, steps = 6, 200
    training = Training(folder, f"--num_batches={steps}", "--save_model_steps=1000", f"--collective_timeout={limit}")
    job = training.start(3)
    ranks = [job.pid_of_rank(rank) for rank in range(3)]  # before the steps, which may end while /proc is searched
    job.wait_for_step(5)
    os.kill(ranks[1], signal.SIGSTOP)
    wait_until(lambda: "waiting for" in job.errors(), "ranks that wait")
    sleepers = [*ranks, *([job.process.pid] if with_launcher else [])]
    for pid in sleepers:
        os.kill(pid, signal.SIGSTOP)
    time.sleep(limit + 2)
    for pid in sleepers:
        os.kill(pid, signal.SIGCONT)
    job.ends(0)
    training.expect_same_end(steps, 3)


def test_suspended_ranks(folder):
    sleep_and_go_on(folder, with_launcher=False)


def test_suspended_job(folder):
    sleep_and_go_on(folder, with_launcher=True)


def test_killed_mpirun_leaves_no_memory(folder):
    job = Training(folder, "--num_batches=1000000").start(2)
    job.wait_for_step(5)
    maps = pathlib.Path(f"/proc/{job.pid_of_rank(0)}/maps").read_text()
    files = set(re.findall(r"/dev/shm/\S+", maps))
    if not files:
        raise AssertionError(f"no file of shared memory is mapped:\n{maps}")
    job.process.kill()
    wait_until(lambda: not job.processes(), "an end of all ranks")
    if left := [path for path in files if os.path.exists(path)]:
        raise AssertionError(f"{left} are left")


def stop(folder, launcher, number):
    training = Training(folder, "--save_model_steps=1000")
    job = training.start(3, "--num_batches=1000000", launcher=launcher)
    job.wait_for_step(5)
    job.process.send_signal(number)
    time.sleep(0.05)
    with contextlib.suppress(ProcessLookupError):
        job.process.send_signal(number)  # a repeated signal
    job.ends(75, "stopped on request at step ")
    checkpoints = list((training.folder / training.name / "checkpoints").glob("step-*"))
    if len(checkpoints) != 1:
        raise AssertionError(f"checkpoints {checkpoints}")
    step = int(checkpoints[0].name.split("-")[1])
    training.start(3, f"--num_batches={step + 3}").ends(0, f"Restored step {step}")
    training.expect_same_end(step + 3, 3, f"--num_batches={step + 3}")


def test_sigterm_of_the_wrapper(folder):
    stop(folder, WRAPPER, signal.SIGTERM)


def test_sigusr1_of_mpirun(folder):
    stop(folder, MPIRUN, signal.SIGUSR1)


def test_nan_on_one_rank(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5")
    training.begin(3)
    training.start(3, fault="rank=2,step=8,kind=nan").ends(3, "error: rank ", "step 8: not finite", "worst layer ")
    training.start(3).ends(0, "Restored step 5")


def test_flipped_bit(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5", "--verify_weights_every=3")
    training.begin(3)
    training.start(3, fault="rank=2,step=7,kind=bitflip").ends(
        3, f"the parameters after step 9 are not the same on all ranks: those of rank 2 on {HOST} differ from the")
    training.start(3).ends(0, "Restored step 5")


def test_invalid_faults_are_rejected(folder):
    training = Training(folder, "--num_batches=1")
    if not HAS_FAULTS:
        training.start(1, fault="rank=0,step=1,kind=kill").ends(1, "built without fault injection")
        return
    for text in ("rank=0,step=1", "rank=0,kind=kill", "step=1,kind=kill", "rank=0,step=1,kind=tired", "rank=0,step=x",
                 "rank=0,step=1,kind=kill;", "rank=0,step=1,kind=kill,colour=red"):
        training.start(1, fault=text).ends(1, "expected e.g. rank=1,step=7,kind=kill")
    training.start(1, fault="rank=1,step=1,kind=kill").ends(1, "the job has 1 rank")
    training.start(1, fault="rank=0,step=1,kind=nan").ends(1, "for several ranks; this job has one")


def skip(reason):
    print(f"SKIPPED: {reason}", flush=True)
    sys.exit(SKIPPED)


if __name__ == "__main__":
    if not HAS_FAULTS and sys.argv[1] != test_invalid_faults_are_rejected.__name__:
        skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
