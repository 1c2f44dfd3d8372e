"""Ops of a two-stage detector against torchvision: selections exactly, values within a bound.

Usage: detection_ops.py PARITY_OPS [--device cpu|gpu]; PARITY_OPS is the program that runs the engine's side. Both sides
use float32, so that IoUs are compared bit for bit.
"""

import os
from parity import Report, arguments, load_safetensors, run, save_safetensors, scratch, torch
from torchvision.models.detection._utils import BoxCoder, Matcher
from torchvision.models.detection.anchor_utils import AnchorGenerator
from torchvision.models.detection.image_list import ImageList
from torchvision.ops import boxes as box_ops

EXACT, ROUNDED = 0, 1e-6  # relative to the largest element

options = arguments()
report = Report()
inputs, metadata, checks = {}, {}, []
generator = torch.Generator().manual_seed(11)


def random(*shape):
    return torch.rand(*shape, generator=generator)


def random_boxes(count, extent=300, size=120):
    corner = extent * random(count, 2)
    return torch.cat((corner, corner + 1 + size * random(count, 2)), 1)


def case(name, op, tensors, expected, bound, options=""):
    for key, tensor in tensors.items():
        inputs[f"{name}.{key}"] = tensor.numpy()
    metadata[name] = f"{op} {options}"
    checks.append((name, {key: tensor.numpy() for key, tensor in expected.items()}, bound))


def box_iou():
    boxes, others = random_boxes(500), random_boxes(300)
    case("box_iou", "box_iou", {"boxes": boxes, "others": others}, {"iou": box_ops.box_iou(boxes, others)}, EXACT)


def box_coder(weights, limited):
    boxes, anchors, codes = random_boxes(400), random_boxes(400), 8 * random(400, 3, 4) - 4
    coder = BoxCoder(weights)
    decoded = coder.decode(codes.reshape(400, 12), [anchors]).reshape(400, 3, 4)
    tensors = {"boxes": boxes, "anchors": anchors, "codes": codes}
    if limited:
        tensors["limits"] = torch.tensor([[250.0, 340.0]]).repeat(400, 1)
        decoded = box_ops.clip_boxes_to_image(decoded, (250, 340))
    expected = {"deltas": coder.encode([boxes], [anchors])[0], "decoded": decoded}
    case(f"box_coder {weights} {'limited' if limited else 'free'}", "box_coder", tensors, expected, ROUNDED,
         " ".join(f"{key}={value}" for key, value in zip(("wx", "wy", "ww", "wh"), weights)))


def match_boxes(positive, negative, keep_best):
    boxes, counts = random_boxes(3000), (40, 1, 17)
    truth = torch.stack([random_boxes(40) for _ in counts])
    matcher = Matcher(positive, negative, keep_best)
    matched = [matcher(box_ops.box_iou(own[:count], boxes)) for own, count in zip(truth, counts)]
    tensors = {"boxes": boxes, "truth": truth, "counts": torch.tensor(counts, dtype=torch.int32)}
    case(f"match_boxes {positive} {negative}{' keep_best' if keep_best else ''}", "match_boxes", tensors,
         {"matched": torch.stack(matched)}, EXACT,
         f"positive={positive} negative={negative} keep_best={int(keep_best)}")


def nms(threshold, classes, k, m):
    boxes, scores = random_boxes(2000), random(2000)
    groups = torch.randint(0, classes, (2000,), generator=generator, dtype=torch.int32)
    values, top = torch.topk(scores, k)
    kept = box_ops._batched_nms_vanilla(boxes[top], values, groups[top], threshold)[:m]
    padded = torch.cat((top[kept], torch.zeros(m - len(kept), dtype=torch.int64)))
    tensors = {"boxes": boxes[None], "scores": scores[None], "groups": groups[None]}
    expected = {"values": values[None], "top": top[None], "counts": torch.tensor([len(kept)]), "kept": padded[None]}
    case(f"nms {threshold}, {classes} classes, {m} of {k}", "nms", tensors, expected, EXACT,
         f"threshold={threshold} k={k} m={m}")


def anchors(sizes, quarters, rows, columns, stride_h, stride_w):
    make = AnchorGenerator((sizes,), (tuple(quarter / 4 for quarter in quarters),))
    images = torch.zeros(1, 3, rows * stride_h, columns * stride_w)
    expected = make(ImageList(images, [tuple(images.shape[2:])]), [torch.zeros(1, 1, rows, columns)])[0]
    listed = [",".join(map(str, values)) for values in (sizes, quarters)]
    case(f"anchors {sizes} {quarters}", "anchors", {}, {"anchors": expected}, EXACT,
         f"sizes={listed[0]} quarters={listed[1]} map={rows},{columns} stride_h={stride_h} stride_w={stride_w}")


box_iou()
for coder_weights in ((1.0, 1.0, 1.0, 1.0), (10.0, 10.0, 5.0, 5.0)):
    for is_limited in (False, True):
        box_coder(coder_weights, is_limited)
for kept_best in (False, True):
    match_boxes(0.7, 0.3, kept_best)
    match_boxes(0.5, 0.5, kept_best)
nms(0.7, 1, 1000, 1000)
nms(0.5, 5, 2000, 300)
nms(0.3, 80, 777, 777)
anchors((32,), (2, 4, 8), 20, 30, 4, 4)
anchors((128, 256, 511), (1, 2, 3, 4, 7, 12), 7, 5, 16, 32)

with scratch() as folder:
    cases, results = os.path.join(folder, "cases"), os.path.join(folder, "results")
    save_safetensors(cases, inputs, metadata)
    run(options.program, cases, results, options.device)
    ours = load_safetensors(results)
for name, expected, bound in checks:
    for key, value in expected.items():
        report.check(f"{name}: {key}", ours[f"{name}.{key}"], value, bound)
report.exit()
