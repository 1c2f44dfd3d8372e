"""ResNet-50 v1.5 against torchvision: weights in both directions, logits, loss, all gradients, statistics, ten SGD
steps.

Usage: resnet50.py PARITY_MODEL [--device cpu|gpu] [--precision fp32|bf16|fp16]...; PARITY_MODEL is the program that
runs the engine's side. The reference is torchvision's model in double precision with the same weights and batch. The
error of torch's first step in float32 is printed beside ours.

A ReLU whose input is within rounding of 0 may be open in one run and closed in the other. A single such element changes
the gradients of all lower layers by up to a percent. With usual initialisation the millions of activations always
include some, also in torch's float32 run. Therefore batch norms have offsets of about 2.3 standard deviations here: 1 %
of the elements are cut off, and hardly any is close to 0.
"""

import copy
import os

from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch, torchvision

BATCH, SIZE, STEPS = 4, 64, 10
RATE, MOMENTUM, DECAY = 0.0002, 0.9, 1e-4

options = arguments()
report = Report()


def offsets(name):
    if name == "bn1":  # after one convolution rounding is negligible, and max-pooling hides negative values
        return -0.1, 0.1
    return (0.2, 0.6) if name.endswith("bn3") else (1.5, 2)  # bn3 is added to a shortcut that is positive already


def make_model():
    torch.manual_seed(3)
    model = torchvision.models.resnet50()
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.uniform_(module.bias, *offsets(name))
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
    return model


def state(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def train(model, images, labels, steps):
    """Output of parity_model, computed by torch."""
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() == 1]
    groups = [{"params": decayed, "weight_decay": DECAY}, {"params": others}]
    optimizer = torch.optim.SGD(groups, RATE, momentum=MOMENTUM)
    model.eval()
    with torch.no_grad():
        result = {"eval_logits": model(images).numpy()}
    model.train()
    losses = []
    for step in range(steps):
        optimizer.zero_grad()
        logits = model(images)
        loss = torch.nn.functional.cross_entropy(logits, labels)
        loss.backward()
        losses.append(loss.item())
        if step == 0:
            result["logits"] = logits.detach().numpy()
            result["gradients"] = {name: p.grad.numpy().copy() for name, p in model.named_parameters()}
        optimizer.step()
        if step == 0:
            result["first"] = state(model)
    result["losses"] = np.array(losses)
    result["last"] = state(model)
    return result


def compare(name, ours, single, double, bound):
    beside = "" if single is None else f", torch {report.error(single, double, 'l2'):.1e}"
    report.check(name, ours, double, bound, "l2", beside)


def compare_worst(name, ours, single, double, names, bound):
    """Largest error over all tensors, each relative to its norm."""
    errors = {key: report.error(ours[key], double[key], "l2") for key in names}
    worst = max(errors, key=errors.get)
    compare(f"{name}, worst of {len(errors)} ({worst})", ours[worst], single and single[worst], double[worst], bound)


def joined(tensors):
    return np.concatenate([tensors[name].ravel() for name in names])


def changes(after):
    """Change by training: stricter than comparing values, which training hardly changes."""
    return {name: np.float64(after[name]) - initial[name] for name in names}


model = make_model()
initial = state(model)
images = torch.randn(BATCH, 3, SIZE, SIZE)
labels = torch.randint(0, 1000, (BATCH,))


def engine_run(precision):
    with scratch() as folder:
        save_safetensors(os.path.join(folder, "weights.safetensors"), initial)
        batch = os.path.join(folder, "batch.safetensors")
        save_safetensors(batch, {"images": nhwc(images), "labels": labels.numpy().astype(np.int32)})
        run(options.program, batch, folder, "name=resnet50_v1.5", "dataset=imagenet", "classes=1000",
            "auxiliary_head=0", f"lr={RATE}", f"momentum={MOMENTUM}", f"weight_decay={DECAY}", f"steps={STEPS}",
            f"device={options.device}", f"precision={precision}")
        result = load_safetensors(os.path.join(folder, "results.safetensors"))
        for key in ("gradients", "first", "last"):
            result[key] = load_safetensors(os.path.join(folder, key + ".safetensors"))
    return result


single = train(copy.deepcopy(model), images, labels, 1)
double = train(model.double(), images.double(), labels, STEPS)

names = list(double["gradients"])
statistics = [name for name in double["first"] if "running" in name]
if len(names) != 161 or len(statistics) != 106:
    report.fail(f"{len(names)} parameters and {len(statistics)} statistics, expected 161 and 106")
print("losses of the ten steps:", np.round(double["losses"], 3))


def compare_rounded(precision, ours):
    # Each activation is rounded to 8 or 11 bits about a hundred times in a row. The remaining precision of single
    # tensors varies, so gradients are compared as one vector.
    unit = {"bf16": 2**-8, "fp16": 2**-11}[precision]
    compare(f"{precision}: logits, evaluation", ours["eval_logits"], None, double["eval_logits"], 8 * unit)
    compare(f"{precision}: logits, training", ours["logits"], None, double["logits"], 8 * unit)
    compare(f"{precision}: loss", ours["losses"][:1], None, double["losses"][:1], 2 * unit)
    compare(f"{precision}: gradient of all parameters", joined(ours["gradients"]), None, joined(double["gradients"]),
            32 * unit)
    compare(f"{precision}: losses of ten steps", ours["losses"], None, double["losses"], 4 * unit)


def compare_single(ours):
    compare("logits, evaluation", ours["eval_logits"], single["eval_logits"], double["eval_logits"], 3e-6)
    compare("logits, inferred", ours["inferred_logits"], single["eval_logits"], double["eval_logits"], 3e-6)
    compare("logits, training", ours["logits"], single["logits"], double["logits"], 5e-6)
    compare("loss", ours["losses"][:1], single["losses"], double["losses"][:1], 1e-6)
    # The gradient of an offset before a ReLU and another batch norm is a small remainder after cancellation.
    compare_worst("gradient", ours["gradients"], single["gradients"], double["gradients"], names, 1e-4)
    compare_worst("statistics after a step", ours["first"], single["first"], double["first"], statistics, 5e-6)
    compare_worst("parameters after a step", ours["first"], single["first"], double["first"], names, 2e-7)
    compare("losses of ten steps", ours["losses"], None, double["losses"], 2e-6)
    # Ten steps amplify rounding: 5e-6 without Winograd kernels, 1.4e-5 with them, where initial gradients differ by a
    # factor of two. Parameters change by about a hundredth of their magnitude, and the change may have an error of 3e-3
    # below: hence 3e-5.
    compare_worst("parameters after ten steps", ours["last"], None, double["last"], names, 3e-5)
    # Values are rounded to float32 in every step, a visible fraction of small changes: too large a fraction to compare
    # the offsets, which are about 2 and change by 1e-5.
    weights = [name for name in names if initial[name].ndim > 1]
    compare_worst("change in ten steps", changes(ours["last"]), None, changes(double["last"]), weights, 3e-3)
    compare_worst("statistics after ten steps", ours["last"], None, double["last"], statistics, 3e-5)


for precision in options.precisions:
    result = engine_run(precision)
    # Weights trained here load there: strict, by name and shape.
    exported = {name: torch.from_numpy(value.copy()) for name, value in result["last"].items()}
    torchvision.models.resnet50().load_state_dict(exported, strict=True)
    if precision == "fp32":
        compare_single(result)
    else:
        compare_rounded(precision, result)
report.exit()
