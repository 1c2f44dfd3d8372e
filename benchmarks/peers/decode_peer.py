#!/usr/bin/env python3
"""Counterpart of decode_bench on one core: JPEG decoding, RandomResizedCrop(224), flip and normalisation.

decode_peer.py [DIR] [SECONDS] prints images per second of processor time for PIL + torchvision, for the JPEG decoder of
torchvision with tensor transforms, and for OpenCV if installed.
"""
import io
import pathlib
import random
import sys
import time

import numpy
import torch
import torchvision.io
import torchvision.transforms as transforms
import torchvision.transforms.functional as functional
from PIL import Image

torch.set_num_threads(1)
folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else "../shared/data/imagenet_sample/train")
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 5.0
encoded = [path.read_bytes() for path in sorted(folder.rglob("*.JPEG"))]
tensors = [torch.frombuffer(bytearray(data), dtype=torch.uint8) for data in encoded]
mean, std = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
crop_and_flip = transforms.Compose([transforms.RandomResizedCrop(224), transforms.RandomHorizontalFlip()])


def pil(i):
    image = crop_and_flip(Image.open(io.BytesIO(encoded[i])).convert("RGB"))
    return functional.normalize(functional.to_tensor(image), mean, std)


def torchvision_decode(i):
    image = crop_and_flip(torchvision.io.decode_jpeg(tensors[i], torchvision.io.ImageReadMode.RGB))
    return functional.normalize(functional.convert_image_dtype(image, torch.float32), mean, std)


def pil_decode_only(i):
    return Image.open(io.BytesIO(encoded[i])).convert("RGB")


def torchvision_decode_only(i):
    return torchvision.io.decode_jpeg(tensors[i], torchvision.io.ImageReadMode.RGB)


runs = {
    "PIL + torchvision": pil,
    "torchvision.io.decode_jpeg + tensor transforms": torchvision_decode,
    "PIL, decode only": pil_decode_only,
    "torchvision.io.decode_jpeg, decode only": torchvision_decode_only,
}
try:
    import cv2

    cv2.setNumThreads(1)
    buffers = [numpy.frombuffer(data, numpy.uint8) for data in encoded]
    scale = numpy.broadcast_to(1 / (numpy.float32(std) * 255), (224, 224, 3)).copy()
    shift = numpy.broadcast_to(numpy.float32(mean) / numpy.float32(std), (224, 224, 3)).copy()

    def opencv(i):
        image = cv2.cvtColor(cv2.imdecode(buffers[i], cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        top, left, height, width = transforms.RandomResizedCrop.get_params(
            torch.empty(1, *image.shape[:2]), (0.08, 1.0), (3 / 4, 4 / 3))
        image = cv2.resize(image[top:top + height, left:left + width], (224, 224), interpolation=cv2.INTER_LINEAR)
        if random.random() < 0.5:
            image = cv2.flip(image, 1)
        return cv2.subtract(cv2.multiply(image, scale, dtype=cv2.CV_32F), shift)

    runs["OpenCV"] = opencv
except ImportError:
    print("OpenCV: not installed, not measured")

for name, run in runs.items():
    done, start = 0, time.process_time()
    while time.process_time() - start < seconds:
        run(done % len(encoded))
        done += 1
    print(f"{name}: {done / (time.process_time() - start):.0f} images/s")
