"""examples/slurm/train.sbatch and srun, on real Slurm. ctest runs each test_* function on its own."""

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import tempfile

import slurm
from cluster import skip, wait_until
from training import ROOT, command, make_data, state_of

SCRIPT = ROOT / "examples/slurm/train.sbatch"
TWO_NODES = ("--nodes=2", "--ntasks-per-node=1")
STEPS = 300
SLOW = "rank=0,step=5,kind=slow,seconds=0.5"  # from that step on
ENDLESS = 1000000


def need_faults():
    if os.environ.get("DTRAIN_FAULTS") != "1":
        skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")


def checkpoints(train_dir):
    return {path.name for path in (train_dir / "checkpoints").glob("step-*") if (path / "MANIFEST.json").exists()}


def test_continues_after_its_time_limit(folder):
    """--signal saves before the limit, and the script requeues the job; then Slurm requeues it, as for preemption. The
    training ends with the same bits as one that was not disturbed. Only the last start is not slow."""
    need_faults()
    last_start = folder / "last_start"
    last_start.write_text('#!/bin/sh\n[ "$SLURM_RESTART_COUNT" = 2 ] && unset DTRAIN_FAULT\nexec "$@"\n')
    last_start.chmod(0o755)
    calm = slurm.BatchJob(folder, *TWO_NODES, SCRIPT, *command("data", "calm", STEPS))
    job = slurm.BatchJob(folder, *TWO_NODES, "--time=2", SCRIPT, last_start, *command("data", "run", STEPS),
                         DTRAIN_FAULT=SLOW)
    job.wait_for(f"train.sbatch: stopped; requeueing job {job.number}")
    slurm.run("scontrol", "update", f"JobId={job.number}", "TimeLimit=60")  # of the next starts
    assert "stopped on request at step " in job.output() and checkpoints(folder / "run"), job.written()
    job.wait_for("start 2 of job")
    job.wait_for("Restored step ")
    wait_until(lambda: "\timages/sec: " in job.output().split("start 2 of job")[1], "a step of the second start")
    slurm.run("scontrol", "requeue", job.number)
    job.wait_for("start 3 of job")
    facts = job.ends("COMPLETED", 0)
    assert facts["Restarts"] == "2", facts
    assert job.output().count("Restored step ") == 2, job.output()
    assert "  TCP\n" in job.output(), job.output()
    calm.ends("COMPLETED", 0)
    assert state_of(folder / "run", STEPS) == state_of(folder / "calm", STEPS), "the training states differ"


def test_cancelled_job_saves_and_stays_cancelled(folder):
    job = slurm.BatchJob(folder, *TWO_NODES, SCRIPT, *command("data", "run", ENDLESS))
    job.wait_for("\n3\timages/sec: ")
    slurm.run("scancel", job.number)
    facts = job.ends("CANCELLED")
    job.wait_for("stopped on request at step ")
    assert checkpoints(folder / "run"), job.output()
    assert facts["Restarts"] == "0" and "train.sbatch: stopped" not in job.output(), job.written()


def test_requeues_are_limited(folder):
    for option, variables, message in (("--requeue", {"DTRAIN_REQUEUES": "0"}, "continued 0 times already"),
                                       ("--no-requeue", {}, "the job cannot be requeued: submit it again")):
        job = slurm.BatchJob(folder, *TWO_NODES, option, SCRIPT, *command("data", "run", ENDLESS), **variables)
        job.wait_for("\timages/sec: ")
        slurm.run("scancel", "--signal=USR1", job.number)
        job.ends("FAILED", 75)
        assert message in job.output(), job.output()


def test_ranks_may_end_after_the_first(folder):
    """The configuration's KillOnBadExit and WaitTime would kill rank 0, which here saves for longer."""
    rank = '[ "$SLURM_PROCID" = 1 ] || { sleep 4; touch saved; }; exit 75'
    job = slurm.BatchJob(folder, *TWO_NODES, SCRIPT, "bash", "-c", rank, "rank", "--train_dir=run", DTRAIN_REQUEUES="0")
    job.ends("FAILED", 75)
    assert (folder / "saved").exists(), job.written()


def test_lost_rank_ends_the_job(folder):
    job = slurm.BatchJob(folder, *TWO_NODES, SCRIPT, *command("data", "run", ENDLESS))
    job.wait_for("\n3\timages/sec: ")
    rank = process_of_rank(1)
    os.kill(rank, signal.SIGKILL)
    job.ends("FAILED", 137)
    assert "rank 1 on " in job.output() and "train.sbatch: stopped" not in job.output(), job.output()


def process_of_rank(rank):
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (process / "exe").resolve().name != "dtrain-cnn-benchmarks":
                continue
            if f"SLURM_PROCID={rank}" in (process / "environ").read_text(errors="replace").split("\0"):
                return int(process.name)
    raise AssertionError(f"no process of rank {rank}")


def test_wrong_use_is_refused(folder):
    no_job = subprocess.run([SCRIPT, "true"], capture_output=True, text=True)
    assert no_job.returncode == 1 and "not a Slurm job: start it by sbatch" in no_job.stderr, no_job
    for words, message in (((), "no command"), (("dtrain-cnn-benchmarks", "--model=lenet"), "no --train_dir")):
        job = slurm.BatchJob(folder, SCRIPT, *words)
        job.ends("FAILED", 1)
        assert message in job.output(), job.output()


def test_srun_alone(folder):
    """Ranks of one host need neither PMI nor variables."""
    step = ("--nodes=1", "--ntasks=2")
    over_tcp = slurm.run("srun", "--mpi=none", *step, *command(folder / "data", folder / "tcp", 3))
    assert "  TCP\n" in over_tcp, over_tcp
    if "pmix" not in subprocess.run(["srun", "--mpi=list"], capture_output=True, text=True).stdout:
        print("this Slurm has no PMIx")
        return
    over_pmix = slurm.run("srun", "--mpi=pmix", *step, *command(folder / "data", folder / "mpi", 3))
    assert "  MPI\n" in over_pmix, over_pmix
    assert state_of(folder / "tcp", 3) == state_of(folder / "mpi", 3), "the training states differ"


if __name__ == "__main__":
    slurm.start()
    with tempfile.TemporaryDirectory() as temporary:
        place = pathlib.Path(temporary)
        make_data(place / "data")
        globals()[sys.argv[1]](place)
