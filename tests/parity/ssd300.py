"""SSD300 against a PyTorch model with the same random weights: default boxes, head outputs, losses with hard negative
mining, the gradients of all parameters, and detections. PyTorch computes the network in single precision, because
double precision takes a minute, and everything else in double precision.

Usage: ssd300.py PARITY_SSD300 [--device cpu|gpu]

The reference implements tf_cnn_benchmarks' definitions. Its boxes are fractions of the image, shape by shape; the
engine's head outputs are in pixels, cell by cell.
"""

import itertools
import math
import os

from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch
from reference import Reference
from torchvision.ops import boxes as box_ops

F = torch.nn.functional
SIDE, CLASSES = 300, 81
SIDES, STEPS = (38, 19, 10, 5, 3, 1), (8, 16, 32, 64, 100, 300)
SCALES = (21, 45, 99, 153, 207, 261, 315)
RATIOS = ((2,), (2, 3), (2, 3), (2, 3), (2,), (2,))
SHAPES = [2 + 2 * len(ratios) for ratios in RATIOS]
# Extra layers: channels of the 1x1 and of the 3x3 convolution, its stride and padding.
LAYERS = (
    (256, 512, 2, "same"),
    (256, 512, 2, "same"),
    (128, 256, 2, "same"),
    (128, 256, 1, "valid"),
    (128, 256, 1, "valid"),
)
PER_CLASS = PER_IMAGE = 200


def default_boxes():
    """Centres and sizes as fractions, shape by shape."""
    boxes = []
    for side, step, scale, following, ratios in zip(SIDES, STEPS, SCALES, SCALES[1:], RATIOS):
        own, mean = scale / SIDE, math.sqrt(scale * following) / SIDE
        sizes = [(own, own), (mean, mean)]
        for ratio in ratios:
            longer, shorter = own * math.sqrt(ratio), own / math.sqrt(ratio)
            sizes += [(longer, shorter), (shorter, longer)]
        for (w, h), row, column in itertools.product(sizes, range(side), range(side)):
            boxes.append([(column + 0.5) * step / SIDE, (row + 0.5) * step / SIDE, w, h])
    return torch.tensor(boxes, dtype=torch.float64).clamp(0, 1)


def corners(boxes):
    return torch.cat((boxes[:, :2] - boxes[:, 2:] / 2, boxes[:, :2] + boxes[:, 2:] / 2), 1)


def block(net, x, path, width, stride):
    y = net.conv(x, f"{path}.conv1", width, 3, stride, bias=False)
    y = net.conv(net.norm_relu(y, f"{path}.bn1"), f"{path}.conv2", width, 3, bias=False)
    if x.shape[1] != width:
        x = net.conv(x, f"{path}.downsample.0", width, 1, stride, bias=False)
        x = net.norm_relu(x, f"{path}.downsample.1", relu=False)
    return F.relu(x + net.norm_relu(y, f"{path}.bn2", relu=False))


def network(net, x):
    """Deltas and logits of all boxes, shape by shape."""
    x = net.norm_relu(net.conv(x, "conv1", 64, 7, 2, "half", bias=False), "bn1")
    x = net.max_pool(x, 3, 2, "same")
    for stage, blocks in enumerate((3, 4, 6)):
        for i in range(blocks):
            x = block(net, x, f"layer{stage + 1}.{i}", 64 << stage, 2 if stage == 1 and i == 0 else 1)
    maps = [x]
    for i, (hidden, channels, stride, border) in enumerate(LAYERS):
        x = F.relu(net.conv(x, f"additional_blocks.{i}.0", hidden))
        x = F.relu(net.conv(x, f"additional_blocks.{i}.2", channels, 3, stride, border))
        maps.append(x)

    def heads(path, numbers):
        said = [net.conv(x, f"{path}.{i}", SHAPES[i] * numbers, 3) for i, x in enumerate(maps)]
        said = [y.reshape(len(y), SHAPES[i], numbers, -1).transpose(2, 3) for i, y in enumerate(said)]
        return torch.cat([y.reshape(len(y), -1, numbers) for y in said], 1)

    return heads("loc", 4), heads("conf", CLASSES)


def cell_by_cell():
    """Index, shape by shape, of each box of the engine's heads."""
    order, first = [], 0
    for side, shapes in zip(SIDES, SHAPES):
        numbers = first + np.arange(shapes * side * side).reshape(shapes, side * side)
        order.append(numbers.T.ravel())
        first += shapes * side * side
    return np.concatenate(order)


def initialize(model):
    """Weights with few ReLU inputs close to 0, and large head outputs."""
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.uniform_(module.bias, 1.5, 2)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
        elif isinstance(module, torch.nn.Conv2d):
            is_head = name.startswith(("loc", "conf"))
            torch.nn.init.normal_(module.weight, 0, ((0.4 if is_head else 0.5) / module.weight[0].numel()) ** 0.5)
            if module.bias is not None:
                torch.nn.init.uniform_(module.bias, *((-1, 1) if is_head else (1, 2)))


def make_truth(generator, count):
    """Boxes of all sizes, some without any default box of IoU 0.5. Matches must not depend on rounding."""
    boxes = np.zeros((0, 4), np.float32)
    while len(boxes) < count:
        size = generator.uniform(10, 200, 2)
        begin = generator.random(2) * (SIDE - size)
        box = np.float32([[*begin, *(begin + size)]])
        iou = ious(torch.tensor(box).double())[0].sort(descending=True).values
        if iou[0] - iou[1] > 1e-4 and (iou - 0.5).abs().min() > 1e-4:
            boxes = np.concatenate((boxes, box))
    return boxes, generator.integers(1, CLASSES, count)


def ious(boxes):
    return box_ops.box_iou(boxes / SIDE, corners(DEFAULT))


def match(boxes):
    """Ground truth of each default box, or -1: the one of largest IoU, at least 0.5. Each ground truth also gets its
    best default box, the first ground truth in a conflict."""
    iou = ious(boxes)
    best, matched = iou.max(0)
    matched[best < 0.5] = -1
    for truth in reversed(range(len(boxes))):
        matched[iou[truth].argmax()] = truth
    return matched


def encode(boxes):
    own = torch.cat(((boxes[:, :2] + boxes[:, 2:]) / 2, boxes[:, 2:] - boxes[:, :2]), 1) / SIDE
    shifts, ratios = (own[:, :2] - DEFAULT[:, :2]) / DEFAULT[:, 2:], own[:, 2:] / DEFAULT[:, 2:]
    return torch.cat((shifts / 0.1, ratios.log() / 0.2), 1)


def decode(deltas):
    centres = DEFAULT[:, :2] + 0.1 * deltas[:, :2] * DEFAULT[:, 2:]
    return SIDE * corners(torch.cat((centres, DEFAULT[:, 2:] * (0.2 * deltas[:, 2:]).exp()), 1))


def image_losses(deltas, logits, boxes, classes):
    """Class and box losses of one image, and the number of matched boxes."""
    matched = match(boxes)
    positive = matched >= 0
    count = int(positive.sum())
    entropy = F.cross_entropy(logits, torch.where(positive, classes[matched], 0), reduction="none")
    ranks = torch.where(positive, torch.zeros(()).double(), entropy.detach()).argsort(descending=True).argsort()
    class_loss = entropy[positive | (ranks < 3 * count)].sum() / count
    box_loss = F.smooth_l1_loss(deltas[positive], encode(boxes[matched])[positive], reduction="sum") / count
    return class_loss, box_loss, count


def detect(deltas, logits):
    """Boxes, scores and classes of one image."""
    boxes, probabilities = decode(deltas), logits.softmax(1)
    found = []
    for kind in range(1, CLASSES):
        scores = probabilities[:, kind]
        rows = scores.argsort(descending=True)[:PER_CLASS]
        rows = rows[scores[rows] > 0.05]
        rows = rows[box_ops.nms(boxes[rows], scores[rows], 0.5)]
        found += [(scores[row], kind, boxes[row]) for row in rows]
    found = sorted(found, key=lambda one: -one[0])[:PER_IMAGE]
    return [np.array([np.array(one[i]) for one in found]) for i in (2, 0, 1)]


def paired(boxes, scores, classes, expected_boxes, expected_scores, expected_classes):
    """For each expected detection our matching row, or None: the nearest box of the same class and of equal score
    within rounding. Ties have no defined order."""
    rows, left = [], set(range(len(classes)))
    for box, score, kind in zip(expected_boxes, expected_scores, expected_classes):
        alike = [row for row in left if classes[row] == kind and abs(scores[row] - score) <= 1e-5 * score]
        if not alike:
            return None
        rows.append(min(alike, key=lambda row: np.abs(boxes[row] - box).max()))
        left.remove(rows[-1])
    return rows


DEFAULT = default_boxes()
options = arguments()
report = Report()
torch.manual_seed(3)
generator = np.random.default_rng(3)
model = Reference(network, norm=(1e-4, 0.997, True))
images = torch.randn(2, 3, SIDE, SIDE)
with torch.no_grad():
    model.eval()(images[:1])  # creates the layers
initialize(model)
truth = [make_truth(generator, count) for count in (12, 3)]
with scratch() as folder:
    state = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
    save_safetensors(os.path.join(folder, "weights.safetensors"), state)
    room = max(len(classes) for _, classes in truth)
    batch = {"images": nhwc(images), "counts": np.int32([len(classes) for _, classes in truth])}
    batch["boxes"] = np.stack([np.pad(boxes, ((0, room - len(boxes)), (0, 0))) for boxes, _ in truth])
    batch["classes"] = np.stack([np.pad(np.int32(classes), (0, room - len(classes))) for _, classes in truth])
    save_safetensors(os.path.join(folder, "batch.safetensors"), batch)
    run(options.program, os.path.join(folder, "batch.safetensors"), folder, options.device)
    ours = load_safetensors(os.path.join(folder, "results.safetensors"))
    our_gradients = load_safetensors(os.path.join(folder, "gradients.safetensors"))
order = cell_by_cell()
report.check("default boxes", ours["default_boxes"], SIDE * corners(DEFAULT).numpy()[order], 1e-7)
with torch.no_grad():
    deltas, logits = (said.double() for said in model(images))
report.check("deltas", ours["deltas"], deltas.numpy()[:, order], 1e-5, "l2")
report.check("logits", ours["logits"], logits.numpy()[:, order], 1e-5, "l2")
for i in range(2):
    boxes, scores, classes = detect(deltas[i], logits[i])
    count = int(ours["detected_counts"][i])
    found = [ours[f"detected_{name}"][i][:count] for name in ("boxes", "scores", "classes")]
    rows = paired(*found, boxes, scores, classes) if count == len(classes) else None
    if rows is None:
        report.fail(f"detections of image {i}: {count}, expected {len(classes)}, their classes and scores")
        continue
    report.check(f"boxes of image {i}, {count}", found[0][rows], boxes, 1e-5)
    report.check(f"scores of image {i}", found[1], scores, 1e-5)

model.train()
deltas, logits = (said.double() for said in model(images))
losses = [
    image_losses(deltas[i], logits[i], torch.tensor(boxes).double(), torch.tensor(classes))
    for i, (boxes, classes) in enumerate(truth)
]
class_loss, box_loss = (sum(loss[i] for loss in losses) / len(losses) for i in range(2))
(class_loss + box_loss).backward()
print("     matched boxes:", *(count for _, _, count in losses))
expected = np.array([(class_loss + box_loss).item(), class_loss.item(), box_loss.item()])
for i, name in enumerate(["total", "classes", "boxes"]):
    report.check(f"loss of {name}", ours["losses"][i : i + 1], expected[i : i + 1], 1e-5)
gradients = {name: p.grad.numpy() for name, p in model.named_parameters()}
errors = {name: report.error(our_gradients[name], gradients[name], "l2") for name in gradients}
worst = max(errors, key=errors.get)
report.judge(f"gradient, worst of {len(errors)} ({worst})", errors[worst], 2e-3)


def joined(tensors):
    return np.concatenate([np.float64(tensors[name]).ravel() for name in gradients])


report.check("gradient of all parameters", joined(our_gradients), joined(gradients), 1e-4, "l2")
report.exit()
