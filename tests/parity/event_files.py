"""TensorBoard's view of a classifier's and a detector's training against their own records: scalars against the metrics
file, histograms against checkpoints, images, settings as text, and hyper-parameters.

Usage: event_files.py DTRAIN_CNN_BENCHMARKS, with dtrain-data and dtrain-mask-rcnn beside it
"""

import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    from tensorboard import program

from arrays import load_safetensors  # noqa: E402

STEPS = 4
RATE = 0.125
FLAGS = [
    "--model=resnet20",
    "--data_name=imagenet",
    "--image_size=16",
    "--num_classes=4",
    "--batch_size=4",
    f"--num_batches={STEPS}",
    "--num_warmup_batches=0",
    "--display_every=1",
    f"--init_learning_rate={RATE}",
    "--optimizer=sgd",
    "--weight_decay=0",
    "--save_model_steps=1",
    "--eval_during_training_every_n_steps=2",
    "--summary_verbosity=3",
    "--save_summaries_steps=1",
]


DETECTOR_STEPS = 3
DETECTOR_FLAGS = [
    "--device=cpu",
    "--batch_size=2",
    "--display_every=1",
    f"--num_batches={DETECTOR_STEPS}",
    "--summary_verbosity=3",
    "--save_summaries_steps=1",
]
DETECTOR_SETTINGS = [
    "BACKBONE.BOTTLENECK=False",
    "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
    "BACKBONE.FREEZE_AT=0",
    "BACKBONE.NORM=BN",
    "BACKBONE.FREEZE_AFFINE=False",
    "FPN.NUM_CHANNEL=16",
    "FPN.FRCNN_FC_HEAD_DIM=32",
    "MRCNN.HEAD_DIM=16",
    "FRCNN.BATCH_PER_IM=16",
    "RPN.BATCH_PER_IM=32",
    "PREPROC.TRAIN_SHORT_EDGE_SIZE=64",
    "PREPROC.TEST_SHORT_EDGE_SIZE=64",
    "PREPROC.MAX_SIZE=96",
    "TRAIN.BASE_LR=0.02",
]
# TensorPack's tags -> names in the metrics file.
DETECTOR_TAGS = {
    "total_cost": "total_loss",
    "learning_rate": "learning_rate",
    "rpn_losses/label_loss": "objectness_loss",
    "rpn_losses/box_loss": "rpn_box_loss",
    "fastrcnn_losses/label_loss": "class_loss",
    "fastrcnn_losses/box_loss": "box_loss",
    "maskrcnn_loss/maskrcnn_loss": "mask_loss",
}


def run(program_path, *arguments):
    subprocess.run([program_path, *arguments], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def check(condition, what):
    if not condition:
        sys.exit(f"FAILED: {what}")


class Shown:
    """A TensorBoard of one folder of runs."""

    def __init__(self, folder):
        board = program.TensorBoard()
        board.configure(argv=["", "--logdir", folder, "--host", "127.0.0.1", "--port", "0", "--load_fast", "false"])
        self.url = board.launch() + "data/"

    def wait_for(self, tag, values):
        """Waits until it has read a file up to the last of these values."""
        for _ in range(300):
            if tag in self.of("scalars", "tags").get("train", {}):
                if len(self.of("scalars", "scalars", run="train", tag=tag)) == values:
                    return
            time.sleep(0.1)
        sys.exit(f"FAILED: {tag} has not {values} values after half a minute")

    def fetch(self, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        headers = {} if body is None else {"Content-Type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(self.url + path, data, headers)) as answer:
            return answer.read()

    def of(self, plugin, route, body=None, **query):
        text = self.fetch(f"plugin/{plugin}/{route}?{urllib.parse.urlencode(query)}", body)
        return json.loads(text)

    def tags(self, plugin):
        return self.of(plugin, "tags")["train"]


def check_scalars(shown, metrics):
    steps = {row["step"]: row for row in metrics if "loss" in row}
    evaluations = {row["step"]: row for row in metrics if "eval_loss" in row}
    tags = {
        "total_loss": (steps, "total_loss"),
        "learning_rate": (steps, "learning_rate"),
        "top_1_accuracy": (steps, "top_1_accuracy"),
        "eval/Accuracy@1": (evaluations, "eval_top_1_accuracy"),
        "eval/loss": (evaluations, "eval_loss"),
    }
    check(set(tags) <= set(shown.tags("scalars")), f"tags of scalars: {shown.tags('scalars')}")
    check(len(steps) == STEPS and len(evaluations) == STEPS // 2, "lines of the metrics file")
    for tag, (rows, name) in tags.items():
        values = shown.of("scalars", "scalars", run="train", tag=tag)
        check([step for _, step, _ in values] == sorted(rows), f"steps of {tag}")
        for _, step, value in values:
            check(value == float(np.float32(rows[step][name])), f"{tag} of step {step}: {value}")


def limits():
    """Positive bucket limits, as in TensorFlow."""
    limit, all_limits = 1e-12, []
    while limit < 1e20:
        all_limits.append(limit)
        limit *= 1.1
    return all_limits


def check_histogram(shown, tag, step, values, exact):
    buckets = next(row for row in shown.of("histograms", "histograms", run="train", tag=tag) if row[1] == step)[2]
    counts = [count for _, _, count in buckets]
    check(sum(counts) == values.size, f"{tag}: {sum(counts)} values, expected {values.size}")
    ends = (buckets[0][0], buckets[-1][1])
    bound = 0 if exact else 1e-6 + 1e-3 * np.abs(values).max()
    check(np.allclose(ends, (values.min(), values.max()), rtol=0, atol=bound), f"{tag}: ends {ends}")
    if not exact:
        return
    positive = limits()
    edges = np.array([-math.inf] + [-limit for limit in reversed(positive)] + [0.0] + positive + [math.inf])
    expected, _ = np.histogram(values.astype(np.float64), edges)
    check([c for c in counts if c > 0] == [c for c in expected.tolist() if c > 0], f"{tag}: counts")


def check_histograms(shown, folder):
    before, after = (load_safetensors(f"{folder}/checkpoints/step-{step}/model.safetensors") for step in (STEPS - 1, STEPS))
    tags = shown.tags("histograms")
    names = [tag for tag in tags if not tag.endswith("gradients")]
    check(len(names) > 50 and set(names) <= set(after), f"parameters with histograms: {names}")
    gradients = 0
    for name in names:
        check(name + "/gradients" in tags, f"no gradients of {name}")
        check_histogram(shown, name, STEPS, after[name], True)
        change = (before[name].astype(np.float64) - after[name]) / RATE
        check_histogram(shown, name + "/gradients", STEPS, change, False)
        gradients += after[name].size
    rows = shown.of("histograms", "histograms", run="train", tag="log_gradients_summary/log_gradients")
    check(len(rows) == STEPS, f"histograms of all gradients: {len(rows)}")
    check(0.5 * gradients < sum(count for _, _, count in rows[-1][2]) <= gradients, "number of all gradients")


def check_images(shown):
    tags = sorted(shown.tags("images"))
    check(tags == [f"images/image/{i}" for i in range(3)], f"tags of images: {tags}")
    for tag in tags:
        image = shown.of("images", "images", run="train", tag=tag, sample=0)[-1]
        check(image["step"] == STEPS, f"{tag}: step {image['step']}")
        png = shown.fetch("plugin/images/individualImage?" + image["query"])
        check(png.startswith(b"\x89PNG\r\n") and struct.unpack(">2I", png[16:24]) == (16, 16), f"{tag}: {png[:24]}")


def check_settings(shown):
    check(list(shown.tags("text")) == ["configuration"], f"tags of texts: {shown.tags('text')}")
    text = shown.of("text", "text", run="train", tag="configuration")[0]["text"]
    for part in ("<table>", "<td>model</td>\n<td>resnet20</td>", "<td>global batch</td>"):
        check(part in text, f"the configuration has no {part}:\n{text}")
    experiment = shown.of("hparams", "experiment", {"experimentName": "", "hparamsLimit": 100})
    names = [info["name"] for info in experiment["hparamInfos"]]
    metrics = [info["name"]["tag"] for info in experiment["metricInfos"]]
    check({"model", "global batch", "optimizer", "seed"} <= set(names), f"hyper-parameters: {names}")
    check({"total_loss", "eval/Accuracy@1"} <= set(metrics), f"metrics: {metrics}")
    request = {
        "startIndex": 0,
        "sliceSize": 10,
        "allowedStatuses": ["STATUS_SUCCESS"],
        "colParams": [{"hparam": name} for name in names],
    }
    groups = shown.of("hparams", "session_groups", request)["sessionGroups"]
    check(len(groups) == 1, f"sessions that succeeded: {groups}")
    values = groups[0]["hparams"]
    expected = {"model": "resnet20", "global batch": 4.0, "optimizer": "sgd"}
    check(expected.items() <= values.items(), f"values of hyper-parameters: {values}")


def check_detector(programs, folder):
    data, train_dir, metrics_file = (f"{folder}/{name}" for name in ("shapes", "detectors/train", "detector.json"))
    run(f"{programs}/dtrain-data", "shapes", "--output", data, "--images=10", "--validation=4", "--size=96x64")
    arguments = [*DETECTOR_FLAGS, f"--data_dir={data}", f"--train_dir={train_dir}", f"--metrics_file={metrics_file}"]
    run(f"{programs}/dtrain-mask-rcnn", "train", *arguments, "--config", *DETECTOR_SETTINGS)
    with open(metrics_file) as file:
        steps = {row["step"]: row for row in map(json.loads, file) if "loss" in row}
    check(len(steps) == DETECTOR_STEPS, "lines of the detector's metrics file")
    shown = Shown(f"{folder}/detectors")
    shown.wait_for("total_cost", DETECTOR_STEPS)
    for tag, name in DETECTOR_TAGS.items():
        values = {step: value for _, step, value in shown.of("scalars", "scalars", run="train", tag=tag)}
        expected = {step: float(np.float32(row[name])) for step, row in steps.items()}
        check(values == expected, f"{tag}: {values}, expected {expected}")
    tags = shown.tags("histograms")
    name = "roi_heads.mask_predictor.mask_fcn_logits.bias"
    check({"log_gradients_summary/log_gradients", name, name + "/gradients"} <= set(tags), f"histograms: {tags}")
    for tag in ("images/image/0", "images/image/1"):
        image = shown.of("images", "images", run="train", tag=tag, sample=0)[-1]
        png = shown.fetch("plugin/images/individualImage?" + image["query"])
        check(png.startswith(b"\x89PNG\r\n") and image["step"] == DETECTOR_STEPS, f"{tag}: {png[:24]}")
    text = shown.of("text", "text", run="train", tag="configuration")[0]["text"]
    check("<td>MRCNN.HEAD_DIM</td>\n<td>16</td>" in text, f"the detector's configuration:\n{text}")
    experiment = shown.of("hparams", "experiment", {"experimentName": "", "hparamsLimit": 1000})
    names = [info["name"] for info in experiment["hparamInfos"]]
    check({"TRAIN.BASE_LR", "global batch", "seed"} <= set(names), f"hyper-parameters of the detector: {names}")
    metrics = [info["name"]["tag"] for info in experiment["metricInfos"]]
    check("total_cost" in metrics, f"metrics of the detector: {metrics}")


def main():
    trainer = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        data, train_dir, metrics_file = (f"{folder}/{name}" for name in ("data", "runs/train", "metrics.json"))
        sizes = ["--classes=3", "--image_size=24", "--train=40", "--validation=10", "--seed=1"]
        run(os.path.join(os.path.dirname(trainer), "dtrain-data"), "synthesize", "--output", data, *sizes)
        run(trainer, *FLAGS, f"--data_dir={data}", f"--train_dir={train_dir}", f"--metrics_file={metrics_file}")
        with open(metrics_file) as file:
            metrics = [json.loads(line) for line in file]
        shown = Shown(f"{folder}/runs")
        shown.wait_for("eval/loss", STEPS // 2)
        check_scalars(shown, metrics)
        check_histograms(shown, train_dir)
        check_images(shown)
        check_settings(shown)
        check_detector(os.path.dirname(trainer), folder)
    print("TensorBoard shows what the run has measured")


main()
