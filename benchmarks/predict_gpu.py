#!/usr/bin/env python3
"""Predicts the ResNet-50 v1.5 training step on a GPU, kernel by kernel: a roofline lower bound and a range.

An H200 takes 33.0 ms in bf16, for 28.5 to 35.0 predicted; scripts/gpu_check.sh prints measured times.

    benchmarks/predict_gpu.py [--gpu h200|h100] [--batch 256] [--kernels]

Each kernel reads its inputs and writes its outputs once. Batch norm re-reads what neither shared memory
(batch_norm_tiling.h) nor L2 keeps. A multiply-add is two FLOPs. The lower bound of a kernel is the larger of bytes /
bandwidth and FLOPs / rate; an H200 has 4.3 TB/s and 790 TFLOP/s in 16-bit types, which large GEMMs reach and convolutions
do not. The range is spanned by the two sets of assumptions below.
"""
import argparse
import collections

# `again`: the part of `bytes` that is re-read; `kept`: its share in shared memory; `slice`: bytes read between both reads.
Kernel = collections.namedtuple("Kernel", "name count bytes flops again kept slice", defaults=(0, 0.0, 0))
Conv = collections.namedtuple("Conv", "c k side kernel stride")
BANDWIDTH, RATE = 4.3e12, 790e12
IMAGE_CHANNELS = 8  # 3 channels, padded to 16 bytes
MULTIPROCESSORS, SHARED_BYTES = 132, 227 << 10

# Estimates: bandwidth, FLOP/s of convolutions, share of the shorter of memory and compute time that does not overlap, bytes
# that L2 holds until the second read, seconds between kernels of a captured step.
Assumptions = collections.namedtuple("Assumptions", "bandwidth rate unhidden l2 gap")
MACHINES = {"h200": {"hopeful": Assumptions(4.2e12, 450e12, 0.25, 30e6, 1.2e-6),
                     "cautious": Assumptions(3.7e12, 380e12, 0.4, 0, 1.5e-6)},
            "h100": {"hopeful": Assumptions(2.95e12, 450e12, 0.25, 30e6, 1.2e-6),
                     "cautious": Assumptions(2.6e12, 380e12, 0.4, 0, 1.5e-6)}}


def convolutions(size=224):
    """Convolutions in order of execution, and whether a residual is added after the batch norm; `side` is the input's."""
    yield Conv(3, 64, size, 7, 2), False
    side = size // 4
    channels = 64
    for width, blocks, first_stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            stride = first_stride if block == 0 else 1
            yield Conv(channels, width, side, 1, 1), False
            yield Conv(width, width, side, 3, stride), False
            yield Conv(width, 4 * width, side // stride, 1, 1), True
            if block == 0:
                yield Conv(channels, 4 * width, side, 1, stride), False
            channels, side = 4 * width, side // stride


def conv_kernels(batch, size=224, width=2, image_channels=IMAGE_CHANNELS):
    """fprop, dgrad (except the stem) and wgrad per shape: 158 launches, and 53 to convert weight gradients."""
    for conv, count in collections.Counter(conv for conv, _ in convolutions(size)).items():
        out = conv.side // conv.stride
        c = image_channels if conv.c == 3 else conv.c
        x, y = batch * conv.side**2 * c, batch * out**2 * conv.k
        w = conv.k * conv.kernel**2 * c
        flops = 2 * y * conv.kernel**2 * conv.c
        shape = f"{conv.c}x{conv.side}->{conv.k} {conv.kernel}x{conv.kernel}/{conv.stride}"
        yield Kernel(f"fprop {shape}", count, width * (x + w + y), flops)
        if conv.c != 3:
            yield Kernel(f"dgrad {shape}", count, width * (x + w + y), flops)
        yield Kernel(f"wgrad {shape}", count, width * (x + w + y), flops)
    # dgrad accumulates into the gradient of the residual branch, which is one more read.
    entries = [conv for (conv, _), (_, ends) in zip(list(convolutions(size))[1:], list(convolutions(size))[:-1])
               if conv.kernel == 1 and conv.k < conv.c or conv == Conv(64, 64, size // 4, 1, 1)]
    yield Kernel("dgrad, residual accumulation", 1, width * batch * sum(conv.side**2 * conv.c for conv in entries), 0)
    yield Kernel("wgrad conversion to f32", 53, (width + 4) * 25_502_912 // 53, 0)


def kept_share(rows, c, streams, width, multiprocessors):
    """Share of its input that a batch norm keeps in shared memory (see batch_norm_tiling.h)."""
    lanes = 16 // width
    sweeps, slices = -(-rows // 64), -(-c // (8 * lanes))
    room = (SHARED_BYTES - 16 * 8 * lanes * 16) // (streams * 512 * 16)
    whole = slices == 1 or (slices * sweeps <= room * multiprocessors and slices <= multiprocessors)
    at_a_time = slices if whole else min(max(room * multiprocessors // 2 // sweeps, 1), slices)
    rounds = -(-slices // at_a_time)
    parallel = min(-(-slices // rounds), multiprocessors)
    row_blocks = min(max(multiprocessors // parallel, 1), sweeps)
    of_a_block = -(-sweeps // row_blocks)
    tiles = 2 if -(-slices // parallel) > 1 else 1
    return min(room // tiles, of_a_block) / of_a_block


def norm_kernels(batch, size=224, width=2, spare=0):
    """Batch norm with residual add and ReLU, forward and backward, by the schedule with fewer reads."""
    shapes = collections.Counter((conv.k, conv.side // conv.stride, residual) for conv, residual in convolutions(size))
    for (c, side, residual), count in shapes.items():
        rows = batch * side**2
        x = rows * c
        slice_bytes = width * rows * min(c, 64)
        # Forward: residual read, mask written. Backward: residual gradient written, mask read.
        extra = width * x + x // 8 if residual else 0
        name = f"{c}x{side}x{side}{' + residual' if residual else ''}"
        yield Kernel(f"bn forward {name}", count, 3 * width * x + extra, 0, width * x,
                     kept_share(rows, c, 1, width, MULTIPROCESSORS), slice_bytes)
        yield Kernel(f"bn backward {name}", count, 5 * width * x + extra, 0, 2 * width * x,
                     kept_share(rows, c, 2, width, MULTIPROCESSORS - spare), 2 * slice_bytes)


def other_kernels(batch, size=224, width=2, image_channels=IMAGE_CHANNELS):
    stem = batch * (size // 2) ** 2 * 64
    pooled = stem // 4
    parameters = 25_557_032
    yield Kernel("normalise pixels u8", 1, batch * size**2 * (3 + width * image_channels), 0)
    yield Kernel("max-pool forward", 1, width * (stem + pooled) + pooled, 0)
    yield Kernel("max-pool backward", 1, width * (stem + pooled) + pooled, 0)
    yield Kernel("global average pool, both", 1, 2 * width * batch * 2048 * 50, 0)
    yield Kernel("fc, all three", 1, 3 * width * (2048 * 1000 + batch * 3048), 6 * batch * 2048 * 1000)
    yield Kernel("gradient norm", 1, 4 * parameters, 0)
    yield Kernel("update, momentum", 1, (4 + 8 + 8 + width) * parameters, 0)


def seconds(kernel, bandwidth=BANDWIDTH, rate=RATE):
    """Roofline lower bound, without re-reads."""
    return max((kernel.bytes - kernel.again) / bandwidth, kernel.flops / rate)


def expected_seconds(kernel, of):
    """Predicted time under a set of assumptions."""
    found = min(kernel.kept + min(of.l2 / kernel.slice, 1) * (1 - kernel.kept), 1) if kernel.again else 0
    moved, computed = (kernel.bytes - found * kernel.again) / of.bandwidth, kernel.flops / of.rate
    return max(moved, computed) + of.unhidden * min(moved, computed) + of.gap


def step(batch, spare=0, image_channels=IMAGE_CHANNELS):
    """{group: kernels}"""
    return {"convolutions": list(conv_kernels(batch, image_channels=image_channels)),
            "batch norm": list(norm_kernels(batch, spare=spare)),
            "other": list(other_kernels(batch, image_channels=image_channels))}


def total(groups, of):
    return sum(kernel.count * expected_seconds(kernel, of) for members in groups.values() for kernel in members)


def without(groups, bytes_spared, launches_spared):
    """The step with this many bytes and launches removed."""
    return dict(groups, spared=[Kernel("spared", -1, bytes_spared, 0), Kernel("launches", 1 - launches_spared, 0, 0)])


def changes(batch, of):
    """(optimisation, seconds saved), largest first. Fused batch norm on load counts saved memory traffic only: how much its
    older cuDNN engines lose has to be measured."""
    groups, size = step(batch), 224
    stem, now = batch * (size // 2) ** 2 * 64, total(groups, of)
    between = 2 * sum(2 * batch * (conv.side // conv.stride) ** 2 * conv.k
                      for conv, residual in list(convolutions())[1:] if not residual and not (conv.kernel == 1 and conv.k > conv.c))
    found = [("f16 with batch norm fused on load instead of bf16, at most", now - total(without(groups, between, 1), of)),
             ("non-temporal stores of y and dx, if L2 keeps 15 MB more", now - total(groups, of._replace(l2=of.l2 + 15e6))),
             ("max-pool backward fused into the stem's batch norm", now - total(without(groups, 2 * 2 * stem, 1), of)),
             ("four padded channels in the stem instead of eight", now - total(step(batch, image_channels=4), of)),
             ("one launch for all weight-gradient conversions", now - total(without(groups, 0, 53), of)),
             ("16 multiprocessors reserved for NCCL in the backward pass", now - total(step(batch, spare=16), of))]
    return sorted(found, key=lambda change: -change[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=MACHINES, default="h200")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--kernels", action="store_true", help="print every kernel")
    o = parser.parse_args()
    hopeful, cautious = MACHINES[o.gpu].values()
    groups = step(o.batch)
    print(f"ms on an {o.gpu.upper()}: predicted, not measured\n{'':46} {'ceiling':>8} {'hopeful':>8} {'cautious':>8}")
    ceiling = {"bandwidth": hopeful.bandwidth}
    sums = [0, 0, 0]
    for group, members in groups.items():
        times = [(k, [1e3 * k.count * t for t in (seconds(k, **ceiling), expected_seconds(k, hopeful), expected_seconds(k, cautious))])
                 for k in members]
        for kernel, three in times if o.kernels else ():
            print(f"  {kernel.count:3} x {kernel.name:38} {three[0]:8.3f} {three[1]:8.3f} {three[2]:8.3f}")
        three = [sum(t[i] for _, t in times) for i in range(3)]
        sums = [a + b for a, b in zip(sums, three)]
        print(f"{group:46} {three[0]:8.2f} {three[1]:8.2f} {three[2]:8.2f}")
    print(f"{'step':46} {sums[0]:8.2f} {sums[1]:8.2f} {sums[2]:8.2f}")
    print(f"{'images/s':46} " + " ".join(f"{1e3 * o.batch / s:8.0f}" for s in sums))
    print("possible optimisations, ms saved by the cautious estimate:")
    for what, spared in changes(o.batch, cautious):
        print(f"  {what:62} {1e3 * spared:6.2f}")


if __name__ == "__main__":
    main()
