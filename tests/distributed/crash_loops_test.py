"""Crash loops: repeated errors and out-of-memory kills end a job, external kills never do. ctest runs each test_*
function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import contextlib
import pathlib
import sys
import tempfile
import uuid

from faults_test import HAS_FAULTS, Training, skip


def test_crash_loop(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=5")
    fault = "rank=1,step=8,kind=exception"
    training.begin(2)
    for _ in range(3):
        training.start(2, fault=fault).ends(2, "an injected fault")
    marker = training.folder / training.name / "starts.json"
    training.start(2, fault=fault).ends(2, "3 starts have trained from step 5", "step 8: an injected fault",
                                        f"delete {marker}")
    marker.unlink()
    training.start(2).ends(0, "Restored step 5")
    if marker.exists():
        raise AssertionError("the marker was not removed after a complete run")


def test_kills_never_end_a_run(folder):
    training = Training(folder, "--num_batches=20", "--save_model_steps=20000")
    for _ in range(5):  # in the first step: kills do not count
        training.start(1, fault="rank=0,step=1,kind=exception").ends(2)
    for _ in range(10):
        training.start(1, fault="rank=0,step=2,kind=kill").ends(137)
    training.start(1).ends(0, "10 starts from step 0 were killed before the next checkpoint: this one saves every 19 "
                              "steps in place of 20000")
    if not (training.folder / training.name / "checkpoints" / "step-19").exists():
        raise AssertionError("the save interval was not shortened")
    training.expect_same_end(20, 1)


@contextlib.contextmanager
def limited_memory(mebibytes):
    """Command prefix that starts a process in a cgroup with this memory limit."""
    mount, limit = pathlib.Path("/sys/fs/cgroup/memory"), "memory.limit_in_bytes"
    if not (mount / limit).exists():
        mount, limit = mount.parent, "memory.max"
    group = mount / f"dtrain-test-{uuid.uuid4()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(mebibytes << 20))
    except OSError as error:
        if group.exists():
            group.rmdir()
        skip(f"memory cannot be limited here: {error}")
    try:
        yield "sh", "-c", f'echo $$ > {group}/cgroup.procs; exec "$@"', "sh"
    finally:
        group.rmdir()


def test_out_of_memory_crash_loop(folder):
    training = Training(folder, "--num_batches=20", "--image_size=64")
    with limited_memory(256) as before:
        for _ in range(3):
            training.start(1, before=before, batch=300).ends(137)
        training.start(1, before=before, batch=300).ends(
            6, "3 starts from step 0 were killed for lack of memory", "more than the 256 MiB that its control group allowed")


if __name__ == "__main__":
    if not HAS_FAULTS:
        skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
