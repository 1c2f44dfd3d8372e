#!/usr/bin/env python3
"""torchvision side of compare_convergence.py, evaluated by pycocotools.

nuclei_peer.py --make WEIGHTS --seed N                          writes torchvision's initial weights for both programs
nuclei_peer.py --weights WEIGHTS --seed N --metrics METRICS --data DIR [--threads 2]
    trains on DIR with the learning rates of METRICS, the metrics file of dtrain-mask-rcnn

The recipe is benchmarks/nuclei.cfg. Prints one line of JSON.
"""
import argparse
import contextlib
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests/parity"))
from parity import load_safetensors, np, save_safetensors, torch, torchvision
from PIL import Image
from pycocotools import mask as coco_mask
from pycocotools.coco import COCO
from pycocotools.cocoeval import COCOeval
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.backbone_utils import BackboneWithFPN, LastLevelMaxPool
from torchvision.models.detection.faster_rcnn import FastRCNNPredictor, TwoMLPHead
from torchvision.models.detection.mask_rcnn import MaskRCNN, MaskRCNNHeads, MaskRCNNPredictor
from torchvision.models.resnet import BasicBlock, ResNet

BATCH, CLASSES, CHANNELS, HIDDEN = 4, 2, 64, 256

parser = argparse.ArgumentParser()
parser.add_argument("--make", type=pathlib.Path)
parser.add_argument("--weights", type=pathlib.Path)
parser.add_argument("--metrics", type=pathlib.Path)
parser.add_argument("--data", type=pathlib.Path)
parser.add_argument("--seed", type=int, default=1)
parser.add_argument("--threads", type=int, default=2)
options = parser.parse_args()
torch.set_num_threads(options.threads)
torch.manual_seed(options.seed)


def make_model():
    layers = {f"layer{i + 1}": str(i) for i in range(4)}
    backbone = BackboneWithFPN(ResNet(BasicBlock, [1, 1, 1, 1]), layers, [64, 128, 256, 512], CHANNELS,
                               LastLevelMaxPool())
    return MaskRCNN(
        backbone,
        rpn_anchor_generator=AnchorGenerator(tuple((size,) for size in (8, 16, 32, 64, 128)), ((0.5, 1.0, 2.0),) * 5),
        box_head=TwoMLPHead(CHANNELS * 7**2, HIDDEN),
        box_predictor=FastRCNNPredictor(HIDDEN, CLASSES),
        mask_head=MaskRCNNHeads(CHANNELS, (CHANNELS,) * 4, 1),
        mask_predictor=MaskRCNNPredictor(CHANNELS, CHANNELS, CLASSES),
        min_size=224,
        max_size=224,
        rpn_pre_nms_top_n_train=500,
        rpn_post_nms_top_n_train=500,
        rpn_pre_nms_top_n_test=500,
        rpn_post_nms_top_n_test=500,
        box_batch_size_per_image=128,
    )


def samples_of(folder, split):
    """Images [3, h, w] from 0 to 1 and their targets, all in memory."""
    coco = COCO(folder / f"annotations/instances_{split}.json")
    samples = []
    for number, about in coco.imgs.items():
        with Image.open(folder / split / about["file_name"]) as image:
            pixels = torch.from_numpy(np.array(image.convert("RGB"))).permute(2, 0, 1).float() / 255
        objects = coco.imgToAnns[number]
        masks = torch.from_numpy(np.stack([coco.annToMask(one) for one in objects]))
        boxes = torch.tensor([one["bbox"] for one in objects])
        boxes[:, 2:] += boxes[:, :2]
        samples.append((pixels, {"image_id": number, "boxes": boxes, "masks": masks,
                                 "labels": torch.ones(len(objects), dtype=torch.long)}))
    return coco, samples


def flipped(pixels, target):
    width = pixels.shape[2]
    boxes = target["boxes"].clone()
    boxes[:, [0, 2]] = width - boxes[:, [2, 0]]
    return pixels.flip(2), {**target, "boxes": boxes, "masks": target["masks"].flip(2)}


def batches(samples):
    """Endless shuffled batches; incomplete batches are dropped."""
    while True:
        order = torch.randperm(len(samples))
        for begin in range(0, len(samples) - BATCH + 1, BATCH):
            chosen = [samples[i] for i in order[begin : begin + BATCH]]
            yield [flipped(*one) if torch.rand(()) < 0.5 else one for one in chosen]


def train(model, samples, rates):
    optimizer = torch.optim.SGD(model.parameters(), rates[0], momentum=0.9, weight_decay=1e-4)
    model.train()
    for step, (rate, batch) in enumerate(zip(rates, batches(samples)), 1):
        for group in optimizer.param_groups:
            group["lr"] = rate
        loss = sum(model(*map(list, zip(*batch))).values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 50 == 0:
            print(f"step {step} of {len(rates)}  loss {loss.item():.4f}", file=sys.stderr, flush=True)


def detections(model, samples):
    """Detections in COCO's results format."""
    model.eval()
    with torch.no_grad():
        for pixels, target in samples:
            found = model([pixels])[0]
            masks = (found["masks"][:, 0] > 0.5).byte().numpy()
            for box, score, mask in zip(found["boxes"].tolist(), found["scores"].tolist(), masks):
                yield {"image_id": target["image_id"], "category_id": 1, "score": score,
                       "bbox": [box[0], box[1], box[2] - box[0], box[3] - box[1]],
                       "segmentation": coco_mask.encode(np.asfortranarray(mask))}


def score(coco, results):
    figures = {}
    for kind in ("bbox", "segm"):
        evaluation = COCOeval(coco, coco.loadRes(results), kind)
        evaluation.evaluate()
        evaluation.accumulate()
        evaluation.summarize()
        figures[kind] = evaluation.stats[:2].tolist()
    return figures


def report():
    model = make_model()
    if options.make:
        save_safetensors(options.make, {name: value.numpy() for name, value in model.state_dict().items()
                                        if value.is_floating_point()})
        return {}
    weights = {name: torch.tensor(value) for name, value in load_safetensors(options.weights).items()}
    model.load_state_dict({**model.state_dict(), **weights})
    with open(options.metrics) as lines:
        rates = [step["learning_rate"] for step in map(json.loads, lines) if "learning_rate" in step]
    begin = time.process_time()
    train(model, samples_of(options.data, "train2018")[1], rates)
    seconds = time.process_time() - begin
    coco, samples = samples_of(options.data, "val2018")
    return {"model": f"torchvision {torchvision.__version__}, torch {torch.__version__}", "steps": len(rates),
            "processor_seconds": seconds, **score(coco, list(detections(model, samples)))}


# pycocotools prints its progress; standard output is reserved for the line of JSON.
with contextlib.redirect_stdout(sys.stderr):
    line = json.dumps(report())
print(line)
