"""Cascade Mask R-CNN, Mask R-CNN without FPN (C4) and with group norm everywhere, against compositions of torchvision's
parts in double precision, with the same random weights and images: proposals, detections with masks, and, with regions
sampled by the engine's random numbers on both sides, all losses and the gradients of all parameters.

Usage: detector_variants.py PARITY_DETECTOR [--device cpu|gpu]
"""

import os
from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch
from detection_batch import OBJECTS, SIZES, EngineSampler, make_images
from detection_model import batch_of, make_model, make_truth
from torch import nn
from torch.nn import functional as F
from torchvision import ops
from torchvision.models import resnet50
from torchvision.models.detection import anchor_utils, backbone_utils, faster_rcnn, mask_rcnn, roi_heads, rpn
from torchvision.models.detection._utils import BoxCoder
from torchvision.models.detection.image_list import ImageList

# As in parity_detector.
CLASSES, FOUND, CANDIDATES, PROPOSALS, REGIONS, POSITIVES = 91, 20, 60, 20, 20, 5
IOUS, WEIGHTS = [0.5, 0.6, 0.7], [[10, 10, 5, 5], [20, 20, 10, 10], [30, 30, 15, 15]]
ANCHOR_SIZES = (32, 64, 128, 256, 512)
RATIOS = (0.5, 1.0, 2.0)
DETECTED = ["boxes", "scores", "classes"]
# Tolerances of detections, of the worst parameter's gradient and of the whole gradient. Group norms amplify rounding:
# torchvision's single precision has errors of 5e-5, 8e-3 and 3e-3 with them.
BOUNDS = {"cascade": (1e-5, 2e-3, 1e-4), "c4": (1e-5, 2e-3, 1e-4), "gn": (2e-4, 3e-2, 1e-2)}
DEVIATIONS = {"cls_logits": 0.05, "head.bbox_pred": 0.02, "cls_score": 0.5, "predictor.bbox_pred": 0.1}


class ScaleGradient(torch.autograd.Function):
    @staticmethod
    def forward(context, x, factor):
        context.factor = factor
        return x.clone()

    @staticmethod
    def backward(context, dy):
        return dy * context.factor, None


def make_rpn(channels, sizes, ratios):
    anchors = anchor_utils.AnchorGenerator(sizes, ratios)
    head = rpn.RPNHead(channels, anchors.num_anchors_per_location()[0])
    before, after = ({phase: n for phase in ("training", "testing")} for n in (CANDIDATES, PROPOSALS))
    network = rpn.RegionProposalNetwork(anchors, head, 0.7, 0.3, 256, 0.5, before, after, 0.7)
    network.fg_bg_sampler.__class__ = EngineSampler
    return network


class Cascade(nn.Module):
    """Cascade of box heads over a feature pyramid."""

    ious, weights = IOUS, WEIGHTS

    def __init__(self):
        super().__init__()
        self.backbone = make_model().backbone
        self.rpn = make_rpn(256, tuple((size,) for size in ANCHOR_SIZES), (RATIOS,) * 5)
        self.roi_heads = nn.Module()
        for number in (1, 2, 3):
            stage = nn.Module()
            stage.box_head = faster_rcnn.TwoMLPHead(256 * 7**2, 1024)
            stage.box_predictor = faster_rcnn.FastRCNNPredictor(1024, CLASSES)
            stage.box_predictor.bbox_pred = nn.Linear(1024, 4)
            setattr(self.roi_heads, f"stage{number}", stage)
        self.roi_heads.mask_head = mask_rcnn.MaskRCNNHeads(256, (256,) * 4, 1)
        self.roi_heads.mask_predictor = mask_rcnn.MaskRCNNPredictor(256, 256, CLASSES)

    def maps(self, images):
        return self.backbone(images)

    def pool(self, maps, regions, resolution):
        return ops.MultiScaleRoIAlign(["0", "1", "2", "3"], resolution, 2)(maps, regions, SIZES)

    def boxes(self, maps, regions, stage):
        head = getattr(self.roi_heads, f"stage{stage + 1}")
        pooled = ScaleGradient.apply(self.pool(maps, regions, 7), 1 / 3)
        return head.box_predictor(head.box_head(pooled))

    def masks(self, maps, regions):
        return self.roi_heads.mask_predictor(self.roi_heads.mask_head(self.pool(maps, regions, 14)))


class C4(nn.Module):
    ious, weights = IOUS[:1], WEIGHTS[:1]

    def __init__(self):
        super().__init__()
        self.backbone = nn.Module()
        self.backbone.body = make_model().backbone.body
        self.rpn = make_rpn(1024, (ANCHOR_SIZES,), (RATIOS,))
        self.roi_heads = nn.Module()
        self.roi_heads.box_predictor = faster_rcnn.FastRCNNPredictor(2048, CLASSES)
        self.roi_heads.mask_predictor = mask_rcnn.MaskRCNNPredictor(2048, 256, CLASSES)

    def maps(self, images):
        body = self.backbone.body
        stem = body.maxpool(body.relu(body.bn1(body.conv1(images))))
        return {"0": body.layer3(body.layer2(body.layer1(stem)))}

    def fourth_stage(self, maps, regions):
        return self.backbone.body.layer4(ops.roi_align(maps["0"], regions, 14, 1 / 16, 2))

    def boxes(self, maps, regions, stage):
        return self.roi_heads.box_predictor(self.fourth_stage(maps, regions).mean((2, 3)))

    def masks(self, maps, regions):
        return self.roi_heads.mask_predictor(self.fourth_stage(maps, regions))


def group_norm(channels):
    norm = nn.GroupNorm(32, channels)
    nn.init.uniform_(norm.weight, 0.5, 1)
    nn.init.normal_(norm.bias, 0, 0.1)
    return norm


class ConvReluNorm(nn.Sequential):
    """TensorPack's order."""

    def __init__(self):
        super().__init__(nn.Conv2d(256, 256, 3, padding=1), group_norm(256))

    def forward(self, x):
        return self[1](self[0](x).relu())


class GroupNormed(nn.Module):
    ious, weights = IOUS[:1], WEIGHTS[:1]
    pool, masks = Cascade.pool, Cascade.masks

    def __init__(self):
        super().__init__()
        body = resnet50(norm_layer=group_norm)
        for name, module in body.named_modules():
            if name.endswith("bn3"):  # keeps the magnitude of residual blocks constant
                nn.init.uniform_(module.weight, 0.15, 0.3)
        stages = {f"layer{i}": str(i - 1) for i in range(1, 5)}
        channels = [256, 512, 1024, 2048]
        self.backbone = backbone_utils.BackboneWithFPN(body, stages, channels, 256)
        for blocks in (self.backbone.fpn.inner_blocks, self.backbone.fpn.layer_blocks):
            for i, block in enumerate(blocks):
                blocks[i] = nn.Sequential(block[0], group_norm(256))
        self.rpn = make_rpn(256, tuple((size,) for size in ANCHOR_SIZES), (RATIOS,) * 5)
        self.roi_heads = nn.Module()
        self.roi_heads.box_head = nn.Sequential(
            *[ConvReluNorm() for _ in range(4)], nn.Flatten(), nn.Linear(256 * 7**2, 1024), nn.ReLU()
        )
        self.roi_heads.box_predictor = faster_rcnn.FastRCNNPredictor(1024, CLASSES)
        self.roi_heads.mask_head = nn.Sequential(*[ConvReluNorm() for _ in range(4)])
        self.roi_heads.mask_predictor = mask_rcnn.MaskRCNNPredictor(256, 256, CLASSES)

    def maps(self, images):
        return self.backbone(images)

    def boxes(self, maps, regions, stage):
        return self.roi_heads.box_predictor(self.roi_heads.box_head(self.pool(maps, regions, 7)))


def by_image(tensor, regions):
    return tensor.split([len(boxes) for boxes in regions])


def match(boxes, target, iou):
    """Class and object index of each box, and whether its class is foreground."""
    overlaps = ops.box_iou(boxes, target["boxes"])
    best, objects = overlaps.max(1)
    return torch.where(best >= iou, target["labels"][objects], 0), objects


def draw(proposals, targets):
    """Regions of the first head: proposals and ground truth, sampled as in the engine."""
    candidates = [torch.cat([boxes, target["boxes"]]) for boxes, target in zip(proposals, targets)]
    sampler = EngineSampler(REGIONS, POSITIVES / REGIONS)
    sampler.stream = 1
    # The engine has capacity for all proposals in front of the ground truth.
    counts = iter([len(boxes) for boxes in proposals])

    def places(labels):
        count = next(counts)
        return np.append(np.arange(count), PROPOSALS + np.arange(len(labels) - count))

    sampler.places = places
    labels = [match(boxes, target, IOUS[0])[0] for boxes, target in zip(candidates, targets)]
    positive, negative = sampler(labels)
    return [boxes[(p | n).bool()] for boxes, p, n in zip(candidates, positive, negative)]


def refine(deltas, regions, weights):
    """Boxes [r, k, 4] of each image, of k classes."""
    boxes = BoxCoder(weights).decode(deltas, list(regions))
    return [ops.clip_boxes_to_image(part, size) for part, size in zip(by_image(boxes, regions), SIZES)]


def head_losses(model, maps, regions, targets):
    losses, first = [], regions
    for stage, (iou, weights) in enumerate(zip(model.ious, model.weights)):
        if stage > 0:
            regions = [boxes[(boxes[:, 2] > boxes[:, 0]) & (boxes[:, 3] > boxes[:, 1])] for boxes in regions]
        matched = [match(boxes, target, iou) for boxes, target in zip(regions, targets)]
        labels = torch.cat([labels for labels, _ in matched])
        objects = torch.cat([target["boxes"][indices] for target, (_, indices) in zip(targets, matched)])
        logits, deltas = model.boxes(maps, regions, stage)
        own = deltas.reshape(len(labels), -1, 4)
        own = own[torch.arange(len(labels)), labels] if own.shape[1] > 1 else own[:, 0]
        expected = BoxCoder(weights).encode_single(objects, torch.cat(regions))
        found = labels > 0
        box_loss = F.smooth_l1_loss(own[found], expected[found], beta=1 / 9, reduction="sum") / len(labels)
        losses += [F.cross_entropy(logits, labels), box_loss]
        regions = [boxes[:, 0] for boxes in refine(deltas.detach(), regions, weights)]
    matched = [match(boxes, target, model.ious[0]) for boxes, target in zip(first, targets)]
    positives = [boxes[labels > 0] for boxes, (labels, _) in zip(first, matched)]
    objects = [indices[labels > 0] for labels, indices in matched]
    mask_loss = roi_heads.maskrcnn_loss(
        model.masks(maps, positives),
        positives,
        [target["masks"] for target in targets],
        [target["labels"] for target in targets],
        objects,
    )
    return losses + [mask_loss]


def train(model, images, targets):
    """Total loss, losses in the engine's order, and gradients."""
    model.train()
    maps = model.maps(images)
    proposals, dense = model.rpn(ImageList(images, SIZES), maps, targets)
    losses = [dense["loss_objectness"], dense["loss_rpn_box_reg"]]
    losses += head_losses(model, maps, draw(proposals, targets), targets)
    total = sum(losses)
    total.backward()
    gradients = {name: p.grad.numpy() for name, p in model.named_parameters() if p.requires_grad}
    return np.array([loss.item() for loss in [total] + losses]), gradients


def best_of_image(boxes, scores):
    """Boxes, scores and classes of one image: boxes [r, k, 4] and scores [r, classes]."""
    boxes = boxes.expand(-1, CLASSES, 4)[:, 1:].reshape(-1, 4)
    labels = torch.arange(1, CLASSES).repeat(len(scores))
    scores = scores[:, 1:].flatten()
    likely = scores > 0.05
    boxes, scores, labels = boxes[likely], scores[likely], labels[likely]
    large = ops.remove_small_boxes(boxes, 1e-2)
    boxes, scores, labels = boxes[large], scores[large], labels[large]
    kept = ops.batched_nms(boxes, scores, labels, 0.5)[:FOUND]
    return boxes[kept], scores[kept], labels[kept]


def detect(model, images):
    model.eval()
    with torch.no_grad():
        maps = model.maps(images)
        proposals, _ = model.rpn(ImageList(images, SIZES), maps)
        regions, scores = proposals, 0
        for stage, weights in enumerate(model.weights):
            logits, deltas = model.boxes(maps, regions, stage)
            scores = scores + logits.softmax(1) / len(model.weights)
            boxes = refine(deltas, regions, weights)
            regions = [part[:, 0] for part in boxes]
        found = [best_of_image(*parts) for parts in zip(boxes, by_image(scores, proposals))]
        logits = model.masks(maps, [boxes for boxes, _, _ in found])
        labels = torch.cat([labels for _, _, labels in found])
        masks = logits[torch.arange(len(labels)), labels].sigmoid()
    return proposals, found, masks


def spread_heads(model):
    """Varied scores and boxes, so that there are detections."""
    for name, parameter in model.named_parameters():
        for part, deviation in DEVIATIONS.items():
            if name.endswith(part + ".weight"):
                nn.init.normal_(parameter, 0, deviation)


def compare(report, form, model):
    of_found, of_worst, of_all = BOUNDS[form]
    spread_heads(model)
    state = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
    images = make_images()
    targets = [make_truth(generator, height, width, OBJECTS - 2 * i) for i, (height, width) in enumerate(SIZES)]
    with scratch() as folder:
        save_safetensors(os.path.join(folder, "weights.safetensors"), state)
        batch = os.path.join(folder, "batch.safetensors")
        save_safetensors(batch, batch_of(images, SIZES, targets, OBJECTS))
        run(options.program, batch, folder, options.device, form)
        ours = load_safetensors(os.path.join(folder, "results.safetensors"))
        our_gradients = load_safetensors(os.path.join(folder, "gradients.safetensors"))

    model.double()
    images = images.double()
    proposals, found, masks = detect(model, images)
    counts = [len(boxes) for boxes in proposals]
    if list(ours["proposal_counts"]) != counts:
        report.fail(f"{form}: proposals: {list(ours['proposal_counts'])}, expected {counts}")
    for i, boxes in enumerate(proposals):
        report.check(f"{form}: proposals of image {i}", ours["proposals"][i][: len(boxes)], boxes.numpy(), 1e-5)
    counts = [len(scores) for _, scores, _ in found]
    if list(ours["detected_counts"]) != counts or min(counts) < 5:
        report.fail(f"{form}: detections: {list(ours['detected_counts'])}, expected {counts}, at least 5")
    else:
        for i, (boxes, scores, labels) in enumerate(found):
            our_boxes, our_scores, classes = (ours["detected_" + key][i][: counts[i]] for key in DETECTED)
            report.check(f"{form}: boxes found in image {i}", our_boxes, boxes.numpy(), of_found)
            report.check(f"{form}: their scores", our_scores, scores.numpy(), of_found)
            if list(classes) != labels.tolist():
                report.fail(f"{form}: classes of image {i}: {list(classes)}, expected {labels.tolist()}")
        report.check(f"{form}: masks found", ours["detected_masks"], masks.numpy(), of_found)

    targets = [dict(target, boxes=target["boxes"].double()) for target in targets]
    losses, gradients = train(model, images, targets)
    print(f"     {form}: losses {losses}, ours {ours['losses']}")
    report.check(f"{form}: losses", ours["losses"], losses, 2e-6)
    # See detector.py about single ReLU gates.
    errors = {name: report.error(our_gradients[name], gradients[name], "l2") for name in gradients}
    worst = max(errors, key=errors.get)
    name = f"{form}: gradient, worst of {len(errors)} ({worst})"
    report.check(name, our_gradients[worst], gradients[worst], of_worst, "l2")
    joined = [np.concatenate([np.float64(g[name]).ravel() for name in gradients]) for g in (our_gradients, gradients)]
    report.check(f"{form}: gradient of all parameters", *joined, of_all, "l2")


options = arguments()
report = Report()
SEED_OF_WEIGHTS = 4  # no ReLU input is within rounding of 0
torch.manual_seed(SEED_OF_WEIGHTS)
generator = np.random.default_rng(SEED_OF_WEIGHTS)
for form, kind in (("cascade", Cascade), ("c4", C4), ("gn", GroupNormed)):
    compare(report, form, kind())
report.exit()
