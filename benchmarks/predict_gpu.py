"""What ResNet-50 v1.5 asks of a GPU per step, kernel by kernel, and the least time that its ceilings allow.

Bytes: each kernel reads its inputs and writes its outputs once. FLOPs: two per multiply-add. A prediction is the larger
of bytes over bandwidth and FLOPs over rate; by default the rates are those of an H200: 4.3 TB/s read and written, 790
TFLOP/s in 16 bits.
"""
import collections

Kernel = collections.namedtuple("Kernel", "name count bytes flops")
Conv = collections.namedtuple("Conv", "c k side kernel stride")
BANDWIDTH, RATE = 4.3e12, 790e12
IMAGE_CHANNELS = 8  # three, padded to 16 bytes in 16-bit types


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


def conv_kernels(batch, size=224, width=2):
    """fprop, dgrad (not of the stem) and wgrad (f32 out) of each shape: 158 launches in all."""
    for conv, count in collections.Counter(conv for conv, _ in convolutions(size)).items():
        out = conv.side // conv.stride
        c = IMAGE_CHANNELS if conv.c == 3 else conv.c
        x, y = batch * conv.side**2 * c, batch * out**2 * conv.k
        w = conv.k * conv.kernel**2 * c
        flops = 2 * y * conv.kernel**2 * conv.c
        shape = f"{conv.c}x{conv.side}->{conv.k} {conv.kernel}x{conv.kernel}/{conv.stride}"
        yield Kernel(f"fprop {shape}", count, width * (x + w + y), flops)
        if conv.c != 3:
            yield Kernel(f"dgrad {shape}", count, width * (x + w + y), flops)
        yield Kernel(f"wgrad {shape}", count, width * (x + y) + 4 * w, flops)


def norm_kernels(batch, size=224, width=2):
    """Batch norm, residual add and ReLU in one pass where the second read comes from the chip, and its backward."""
    shapes = collections.Counter((conv.k, conv.side // conv.stride, residual) for conv, residual in convolutions(size))
    for (c, side, residual), count in shapes.items():
        x = batch * side**2 * c
        # The residual read and the mask written, or its gradient and the mask.
        extra = width * x + x // 8 if residual else 0
        name = f"{c}x{side}x{side}{' + residual' if residual else ''}"
        yield Kernel(f"bn forward {name}", count, 2 * width * x + extra, 0)
        yield Kernel(f"bn backward {name}", count, 3 * width * x + extra, 0)


def other_kernels(batch, size=224, width=2):
    stem = batch * (size // 2) ** 2 * 64
    pooled = stem // 4
    parameters = 25_557_032
    yield Kernel("normalise pixels u8", 1, batch * size**2 * (3 + width * IMAGE_CHANNELS), 0)
    yield Kernel("max-pool forward", 1, width * (stem + pooled) + pooled, 0)
    yield Kernel("max-pool backward", 1, width * (stem + pooled) + pooled, 0)
    yield Kernel("global average pool, both", 1, 2 * width * batch * 2048 * 50, 0)
    yield Kernel("fc, all three", 1, 3 * width * (2048 * 1000 + batch * 3048), 6 * batch * 2048 * 1000)
    yield Kernel("norm of the gradient", 1, 4 * parameters, 0)
    yield Kernel("update, momentum", 1, (4 + 8 + 8 + width) * parameters, 0)


def seconds(kernel, bandwidth=BANDWIDTH, rate=RATE):
    return max(kernel.bytes / bandwidth, kernel.flops / rate)


def step(batch):
    """{group: kernels}"""
    return {"convolutions": list(conv_kernels(batch)), "batch norm": list(norm_kernels(batch)), "other": list(other_kernels(batch))}
