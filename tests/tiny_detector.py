"""A Mask R-CNN that trains in seconds, for tests that need a real one."""

import json
import subprocess

KEYS = """BACKBONE.BOTTLENECK=False BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1] BACKBONE.FREEZE_AT=0 BACKBONE.NORM=BN
    BACKBONE.FREEZE_AFFINE=False FPN.NUM_CHANNEL=16 FPN.FRCNN_FC_HEAD_DIM=32 MRCNN.HEAD_DIM=16 FRCNN.BATCH_PER_IM=16
    RPN.BATCH_PER_IM=32 PREPROC.TRAIN_SHORT_EDGE_SIZE=64 PREPROC.TEST_SHORT_EDGE_SIZE=64 PREPROC.MAX_SIZE=96
    TRAIN.BASE_LR=0.02 TRAIN.WARMUP=2 TEST.RESULT_SCORE_THRESH_VIS=0.05""".split()


def rename(file, names):
    """Gives these names to the first categories in the annotations."""
    annotations = json.loads(file.read_text())
    for category, name in zip(annotations["categories"], names):
        category["name"] = name
    file.write_text(json.dumps(annotations))


def make(bin_dir, data, train_dir, steps, names=()):
    """Shapes with their annotations in `data`, and a detector that has seen `steps` batches of them in `train_dir`. The
    first categories get these names."""
    def run(*command):
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    run(bin_dir / "dtrain-data", "shapes", "--output", data, "--images=16", "--validation=4", "--size=96x64")
    for file in data.glob("annotations/*") if names else ():
        rename(file, names)
    run(bin_dir / "dtrain-mask-rcnn", "train", f"--data_dir={data}", f"--train_dir={train_dir}", "--device=cpu",
        "--batch_size=2", f"--num_batches={steps}", "--config", *KEYS)
