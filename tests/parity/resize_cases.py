"""Cases of torchvision_resize.py and record_torchvision.py: sizes, images, and a small Mask R-CNN. Random numbers come
from NumPy's RandomState, whose streams are the same in all versions."""

from parity import np, torch
from torchvision.models.detection import mask_rcnn
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone
from torchvision.models.detection.transform import GeneralizedRCNNTransform
from torchvision.ops.misc import FrozenBatchNorm2d

MEAN, DEVIATION = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
SHORT, LONG = 800, 1333
IMAGES = [(424, 640), (375, 500), (640, 427), (333, 500)]  # the scale's type affects the size of the first three
SAMPLES = 24  # recorded values per resized image
# For the detector, such that it takes a second. 200 / 106 in float32 is slightly less than in float64.
DETECTOR_IMAGE, DETECTOR_SHORT, DETECTOR_LONG = (106, 160), 200, 333
FOUND, CANDIDATES, PROPOSALS = 15, 100, 60


def sizes():
    """130 sizes of typical photographs."""
    draw = np.random.RandomState(1)
    shorter = draw.randint(240, 641, 65)
    return [(int(h), 640) for h in shorter] + [(500, int(w)) for w in draw.randint(240, 501, 65)]


def image(height, width):
    """[h, w, 3] uint8: smooth, with edges."""
    draw = np.random.RandomState(height * 1000 + width)
    coarse = draw.uniform(0, 256, (height // 8 + 2, width // 8 + 2, 3))
    wide = np.kron(coarse, np.ones((8, 8, 1)))[3 : height + 3, 5 : width + 5]
    return np.uint8(np.clip(wide + draw.uniform(-20, 20, (height, width, 3)), 0, 255))


def transform():
    return GeneralizedRCNNTransform(SHORT, LONG, list(MEAN), list(DEVIATION))


def resized(pixels):
    """[h, w, 3] uint8 -> normalised image [H, W, 3] as input of torchvision's detector."""
    tensor = torch.from_numpy(pixels).permute(2, 0, 1).float() / 255
    rule = transform()
    image, _ = rule.resize(rule.normalize(tensor), None)
    return image.permute(1, 2, 0).numpy()


def new_size(height, width):
    image, _ = transform().resize(torch.zeros(1, height, width), None)
    return image.shape[1:]


def samples_of(tensor):
    """Values at positions that depend on the shape only, and the mean."""
    flat = np.float64(tensor).ravel()
    places = np.random.RandomState(7).randint(0, flat.size, SAMPLES)
    return [float(flat.mean())] + [float(value) for value in flat[places]]


def deviation_of(name, shape):
    for end, deviation in (("rpn.head.cls_logits.weight", 0.05), ("rpn.head.bbox_pred.weight", 0.02),
                           ("cls_score.weight", 0.03), ("box_predictor.bbox_pred.weight", 0.008)):
        if name.endswith(end):
            return deviation
    return float(np.sqrt(2 / np.prod(shape[1:])))


def make_detector():
    """torchvision's Mask R-CNN with a ResNet-18, and its weights by name."""
    backbone = resnet_fpn_backbone(
        backbone_name="resnet18", weights=None, norm_layer=FrozenBatchNorm2d, trainable_layers=0
    )
    model = mask_rcnn.MaskRCNN(
        backbone, num_classes=5, min_size=DETECTOR_SHORT, max_size=DETECTOR_LONG, box_detections_per_img=FOUND,
        rpn_pre_nms_top_n_test=CANDIDATES, rpn_post_nms_top_n_test=PROPOSALS,
    )
    draw = np.random.RandomState(2)
    state = {}
    for name, value in sorted(model.state_dict().items()):
        shape = tuple(value.shape)
        if name.endswith("running_var"):
            state[name] = draw.uniform(0.5, 2, shape)
        elif name.endswith("running_mean") or (value.dim() == 1 and ".bn" in name and name.endswith("bias")):
            state[name] = draw.normal(0, 0.1, shape)
        elif value.dim() == 1 and name.endswith("weight"):
            size = 0.3 if "bn2" in name else 1.0  # keeps the magnitude of residual blocks constant
            state[name] = draw.uniform(0.5 * size, size, shape)
        elif name.endswith("bias"):
            state[name] = np.zeros(shape)
        else:
            state[name] = draw.normal(0, deviation_of(name, shape), shape)
    state = {name: np.float32(value) for name, value in state.items()}
    model.load_state_dict({name: torch.from_numpy(value) for name, value in state.items()})
    return model.eval(), state


def detections():
    """[class, score, x1, y1, x2, y2] of each detection by descending score, and the weights."""
    model, state = make_detector()
    pixels = image(*DETECTOR_IMAGE)
    with torch.no_grad():
        found = model([torch.from_numpy(pixels).permute(2, 0, 1).float() / 255])[0]
    rows = [[int(label), float(score), *map(float, box)]
            for label, score, box in zip(found["labels"], found["scores"], found["boxes"])]
    return rows, state
