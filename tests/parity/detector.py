"""Mask R-CNN (ResNet-50, FPN) against torchvision with the same random weights and images: feature maps, proposals,
detections with masks, and, with regions sampled by the engine's random numbers on both sides, all losses and the
gradients of all parameters. torchvision computes in double precision.

Usage: detector.py PARITY_DETECTOR [--device cpu|gpu]
"""

import copy
import os
from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch
from detection_batch import OBJECTS, SIZES, EngineSampler, make_images
from detection_model import batch_of, make_model, make_truth
from torchvision.models.detection.image_list import ImageList

# As in parity_detector. Masks of detections dominate the run time. Sampling depends on the order of proposals by score:
# with so few, no two scores are close enough for rounding to swap them.
FOUND, CANDIDATES, PROPOSALS = 20, 200, 100
LEVELS = ["0", "1", "2", "3", "pool"]

options = arguments()
report = Report()
torch.manual_seed(3)
generator = np.random.default_rng(3)


def detect(model, images):
    model.eval()
    with torch.no_grad():
        maps = model.backbone(images)
        proposals, _ = model.rpn(ImageList(images, SIZES), maps)
        found, _ = model.roi_heads(maps, proposals, SIZES)
    return maps, proposals, found


def train(model, images, targets):
    """Losses in the engine's order, and gradients."""
    model.train()
    room = model.rpn._post_nms_top_n["training"]
    model.rpn.fg_bg_sampler.__class__ = model.roi_heads.fg_bg_sampler.__class__ = EngineSampler
    model.roi_heads.fg_bg_sampler.stream = 1
    maps = model.backbone(images)
    proposals, rpn = model.rpn(ImageList(images, SIZES), maps, targets)
    counts = [len(boxes) for boxes in proposals]

    # The engine has capacity for all proposals in front of the ground truth.
    remaining = iter(counts)

    def places(labels):
        count = next(remaining)
        return np.append(np.arange(count), room + np.arange(len(labels) - count))

    model.roi_heads.fg_bg_sampler.places = places
    _, heads = model.roi_heads(maps, proposals, SIZES, targets)
    losses = {**rpn, **heads}
    names = ["loss_objectness", "loss_rpn_box_reg", "loss_classifier", "loss_box_reg", "loss_mask"]
    total = sum(losses[name] for name in names)
    total.backward()
    gradients = {name: p.grad.numpy() for name, p in model.named_parameters() if p.requires_grad}
    return np.array([total.item()] + [losses[name].item() for name in names]), gradients


def compare_boxes(name, ours, theirs, bound):
    """Boxes of each image, of equal number and order."""
    for i, expected in enumerate(theirs):
        count = len(expected)
        report.check(f"{name} of image {i}, {count}", ours[i][:count], expected.numpy(), bound)


model = make_model(box_detections_per_img=FOUND)
for phase in ("training", "testing"):
    model.rpn._pre_nms_top_n[phase], model.rpn._post_nms_top_n[phase] = CANDIDATES, PROPOSALS
state = {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}
images = make_images()
targets = [make_truth(generator, height, width, OBJECTS - 2 * i) for i, (height, width) in enumerate(SIZES)]

with scratch() as folder:
    save_safetensors(os.path.join(folder, "weights.safetensors"), state)
    batch = os.path.join(folder, "batch.safetensors")
    save_safetensors(batch, batch_of(images, SIZES, targets, OBJECTS))
    run(options.program, batch, folder, options.device)
    ours = load_safetensors(os.path.join(folder, "results.safetensors"))
    our_gradients = load_safetensors(os.path.join(folder, "gradients.safetensors"))

_, single = train(copy.deepcopy(model), images, targets)
model.double()
images = images.double()
maps, proposals, found = detect(model, images)
for level, key in enumerate(LEVELS):
    report.check(f"map P{level + 2}", ours[f"P{level + 2}"], nhwc(maps[key]), 3e-6, "l2")
counts = [len(boxes) for boxes in proposals]
if list(ours["proposal_counts"]) != counts:
    report.fail(f"proposals: {list(ours['proposal_counts'])}, expected {counts}")
compare_boxes("proposals", ours["proposals"], proposals, 1e-5)
counts = [len(one["boxes"]) for one in found]
if list(ours["detected_counts"]) != counts or min(counts) < 5:
    report.fail(f"detections: {list(ours['detected_counts'])}, expected {counts}, at least 5")
else:
    compare_boxes("boxes found", ours["detected_boxes"], [one["boxes"] for one in found], 1e-5)
    compare_boxes("scores found", ours["detected_scores"], [one["scores"] for one in found], 1e-5)
    for i, one in enumerate(found):
        if list(ours["detected_classes"][i][: counts[i]]) != one["labels"].tolist():
            report.fail(f"classes of image {i}")
    report.check("masks found", ours["detected_masks"], torch.cat([one["masks"] for one in found])[:, 0].numpy(), 1e-5)

targets = [dict(target, boxes=target["boxes"].double()) for target in targets]
losses, gradients = train(model, images, targets)
for i, name in enumerate(["total", "objectness", "boxes of proposals", "classes", "boxes", "masks"]):
    print(f"     loss of {name}: {ours['losses'][i]:.7f}, expected {losses[i]:.7f}")
    report.check(f"loss of {name}", ours["losses"][i : i + 1], losses[i : i + 1], 2e-6)
# A ReLU gate or a sampled cell may differ in double precision, which changes gradients of single tensors by up to 1e-3,
# as does torchvision's single precision.
def worst(ours):
    errors = {name: report.error(ours[name], gradients[name], "l2") for name in gradients}
    return max(errors, key=errors.get)


def joined(tensors):
    return np.concatenate([np.float64(tensors[name]).ravel() for name in gradients])


name, other = worst(our_gradients), worst(single)
beside = f", torchvision's {report.error(single[other], gradients[other], 'l2'):.1e}"
report.check(f"gradient, worst of {len(gradients)} ({name})", our_gradients[name], gradients[name], 2e-3, "l2", beside)
beside = f", torchvision's {report.error(joined(single), joined(gradients), 'l2'):.1e}"
report.check("gradient of all parameters", joined(our_gradients), joined(gradients), 1e-4, "l2", beside)
report.exit()
