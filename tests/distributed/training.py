"""A small training for tests of failing ranks: its data, command, and expected results."""

import os
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIRUN = ROOT / "scripts" / "dtrain-mpirun"
BINARIES = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", ROOT / "build" / "bin"))
IN_ONE_HOST = ("mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none")
# Files of a checkpoint that determine further training.
STATE = ("model.safetensors", "state.safetensors")

os.environ["OMP_WAIT_POLICY"] = "passive"


def make_data(folder, train=96, size=16):
    """Minimal set of synthetic records."""
    subprocess.run([BINARIES / "dtrain-data", "synthesize", "--output", folder, "--train", str(train), "--validation", "8",
                    "--image_size", str(size), "--shards", "4"], check=True, stdout=subprocess.DEVNULL)


def command(data, train_dir, steps, *flags, batch=4):
    """Command of a rank. It prints each step, and resumes from the newest checkpoint."""
    return (BINARIES / "dtrain-cnn-benchmarks", "--variable_update=horovod", "--model=lenet", "--image_size=8",
            "--num_classes=11", "--device=cpu", "--num_intra_threads=1", "--optimizer=momentum",
            "--init_learning_rate=0.01", "--num_warmup_batches=0", "--display_every=1", "--collective_timeout=5",
            f"--batch_size={batch}", f"--data_dir={data}", f"--train_dir={train_dir}", f"--num_batches={steps}", *flags)


def state_of(train_dir, step):
    """Bytes of the training state in the checkpoint of a step."""
    return [(pathlib.Path(train_dir) / "checkpoints" / f"step-{step}" / name).read_bytes() for name in STATE]


def losses_of(output):
    """Losses by step, from the log: lines `10<tab>images/sec: ...<tab>2.345...`."""
    rows = [line.split("\t") for line in output.splitlines() if "\timages/sec: " in line]
    return {int(row[0]): float(row[2]) for row in rows}
