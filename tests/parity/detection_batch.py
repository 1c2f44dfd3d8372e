"""Shared parts of detector comparisons: images, and the engine's random sampling of boxes."""

from parity import np, torch
from torchvision.models.detection._utils import BalancedPositiveNegativeSampler

SEED, STEP = 11, 5  # of the engine's random numbers
SIZES = [(160, 224), (131, 192)]  # height and width of each image on the canvas
OBJECTS = 5  # capacity for objects; the second image has fewer


def philox(seed, stream, counters):
    """The four Philox words of include/dtrain/core/rng.h for each counter."""
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
    """Samples the boxes that the engine samples. `places` maps the boxes of an image to the engine's indices."""

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


def make_images():
    """Images [n, 3, h, w] of SIZES on a canvas of zeros."""
    images = torch.zeros(len(SIZES), 3, *[(max(size[i] for size in SIZES) + 31) // 32 * 32 for i in range(2)])
    for image, (height, width) in zip(images, SIZES):
        coarse = torch.randn(1, 3, height // 8, width // 8)
        smooth = torch.nn.functional.interpolate(coarse, size=(height, width), mode="bilinear")[0]
        image[:, :height, :width] = smooth + 0.3 * torch.randn(3, height, width)
    return images
