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

exactness_test.GLOBAL_BATCH = 4  # emulated GPUs are slow
EAGER_STEPS = 3


class Runs(exactness_test.Runs):
    def __init__(self, folder, *flags):
        super().__init__(folder, "--device=gpu", "--deterministic", f"--num_batches={EAGER_STEPS + 2}", *flags)

    def expect_like_one(self, losses, parameters, *flags):
        one, two = self.train(1), self.train(2, extra=flags)
        exactness_test.expect_same(two, one, losses, parameters, "2 ranks")
        if self.train(2, extra=[*flags, "--nocuda_graph"]) != two:
            raise AssertionError("two eager ranks differ from one")


class Training(faults_test.Training):
    """Trains on two ranks."""

    def __init__(self, folder, *flags, **options):
        super().__init__(folder, "--device=gpu", "--image_size=8", "--deterministic", "--collective_timeout=8", *flags,
                         **options)

    def start(self, ranks, *flags, **options):
        return super().start(ranks, *flags, batch=2, **options)


def test_ranks_equal_one(folder):
    Runs(folder, "--model=lenet", "--image_size=8", "--init_learning_rate=0.01").expect_like_one(1e-6, 1e-5)


# Tolerances as on CPUs.
def test_synchronised_batch_norm_equals_one_rank(folder):
    runs = Runs(folder, "--model=resnet20", "--data_name=cifar10", "--image_size=8", "--init_learning_rate=0.001")
    runs.expect_like_one(1e-4, 1e-2, "--sync_batch_norm")


# Like launchers that set CUDA_VISIBLE_DEVICES, the emulation shows each rank one GPU, number 0.
def test_programs_use_their_visible_gpu(_):
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
        raise AssertionError("the final state differs from an undisturbed run")


def test_stopped_rank(folder):
    # Ranks that print rarely wait for each other only on their GPUs.
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=5")
    job.wait_for_step(10)
    os.kill(job.pid_of_rank(1), signal.SIGSTOP)
    job.ends(4, f"error: rank 0 on {HOST}", f"rank 1 on {HOST} did not answer: stopped, or cut off")


def test_hanging_rank(folder):
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=5", fault="rank=1,step=12,kind=hang")
    job.ends(4, f"error: rank 0 on {HOST}", f"rank 1 on {HOST}: in step 12; ")


def test_nan_on_one_rank(folder):
    training = Training(folder, "--num_batches=10")
    training.start(2, fault="rank=1,step=7,kind=nan").ends(3, "error: rank ", "step 7: not finite", "worst layer ")


def test_skipped_collective(folder):
    # Two messages per step, of different sizes.
    training = Training(folder, "--num_batches=10", "--display_every=10", "--bucket_mb=0.5", "--last_bucket_mb=0.1")
    training.start(2, fault="rank=1,step=7,kind=skip_collective").ends(
        4, "step 7 was enqueued on its GPU", "all others answer: one is out of step")


def test_skipped_collective_equal_to_the_next(folder):
    # One message per step: NCCL takes the next step's message instead.
    training = Training(folder, "--num_batches=10")
    training.start(2, fault="rank=1,step=7,kind=skip_collective").ends(
        4, f"error: rank 1 on {HOST}: step 7: the all-reduce mixed different steps")


# A slow rank finishes each step as soon as it is queued, while the other is two steps ahead of its GPU. They get a stop
# request at different times, and must still stop after the same step.
def test_stop_received_at_different_times(folder):
    job = Training(folder, "--num_batches=1000000").start(2, "--display_every=10",
                                                          fault="rank=1,step=1,kind=slow,seconds=0.2")
    job.wait_for_step(10)
    os.kill(job.pid_of_rank(1), signal.SIGUSR1)
    job.ends(75, "stopped on request at step ")


def test_slow_rank(folder):
    # Long compared with an emulated step, which takes a second on a busy machine.
    training = Training(folder, "--num_batches=14", "--display_every=2", "--batch_size=1")
    training.start(2, fault="rank=1,step=1,kind=slow,seconds=1.5").ends(0, f"rank 1 on {HOST} is slow: it takes ")


if __name__ == "__main__":
    if not faults_test.HAS_FAULTS:
        faults_test.skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
