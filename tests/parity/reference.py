"""PyTorch networks written as single functions, with TensorFlow's padding and the engine's dropout masks."""

from parity import np, torch

F = torch.nn.functional


def philox(stream, blocks, seed=0):
    """The words of Philox-4x32-10 for the counters 0, 1, ... of a stream, [blocks, 4]."""
    low = np.uint64(0xFFFFFFFF)
    c = [np.arange(blocks, dtype=np.uint64), np.zeros(blocks, np.uint64)]
    c += [np.full(blocks, half, np.uint64) for half in (stream & 0xFFFFFFFF, stream >> 32)]
    key = [seed & 0xFFFFFFFF, seed >> 32]
    for _ in range(10):
        first, second = c[0] * np.uint64(0xD2511F53), c[2] * np.uint64(0xCD9E8D57)
        c = [second >> np.uint64(32) ^ c[1] ^ np.uint64(key[0]), second & low,
             first >> np.uint64(32) ^ c[3] ^ np.uint64(key[1]), first & low]
        key = [(key[0] + 0x9E3779B9) & 0xFFFFFFFF, (key[1] + 0xBB67AE85) & 0xFFFFFFFF]
    return np.stack(c, 1)


def padded(x, kernel, stride, border, value=0.0):
    """Adds TensorFlow's SAME padding, kernel // 2 on each side ("half"), or none ("valid")."""
    if border == "valid":
        return x
    widths = []
    for size, k, s in zip(x.shape[:1:-1], kernel[::-1], stride[::-1]):
        total = max((-(-size // s) - 1) * s + k - size, 0)
        widths += [total // 2, total - total // 2] if border == "same" else [k // 2, k // 2]
    return F.pad(x, widths, value=value)


def pair(size):
    return size if isinstance(size, tuple) else (size, size)


class Reference(torch.nn.Module):
    """`network(self, x)` returns logits, or a pair with the logits of an auxiliary head. The first run creates the
    layers under the paths of their calls. `norm`: epsilon and decay of batch norms, and whether they have a gamma."""

    def __init__(self, network, norm=(1e-5, 0.9, True)):
        super().__init__()
        self.network, self.settings, self.dropouts = network, norm, 0

    def forward(self, x):
        self.dropouts = 0
        return self.network(self, x)

    def layer(self, path, make):
        *folders, name = path.split(".")
        place = self
        for folder in folders:
            if not hasattr(place, folder):
                place.add_module(folder, torch.nn.Module())
            place = getattr(place, folder)
        if not hasattr(place, name):
            place.add_module(name, make().train(self.training))
        return getattr(place, name)

    def conv(self, x, path, channels, kernel=1, stride=1, border="same", bias=True):
        kernel, stride = pair(kernel), pair(stride)
        conv = self.layer(path, lambda: torch.nn.Conv2d(x.shape[1], channels, kernel, stride, bias=bias))
        return conv(padded(x, kernel, stride, border))

    def norm_relu(self, x, path, relu=True):
        epsilon, decay, scales = self.settings
        y = self.layer(path, lambda: torch.nn.BatchNorm2d(x.shape[1], epsilon, 1 - decay))(x)
        if not scales:
            self.get_submodule(path).weight.requires_grad_(False)
        return F.relu(y) if relu else y

    def basic_conv(self, x, path, *form, **named):
        """torchvision's BasicConv2d."""
        return self.norm_relu(self.conv(x, path + ".conv", *form, bias=False, **named), path + ".bn")

    def max_pool(self, x, kernel, stride, border):
        return F.max_pool2d(padded(x, pair(kernel), pair(stride), border, -float("inf")), kernel, stride)

    def mean_pool(self, x, kernel, stride, border):
        """Average without padding."""
        def pooled(y):
            return F.avg_pool2d(padded(y, pair(kernel), pair(stride), border), kernel, stride)

        return pooled(x) / pooled(torch.ones_like(x))

    def dropout(self, x, rate):
        if not self.training:
            return x
        words = philox(self.dropouts, -(-x.numel() // 4)).ravel()[: x.numel()]
        self.dropouts += 1
        keep = (words >> np.uint64(8)).astype(np.float32) * np.float32(2**-24) >= np.float32(rate)
        return x * torch.from_numpy(keep.reshape(x.shape)).to(x.dtype) / (1 - rate)

    def linear(self, x, path, out):
        x = x.flatten(1)
        return self.layer(path, lambda: torch.nn.Linear(x.shape[1], out))(x)
