#!/usr/bin/env python3
"""Roofline lower bound of a Mask R-CNN (ResNet-50 FPN) training step on a GPU, part by part, beside measured times.

    benchmarks/predict_detection.py [--batch 8] [--height 800] [--width 1344] [--positives 128] [--measured FILE]

FILE is the output of detector_bench. Each kernel reads its inputs and writes its outputs once; a multiply-add is two FLOPs.
Bandwidth and FLOP/s are those of predict_gpu.py: an H200 with 16-bit types. Two backbone stages are frozen, and an image
has 512 regions. The mask head has a capacity of 128 positive regions per image and runs on the quarters of the batch's
capacity that hold some; by default all do, as in the measured eager steps.
"""
import argparse
import collections
import json

from predict_gpu import BANDWIDTH, RATE, Kernel, seconds

WIDTH = 2  # bytes per element
CHANNELS = 256
ROOM, PARTS = 128, 4  # capacity for positives per image; parts of the batch's capacity


def conv(name, pixels_in, pixels_out, c, k, taps, trained=True, data=True):
    """Forward, dgrad and wgrad of a convolution with this many pixels per batch; a frozen batch norm is folded in."""
    x, y, w = pixels_in * c, pixels_out * k, c * k * taps
    flops = 2 * pixels_out * c * k * taps
    yield Kernel(f"{name} forward", 1, WIDTH * (x + w + y), flops)
    if trained and data:
        yield Kernel(f"{name} dgrad", 1, WIDTH * (x + w + y), flops)
    if trained:
        yield Kernel(f"{name} wgrad", 1, WIDTH * (x + y) + 4 * w, flops)
        yield Kernel(f"{name} gates", 1, 3 * WIDTH * y, 0)  # ReLU gradient and batch-norm scale


def backbone(batch, height, width):
    pixels = batch * height * width
    yield from conv("stem", pixels, pixels // 4, 8, 64, 49, trained=False)
    channels, area = 64, pixels // 16
    for stage, (middle, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        trained = stage > 0
        for block in range(blocks):
            after = area // 4 if stage > 0 and block == 0 else area
            name = f"layer{stage + 1}.{block}"
            first = stage == 1 and block == 0  # no dgrad: everything before it is frozen
            yield from conv(f"{name}.conv1", area, area, channels, middle, 1, trained, not first)
            yield from conv(f"{name}.conv2", area, after, middle, middle, 9, trained)
            yield from conv(f"{name}.conv3", after, after, middle, 4 * middle, 1, trained)
            if block == 0:
                yield from conv(f"{name}.downsample", area, after, channels, 4 * middle, 1, trained, not first)
            channels, area = 4 * middle, after


def levels(batch, height, width):
    return [batch * height * width // stride**2 for stride in (4, 8, 16, 32, 64)]


def fpn(batch, height, width):
    for i, (area, c) in enumerate(zip(levels(batch, height, width), (256, 512, 1024, 2048))):
        yield from conv(f"inner{i}", area, area, c, CHANNELS, 1, data=i > 0)
        yield from conv(f"layer{i}", area, area, CHANNELS, CHANNELS, 9)


def rpn(batch, height, width):
    for i, area in enumerate(levels(batch, height, width)):
        yield from conv(f"conv{i}", area, area, CHANNELS, CHANNELS, 9)
        yield from conv(f"outputs{i}", area, area, CHANNELS, 16, 1)


def proposals(batch, height, width):
    """Anchor matching with 16 objects, sampling, losses, top-k and NMS."""
    anchors = 3 * sum(levels(batch, height, width))
    yield Kernel("match", 1, 4 * anchors * 6, 20 * 16 * anchors)
    yield Kernel("targets and losses", 1, 4 * anchors * 20, 0)
    yield Kernel("top-k", 1, 4 * 8 * anchors, 0)
    yield Kernel("nms", 1, batch * 5 * 2000**2 // 8, 10 * batch * 5 * 2000**2)


def linear(name, rows, c, k):
    for part, extra in (("forward", 0), ("dgrad", 0), ("wgrad", 2 * c * k)):
        yield Kernel(f"{name} {part}", 1, WIDTH * (rows * (c + k) + c * k) + extra, 2 * rows * c * k)


def box_head(batch):
    regions = 512 * batch
    pooled = regions * 49 * CHANNELS
    yield Kernel("roi_align forward", 1, WIDTH * 5 * pooled, 0)  # four samples of four pixels, mostly cache hits
    yield Kernel("roi_align backward", 1, WIDTH * 5 * pooled, 0)
    yield from linear("fc6", regions, 49 * CHANNELS, 1024)
    yield from linear("fc7", regions, 1024, 1024)
    yield from linear("outputs", regions, 1024, 5 * 91)


def mask_head(batch, positives):
    part = ROOM * batch // PARTS
    area = max(-(-positives * batch // part), 1) * part * 14**2  # the first part always runs
    yield Kernel("roi_align, both", 1, 2 * WIDTH * 5 * area * CHANNELS, 0)
    yield Kernel("cleared room", 1, 2 * WIDTH * ROOM * batch * 14**2 * CHANNELS, 0)
    for i in range(4):
        yield from conv(f"conv{i}", area, area, CHANNELS, CHANNELS, 9)
    yield from conv("deconv", area, 4 * area, CHANNELS, CHANNELS, 1)
    yield from conv("logits", 4 * area, 4 * area, CHANNELS, 91, 1)


def update():
    parameters = 44_401_393
    yield Kernel("gradient norm and update", 1, (4 + 4 + 8 + 8 + WIDTH) * parameters, 0)


def step(batch, height, width, positives):
    """{part: kernels}, with the names of Tape::part()."""
    shape = (batch, height, width)
    return {"backbone": list(backbone(*shape)), "fpn": list(fpn(*shape)), "rpn": list(rpn(*shape)),
            "proposals": list(proposals(*shape)), "box head": list(box_head(batch)),
            "mask head": list(mask_head(batch, positives)), "update": list(update())}


def measured_parts(path):
    """Milliseconds per part, forward and backward; a loss counts to the part that it belongs to."""
    found = collections.Counter()
    for part, value in (json.loads(open(path).read().splitlines()[-1])["parts_ms"] if path else {}).items():
        name = part.removesuffix(", backward")
        found[{"rpn losses": "proposals", "box losses": "box head", "mask loss": "mask head"}.get(name, name)] += value
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=8)
    parser.add_argument("--height", type=int, default=800)
    parser.add_argument("--width", type=int, default=1344)
    parser.add_argument("--positives", type=int, default=ROOM, help="positive regions per image, batch average")
    parser.add_argument("--measured", metavar="FILE")
    o = parser.parse_args()
    found = measured_parts(o.measured)
    print(f"{'part':12} {'GiB':>7} {'TFLOP':>7} {'predicted ms':>13} {'measured ms':>12}")
    total = 0
    for part, kernels in step(o.batch, o.height, o.width, o.positives).items():
        predicted = 1e3 * sum(kernel.count * seconds(kernel) for kernel in kernels)
        total += predicted
        print(f"{part:12} {sum(k.count * k.bytes for k in kernels) / 2**30:7.2f} "
              f"{sum(k.count * k.flops for k in kernels) / 1e12:7.2f} {predicted:13.2f} "
              f"{format(found[part], '.2f') if part in found else '':>12}")
    print(f"{'step':12} {'':7} {'':7} {total:13.2f}   at {BANDWIDTH / 1e12:.1f} TB/s and {RATE / 1e12:.0f} TFLOP/s: "
          f"at most {1e3 * o.batch / total:.0f} images/s")


if __name__ == "__main__":
    main()
