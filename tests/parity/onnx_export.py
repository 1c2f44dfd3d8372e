"""Exported detectors in ONNX Runtime against predict: small detectors with random weights and the conventions of
several programs, on resized images and on one of the original size.

Usage: onnx_export.py DTRAIN_MASK_RCNN
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import onnx
    import onnxruntime

from arrays import save_safetensors, write_png  # noqa: E402

CLASSES, CHANNELS, HIDDEN, FEATURES = 5, 32, 64, 48
BOUND = 1e-4  # scores; boxes relative to the longer side; fraction of differing mask pixels
SMALL = [
    f"FPN.NUM_CHANNEL={CHANNELS}",
    f"FPN.FRCNN_FC_HEAD_DIM={FEATURES}",
    f"MRCNN.HEAD_DIM={HIDDEN}",
    "RPN.TEST_PER_LEVEL_NMS_TOPK=200",
    "TEST.RESULTS_PER_IM=30",
]
BOTTLENECKS = ["BACKBONE.RESNET_NUM_BLOCKS=[1,2,1,1]"]
BASIC = ["BACKBONE.RESNET_NUM_BLOCKS=[1,1,2,1]", "BACKBONE.BOTTLENECK=False"]
TOWERS = [
    "FPN.FRCNN_HEAD_FUNC='fastrcnn_4conv1fc_gn_head'",
    f"FPN.FRCNN_CONV_HEAD_DIM={HIDDEN}",
    "FPN.MRCNN_HEAD_FUNC='maskrcnn_up4conv_gn_head'",
]
NOTHING = ["TEST.RESULT_SCORE_THRESH=0.999999"]
# Name, preset, configuration, image height and width, and the short edge after resizing.
CASES = [
    ("torchvision", "torchvision", BOTTLENECKS, 100, 141, 150),
    ("torchvision, not resized", "torchvision", BASIC, 128, 171, 128),
    ("TensorPack", "tensorpack", BASIC + ["BACKBONE.TF_PAD_MODE=True"], 210, 120, 160),
    ("group norm after ReLU", "tensorpack", BOTTLENECKS + TOWERS + ["BACKBONE.STRIDE_1X1=True"], 96, 96, 128),
    ("group norm before ReLU", "torchvision", BASIC + TOWERS, 96, 112, 128),
    ("nothing found", "torchvision", BASIC + NOTHING, 64, 96, 64),
    ("boxes alone", "aws", BASIC + ["MODE_MASK=False"], 120, 160, 200),
]


class Weights:
    """Random weights with torchvision's names, such that there are detections."""

    def __init__(self, preset, config):
        self.random = np.random.default_rng(5)
        self.tensors = {}
        self.bottlenecks = "BACKBONE.BOTTLENECK=False" not in config
        self.towers = TOWERS[0] in config
        self.tower_biases = not self.towers or preset != "torchvision"  # not needed directly before a norm
        blocks = next(json.loads(entry.split("=")[1]) for entry in config if "NUM_BLOCKS" in entry)
        stages = self.backbone(blocks)
        for i, channels in enumerate(stages):
            self.layer(f"backbone.fpn.inner_blocks.{i}.0", (CHANNELS, channels, 1, 1), 0.7)
            self.layer(f"backbone.fpn.layer_blocks.{i}.0", (CHANNELS, CHANNELS, 3, 3), 0.7)
        self.layer("rpn.head.conv.0.0", (CHANNELS, CHANNELS, 3, 3))
        self.layer("rpn.head.cls_logits", (3, CHANNELS, 1, 1))
        self.layer("rpn.head.bbox_pred", (12, CHANNELS, 1, 1), 0.2)
        self.box_head()
        if "MODE_MASK=False" not in config:
            self.mask_head()

    def tensor(self, name, values):
        self.tensors[name] = values.astype(np.float32)

    def layer(self, name, shape, gain=1.0, bias=True):
        fan_in = np.prod(shape[1:])
        self.tensor(name + ".weight", self.random.normal(0, gain * np.sqrt(2 / fan_in), shape))
        if bias:
            self.tensor(name + ".bias", self.random.normal(0, 0.1, shape[0]))

    def norm(self, name, channels, gain=1.0, running=True):
        self.tensor(name + ".weight", gain * self.random.uniform(0.5, 1, channels))
        self.tensor(name + ".bias", self.random.normal(0, 0.1, channels))
        if running:
            self.tensor(name + ".running_mean", self.random.normal(0, 0.1, channels))
            self.tensor(name + ".running_var", self.random.uniform(0.5, 1.5, channels))

    def backbone(self, blocks):
        def conv_bn(conv, bn, shape, gain=1.0):
            self.layer(conv, shape, bias=False)
            self.norm(bn, shape[0], gain)

        conv_bn("backbone.body.conv1", "backbone.body.bn1", (64, 3, 7, 7))
        stages, channels = [], 64
        for stage, count in enumerate(blocks):
            width = 64 << stage
            out = 4 * width if self.bottlenecks else width
            for block in range(count):
                path = f"backbone.body.layer{stage + 1}.{block}."
                if block == 0 and channels != out:
                    conv_bn(path + "downsample.0", path + "downsample.1", (out, channels, 1, 1))
                shapes = [(width, channels, 3, 3), (out, width, 3, 3)]
                if self.bottlenecks:
                    shapes = [(width, channels, 1, 1), (width, width, 3, 3), (out, width, 1, 1)]
                for i, shape in enumerate(shapes):
                    last = i + 1 == len(shapes)
                    conv_bn(f"{path}conv{i + 1}", f"{path}bn{i + 1}", shape, 0.3 if last else 1.0)
                channels = out
            stages.append(channels)
        return stages

    def tower(self, path, channels):
        for i in range(4):
            self.layer(f"{path}.{i}.0", (HIDDEN, channels if i == 0 else HIDDEN, 3, 3), bias=self.tower_biases)
            if self.towers:
                self.norm(f"{path}.{i}.1", HIDDEN, running=False)

    def box_head(self):
        head, predictor = "roi_heads.box_head", "roi_heads.box_predictor."
        if self.towers:
            self.tower(head, CHANNELS)
            self.layer(head + ".5", (FEATURES, HIDDEN * 49))
        else:
            self.layer(head + ".fc6", (FEATURES, CHANNELS * 49))
            self.layer(head + ".fc7", (FEATURES, FEATURES))
        self.layer(predictor + "cls_score", (CLASSES, FEATURES), 0.7)  # ties would have no defined order
        self.layer(predictor + "bbox_pred", (4 * CLASSES, FEATURES))

    def mask_head(self):
        predictor = "roi_heads.mask_predictor."
        self.tower("roi_heads.mask_head", CHANNELS)
        self.layer(predictor + "conv5_mask", (HIDDEN, HIDDEN, 2, 2))
        self.tensors[predictor + "conv5_mask.bias"] = np.float32(self.random.normal(0, 0.1, HIDDEN))
        self.layer(predictor + "mask_fcn_logits", (CLASSES, HIDDEN, 1, 1), 2.0)


def smooth_image(height, width, random):
    """Pixels [height, width, 3] with edges and gradients."""
    coarse = random.uniform(0, 255, (height // 8 + 2, width // 8 + 2, 3))
    enlarged = np.repeat(np.repeat(coarse, 8, 0), 8, 1)[:height, :width]
    return np.uint8(np.clip(enlarged + random.normal(0, 12, enlarged.shape), 0, 255))


def mask_of(segmentation):
    """COCO's compressed RLE as booleans [height, width]."""
    counts, text, at = [], segmentation["counts"].encode(), 0
    while at < len(text):
        value = shift = 0
        while True:
            bits = text[at] - 48
            at += 1
            value |= (bits & 31) << shift
            shift += 5
            if not bits & 32:
                if bits & 16:
                    value |= -1 << shift
                break
        counts.append(value + (counts[-2] if len(counts) > 2 else 0))
    height, width = segmentation["size"]
    return np.repeat(np.arange(len(counts)) % 2 == 1, counts).reshape(width, height).T


def compare(name, line, found, whole_pixels, least):
    """Whether ONNX Runtime's detections match predict, with at least as many as stated."""
    expected = line["detections"]
    if len(expected) != len(found["scores"]) or len(expected) < least:
        print(f"FAIL {name}: {len(found['scores'])} detections, expected {len(expected)}, at least {least}")
        return False
    if not expected:
        print(f"ok   {name}: masks {found['masks'].shape}")
        return found["masks"].shape == (0, 1, line["height"], line["width"])
    if [one["category_id"] for one in expected] != found["labels"].tolist():
        print(f"FAIL {name}: other labels")
        return False
    boxes = np.array([one["bbox"] for one in expected])
    boxes[:, 2:] += boxes[:, :2]
    errors = {
        "boxes": np.abs(found["boxes"] - boxes).max() / max(line["height"], line["width"]),
        "scores": np.abs(found["scores"] - [one["score"] for one in expected]).max(),
    }
    if "masks" in found:
        masks = np.stack([mask_of(one["segmentation"]) for one in expected])
        ours = found["masks"][:, 0] > 0.5 if whole_pixels else found["masks"][:, 0] >= 0.5
        errors["mask pixels"] = np.mean(masks != ours)
        if not 0.001 < masks.mean() < 0.9:
            print(f"FAIL {name}: masks that say nothing, {masks.mean()} of the pixels")
            return False
    good = all(error <= BOUND for error in errors.values())
    text = ", ".join(f"{kind} {error:.1e}" for kind, error in errors.items())
    print(f"{'ok  ' if good else 'FAIL'} {name}, {len(expected)} detections: {text}, bound {BOUND:.0e}")
    return good


def run_case(program, folder, case):
    name, preset, config, height, width, short_edge = case
    weights, picture, model = (os.path.join(folder, file) for file in ("w.safetensors", "p.png", "m.onnx"))
    save_safetensors(weights, Weights(preset, config).tensors)
    image = smooth_image(height, width, np.random.default_rng(7))
    write_png(picture, image)
    settings = [f"--load={weights}", f"--preset={preset}", "--config", *SMALL, *config]
    settings += [f"PREPROC.TEST_SHORT_EDGE_SIZE={short_edge}", "PREPROC.TRAIN_SHORT_EDGE_SIZE=300", "PREPROC.MAX_SIZE=400"]
    found = subprocess.run(
        [program, "predict", "--device=cpu", "--json", picture, *settings], check=True, stdout=subprocess.PIPE
    )
    exported = [program, "export", f"--onnx={model}", f"--height={height}", f"--width={width}", *settings]
    subprocess.run(exported, check=True, stdout=subprocess.DEVNULL)
    session = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    blob = np.float32(image.transpose(2, 0, 1)) / np.float32(255)
    results = dict(zip(names, session.run(None, {"image": blob})))
    onnx.checker.check_model(model, full_check=True)
    return compare(name, json.loads(found.stdout), results, preset == "torchvision", 0 if "nothing" in name else 5)


def main():
    with tempfile.TemporaryDirectory(prefix="dtrain_parity_") as folder:
        failed = sum(not run_case(sys.argv[1], folder, case) for case in CASES)
    print(f"{failed} comparisons failed" if failed else "all comparisons hold")
    sys.exit(1 if failed else 0)


main()
