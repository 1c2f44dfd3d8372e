"""dtrain-mask-rcnn on several ranks: results of one rank, common end and resume, rejection of different settings, and a
single evaluation. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import functools
import json
import os
import pathlib
import signal
import struct
import sys
import tempfile
import zlib

from cluster import two_programs
from exactness_test import expect_same, tensors_of
from faults_test import MPIRUN, PROGRAMS, WRAPPER, Job, wait_until
from training import state_of

IMAGES, SIDE, SPLITS = 7, 64, ("train2017", "val2017")
# Small images, a small backbone and small heads.
SMALL = ("PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64", "PREPROC.MAX_SIZE=96",
         "BACKBONE.BOTTLENECK=False", "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]", "BACKBONE.FREEZE_AT=0",
         "FPN.NUM_CHANNEL=16", "FPN.FRCNN_FC_HEAD_DIM=32", "MRCNN.HEAD_DIM=16", "FRCNN.BATCH_PER_IM=16",
         "RPN.BATCH_PER_IM=32", "TRAIN.WARMUP=2")
BATCH_NORM = ("BACKBONE.NORM=BN", "BACKBONE.FREEZE_AFFINE=False")
CROWDS = 20000  # scored in about half a second


def png(rows):
    """A PNG of rows of RGB bytes."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", len(rows[0]) // 3, len(rows), 8, 2, 0, 0, 0)
    pixels = zlib.compress(b"".join(b"\0" + row for row in rows))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def draw(folder, first=0, crowds=0):
    """Seven images in COCO's layout, in two shapes, each with a red or blue rectangle on grey. `first` changes their
    positions. The first validation image has `crowds` crowds, whose masks take time to score."""
    folder = pathlib.Path(folder)
    truth = {"images": [], "annotations": [], "categories": [{"id": 2, "name": "red"}, {"id": 7, "name": "blue"}]}
    for split in ("annotations", *SPLITS):
        (folder / split).mkdir(parents=True)
    for i in range(IMAGES):
        width, red, name = SIDE * (3 if i % 3 == 2 else 2) // 2, i % 2 == 0, f"{i}.png"
        x, y, w, h = 4 + (5 * i + first) % 30, 30 - 4 * i % 25, 24, 20 + 2 * i
        grey, color = bytes([120] * 3), bytes([250, 20, 20] if red else [20, 20, 250])
        inside = grey * x + color * w + grey * (width - x - w)
        rows = [inside if y <= row < y + h else grey * width for row in range(SIDE)]
        for split in SPLITS:
            (folder / split / name).write_bytes(png(rows))
        truth["images"].append({"id": i, "file_name": name, "width": width, "height": SIDE})
        truth["annotations"].append(
            {"id": 10 + i, "image_id": i, "category_id": 2 if red else 7, "iscrowd": 0, "bbox": [x, y, w, h],
             "area": w * h, "segmentation": [[x, y, x + w, y, x + w, y + h, x, y + h]]})
    for split in SPLITS:
        (folder / "annotations" / f"instances_{split}.json").write_text(json.dumps(truth))
        crowd = {"image_id": 0, "category_id": 2, "iscrowd": 1, "bbox": [0, 0, 9, 9], "area": 81,
                 "segmentation": [[0, 0, 96, 0, 96, 64, 0, 64]]}
        truth["annotations"] += [{"id": 1000 + i, **crowd} for i in range(crowds)]
    return folder


def words(data, *flags, batch=2, config=()):
    """Command of a rank."""
    return (PROGRAMS / "dtrain-mask-rcnn", "train", f"--data_dir={data}", "--device=cpu", "--num_intra_threads=1",
            "--display_every=1", f"--batch_size={batch}", *flags, "--config", *SMALL, *config)


class Runs:
    """Trainings on one data set."""

    def __init__(self, folder, **drawn):
        self.folder = pathlib.Path(folder)
        self.data = draw(self.folder / "data", **drawn)

    def start(self, name, ranks, *flags, launcher=MPIRUN, **options):
        run = self.folder / name
        command = words(self.data, f"--train_dir={run}", f"--metrics_file={run}.json", *flags, **options)
        return Job(self.folder, (*launcher, "-np", ranks, *command), {})

    def rows(self, name):
        return [json.loads(line) for line in (self.folder / f"{name}.json").read_text().splitlines()]

    def losses(self, name):
        return [row["loss"] for row in self.rows(name) if "loss" in row]

    def weights(self, name, step):
        return self.folder / name / "checkpoints" / f"step-{step}" / "model.safetensors"

    def train(self, name, ranks, steps, *flags, **options):
        """Trains; returns losses and the tensors of the last checkpoint by name."""
        self.start(name, ranks, f"--num_batches={steps}", *flags, **options).ends(0)
        return self.losses(name), tensors_of(self.weights(name, steps))


# Losses are means over images, and samples are drawn per image of the global batch. Samples also depend on the order of
# proposals; with few, distant proposals and small steps rounding does not change it. Rounding can flip the sign of an
# activation, and changes biases near zero by 1e-4.
AWS = ("TRAIN.BASE_LR=0.002", "RPN.TRAIN_PER_LEVEL_NMS_TOPK=12")


def test_ranks_equal_one(folder):
    runs = Runs(folder)
    one = runs.train("one", 1, 3, "--preset=aws", batch=4, config=AWS)
    for ranks in (2, 4):
        found = runs.train(f"{ranks}", ranks, 3, "--preset=aws", batch=4 // ranks, config=AWS)
        expect_same(found, one, 1e-5, 1e-3, f"{ranks} ranks")
    # With other presets losses are means over the regions of a rank.
    one, two = (runs.train(f"torchvision{ranks}", ranks, 1, batch=4 // ranks)[0][0] for ranks in (1, 2))
    assert abs(two / one - 1) > 5e-5, f"{one} and {two}: the comparison proves nothing"


def disturb(folder, launcher, hit, *ending):
    """`hit` ends a training of two ranks within an epoch; the same command resumes it with the same bits."""
    runs = Runs(folder)
    start = functools.partial(runs.start, config=BATCH_NORM)
    job = start("disturbed", 2, "--num_batches=100000", "--save_model_steps=5", launcher=launcher)
    wait_until(lambda: "\nstep 8/" in job.output() or job.process.poll() is not None, "step 8")
    hit(job)
    job.ends(*ending)
    steps = [path.name.removeprefix("step-") for path in (runs.folder / "disturbed/checkpoints").iterdir()]
    newest = max(int(step) for step in steps if step.isdigit())  # others are incomplete saves
    end = newest + (2 if (newest + 1) * 4 % IMAGES == 0 else 1)
    start("disturbed", 2, f"--num_batches={end}").ends(0, f"Restored step {newest}")
    start("calm", 2, f"--num_batches={end}").ends(0)
    if state_of(runs.folder / "disturbed", end) != state_of(runs.folder / "calm", end):
        raise AssertionError(f"after step {end} the state differs from an undisturbed run")
    if runs.losses("disturbed") != runs.losses("calm"):
        raise AssertionError(f"losses {runs.losses('disturbed')}, of an undisturbed run {runs.losses('calm')}")


def test_killed_rank(folder):
    disturb(folder, MPIRUN, lambda job: os.kill(job.pid_of_rank(1), signal.SIGKILL), 128 + signal.SIGKILL,
            "process rank 1", "signal 9")


def test_sigterm(folder):
    disturb(folder, WRAPPER, lambda job: job.process.send_signal(signal.SIGTERM), 75, "stopped on request at step ")


def test_other_numbers_of_ranks(folder):
    # The numbers of one instruction set: batch norm over two images amplifies rounding, which depends on the processor.
    os.environ["DTRAIN_CPU_ISA"] = "avx2"
    runs = Runs(folder)
    options = {"config": BATCH_NORM}
    calm = runs.train("calm", 2, 6, **options)
    runs.train("elastic", 2, 2, **options)
    runs.start("elastic", 3, "--num_batches=6", **options).ends(1, "global batch of 4",
                                                                "numbers of ranks that can are 1, 2")
    runs.start("elastic", 1, "--num_batches=4", **options).ends(0, "Restored step 2", "2 micro-steps")
    found = runs.train("elastic", 2, 6, **options)
    expect_same(found, calm, 1e-5, 1e-4, "2 ranks, then 1, then 2")


def refuse(first, second, *texts, folders=(".", ".")):
    """Two ranks with different commands and folders, which must be rejected."""
    commands = [("env", "-C", folder, *command) for folder, command in zip(folders, (first, second))]
    with tempfile.TemporaryDirectory() as files:
        Job(pathlib.Path(files), (*MPIRUN, *two_programs(*commands)), {}).ends(
            1, "the ranks have different settings: ", *texts)


def test_different_settings_are_rejected(folder):
    data = draw(f"{folder}/one/data")
    command = functools.partial(words, "data", "--num_batches=2")
    here = {"folders": (data.parent, data.parent)}
    refuse(command(), command(config=["FRCNN.BATCH_PER_IM=24"]), "FRCNN.BATCH_PER_IM is '16' on rank 0 on ",
           ", and '24' on rank 1 on ", **here)
    refuse(command(), command("--preset=aws"), "--preset is 'torchvision' on rank 0 on ", **here)
    for what, drawn in (("training", {"first": 3}), ("validation", {"crowds": 1})):
        other = draw(f"{folder}/{what}/data", **drawn)
        split = SPLITS[what == "validation"]
        refuse(command(), command(), f"the {what} data set is 'instances_{split}.json: ",
               f" and 'instances_{split}.json: ", folders=(data.parent, other.parent))


# A learning rate of 0 keeps the loaded weights.
KEPT = ("BACKBONE.NORM=FreezeBN", "TRAIN.BASE_LR=0", "TRAIN.WARMUP_INIT_LR=0")


def scores(runs, ranks, load):
    """Result of an evaluation on `ranks` ranks, with full precision."""
    name = f"scored{ranks}"
    runs.start(name, ranks, "--num_batches=1", "--eval_batch_size=1", load, batch=6 // ranks, config=KEPT).ends(0)
    row = runs.rows(name)[-1]
    assert row["eval_examples"] == IMAGES, row
    return {key: value for key, value in row.items() if "mAP" in key}


def test_evaluation(folder):
    runs = Runs(folder, crowds=CROWDS)
    runs.train("trained", 1, 80, config=[*BATCH_NORM, "TRAIN.BASE_LR=0.02"])
    load = f"--load={runs.weights('trained', 80)}"
    one = scores(runs, 1, load)
    assert len(one) == 12 and len(set(one.values())) > 4 and one["eval_val2017-mAP(segm)/IoU=0.5"] > 0.5, one
    for ranks in (2, 3):
        found = scores(runs, ranks, load)
        assert found == one, f"{ranks} ranks: {found}, one: {one}"

    # The chief scores while training continues, and then ends it on all ranks.
    targets = ("TRAIN.STEPS_PER_EPOCH=2", "TRAIN.EVAL_PERIOD=1", "TEST.BOX_TARGET=0.1", "TEST.MASK_TARGET=0.1")
    job = runs.start("early", 2, "--num_batches=100000", load, config=[*KEPT, *targets]).ends(
        0, "the targets are reached: training ends")
    output = job.output()
    assert output.index("step 3/") < output.index("step 2  val2017-mAP"), output
    # The chief waits for the result before the next evaluation, after step 4; step 5 carries the stop request.
    assert "step 6/" not in output, output


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
