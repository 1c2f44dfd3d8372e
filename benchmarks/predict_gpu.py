#!/usr/bin/env python3
"""What ResNet-50 v1.5 asks of a GPU per step, kernel by kernel, and what that takes: the least that the ceilings allow,
and a range. An H200 took 33.0 ms in bf16, of 28.5 to 35.0 predicted; scripts/gpu_check.sh prints what is measured.

    benchmarks/predict_gpu.py [--gpu h200|h100] [--batch 256] [--kernels]

Bytes: each kernel reads its inputs and writes its outputs once, and batch norm reads again what a multiprocessor's shared
memory does not keep (batch_norm_tiling.h) and L2 has lost. FLOPs: two per multiply-add. The ceiling of a kernel is the
larger of bytes over bandwidth and FLOPs over rate: for an H200 4.3 TB/s and 790 TFLOP/s in 16 bits, which large matrix
products reach and convolutions do not. The range is between two sets of assumptions, below.
"""
import argparse
import collections

# `again`: bytes of `bytes` that are a second reading, all of them, of a part of which the chip holds `kept`; `slice`:
# what is read before the second reading begins.
Kernel = collections.namedtuple("Kernel", "name count bytes flops again kept slice", defaults=(0, 0.0, 0))
Conv = collections.namedtuple("Conv", "c k side kernel stride")
BANDWIDTH, RATE = 4.3e12, 790e12
IMAGE_CHANNELS = 8  # three, padded to 16 bytes in 16-bit types
MULTIPROCESSORS, SHARED_BYTES = 132, 227 << 10

# bandwidth, rate of convolutions, how much of the shorter of the two is not hidden behind the longer, bytes that L2 still
# holds when they are read again, seconds between the kernels of a recorded step: judgement, all of it
Assumptions = collections.namedtuple("Assumptions", "bandwidth rate unhidden l2 gap")
MACHINES = {"h200": {"hopeful": Assumptions(4.2e12, 450e12, 0.25, 30e6, 1.2e-6),
                     "cautious": Assumptions(3.7e12, 380e12, 0.4, 0, 1.5e-6)},
            "h100": {"hopeful": Assumptions(2.95e12, 450e12, 0.25, 30e6, 1.2e-6),
                     "cautious": Assumptions(2.6e12, 380e12, 0.4, 0, 1.5e-6)}}


def convolutions(size=224):
    """All in order of execution, each with whether a residual joins its batch norm; `side` is that of the input."""
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
    """fprop, dgrad (not of the stem) and wgrad of each shape: 158 launches in all, and 53 for weight gradients."""
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
    # In each block the gradient through it is added to the one around it, in place: that is read once more.
    entries = [conv for (conv, _), (_, ends) in zip(list(convolutions(size))[1:], list(convolutions(size))[:-1])
               if conv.kernel == 1 and conv.k < conv.c or conv == Conv(64, 64, size // 4, 1, 1)]
    yield Kernel("dgrad, what it adds to", 1, width * batch * sum(conv.side**2 * conv.c for conv in entries), 0)
    yield Kernel("weight gradients to f32", 53, (width + 4) * 25_502_912 // 53, 0)


def kept_share(rows, c, streams, width, multiprocessors):
    """The share of its images that a batch norm keeps in shared memory, as batch_norm_tiling has it."""
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
    """Batch norm, residual add and ReLU, and their backward, with whichever of the two schedules reads less."""
    shapes = collections.Counter((conv.k, conv.side // conv.stride, residual) for conv, residual in convolutions(size))
    for (c, side, residual), count in shapes.items():
        rows = batch * side**2
        x = rows * c
        slice_bytes = width * rows * min(c, 64)
        # The residual read and the mask written, or its gradient and the mask.
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
    yield Kernel("norm of the gradient", 1, 4 * parameters, 0)
    yield Kernel("update, momentum", 1, (4 + 8 + 8 + width) * parameters, 0)


def seconds(kernel, bandwidth=BANDWIDTH, rate=RATE):
    """The least that the ceilings allow: nothing is read twice."""
    return max((kernel.bytes - kernel.again) / bandwidth, kernel.flops / rate)


def expected_seconds(kernel, of):
    """What a kernel takes under a set of assumptions."""
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
    """The same step with a kernel that gives back so many bytes and launches."""
    return dict(groups, spared=[Kernel("spared", -1, bytes_spared, 0), Kernel("launches", 1 - launches_spared, 0, 0)])


def changes(batch, of):
    """(what would change the step, seconds that it would spare), the largest first. on_load is what it does not move:
    what its older engines lose against that only a GPU can tell."""
    groups, size = step(batch), 224
    stem, now = batch * (size // 2) ** 2 * 64, total(groups, of)
    between = 2 * sum(2 * batch * (conv.side // conv.stride) ** 2 * conv.k
                      for conv, residual in list(convolutions())[1:] if not residual and not (conv.kernel == 1 and conv.k > conv.c))
    found = [("f16 with batch norm on load in place of bf16 without, at most", now - total(without(groups, between, 1), of)),
             ("streaming stores of y and dx, if L2 then keeps 15 MB more", now - total(groups, of._replace(l2=of.l2 + 15e6))),
             ("the max-pool's gradient made in the stem's batch norm", now - total(without(groups, 2 * 2 * stem, 1), of)),
             ("four channels of the stem's images in place of eight", now - total(step(batch, image_channels=4), of)),
             ("weight gradients converted in one launch over the arena", now - total(without(groups, 0, 53), of)),
             ("16 multiprocessors left to NCCL backward", now - total(step(batch, spare=16), of))]
    return sorted(found, key=lambda change: -change[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", choices=MACHINES, default="h200")
    parser.add_argument("--batch", type=int, default=256)
    parser.add_argument("--kernels", action="store_true", help="each of them")
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
    print("what would move it, ms spared by the cautious figures:")
    for what, spared in changes(o.batch, cautious):
        print(f"  {what:62} {1e3 * spared:6.2f}")


if __name__ == "__main__":
    main()
