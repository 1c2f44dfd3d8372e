"""Several ranks compute the results of one: the same samples in the same order, hence the same losses and parameters up
to rounding. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import json
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

PROGRAMS = pathlib.Path(os.environ["DTRAIN_BIN_DIR"])
MPIRUN = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
GLOBAL_BATCH = 12


def output_of(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, OMP_WAIT_POLICY="passive"), check=False)
    if done.returncode != 0:
        raise AssertionError(f"exit {done.returncode} of {command}:\n{done.stdout}")
    return done.stdout


class Runs:
    """Trains on synthetic images with the given number of ranks."""

    def __init__(self, folder, *flags):
        self.folder, self.flags, self.count = pathlib.Path(tempfile.mkdtemp(dir=folder)), flags, 0
        output_of(PROGRAMS / "dtrain-data", "synthesize", f"--output={self.folder}/data", "--train=96", "--validation=7",
                  "--image_size=32", "--shards=2")

    def train(self, ranks, micro_steps=1, extra=()):
        """Losses per step, and the tensors of the last checkpoint by name."""
        self.count += 1
        run = self.folder / f"run{self.count}"
        output_of(*MPIRUN, "-np", ranks, PROGRAMS / "dtrain-cnn-benchmarks", f"--data_dir={self.folder}/data",
                  "--num_classes=11", "--device=cpu", "--num_intra_threads=1", "--num_warmup_batches=0",
                  "--display_every=1", "--variable_update=horovod", "--optimizer=momentum",
                  f"--batch_size={GLOBAL_BATCH // ranks // micro_steps}", f"--gradient_accumulation={micro_steps}",
                  f"--metrics_file={run}.json", f"--train_dir={run}", *self.flags, *extra)
        rows = map(json.loads, pathlib.Path(f"{run}.json").read_text().splitlines())
        losses = [row["loss"] for row in rows if "loss" in row]  # other lines describe checkpoints
        newest = max((run / "checkpoints").iterdir(), key=lambda path: int(path.name.split("-")[1]))
        return losses, tensors_of(newest / "model.safetensors")


def tensors_of(path):
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, entry in json.loads(data[8:8 + size]).items():
        if name != "__metadata__" and entry["dtype"] == "F32":
            begin, end = entry["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[8 + size + begin:8 + size + end])
    return tensors


def expect_near(found, expected, tolerance, what):
    """`tolerance` is relative to the largest expected number, or to 0.01: rounding dominates parameters that are still
    close to zero."""
    scale = max(0.01, *(abs(x) for x in expected))
    worst = max(abs(a - b) for a, b in zip(found, expected))
    if len(found) != len(expected) or not worst <= tolerance * scale:
        raise AssertionError(f"{what}: differs by {worst / scale:.1e} of {scale:.3g}, {tolerance:.0e} is allowed:\n"
                             f"found {found[:20]}\nexpected {expected[:20]}")
    return worst / scale


def expect_same(found, expected, losses, parameters, what):
    worst = expect_near(found[0], expected[0], losses, f"{what}, losses")
    worst_tensor = max(expect_near(found[1][name], expected[1][name], parameters, f"{what}, {name}")
                       for name in expected[1])
    print(f"{what}: losses differ by {worst:.1e}, tensors by {worst_tensor:.1e}")


def expect_different(found, expected, what):
    try:
        expect_near(found[0][:1], expected[0][:1], 1e-3, what)
    except AssertionError:
        return
    raise AssertionError(f"{what}: the first losses are the same, so the comparison proves nothing")


LENET = ("--model=lenet", "--image_size=28", "--num_batches=20", "--init_learning_rate=0.01")


def test_ranks_equal_one(folder):
    runs = Runs(folder, *LENET)
    one = runs.train(1)
    for ranks in (2, 3, 4):
        expect_same(runs.train(ranks), one, 1e-6, 1e-5, f"{ranks} ranks")


# Batch norm over so few images amplifies rounding: with another number of threads one rank's losses change by 2e-5, and
# its biases, at most 0.0008, by 1e-5.
RESNET = ("--model=resnet20", "--data_name=cifar10", "--init_learning_rate=0.001")


def test_synchronised_batch_norm_equals_one_rank(folder):
    runs = Runs(folder, *RESNET, "--num_batches=3")
    one = runs.train(1)
    for ranks in (2, 3):
        expect_same(runs.train(ranks, extra=["--sync_batch_norm"]), one, 1e-4, 1e-2, f"{ranks} ranks")
    expect_different(runs.train(2), one, "batch norm over the images of each rank")


def test_micro_steps_equal_ranks(folder):
    # One step with batch norm: later, rounding may flip the sign of an activation, which changes parameters by 1e-4.
    for flags in ((*RESNET, "--num_batches=1"), LENET):
        runs = Runs(folder, *flags)
        four = runs.train(4)
        for ranks, micro_steps in ((2, 2), (1, 4)):
            expect_same(runs.train(ranks, micro_steps), four, 1e-6, 1e-5, f"{ranks} ranks with {micro_steps} micro-steps")


def test_16_bit_all_reduce_is_close(folder):
    runs = Runs(folder, "--model=lenet", "--image_size=28", "--num_batches=5", "--init_learning_rate=0.01")
    one = runs.train(1)
    # A few roundings of 2^-9 and 2^-12, relative to gradients; parameters are compared relative to at least 0.01.
    for wire, losses, parameters in (("bf16", 1e-4, 1e-2), ("fp16", 1e-5, 4e-3)):
        found = runs.train(3, extra=[f"--wire_precision={wire}"])
        expect_same(found, one, losses, parameters, f"3 ranks, {wire} on the wire")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
