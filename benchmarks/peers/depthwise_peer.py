#!/usr/bin/env python3
"""PyTorch counterpart of depthwise_bench: forward, dgrad and wgrad of depthwise convolutions.

depthwise_peer.py [--device cpu|gpu] [--batch 16] [--threads 2] [--channels_last] [--seconds 0.2] [--filter REGEX]
Prints one line of JSON: seconds per pass in fp32, by the names of depthwise_bench after device and type. With one thread
they are processor seconds. Strided layers use symmetric padding here and SAME padding there; the output sizes are equal.
"""
import argparse
import json
import re
import statistics
import time

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--channels_last", action="store_true")
parser.add_argument("--seconds", type=float, default=0.2, help="duration of each measurement")
parser.add_argument("--filter", default="", help="regular expression for names")
options = parser.parse_args()

import torch

LAYERS = [(112, 32, 3, 1), (112, 64, 3, 2), (56, 128, 3, 1), (56, 128, 3, 2), (28, 256, 3, 1), (28, 256, 3, 2),
          (14, 512, 3, 1), (14, 512, 3, 2), (7, 1024, 3, 1), (28, 44, 5, 1), (28, 88, 5, 2), (56, 44, 7, 2)]
torch.set_num_threads(options.threads)
torch.backends.cudnn.benchmark = True
device = "cuda" if options.device == "gpu" else "cpu"
layout = torch.channels_last if options.channels_last else torch.contiguous_format


def seconds_of(work):
    def finish():
        if device == "cuda":
            torch.cuda.synchronize()

    work()
    finish()
    # Processor time of one thread is robust to other load.
    clock = time.thread_time if device == "cpu" and options.threads == 1 else time.perf_counter
    times, end = [], clock() + options.seconds
    while clock() < end or len(times) < 5:
        start = clock()
        work()
        finish()
        times.append(clock() - start)
    return statistics.median(times)


def made(*shape):
    return torch.rand(shape, device=device).contiguous(memory_format=layout)


result = {}
for size, channels, kernel, stride in LAYERS:
    padding = kernel // 2  # the output size of SAME, for even sizes and odd kernels
    out = (size + stride - 1) // stride
    x, y = made(options.batch, channels, size, size), made(options.batch, channels, out, out)
    w = torch.rand(channels, 1, kernel, kernel, device=device)

    def gradient(mask):
        return torch.ops.aten.convolution_backward(y, x, w, None, [stride] * 2, [padding] * 2, [1, 1], False, [0, 0], channels, mask)

    passes = {"forward": lambda: torch.nn.functional.conv2d(x, w, None, stride, padding, 1, channels),
              "dgrad": lambda: gradient([True, False, False]), "wgrad": lambda: gradient([False, True, False])}
    for name, work in passes.items():
        full = f"{name}/{size}x{channels}/k{kernel}s{stride}"
        if re.search(options.filter, full):
            with torch.no_grad():
                result[full] = seconds_of(work)
print(json.dumps(result))
