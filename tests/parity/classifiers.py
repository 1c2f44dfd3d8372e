"""Each family of classifiers against PyTorch in double precision: logits, loss, statistics and all gradients of a step.

Usage: classifiers.py PARITY_MODEL [--device cpu|gpu] [--precision fp32|bf16|fp16]... [MODEL...]; PARITY_MODEL is
the program that runs the engine's side. The references in classifier_models.py implement tf_cnn_benchmarks'
definitions. Few ReLU inputs may be close to 0, as resnet50.py explains: hence the offsets. The largest networks have
some nevertheless, each of which changes the gradients of one or two tensors: hence their wider bounds.
"""

import copy
import os

import classifier_models
from parity import Report, arguments, load_safetensors, nhwc, np, run, save_safetensors, scratch, torch

BATCH, CLASSES = 2, 7
AUXILIARY_WEIGHT = 0.4


def initialize(model):
    for name, module in model.named_modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            if module.weight.requires_grad:
                torch.nn.init.uniform_(module.weight, 0.5, 1.0)
            torch.nn.init.uniform_(module.bias, *((1.5, 2) if module.weight.requires_grad else (2.5, 3)))
            torch.nn.init.normal_(module.running_mean, 0, 0.1)
            torch.nn.init.uniform_(module.running_var, 0.5, 2.0)
        elif isinstance(module, (torch.nn.Conv2d, torch.nn.Linear)):
            fan_in = module.weight[0].numel()
            torch.nn.init.normal_(module.weight, 0, (0.5 / fan_in) ** 0.5)
            if module.bias is not None:
                torch.nn.init.uniform_(module.bias, 1, 2)


def state(model):
    return {name: value.detach().numpy().copy() for name, value in model.state_dict().items()}


def reference_step(model, images, labels, rounded=False):
    """Output of parity_model, computed by torch; in bf16 where `rounded`."""
    model.eval()
    with torch.no_grad():
        result = {"eval_logits": model(images)}
    model.train()
    with torch.autocast("cpu", torch.bfloat16, enabled=rounded):
        given = model(images)
    logits, auxiliary = given if isinstance(given, tuple) else (given, None)
    if rounded:
        logits, auxiliary = logits.float(), None if auxiliary is None else auxiliary.float()
    loss = torch.nn.functional.cross_entropy(logits, labels)
    if auxiliary is not None:
        result["eval_logits"] = result["eval_logits"][0]
        loss = loss + AUXILIARY_WEIGHT * torch.nn.functional.cross_entropy(auxiliary, labels)
    loss.backward()
    result.update(logits=logits.detach().numpy(), losses=np.array([loss.item()]))
    result["eval_logits"] = result["eval_logits"].numpy()
    result["gradients"] = {name: p.grad.numpy() for name, p in model.named_parameters() if p.requires_grad}
    result["statistics"] = {name: value for name, value in state(model).items() if "running" in name}
    return result


def engine_step(case, precision, initial, images, labels):
    with scratch() as folder:
        save_safetensors(os.path.join(folder, "weights.safetensors"), initial)
        batch = os.path.join(folder, "batch.safetensors")
        save_safetensors(batch, {"images": nhwc(images), "labels": labels.numpy().astype(np.int32)})
        run(options.program, batch, folder, f"name={case.name}", f"dataset={case.dataset}", f"classes={CLASSES}",
            f"auxiliary_head={int(case.auxiliary_head)}", "lr=0", "momentum=0", "weight_decay=0", "steps=1",
            f"device={options.device}", f"precision={precision}")
        result = load_safetensors(os.path.join(folder, "results.safetensors"))
        result["gradients"] = load_safetensors(os.path.join(folder, "gradients.safetensors"))
        result["statistics"] = load_safetensors(os.path.join(folder, "first.safetensors"))
    return result


def joined(tensors, names):
    return np.concatenate([tensors[name].ravel() for name in names])


def compare_all(report, name, ours, expected, bound):
    """All tensors concatenated to one vector."""
    report.check(name, joined(ours, expected), joined(expected, expected), bound, "l2")


def compare_worst(report, name, ours, expected, bound):
    """Largest error over all tensors. Gradients that are about 0, because the following batch norm cancels offsets, are
    compared relative to a hundredth of the median norm."""
    norms = {key: np.linalg.norm(value) for key, value in expected.items()}
    least = 0.01 * np.median(list(norms.values()))
    errors = {key: np.linalg.norm(ours[key] - expected[key]) / max(norms[key], least) for key in expected}
    worst = max(errors, key=errors.get)
    report.judge(f"{name}, worst of {len(errors)} ({worst})", errors[worst], bound)


def compare_rounded(report, name, precision, ours, expected, torchs):
    """Activations of 8 or 11 bits: see resnet50.py. Where ReLU inputs close to 0 change more, PyTorch's step in bf16 is
    the yardstick."""
    unit = {"bf16": 2**-8, "fp16": 2**-11}[precision]
    for key, units in (("eval_logits", 8), ("logits", 8), ("losses", 2)):
        report.check(f"{name}: {key}", ours[key], expected[key], units * unit, "l2")
    reference, usual = joined(expected["gradients"], expected["gradients"]), 32 * unit
    if torchs:
        usual = max(usual, 1.5 * report.error(joined(torchs["gradients"], expected["gradients"]), reference, "l2"))
    report.check(f"{name}: gradients", joined(ours["gradients"], expected["gradients"]), reference, usual, "l2")
    if expected["statistics"]:
        compare_all(report, f"{name}: statistics", ours["statistics"], expected["statistics"], 8 * unit)


def compare(report, case):
    torch.manual_seed(3)
    model = case.make(CLASSES)
    images = torch.randn(BATCH, 3, case.size, case.size)
    with torch.no_grad():
        model.eval()(images[:1])  # creates the layers
    initialize(model)
    labels = torch.randint(0, CLASSES, (BATCH,))
    ours = {precision: engine_step(case, precision, state(model), images, labels) for precision in options.precisions}
    torchs = reference_step(copy.deepcopy(model), images, labels, True) if "bf16" in ours else None
    expected = reference_step(model.double(), images.double(), labels)
    for precision, result in ours.items():
        if precision == "fp32":
            compare_single(report, case, result, expected)
        else:
            compare_rounded(report, f"{case.name}, {precision}", precision, result, expected,
                            torchs if precision == "bf16" else None)


def compare_single(report, case, ours, expected):
    report.check(f"{case.name}: inferred logits", ours["inferred_logits"], expected["eval_logits"], 3e-6, "l2")
    for key, bound in (("eval_logits", 3e-6), ("logits", 1e-5), ("losses", 1e-5)):
        report.check(f"{case.name}: {key}", ours[key], expected[key], bound, "l2")
    compare_all(report, f"{case.name}: gradients", ours["gradients"], expected["gradients"], 3e-3)
    compare_worst(report, f"{case.name}: gradient", ours["gradients"], expected["gradients"], case.bound)
    if expected["statistics"]:
        compare_worst(report, f"{case.name}: statistics", ours["statistics"], expected["statistics"], 1e-5)


options = arguments(names="models")
report = Report()
for case in classifier_models.CASES:
    if not options.models or case.name in options.models:
        compare(report, case)
report.exit()
