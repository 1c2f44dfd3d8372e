"""torchvision's Mask R-CNN with random weights, and batches in torchvision's form and in the engine's."""

from parity import nhwc, np, torch
from torchvision.models.detection import mask_rcnn
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.ops.misc import FrozenBatchNorm2d


def make_model(**options):
    """torchvision's Mask R-CNN with random weights that give finite losses and some detections."""
    backbone = resnet_fpn_backbone(
        backbone_name="resnet50", weights=None, norm_layer=FrozenBatchNorm2d, trainable_layers=3
    )
    model = mask_rcnn.MaskRCNN(backbone, num_classes=91, **options)
    for name, module in model.named_modules():
        if isinstance(module, FrozenBatchNorm2d):
            # Keeps the magnitude of residual blocks constant across stages.
            size = 0.3 if name.endswith("bn3") else 1.0
            torch.nn.init.uniform_(module.weight, 0.5 * size, size)
            torch.nn.init.normal_(module.bias, 0, 0.1)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
    # Varied scores and boxes, so that there are detections.
    for parameter, deviation in ((model.rpn.head.cls_logits.weight, 0.05), (model.rpn.head.bbox_pred.weight, 0.02)):
        torch.nn.init.normal_(parameter, 0, deviation)
    torch.nn.init.normal_(model.roi_heads.box_predictor.cls_score.weight, 0, 0.5)
    torch.nn.init.normal_(model.roi_heads.box_predictor.bbox_pred.weight, 0, 0.1)
    return model


def make_truth(generator, height, width, count):
    """Ellipses, so that masks differ from their boxes."""
    rows, columns = np.mgrid[:height, :width] + 0.5
    masks, boxes = [], []
    for _ in range(count):
        w, h = generator.uniform(20, 90, 2)
        x, y = generator.uniform(0, width - w), generator.uniform(0, height - h)
        mask = ((columns - x - w / 2) / (w / 2)) ** 2 + ((rows - y - h / 2) / (h / 2)) ** 2 <= 1
        masks.append(mask.astype(np.uint8))
        boxes.append([x, y, x + w, y + h])
    return {
        "boxes": torch.tensor(np.float32(boxes)),
        "labels": torch.tensor(generator.integers(1, 91, count)),
        "masks": torch.tensor(np.stack(masks)),
    }


def runs_of(mask):
    """Run ends of the mask, column by column, starting with zeros."""
    flat = np.concatenate([[0], mask.T.ravel()]).astype(np.int8)
    return np.append(np.flatnonzero(np.diff(flat)), mask.size).astype(np.int32)


def batch_of(images, sizes, targets, room):
    """Input of the engine's programs; `room`: capacity for objects per image."""
    n = len(targets)
    batch = {"images": nhwc(images), "sizes": np.float32(sizes)}
    batch["counts"] = np.int32([len(target["labels"]) for target in targets])
    batch["boxes"] = np.zeros((n, room, 4), np.float32)
    batch["classes"] = np.zeros((n, room), np.int32)
    runs = [[runs_of(mask.numpy()) for mask in target["masks"]] for target in targets]
    batch["run_ends"] = np.zeros((n, max(sum(map(len, row)) for row in runs)), np.int32)
    batch["run_begins"] = np.zeros((n, room + 1), np.int32)
    for i, target in enumerate(targets):
        count = len(target["labels"])
        batch["boxes"][i, :count] = target["boxes"]
        batch["classes"][i, :count] = target["labels"]
        ends = np.concatenate(runs[i])
        batch["run_ends"][i, : len(ends)] = ends
        begins = np.cumsum([0] + [len(run) for run in runs[i]])
        batch["run_begins"][i] = np.append(begins, np.full(room - count, begins[-1]))
    return batch
