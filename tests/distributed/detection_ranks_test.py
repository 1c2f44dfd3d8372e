"""Data-parallel training of a detector: several ranks compute the results of one rank with all their images, including
synchronised batch norms. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import json
import os
import pathlib
import sys
import tempfile

from exactness_test import MPIRUN, PROGRAMS, expect_same, output_of, tensors_of

ROOT = pathlib.Path(__file__).resolve().parents[2]
DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", ROOT.parent / "shared" / "data")) / "coco_mini"
STEPS, GLOBAL_BATCH = 4, 2
# With the preset `aws` losses do not depend on the distribution of images over ranks.
KEYS = ("BACKBONE.BOTTLENECK=False", "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]", "BACKBONE.FREEZE_AT=0",
        "FPN.NUM_CHANNEL=16", "FPN.FRCNN_FC_HEAD_DIM=32", "MRCNN.HEAD_DIM=16", "FRCNN.BATCH_PER_IM=16",
        "RPN.BATCH_PER_IM=32", "PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64",
        "PREPROC.MAX_SIZE=96", "TRAIN.BASE_LR=0.001", "TRAIN.WARMUP=2", "TEST.RESULT_SCORE_THRESH=0.9")


def train(folder, ranks, norm):
    """Losses per step, and the tensors of the last checkpoint by name."""
    run = pathlib.Path(folder) / f"{norm}{ranks}"
    output_of(*MPIRUN, "-np", ranks, PROGRAMS / "dtrain-mask-rcnn", "train", "--preset=aws", f"--data_dir={DATA}",
              f"--train_dir={run}", "--device=cpu", "--num_intra_threads=1", "--display_every=1",
              f"--batch_size={GLOBAL_BATCH // ranks}", f"--num_batches={STEPS}", f"--metrics_file={run}.json",
              "--config", *KEYS, f"BACKBONE.NORM={norm}")
    rows = map(json.loads, pathlib.Path(f"{run}.json").read_text().splitlines())
    losses = [row["loss"] for row in rows if "loss" in row]
    return losses, tensors_of(run / "checkpoints" / f"step-{STEPS}" / "model.safetensors")


def test_synchronised_batch_norms_equal_one_rank(folder):
    expect_same(train(folder, 2, "SyncBN"), train(folder, 1, "SyncBN"), 1e-5, 1e-5, "2 ranks")


if __name__ == "__main__":
    if not DATA.exists():
        print(f"SKIPPED: there is no {DATA}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as scratch:
        globals()[sys.argv[1]](scratch)
