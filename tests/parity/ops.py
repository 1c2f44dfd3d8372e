"""Every op against PyTorch in double precision: values and gradients of one set of random inputs per case.

Usage: ops.py PARITY_OPS [--device cpu|gpu]; PARITY_OPS is the program that runs the engine's side. Errors are relative
to the largest element of the reference. Bounds: EXACT for results that are one rounding of exact operands; SUM for sums
of up to a few thousand products in float32.
"""

import os
from parity import Report, arguments, load_safetensors, nhwc, run, save_safetensors, scratch, torch, torchvision
import torch.nn.functional as F

EXACT, SUM, CONV = 1.2e-7, 3e-6, 1e-5  # CONV includes the error of Winograd transforms

options = arguments()
report = Report()
inputs, metadata, checks = {}, {}, []
generator = torch.Generator().manual_seed(7)


def random(*shape):
    return torch.randn(*shape, generator=generator, dtype=torch.float32)


def case(name, op, tensors, reference, bound, options="", gradients=True):
    """`reference` maps tensors (as doubles) to {output name: tensor}; gradients are of the first output."""
    doubles = {}
    for key, tensor in tensors.items():
        inputs[f"{name}.{key}"] = nhwc(tensor)
        constant = key.startswith(("running", "target", "weights", "rois"))
        wanted = gradients and tensor.is_floating_point() and not constant
        doubles[key] = tensor.double().requires_grad_(wanted) if tensor.is_floating_point() else tensor.long()
    outputs = reference(**doubles)
    y = next(iter(outputs.values()))
    expected = dict(outputs)
    if gradients:
        dy = random(*y.shape) if y.dim() else torch.ones(())
        inputs[f"{name}.dy"] = nhwc(dy)
        y.backward(dy.double())
        expected.update({f"d{key}": value.grad for key, value in doubles.items() if value.requires_grad})
    metadata[name] = f"{op} {options}"
    checks.append((name, {key: nhwc(value) for key, value in expected.items()}, bound))


def conv(name, n, c, h, w, k, kernel, stride=(1, 1), padding=(0, 0, 0, 0), dilation=(1, 1), groups=1, bias=False):
    top, bottom, left, right = padding
    tensors = {"x": random(n, c, h, w), "w": random(k, c // groups, *kernel)}
    if bias:
        tensors["b"] = random(k)

    def reference(x, w, b=None):
        return {"y": F.conv2d(F.pad(x, (left, right, top, bottom)), w, b, stride, 0, dilation, groups)}

    options = f"stride={stride[0]},{stride[1]} padding={top},{bottom},{left},{right} "
    options += f"dilation={dilation[0]},{dilation[1]} groups={groups}"
    case(name, "conv2d", tensors, reference, CONV, options)


def batch_norm(name, mode, relu=False, residual=False):
    tensors = {"x": 3 * random(4, 16, 5, 7) + 1, "gamma": random(16), "beta": random(16)}
    tensors.update(running_mean=random(16), running_var=random(16).abs() + 0.5)
    if residual:
        tensors["residual"] = random(4, 16, 5, 7)

    def reference(x, gamma, beta, running_mean, running_var, residual=None):
        y = F.batch_norm(x, running_mean, running_var, gamma, beta, mode == "train", 0.1, 1e-5)
        y = y if residual is None else y + residual
        return {"y": torch.relu(y) if relu else y, "running_mean": running_mean, "running_var": running_var}

    options = f"mode={mode} relu={int(relu)}"
    case(name, "batch_norm", tensors, reference, SUM, options, gradients=mode != "eval")


def conv_bn_act(name, kernel, stride, residual):
    shape = (4, 24, (9 - 1) // stride + 1, (10 - 1) // stride + 1)
    tensors = {"x": random(4, 16, 9, 10), "w": random(24, 16, kernel, kernel), "gamma": random(24), "beta": random(24)}
    tensors.update(running_mean=random(24), running_var=random(24).abs() + 0.5)
    if residual:
        tensors["residual"] = random(*shape)

    def reference(x, w, gamma, beta, running_mean, running_var, residual=0):
        y = F.conv2d(x, w, None, stride, kernel // 2)
        y = F.batch_norm(y, running_mean, running_var, gamma, beta, True, 0.1, 1e-5)
        return {"y": torch.relu(y + residual), "running_mean": running_mean, "running_var": running_var}

    case(name, "conv_bn_act", tensors, reference, CONV, f"stride={stride},{stride} pad={kernel // 2}")


def pools():
    x = random(3, 8, 11, 10)
    for kernel, stride, padding in ((3, 2, 1), (2, 2, 0), (3, 1, 1)):
        options = f"kernel={kernel} stride={stride} pad={padding}"
        name = f"{kernel}x{kernel}/{stride}"
        case(f"max_pool {name}", "max_pool", {"x": x}, lambda x: {"y": F.max_pool2d(x, kernel, stride, padding)}, EXACT,
             options)
        for counted in (True, False):
            case(f"average_pool {name} {'all' if counted else 'inside'}", "average_pool", {"x": x},
                 lambda x: {"y": F.avg_pool2d(x, kernel, stride, padding, count_include_pad=counted)}, SUM,
                 f"{options} count_padding={int(counted)}")
    case("global_average_pool", "global_average_pool", {"x": x}, lambda x: {"y": x.mean((2, 3))}, SUM)


def pointwise():
    a, b = random(2, 5, 6, 7), random(2, 5, 6, 7)
    case("relu", "relu", {"x": a}, lambda x: {"y": torch.relu(x)}, EXACT)
    case("add", "add", {"a": a, "b": b}, lambda a, b: {"y": a + b}, EXACT)
    case("add_relu", "add_relu", {"a": a, "b": b}, lambda a, b: {"y": torch.relu(a + b)}, EXACT)
    case("mul", "mul", {"a": a, "b": b}, lambda a, b: {"y": a * b}, EXACT)
    case("scale", "scale", {"x": a}, lambda x: {"y": x * -0.375}, EXACT, "factor=-0.375")
    case("sigmoid", "sigmoid", {"x": 3 * a}, lambda x: {"y": torch.sigmoid(x)}, SUM)
    case("silu", "silu", {"x": 3 * a}, lambda x: {"y": F.silu(x)}, SUM)
    case("relu6", "relu6", {"x": 4 * a}, lambda x: {"y": F.relu6(x)}, EXACT)
    case("subsample", "subsample", {"x": a}, lambda x: {"y": F.pad(x, (0, 1, 0, 1))[:, :, 1::2, 1::2]}, EXACT)
    case("concat_channels", "concat_channels", {"a": a, "b": random(2, 3, 6, 7)},
         lambda a, b: {"y": torch.cat((a, b), 1)}, EXACT)
    case("slice_rows", "slice_rows", {"x": a}, lambda x: {"y": x[1:2]}, EXACT, "begin=1 end=2")
    case("linear", "linear", {"x": random(6, 300), "w": random(40, 300), "b": random(40)},
         lambda x, w, b: {"y": F.linear(x, w, b)}, SUM)


def group_norms():
    for groups in (1, 4, 16):
        tensors = {"x": 3 * random(4, 16, 5, 7) + 1, "gamma": random(16), "beta": random(16)}
        case(f"group_norm {groups}", "group_norm", tensors,
             lambda x, gamma, beta: {"y": F.group_norm(x, groups, gamma, beta)}, SUM, f"groups={groups}")
    case("layer_norm", "layer_norm", {"x": 3 * random(9, 70) + 1, "gamma": random(70), "beta": random(70)},
         lambda x, gamma, beta: {"y": F.layer_norm(x, (70,), gamma, beta)}, SUM)


def losses():
    labels = torch.randint(0, 50, (9,), generator=generator, dtype=torch.int32)
    labels[4] = -1
    for smoothing in (0.0, 0.1):
        case(f"cross_entropy smoothing {smoothing}", "cross_entropy",
             {"logits": 4 * random(9, 50), "labels": labels},
             lambda logits, labels: {"y": F.cross_entropy(logits, labels, ignore_index=-1, label_smoothing=smoothing)},
             SUM, f"smoothing={smoothing}")
    target = random(9, 50)
    case("mean_squared_error", "mean_squared_error", {"x": random(9, 50), "target": target},
         lambda x, target: {"y": F.mse_loss(x, target)}, SUM)
    case("weighted_sum", "weighted_sum", {"a": random(1), "b": random(1)}, lambda a, b: {"y": a - 0.375 * b}, EXACT)


def roi_align(name, sizes, scales, size, ratio, aligned):
    """Regions of two images inside, across and outside of the border, of all sizes; some are padding."""
    count, channels = 60, 12
    maps = {f"map{i}": random(2, channels, h, w) for i, (h, w) in enumerate(sizes)}
    corners = 80 * torch.rand(count, 2, generator=generator) - 16
    extents = 0.5 + 60 * torch.rand(count, 2, generator=generator) ** 2
    images = torch.arange(count, dtype=torch.int32) % 3 - 1
    levels = torch.arange(count, dtype=torch.int32) // 3 % len(sizes)
    tensors = {**maps, "rois": torch.cat((corners, corners + extents), 1), "images": images, "levels": levels}

    def reference(rois, images, levels, **maps):
        y = torch.zeros(count, channels, *size, dtype=torch.float64)
        for level, (x, scale) in enumerate(zip(maps.values(), scales)):
            rows = torch.nonzero((levels == level) & (images >= 0))[:, 0]
            numbered = torch.cat((images[rows, None].double(), rois[rows]), 1)
            y = y.index_put((rows,), torchvision.ops.roi_align(x, numbered, size, scale, ratio, aligned))
        return {"y": y}

    case(name, "roi_align", tensors, reference, CONV, f"height={size[0]} width={size[1]} ratio={ratio} "
         f"aligned={int(aligned)} scales={','.join(str(round(1 / scale)) for scale in scales)}")


def conv_transpose(name, k, c, kernel, stride, padding, bias):
    tensors = {"x": random(3, k, 7, 6), "w": random(k, c, *kernel)}
    if bias:
        tensors["b"] = random(c)
    case(name, "conv_transpose2d", tensors,
         lambda x, w, b=None: {"y": F.conv_transpose2d(x, w, b, stride, padding)}, CONV,
         f"stride={stride},{stride} pad={padding}")


def response_norms():
    for radius, alpha in ((4, 0.5), (2, 1.0)):
        size = 2 * radius + 1
        case(f"local_response_norm {radius}", "local_response_norm", {"x": 2 * random(2, 13, 5, 4)},
             lambda x: {"y": F.local_response_norm(x, size, alpha * size, 0.75, 1.0)}, SUM,
             f"radius={radius} alpha={alpha} beta=0.75")


def detection():
    for ratio in (2, 0):
        for aligned in (True, False):
            roi_align(f"roi_align {ratio} {'aligned' if aligned else 'shifted'}", [(18, 16)], [0.25], (7, 7), ratio,
                      aligned)
    roi_align("roi_align pyramid", [(18, 16), (9, 8), (5, 4)], [0.25, 0.125, 0.0625], (3, 5), 2, True)
    for size in ((10, 14), (13, 7), (5, 7)):
        case(f"upsample_nearest {size}", "upsample_nearest", {"x": random(2, 9, 5, 7)},
             lambda x: {"y": F.interpolate(x, size, mode="nearest")}, SUM, f"height={size[0]} width={size[1]}")
    conv_transpose("conv_transpose2d 2x2/2", 32, 24, (2, 2), 2, 0, True)
    conv_transpose("conv_transpose2d 3x3/2", 8, 12, (3, 3), 2, 1, False)
    conv_transpose("conv_transpose2d 4x3", 8, 5, (4, 3), 1, 1, True)
    target, weights = torch.rand(40, 30, generator=generator), random(40).abs()
    case("sigmoid_cross_entropy", "sigmoid_cross_entropy",
         {"x": 4 * random(40, 30), "target": target, "weights": weights},
         lambda x, target, weights: {
             "y": F.binary_cross_entropy_with_logits(x, target, weights[:, None], reduction="sum") / 2.5}, SUM)
    for beta in (1 / 8, 1.0, 0.0):
        case(f"smooth_l1 {beta}", "smooth_l1", {"x": random(40, 30), "target": random(40, 30), "weights": weights},
             lambda x, target, weights: {
                 "y": (weights[:, None] * F.smooth_l1_loss(x, target, reduction="none", beta=beta)).sum() / 2.5}, SUM,
             f"beta={beta}")


def optimizer(name, options, make):
    """Five updates of one tensor with given gradients."""
    steps, p = 5, random(200)
    gradients = random(steps, 200)

    def reference(p, gradients):
        value = p.detach().clone().requires_grad_()
        torch_optimizer = make([value])
        for gradient in gradients:
            value.grad = gradient.clone()
            torch_optimizer.step()
        return {"p_after": value.detach()}

    case(name, "optimizer", {"p": p, "gradients": gradients}, reference, SUM, options, gradients=False)


def optimizers():
    optim = torch.optim
    optimizer("sgd", "rule=0 lr=0.1 weight_decay=0.01", lambda p: optim.SGD(p, 0.1, weight_decay=0.01))
    optimizer("momentum", "rule=1 lr=0.1 momentum=0.9 weight_decay=0.01",
              lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01))
    optimizer("nesterov", "rule=2 lr=0.1 momentum=0.9 weight_decay=0.01",
              lambda p: optim.SGD(p, 0.1, momentum=0.9, weight_decay=0.01, nesterov=True))
    optimizer("adamw", "rule=3 lr=0.01 weight_decay=0.1", lambda p: optim.AdamW(p, 0.01, weight_decay=0.1))
    optimizer("adam", "rule=4 lr=0.01 weight_decay=0.1", lambda p: optim.Adam(p, 0.01, weight_decay=0.1))


conv("conv2d 3x3", 2, 16, 12, 13, 24, (3, 3), padding=(1, 1, 1, 1))
conv("conv2d 3x3 many channels", 4, 128, 9, 9, 64, (3, 3), padding=(1, 1, 1, 1))
conv("conv2d 1x1", 2, 64, 7, 7, 32, (1, 1))
conv("conv2d 1x1/2", 2, 16, 9, 8, 32, (1, 1), stride=(2, 2))
conv("conv2d 7x7/2 stem", 2, 3, 33, 32, 16, (7, 7), stride=(2, 2), padding=(3, 3, 3, 3))
conv("conv2d 3x3/2", 2, 16, 14, 14, 16, (3, 3), stride=(2, 2), padding=(1, 1, 1, 1))
conv("conv2d asymmetric", 2, 8, 11, 10, 12, (3, 5), stride=(2, 1), padding=(0, 1, 3, 1), bias=True)
conv("conv2d groups", 2, 16, 9, 9, 32, (3, 3), padding=(1, 1, 1, 1), groups=4, bias=True)
conv("conv2d depthwise", 2, 16, 9, 9, 16, (3, 3), padding=(1, 1, 1, 1), groups=16)
conv("conv2d depthwise 3x3/2 SAME", 2, 48, 14, 14, 48, (3, 3), stride=(2, 2), padding=(0, 1, 0, 1), groups=48)
conv("conv2d depthwise 5x5", 2, 44, 14, 15, 44, (5, 5), padding=(2, 2, 2, 2), groups=44, bias=True)
conv("conv2d depthwise 7x7/2 SAME", 1, 32, 17, 16, 32, (7, 7), stride=(2, 2), padding=(3, 3, 2, 3), groups=32)
conv("conv2d depthwise dilation", 1, 24, 15, 15, 24, (3, 3), stride=(2, 1), padding=(2, 2, 3, 3), dilation=(2, 3), groups=24)
conv("conv2d dilation", 2, 8, 13, 12, 8, (3, 3), padding=(2, 2, 3, 3), dilation=(2, 3))
for mode in ("train", "eval", "frozen"):
    batch_norm(f"batch_norm {mode}", mode)
batch_norm("batch_norm relu", "train", relu=True)
batch_norm("batch_norm residual relu", "train", relu=True, residual=True)
conv_bn_act("conv_bn_act 3x3 residual", 3, 1, True)
conv_bn_act("conv_bn_act 1x1/2", 1, 2, False)
pools()
pointwise()
group_norms()
response_norms()
losses()
detection()
optimizers()

with scratch() as folder:
    cases, results = os.path.join(folder, "cases"), os.path.join(folder, "results")
    save_safetensors(cases, inputs, metadata)
    run(options.program, cases, results, options.device)
    ours = load_safetensors(results)
for name, expected, bound in checks:
    for key, value in expected.items():
        if f"{name}.{key}" in ours:
            report.check(f"{name}: {key}", ours[f"{name}.{key}"].reshape(value.shape), value, bound)
        else:
            report.fail(f"{name}: no {key}")
report.exit()
