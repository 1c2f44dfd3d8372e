#!/usr/bin/env python3
"""PyTorch counterpart of step_bench: the training step of torchvision's ResNet-50 (v1.5) on synthetic data.

resnet50_peer.py [--device cpu|gpu] [--batch 16] [--size 224] [--steps 5] [--warmup 1] [--channels_last] [--threads 2]
On a GPU also --precision fp32|tf32|bf16|fp16 and --mode eager|compile|graph: eager with cudnn.benchmark, torch.compile
with max-autotune, or the whole step as a CUDA graph. Prints one line of JSON.
"""
import argparse
import contextlib
import json
import os
import resource
import statistics
import time

parser = argparse.ArgumentParser()
parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="fp32")
parser.add_argument("--mode", choices=("eager", "compile", "graph"), default="eager")
parser.add_argument("--channels_last", action="store_true")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--warmup", type=int, default=1)
options = parser.parse_args()

import torch
import torchvision

on_gpu = options.device == "gpu"
device = "cuda" if on_gpu else "cpu"
DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
dtype = DTYPES[options.precision]
LOSS_SCALE = 128.0 if options.precision == "fp16" else 1.0  # static, as in dtrain's run


def process_age():
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


torch.set_num_threads(options.threads)
torch.manual_seed(1)
if on_gpu:
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
layout = torch.channels_last if options.channels_last else torch.contiguous_format
model = torchvision.models.resnet50().to(device, memory_format=layout).train()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss()
images = torch.rand(options.batch, 3, options.size, options.size, device=device).mul_(2).sub_(1).to(memory_format=layout)
labels = torch.randint(1000, (options.batch,), device=device)
forward = torch.compile(model, mode="max-autotune") if options.mode == "compile" else model


def train():
    # A CUDA graph needs gradients at fixed addresses.
    optimizer.zero_grad(set_to_none=options.mode != "graph")
    with torch.autocast(device, dtype) if dtype is not torch.float32 else contextlib.nullcontext():
        loss = loss_of(forward(images), labels) * LOSS_SCALE
    loss.backward()
    if LOSS_SCALE != 1:
        torch._foreach_mul_([parameter.grad for parameter in model.parameters()], 1 / LOSS_SCALE)
    optimizer.step()


def capture():
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            train()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        train()
    return graph.replay


def timed(step):
    if on_gpu:
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        end.synchronize()
        return begin.elapsed_time(end) / 1000, 0.0
    wall, cpu = time.perf_counter(), time.process_time()
    step()
    return time.perf_counter() - wall, time.process_time() - cpu


start, start_cpu = process_age(), time.process_time()
train()
if on_gpu:
    torch.cuda.synchronize()
first = process_age()  # end of the first step, with compilation and autotuning
step = capture() if options.mode == "graph" else train
for _ in range(options.warmup - 1):
    timed(step)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
times = [timed(step) for _ in range(options.steps)]
usage = resource.getrusage(resource.RUSAGE_SELF)
report = {
    "model": "torchvision resnet50, torch " + torch.__version__,
    "layout": "channels_last" if options.channels_last else "NCHW",
    "batch": options.batch,
    "size": options.size,
    "threads": options.threads,
    "images_per_sec": options.batch / statistics.median(wall for wall, _ in times),
    "start_to_first_step_s": start,
    "start_to_end_of_first_step_s": first,
    "start_to_first_step_cpu_s": start_cpu,
    "peak_mib": usage.ru_maxrss >> 10,
    "page_faults_per_step": (usage.ru_minflt - faults) / options.steps,
}
if on_gpu:
    report.update(device=torch.cuda.get_device_name(), precision=options.precision, mode=options.mode,
                  cudnn=torch.backends.cudnn.version(), peak_device_mib=torch.cuda.max_memory_allocated() >> 20,
                  peak_device_reserved_mib=torch.cuda.max_memory_reserved() >> 20)
else:
    report["images_per_cpu_sec"] = options.batch / statistics.median(cpu for _, cpu in times)
print(json.dumps(report))
