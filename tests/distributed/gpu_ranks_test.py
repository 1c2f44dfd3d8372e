"""Several ranks with one emulated GPU each, over NCCL, in CUDA graphs: results of one rank, and failures handled as on
CPUs. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import os
import signal
import sys
import tempfile

import exactness_test
import faults_test
from faults_test import HOST
from training import BINARIES, IN_ONE_HOST

exactness_test.GLOBAL_BATCH = 4  # an emulated GPU takes its time
EAGER_STEPS = 3


class Runs(exactness_test.Runs):
    def __init__(self, folder, *flags):
        super().__init__(folder, "--device=gpu", "--deterministic", f"--num_batches={EAGER_STEPS + 2}", *flags)

    def expect_like_one(self, losses, parameters, *flags):
        one, two = self.train(1), self.train(2, extra=flags)
        exactness_test.expect_same(two, one, losses, parameters, "2 ranks")
        if self.train(2, extra=[*flags, "--nocuda_graph"]) != two:
            raise AssertionError("run op by op, two ranks come to something else")


class Training(faults_test.Training):
    """Trains on two ranks."""

    def __init__(self, folder, *flags, **options):
        super().__init__(folder, "--device=gpu", "--image_size=8", "--deterministic", "--collective_timeout=8", *flags,
                         **options)

    def start(self, ranks, *flags, **options):
        return super().start(ranks, *flags, batch=2, **options)


def test_ranks_compute_what_one_does(folder):
    Runs(folder, "--model=lenet", "--image_size=8", "--init_learning_rate=0.01").expect_like_one(1e-6, 1e-5)


# Bounds as on CPUs.
def test_synchronised_batch_norm_computes_what_one_rank_does(folder):
    runs = Runs(folder, "--model=resnet20", "--data_name=cifar10", "--image_size=8", "--init_learning_rate=0.001")
    runs.expect_like_one(1e-4, 1e-2, "--sync_batch_norm")


# As a launcher may show each rank one GPU, which is number 0 to it, so the emulation does.
def test_programs_take_the_gpu_that_they_are_shown(_):
    for command in (("dtrain-allreduce-benchmark", "--device=gpu", "--sizes=4K", "--iterations=1"),
                    ("dtrain-info", "--ranks", "--device=gpu")):
        exactness_test.output_of(*IN_ONE_HOST, "-np", "2", BINARIES / command[0], *command[1:])


def test_killed_rank(folder):
    training = Training(folder, "--num_batches=10", "--save_model_steps=5")
    training.begin(2)
    training.start(2, fault="rank=1,step=9,kind=kill").ends(128 + signal.SIGKILL, "process rank 1", "signal 9")
    training.start(2).ends(0, "Restored step 5")
    calm = Training(folder, *training.flags, name="calm")
    calm.start(2).ends(0)
    if training.weights(10) != calm.weights(10) or training.losses() != calm.losses():
        raise AssertionError("the end differs from that of an undisturbed run")


def test_stopped_rank(folder):
    # Ranks that print seldom wait for each other on their GPUs alone.
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=5")
    job.wait_for_step(10)
    os.kill(job.pid_of_rank(1), signal.SIGSTOP)
    job.ends(4, f"error: rank 0 on {HOST}", f"rank 1 on {HOST} did not answer: stopped, or cut off")


def test_rank_that_hangs(folder):
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=5", fault="rank=1,step=12,kind=hang")
    job.ends(4, f"error: rank 0 on {HOST}", f"rank 1 on {HOST}: in step 12; ")


def test_nan_on_one_rank(folder):
    training = Training(folder, "--num_batches=10")
    training.start(2, fault="rank=1,step=7,kind=nan").ends(3, "error: rank ", "step 7: not finite", "worst layer ")


def test_skipped_collective(folder):
    # Two messages in a step, of different sizes.
    training = Training(folder, "--num_batches=10", "--display_every=10", "--bucket_mb=0.5", "--last_bucket_mb=0.1")
    training.start(2, fault="rank=1,step=7,kind=skip_collective").ends(
        4, "step 7 was enqueued on its GPU", "all others answer: one is out of step")


def test_skipped_collective_that_is_like_the_next(folder):
    # One message in a step: NCCL takes that of the next step for it.
    training = Training(folder, "--num_batches=10")
    training.start(2, fault="rank=1,step=7,kind=skip_collective").ends(
        4, f"error: rank 1 on {HOST}: step 7: the all-reduce mixed different steps")


# A slow rank finds each step done as soon as it has queued it, while the other is two steps ahead of its GPU: so they
# hear of a request to stop at different times, and must end with the same step all the same.
def test_stop_of_ranks_that_hear_of_it_at_different_times(folder):
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=10",
                                                          fault="rank=1,step=1,kind=slow,seconds=0.2")
    job.wait_for_step(10)
    os.kill(job.pid_of_rank(1), signal.SIGUSR1)
    job.ends(75, "stopped on request at step ")


def test_slow_rank(folder):
    # Long beside a step of the emulation, which takes a second on a busy machine.
    training = Training(folder, "--num_batches=14", "--display_every=2", "--batch_size=1")
    training.start(2, fault="rank=1,step=1,kind=slow,seconds=1.5").ends(0, f"rank 1 on {HOST} is slow: it takes ")


if __name__ == "__main__":
    if not faults_test.HAS_FAULTS:
        faults_test.skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
