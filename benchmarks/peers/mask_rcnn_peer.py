#!/usr/bin/env python3
"""torchvision counterpart of detector_bench: a training step or inference of maskrcnn_resnet50_fpn.

mask_rcnn_peer.py --folder FOLDER --make [--height 320] [--width 480] [--batch 2]   writes weights and a batch for both programs
mask_rcnn_peer.py --folder FOLDER --mode train|infer [--threads 2] [--steps 5] [--warmup 1] [--channels_last]
    [--device cpu|gpu] [--precision fp32|tf32|bf16|fp16]

Images are already resized and normalised. Masks are not pasted into the image, in either program. Prints one line of JSON.
"""
import argparse
import contextlib
import json
import pathlib
import resource
import statistics
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/parity"))
from detection_model import batch_of, make_model, make_truth
from parity import load_safetensors, np, save_safetensors, torch, torchvision
from torchvision.models.detection.image_list import ImageList

parser = argparse.ArgumentParser()
parser.add_argument("--folder", type=pathlib.Path, required=True)
parser.add_argument("--make", action="store_true")
parser.add_argument("--mode", choices=("train", "infer"), default="train")
parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
parser.add_argument("--precision", choices=("fp32", "tf32", "bf16", "fp16"), default="fp32")
parser.add_argument("--height", type=int, default=320)
parser.add_argument("--width", type=int, default=480)
parser.add_argument("--batch", type=int, default=2)
parser.add_argument("--objects", type=int, default=8)
parser.add_argument("--channels_last", action="store_true")
parser.add_argument("--threads", type=int, default=2)
parser.add_argument("--steps", type=int, default=5)
parser.add_argument("--warmup", type=int, default=1)
options = parser.parse_args()

torch.set_num_threads(options.threads)
torch.manual_seed(1)
on_gpu = options.device == "gpu"
device = "cuda" if on_gpu else "cpu"
HALF = {"bf16": torch.bfloat16, "fp16": torch.float16}
if on_gpu:
    torch.backends.cudnn.benchmark = True
    torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = options.precision == "tf32"
generator = np.random.default_rng(1)


def make_files():
    height, width, n = options.height, options.width, options.batch
    coarse = torch.randn(n, 3, height // 8, width // 8)
    images = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")
    images += 0.3 * torch.randn_like(images)
    targets = [make_truth(generator, height, width, options.objects) for _ in range(n)]
    options.folder.mkdir(parents=True, exist_ok=True)
    batch = batch_of(images, [(height, width)] * n, targets, options.objects)
    save_safetensors(options.folder / "batch.safetensors", batch)
    masks = np.stack([target["masks"].numpy() for target in targets])
    save_safetensors(options.folder / "masks.safetensors", {"masks": masks.astype(np.int32)})
    state = {name: value.detach().numpy() for name, value in make_model().state_dict().items()}
    save_safetensors(options.folder / "weights.safetensors", state)


def read_files():
    batch = load_safetensors(options.folder / "batch.safetensors")
    masks = load_safetensors(options.folder / "masks.safetensors")["masks"]
    images = torch.tensor(batch["images"]).permute(0, 3, 1, 2).contiguous()
    targets = [
        {"boxes": torch.tensor(boxes), "labels": torch.tensor(classes).long(), "masks": torch.tensor(mask).byte()}
        for boxes, classes, mask in zip(batch["boxes"], batch["classes"], masks)
    ]
    model = make_model()
    weights = load_safetensors(options.folder / "weights.safetensors")
    model.load_state_dict({name: torch.tensor(value) for name, value in weights.items()})
    layout = torch.channels_last if options.channels_last else torch.contiguous_format
    targets = [{name: value.to(device) for name, value in target.items()} for target in targets]
    return model.to(device, memory_format=layout), images.to(device, memory_format=layout), targets


def autocast():
    """Autocast of backbone and heads, as in torchvision's reference training."""
    if options.precision in HALF:
        return torch.autocast(device, HALF[options.precision])
    return contextlib.nullcontext()


if options.make:
    make_files()
    sys.exit(0)

model, images, targets = read_files()
sizes = [tuple(images.shape[2:])] * len(images)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], 1e-6, momentum=0.9)
scaler = torch.amp.GradScaler(device, enabled=options.precision == "fp16") if on_gpu else None
loss = detections = 0


def train():
    global loss
    optimizer.zero_grad()
    with autocast():
        maps = model.backbone(images)
        proposals, rpn = model.rpn(ImageList(images, sizes), maps, targets)
        _, heads = model.roi_heads(maps, proposals, sizes, targets)
        total = sum([*rpn.values(), *heads.values()])
    if scaler:
        scaler.scale(total).backward()
        scaler.step(optimizer)
        scaler.update()
    else:
        total.backward()
        optimizer.step()
    loss = total.item()


def infer():
    global detections
    with torch.no_grad(), autocast():
        maps = model.backbone(images)
        proposals, _ = model.rpn(ImageList(images, sizes), maps)
        found, _ = model.roi_heads(maps, proposals, sizes)
    detections = sum(len(one["scores"]) for one in found)


def times_of(step):
    begin, processor = time.perf_counter(), time.process_time()
    step()
    if on_gpu:
        torch.cuda.synchronize()
    return time.perf_counter() - begin, time.process_time() - processor


step = train if options.mode == "train" else infer
model.train(options.mode == "train")
for _ in range(options.warmup):
    step()
seconds, processor = zip(*(times_of(step) for _ in range(options.steps)))
report = {
    "model": f"torchvision {torchvision.__version__} maskrcnn_resnet50_fpn, torch {torch.__version__}",
    "layout": "channels_last" if options.channels_last else "NCHW",
    "mode": options.mode,
    "batch": len(images),
    "threads": options.threads,
    "seconds": statistics.median(seconds),
    "processor_seconds": statistics.median(processor),
    "loss": loss,
    "detections": detections,
    "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
}
if on_gpu:
    report.update(device=torch.cuda.get_device_name(), precision=options.precision,
                  peak_device_mib=torch.cuda.max_memory_allocated() >> 20)
print(json.dumps(report))
