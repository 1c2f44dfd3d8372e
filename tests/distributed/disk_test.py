"""Jobs on a disk that does not respond. ctest runs each test_* function on its own, with the folder of the programs in
DTRAIN_BIN_DIR.
"""

import pathlib
import re
import sys
import tempfile

import faults_test
from faults_test import HOST, Training, preloaded


def waiting_disk(answers):
    """A disk that blocks checkpoints until the file `answers` exists."""
    return preloaded("DTRAIN_SLOW_DISK", DTRAIN_DISK_ANSWERS=str(answers))


def slow_disk(folder, start):
    """Two ranks train while the disk blocks; `start` starts them with these flags and variables."""
    training = Training(folder, "--num_batches=17", "--save_model_steps=5", "--checkpoint_timeout=30",
                        "--collective_timeout=20")
    answers = pathlib.Path(folder) / "answers"
    job = start(training, environment=waiting_disk(answers))
    job.wait_for_step(11)
    answers.touch()
    job.ends(0, f"the checkpoint of step 5 is still under way to {training.folder / training.name}: the disk is slow, "
                "and saves are skipped until it is there, from that of step 10 on", " skipped because")
    if re.search("waiting for .*checkpoint", job.errors()):
        raise AssertionError(f"the disk was reported as a lost rank: {job.written()}")
    calm = Training(folder, *training.flags, name="calm")
    start(calm).ends(0)
    if training.weights(17) != calm.weights(17) or training.losses() != calm.losses():
        raise AssertionError("weights or losses differ from a run on a fast disk")


def test_slow_disk(folder):
    slow_disk(folder, lambda training, **options: training.start(2, **options))


NAMES = ((1, ""), (2, f"rank 0 on {HOST}: "))  # number of ranks, and prefix of the reporting rank


def test_unresponsive_disk(folder):
    for ranks, name in NAMES:
        training = Training(folder, "--num_batches=7", "--save_model_steps=5", "--checkpoint_timeout=0.5",
                            name=f"of_{ranks}")
        training.start(ranks, environment=waiting_disk(f"{folder}/never")).ends(
            6, f"error: {name}the checkpoint of step 5 has been under way to {training.folder / training.name} for ",
            " s, limit 0.5 s: the disk is too slow, or does not answer\n")


# The error must be reported, too.
def test_error_with_unresponsive_disk(folder):
    for ranks, name in NAMES:
        training = Training(folder, "--num_batches=9", "--save_model_steps=5", "--checkpoint_timeout=3",
                            name=f"of_{ranks}")
        training.start(ranks, fault="rank=0,step=7,kind=exception", environment=waiting_disk(f"{folder}/never")).ends(
            2, "the checkpoint of step 5 is waited for before the run ends: step 7: an injected fault\n",
            f"error: {name}step 7: an injected fault\n")


if __name__ == "__main__":
    if not faults_test.HAS_FAULTS and "error_while" in sys.argv[1]:
        faults_test.skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
