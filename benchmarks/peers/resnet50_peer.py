#!/usr/bin/env python3
"""What step_bench measures, done by PyTorch: the fp32 training step of torchvision's ResNet-50 (v1.5) on synthetic data.

resnet50_peer.py [--channels_last] [--batch 16] [--size 224] [--threads 2] [--steps 5] [--warmup 1]   prints one line of JSON.
"""
import argparse
import json
import os
import resource
import statistics
import time

parser = argparse.ArgumentParser()
parser.add_argument("--channels_last", action="store_true")
parser.add_argument("--batch", type=int, default=16)
parser.add_argument("--size", type=int, default=224)
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--warmup", type=int, default=1)
options = parser.parse_args()

import torch
import torchvision


def process_age():
    with open("/proc/self/stat") as file:
        fields = file.read().rpartition(")")[2].split()
    return time.clock_gettime(time.CLOCK_BOOTTIME) - int(fields[19]) / os.sysconf("SC_CLK_TCK")


torch.set_num_threads(options.threads)
torch.manual_seed(1)
layout = torch.channels_last if options.channels_last else torch.contiguous_format
model = torchvision.models.resnet50().to(memory_format=layout).train()
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9, weight_decay=1e-4)
loss_of = torch.nn.CrossEntropyLoss()
images = torch.rand(options.batch, 3, options.size, options.size).mul_(2).sub_(1).to(memory_format=layout)
labels = torch.randint(1000, (options.batch,))


def step():
    wall, cpu = time.perf_counter(), time.process_time()
    optimizer.zero_grad(set_to_none=True)
    loss = loss_of(model(images), labels)
    loss.backward()
    optimizer.step()
    return time.perf_counter() - wall, time.process_time() - cpu


start, start_cpu = process_age(), time.process_time()
for _ in range(options.warmup):
    step()
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
times = [step() for _ in range(options.steps)]
usage = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps({
    "model": "torchvision resnet50, torch " + torch.__version__,
    "layout": "channels_last" if options.channels_last else "NCHW",
    "batch": options.batch,
    "size": options.size,
    "threads": options.threads,
    "images_per_sec": options.batch / statistics.median(wall for wall, _ in times),
    "images_per_cpu_sec": options.batch / statistics.median(cpu for _, cpu in times),
    "start_to_first_step_s": start,
    "start_to_first_step_cpu_s": start_cpu,
    "peak_mib": usage.ru_maxrss >> 10,
    "page_faults_per_step": (usage.ru_minflt - faults) / options.steps,
}))
