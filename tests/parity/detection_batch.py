"""What comparisons of detectors share: drawn images with their truth, and the boxes that the engine draws."""

from parity import nhwc, np, torch
from torchvision.models.detection._utils import BalancedPositiveNegativeSampler
from torchvision.ops.misc import FrozenBatchNorm2d

SEED, STEP = 11, 5  # of the engine's random numbers
SIZES = [(160, 224), (131, 192)]  # height and width of each image on the canvas
OBJECTS = 5  # room for objects; the second image has fewer

generator = np.random.default_rng(3)


def philox(seed, stream, counters):
    """The four words of libdtrain/core/rng.h for each counter."""
    low = np.uint64(0xFFFFFFFF)
    counters = np.asarray(counters, np.uint64)
    c = [counters & low, counters >> np.uint64(32)]
    c += [np.full_like(counters, stream & 0xFFFFFFFF), np.full_like(counters, stream >> 32)]
    k0, k1 = seed & 0xFFFFFFFF, seed >> 32
    for _ in range(10):
        p0, p1 = np.uint64(0xD2511F53) * c[0], np.uint64(0xCD9E8D57) * c[2]
        c = [p1 >> np.uint64(32) ^ c[1] ^ np.uint64(k0), p1 & low, p0 >> np.uint64(32) ^ c[3] ^ np.uint64(k1), p0 & low]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1)


class EngineSampler(BalancedPositiveNegativeSampler):
    """Draws the boxes that the engine draws. `places` maps the boxes of an image to the engine's numbers for them."""

    stream = 0
    places = staticmethod(lambda labels: np.arange(len(labels)))

    def __call__(self, labels_of_images):
        chosen = [], []
        for row, labels in enumerate(labels_of_images):
            words = philox(SEED, self.stream, [STEP << 32 | row])[0]
            image = int(words[1]) << 32 | int(words[0])
            places = self.places(labels)
            keys = philox(image, self.stream, places // 4)[np.arange(len(places)), places % 4]
            order = np.lexsort((places, keys))
            labels = labels.numpy()
            positive = order[labels[order] >= 1][: int(self.batch_size_per_image * self.positive_fraction)]
            negative = order[labels[order] == 0][: self.batch_size_per_image - len(positive)]
            for drawn, indices in zip(chosen, (positive, negative)):
                mask = torch.zeros(len(labels), dtype=torch.uint8)
                mask[indices] = 1
                drawn.append(mask)
        return chosen


def spread_norms(model):
    """Gives frozen batch norms numbers as they are in trained models."""
    for name, module in model.named_modules():
        if isinstance(module, FrozenBatchNorm2d):
            # The sums of residual blocks shall not grow from stage to stage.
            size = 0.3 if name.endswith("bn3") else 1.0
            torch.nn.init.uniform_(module.weight, 0.5 * size, size)
            torch.nn.init.normal_(module.bias, 0, 0.1)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)


def make_images():
    """Images [n, 3, h, w] of SIZES on a canvas of zeros."""
    images = torch.zeros(len(SIZES), 3, *[(max(size[i] for size in SIZES) + 31) // 32 * 32 for i in range(2)])
    for image, (height, width) in zip(images, SIZES):
        coarse = torch.randn(1, 3, height // 8, width // 8)
        smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")[0]
        image[:, :height, :width] = smooth + 0.3 * torch.randn(3, height, width)
    return images


def make_truth(height, width, count):
    """Ellipses, so that masks are not their boxes."""
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
    """Where the runs of a mask end, column by column, the first of zeros."""
    flat = np.concatenate([[0], mask.T.ravel()]).astype(np.int8)
    return np.append(np.flatnonzero(np.diff(flat)), mask.size).astype(np.int32)


def batch_of(images, targets):
    """What parity_detector reads."""
    n = len(targets)
    batch = {"images": nhwc(images), "sizes": np.float32(SIZES)}
    batch["counts"] = np.int32([len(target["labels"]) for target in targets])
    batch["boxes"] = np.zeros((n, OBJECTS, 4), np.float32)
    batch["classes"] = np.zeros((n, OBJECTS), np.int32)
    runs = [[runs_of(mask.numpy()) for mask in target["masks"]] for target in targets]
    batch["run_ends"] = np.zeros((n, max(sum(map(len, row)) for row in runs)), np.int32)
    batch["run_begins"] = np.zeros((n, OBJECTS + 1), np.int32)
    for i, target in enumerate(targets):
        count = len(target["labels"])
        batch["boxes"][i, :count] = target["boxes"]
        batch["classes"][i, :count] = target["labels"]
        ends = np.concatenate(runs[i])
        batch["run_ends"][i, : len(ends)] = ends
        begins = np.cumsum([0] + [len(run) for run in runs[i]])
        batch["run_begins"][i] = np.append(begins, np.full(OBJECTS - count, begins[-1]))
    return batch
