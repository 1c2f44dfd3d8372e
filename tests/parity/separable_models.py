"""MobileNet and NASNet against PyTorch in double precision: logits, loss, and all gradients of one step.

Usage: separable_models.py PARITY_MODEL [--device cpu|gpu]; PARITY_MODEL is the program that runs the engine's side. The
networks follow their papers and TensorFlow's definitions, with the engine's parameter names. The dropout mask is
reconstructed from the gradient of the last layer, which is 0 for dropped features. Batch norms have offsets, because
few ReLU inputs may be close to 0, as resnet50.py explains; offsets are smaller where products follow without a ReLU, as
in NASNet.
"""

import os

from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch

F = torch.nn.functional
BATCH, CLASSES = 2, 1000


class Network(torch.nn.Module):
    """Layers are created on their first call, under the path of the call."""

    def __init__(self, epsilon):
        super().__init__()
        self.epsilon, self.kept, self.pooled = epsilon, None, None

    def layer(self, path, make):
        *folders, name = path.split(".")
        place = self
        for folder in folders:
            if folder not in place._modules:
                place.add_module(folder, torch.nn.Module())
            place = place._modules[folder]
        if name not in place._modules:
            place.add_module(name, make())
        return place._modules[name]

    def conv(self, x, path, out, kernel=1, stride=1, groups=1, same=True):
        conv = self.layer(path, lambda: torch.nn.Conv2d(x.shape[1], out, kernel, stride, groups=groups, bias=False))
        return conv(padded(x, kernel, stride) if same else x)

    def norm(self, x, path):
        norm = self.layer(path, lambda: torch.nn.BatchNorm2d(x.shape[1], self.epsilon))
        return norm(x)

    def finish(self, x, path):
        """Spatial mean, dropout with the mask `kept`, and logits."""
        self.pooled = x.mean((2, 3))
        linear = self.layer(path, lambda: torch.nn.Linear(x.shape[1], CLASSES))
        return linear(self.pooled if self.kept is None else self.pooled * self.kept)


def padded(x, kernel, stride, value=0.0):
    """TensorFlow's SAME padding."""
    sides = []
    for size in (x.shape[3], x.shape[2]):
        total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
        sides += [total // 2, total - total // 2]
    return F.pad(x, sides, value=value)


class MobileNet(Network):
    def __init__(self):
        super().__init__(1e-3)

    def forward(self, x):
        def unit(x, path, out, *form):
            return F.relu6(self.norm(self.conv(x, path + ".0", out, *form), path + ".1"))

        x, index = unit(x, "features.0", 32, 3, 2), 1
        for factor, out, repeats, stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
                                             (6, 160, 3, 2), (6, 320, 1, 1)):
            for repeat in range(repeats):
                path, wide, y = f"features.{index}.conv", factor * x.shape[1], x
                if factor > 1:
                    y = unit(y, path + ".0", wide)
                last = int(factor > 1) + 1
                y = unit(y, f"{path}.{last - 1}", wide, 3, stride if repeat == 0 else 1, wide)
                y = self.norm(self.conv(y, f"{path}.{last}", out), f"{path}.{last + 1}")
                x, index = x + y if y.shape == x.shape else y, index + 1
        return self.finish(unit(x, f"features.{index}", 1280), "classifier.1")


class NasNet(Network):
    """The mobile variant for ImageNet."""

    NORMAL = (("5x5", 0, "3x3", 1), ("5x5", 1, "3x3", 1), ("mean", 0, "none", 1), ("mean", 1, "mean", 1), ("3x3", 0, "none", 0))
    REDUCTION = (("5x5", 0, "7x7", 1), ("max", 0, "7x7", 1), ("mean", 0, "5x5", 1), ("none", 3, "mean", 2), ("3x3", 2, "max", 0))

    def __init__(self):
        super().__init__(1e-3)

    def operation(self, x, path, kind, stride, filters):
        if kind[0].isdigit():
            for i in (1, 2):
                kernel, layer = int(kind[0]), f"{path}.separable_{kind}_{i}"
                x = self.conv(F.relu(x), layer + ".depthwise", x.shape[1], kernel, stride, x.shape[1])
                x, stride = self.norm(self.conv(x, layer + ".pointwise", filters), f"{path}.bn_sep_{kind}_{i}"), 1
            return x
        if kind == "max":
            x = F.max_pool2d(padded(x, 3, stride, -np.inf), 3, stride)
        if kind == "mean":
            x = F.avg_pool2d(padded(x, 3, stride), 3, stride) / F.avg_pool2d(padded(torch.ones_like(x), 3, stride), 3, stride)
        strided = kind == "none" and stride > 1
        if strided or x.shape[1] != filters:
            x = self.conv(F.relu(x) if kind == "none" else x, path + ".1x1", filters, 1, stride if strided else 1)
            x = self.norm(x, path + ".bn_1")
        return x

    def adapted(self, previous, x, path, filters):
        if previous is None:
            return x
        if previous.shape[3] != x.shape[3]:
            y = F.relu(previous)
            halves = [self.conv(y[:, :, ::2, ::2], path + ".path1_conv", filters // 2),
                      self.conv(F.pad(y, (0, 1, 0, 1))[:, :, 1:, 1:][:, :, ::2, ::2], path + ".path2_conv", filters // 2)]
            return self.norm(torch.cat(halves, 1), path + ".final_path_bn")
        if previous.shape[1] != filters:
            return self.norm(self.conv(F.relu(previous), path + ".prev_1x1", filters), path + ".prev_bn")
        return previous

    def cell(self, outputs, path, pairs, filters, stride):
        x, previous = outputs[-1], outputs[-2] if len(outputs) > 1 else None
        adapted = self.adapted(previous, x, path, filters)
        states = [self.norm(self.conv(F.relu(x), path + ".1x1", filters), path + ".beginning_bn"), adapted]
        for i, (left, a, right, b) in enumerate(pairs):
            def side(name, kind, state):
                return self.operation(states[state], f"{path}.comb_iter_{i}.{name}", kind, stride if state < 2 else 1, filters)

            states.append(side("left", left, a) + side("right", right, b))
        outputs.append(torch.cat(states[1:] if stride == 1 else states[3:], 1))

    def forward(self, x):
        outputs = [self.norm(self.conv(x, "conv0", 32, 3, 2, same=False), "conv0_bn")]
        self.cell(outputs, "cell_stem_0", self.REDUCTION, 11, 2)
        self.cell(outputs, "cell_stem_1", self.REDUCTION, 22, 2)
        filters = 44
        for i in range(12):
            if i in (4, 8):
                filters *= 2
                self.cell(outputs, f"reduction_cell_{i // 4 - 1}", self.REDUCTION, filters, 2)
            self.cell(outputs, f"cell_{i}", self.NORMAL, filters, 1)
        return self.finish(F.relu(outputs[-1]), "final_layer.FC")


def initialize(model, offset):
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.uniform_(module.bias, *offset)
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)


def dropped(pooled, logits, labels, gradient, rate):
    """Dropout factors of the features: the last layer's gradient is the sum over images of the logits' gradient times
    the features."""
    by_logits = (torch.softmax(logits, 1) - F.one_hot(labels, CLASSES)) / len(labels)
    features = torch.linalg.lstsq(by_logits.T, gradient).solution
    return (features.abs() > 1e-3 * pooled.abs().max()).double() / (1 - rate)


def compare(name, model, size, rate, parameters, offset, bound):
    torch.manual_seed(3)
    images, labels = torch.randn(BATCH, 3, size, size), torch.randint(0, CLASSES, (BATCH,))
    model.train()(images)
    initialize(model, offset)
    count = sum(p.numel() for p in model.parameters())
    if count != parameters:
        report.fail(f"{name}: {count} parameters, expected {parameters}")
    initial = {key: value.detach().numpy().copy() for key, value in model.state_dict().items()}
    with scratch() as folder:
        save_safetensors(os.path.join(folder, "weights.safetensors"), initial)
        batch = os.path.join(folder, "batch.safetensors")
        save_safetensors(batch, {"images": nhwc(images), "labels": labels.numpy().astype(np.int32)})
        run(options.program, batch, folder, f"name={name}", "dataset=imagenet", f"classes={CLASSES}", "auxiliary_head=0", "lr=0",
            "momentum=0", "weight_decay=0", "steps=1", f"device={options.device}", "precision=fp32")
        ours = load_safetensors(os.path.join(folder, "results.safetensors"))
        gradients = load_safetensors(os.path.join(folder, "gradients.safetensors"))

    model.double().eval()
    with torch.no_grad():
        report.check(f"{name}: logits, evaluation", ours["eval_logits"], model(images.double()).numpy(), 1e-5, "l2")
        model.train()(images.double())
    last = next(key for key in reversed(list(initial)) if key.endswith(".weight"))
    model.kept = dropped(model.pooled, torch.tensor(ours["logits"]).double(), labels,
                         torch.tensor(gradients[last]).double(), rate)
    logits = model(images.double())
    loss = F.cross_entropy(logits, labels)
    loss.backward()
    report.check(f"{name}: logits, training", ours["logits"], logits.detach().numpy(), 1e-4, "l2")
    report.check(f"{name}: loss", ours["losses"], np.array([loss.item()]), 1e-5)
    expected = {key: p.grad.numpy() for key, p in model.named_parameters()}
    report.check(f"{name}: gradients", np.concatenate([gradients[key].ravel() for key in expected]),
                 np.concatenate([value.ravel() for value in expected.values()]), bound, "l2")
    norms = {key: np.linalg.norm(value) for key, value in expected.items()}
    least = 0.01 * np.median(list(norms.values()))  # yardstick for remainders after cancellation
    errors = {key: np.linalg.norm(gradients[key] - expected[key]) / max(norms[key], least) for key in expected}
    worst = max(errors, key=errors.get)
    print(f"{'ok  ' if errors[worst] <= 20 * bound else 'FAIL'} {name}: worst of {len(errors)} gradients ({worst}): {errors[worst]:.1e}")
    report.failed += not errors[worst] <= 20 * bound


options = arguments()
report = Report()
compare("mobilenet", MobileNet(), 96, 0.2, 3504872, (1.5, 2.0), 1e-4)
compare("nasnet", NasNet(), 96, 0.5, 5289978, (1.5, 2.0), 1e-3)
report.exit()
