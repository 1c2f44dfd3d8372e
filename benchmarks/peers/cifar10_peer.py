#!/usr/bin/env python3
"""Trains a ResNet on CIFAR-10 in PyTorch by the recipe of compare_cifar10.py.

cifar10_peer.py DIR [--depth 20] [--device cpu] [--seed 1] [--epochs 10] ...
DIR has train/<class>/* and test/<class>/*. On a GPU all images are kept in device memory. Prints a line per epoch, then one
line of JSON.
"""
import argparse
import json
import math
import pathlib
import time

import numpy
import PIL.Image
import torch
from torch import nn

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")  # labels 0 to 9
PADDING = 4


class Block(nn.Module):
    def __init__(self, channels, width, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.downsample = None
        if stride != 1 or channels != width:
            self.downsample = nn.Sequential(nn.Conv2d(channels, width, 1, stride, bias=False), nn.BatchNorm2d(width))

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return torch.relu(self.bn2(self.conv2(y)) + shortcut)


class CifarResNet(nn.Module):
    """The CIFAR ResNet of models/resnet.cpp: three stages of (depth - 2) / 6 blocks, the same names and initialisation."""

    def __init__(self, depth):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 16, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(16)
        others = (depth - 2) // 6 - 1  # blocks per stage after the first
        self.layer1 = nn.Sequential(Block(16, 16, 1), *(Block(16, 16, 1) for _ in range(others)))
        self.layer2 = nn.Sequential(Block(16, 32, 2), *(Block(32, 32, 1) for _ in range(others)))
        self.layer3 = nn.Sequential(Block(32, 64, 2), *(Block(64, 64, 1) for _ in range(others)))
        self.fc = nn.Linear(64, len(CLASSES))
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        deviation = math.sqrt(1 / self.fc.in_features)
        nn.init.trunc_normal_(self.fc.weight, std=deviation, a=-2 * deviation, b=2 * deviation)
        nn.init.zeros_(self.fc.bias)

    def forward(self, x):
        y = torch.relu(self.bn1(self.conv1(x)))
        y = self.layer3(self.layer2(self.layer1(y)))
        return self.fc(y.mean((2, 3)))


def read_split(folder, limit):
    """uint8 images [n, 32, 32, 3] and labels [n]; a limit is divided equally among the classes."""
    images, labels = [], []
    for label, name in enumerate(CLASSES):
        files = sorted((folder / name).iterdir())
        for file in files[: limit // len(CLASSES)] if limit else files:
            images.append(numpy.asarray(PIL.Image.open(file).convert("RGB")))
            labels.append(label)
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels)


def normalised(images):
    return (images / 127.5 - 1).permute(0, 3, 1, 2)


def augmented(images):
    """Zero-padded, randomly cropped to the original size, and flipped with p = 0.5."""
    (count, size), device = images.shape[:2], images.device
    padded = nn.functional.pad(images, (0, 0, PADDING, PADDING, PADDING, PADDING))
    window = torch.arange(size, device=device)
    flipped = torch.where(torch.rand(count, 1, device=device) < 0.5, window.flip(0), window)
    rows, columns = (torch.randint(2 * PADDING + 1, (count, 1), device=device) + places for places in (window, flipped))
    return padded[torch.arange(count, device=device)[:, None, None], rows[:, :, None], columns[:, None, :]]


def batches(count, batch, steps):
    """Batches of shuffled indices; a batch may span two epochs, as in dtrain's loader."""
    order = torch.empty(0, dtype=torch.long)
    for _ in range(steps):
        while len(order) < batch:
            order = torch.cat([order, torch.randperm(count)])
        yield order[:batch]
        order = order[batch:]


def rate_at(step, steps, warmup, base):
    """Linear warm-up from 0, then cosine decay to 0, as Schedule::at of libdtrain/train/schedule.cpp."""
    if step < warmup:
        return base * step / warmup
    return base * (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


def autocast(options):
    return torch.autocast("cuda" if options.device == "gpu" else "cpu", torch.bfloat16, enabled=options.precision == "bf16")


def train(model, images, labels, options):
    """Trains the model and returns the number of images processed."""
    count, batch = len(labels), options.batch_size
    steps = math.ceil(options.epochs * count / batch)
    warmup = int(options.warmup_epochs * count / batch)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    optimizer = torch.optim.SGD([{"params": matrices, "weight_decay": options.weight_decay}, {"params": vectors}],
                                options.learning_rate, momentum=0.9, nesterov=True)
    loss_of = nn.CrossEntropyLoss()
    model.train()
    losses, start = [], time.perf_counter()
    for step, chosen in enumerate(batches(count, batch, steps)):
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps, warmup, options.learning_rate)
        chosen = chosen.to(images.device)
        with autocast(options):
            loss = loss_of(model(normalised(augmented(images[chosen]))), labels[chosen])
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
        if (step + 1) * batch // count > step * batch // count or step + 1 == steps:
            mean = torch.stack(losses).mean().item()  # synchronises the GPU
            speed = len(losses) * batch / (time.perf_counter() - start)
            print(f"epoch {(step + 1) * batch / count:.2f}: loss {mean:.4f}, {speed:.1f} images/s", flush=True)
            losses, start = [], time.perf_counter()
    return steps * batch


@torch.no_grad()
def top_1_of(model, images, labels, options):
    model.eval()
    with autocast(options):
        right = sum((model(normalised(part)).argmax(1) == truth).sum().item()
                    for part, truth in zip(images.split(options.batch_size), labels.split(options.batch_size)))
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--depth", type=int, default=20)
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--precision", choices=("fp32", "bf16"), default="fp32")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=float, default=10)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=128)
    parser.add_argument("--learning_rate", type=float, default=0.1)
    parser.add_argument("--warmup_epochs", type=float, default=1)
    parser.add_argument("--weight_decay", type=float, default=5e-4)
    parser.add_argument("--limit", type=int, default=0, help="images per split; 0: all")
    options = parser.parse_args()

    torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    torch.backends.cudnn.benchmark = True
    device = "cuda" if options.device == "gpu" else "cpu"
    (train_images, train_labels), (test_images, test_labels) = (
        [tensor.to(device) for tensor in read_split(options.folder / split, options.limit)] for split in ("train", "test"))
    model = CifarResNet(options.depth).to(device, memory_format=torch.channels_last)

    start = time.perf_counter()
    trained = train(model, train_images, train_labels, options)
    seconds = time.perf_counter() - start
    top_1 = top_1_of(model, test_images, test_labels, options)
    print(json.dumps({"top_1": top_1, "examples": len(test_labels), "seed": options.seed, "seconds": round(seconds, 1),
                      "images_per_sec": round(trained / seconds, 1), "torch": torch.__version__}))


if __name__ == "__main__":
    main()
