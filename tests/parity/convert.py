"""Weights of PyTorch, torchvision, timm and detectron2's pickles through dtrain-convert: the real tools load its files, and
values return bit for bit.

Usage: convert.py DTRAIN_CONVERT [--all]; other programs are found beside it. --all: also large models.
"""

import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import zipfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
import python_packages  # noqa: E402

with python_packages.required():
    import numpy as np
    import onnxruntime
    import timm
    import torch
    import torchvision

import tiny_detector  # noqa: E402
from arrays import load_safetensors  # noqa: E402

CLASSES = 5
BOUND = 1e-4  # of logits, relative to the largest
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# Our model, timm's, and torchvision's with the same weights, if it has the model.
MODELS = [
    ("official_resnet50_v2", "resnetv2_50", None),
    ("mobilenet", "mobilenetv2_100", "mobilenet_v2"),
    ("resnet18", "resnet18", "resnet18"),
]
LARGE = [("vgg11", "vgg11", "vgg11"), ("nasnetlarge", "nasnetalarge", None)]


class Converter:
    def __init__(self, program, folder):
        self.program, self.folder, self.failed = program, folder, 0

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, source, result, *flags):
        """Converts, and returns the report."""
        command = [self.program, self.path(source), self.path(result), "--force", *flags]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            sys.exit(f"FAIL {' '.join(command)}: {done.returncode}: {done.stderr}")
        return done.stdout

    def load(self, name):
        path = self.path(name)
        return dict(np.load(path)) if name.endswith(".npz") else load_safetensors(path)

    def check(self, text, good):
        print(f"{'ok  ' if good else 'FAIL'} {text}")
        self.failed += not good


def equal(found, expected):
    """Same names, and for each the same type, shape and bits."""
    return found.keys() == expected.keys() and all(
        found[name].dtype == value.dtype and found[name].shape == value.shape and found[name].tobytes() == value.tobytes()
        for name, value in expected.items())


def arrays_of(state):
    return {name: value.detach().numpy() for name, value in state.items()}


def tensors_of(arrays):
    return {name: torch.from_numpy(np.array(value)) for name, value in arrays.items()}


def randomize(module):
    torch.manual_seed(3)
    for name, value in module.state_dict().items():
        if value.is_floating_point():
            value.copy_(torch.rand_like(value) + 0.5 if "var" in name else torch.randn_like(value) * 0.1)
        else:
            value.fill_(7)
    return module.eval()


def check_formats(converter):
    """A checkpoint of DistributedDataParallel in each type, to .npz, safetensors and back into torchvision."""
    module = randomize(torchvision.models.resnet18(num_classes=CLASSES))
    for dtype in (torch.float32, torch.float16, torch.float64):
        state = {name: value.to(dtype) if value.is_floating_point() else value
                 for name, value in module.state_dict().items()}
        torch.save({"state_dict": {"module." + name: value for name, value in state.items()}, "epoch": 3},
                   converter.path("ddp.pth"))
        report = converter.run("ddp.pth", "ddp.npz")
        converter.run("ddp.npz", "ddp.safetensors")
        name = str(dtype).split(".")[1]
        converter.check(f"{name}: report", "Stripped:    122 names" in report and "Not read:    epoch" in report)
        converter.check(f"{name}: .pth to .npz", equal(converter.load("ddp.npz"), arrays_of(state)))
        if dtype != torch.float64:  # which arrays.py does not read
            converter.check(f"{name}: .npz to .safetensors", equal(converter.load("ddp.safetensors"), arrays_of(state)))
    converter.run("ddp.pth", "ddp.safetensors", "--dtype=f32")
    module.load_state_dict(tensors_of(converter.load("ddp.safetensors")))  # strict
    converter.check("torchvision loads its weights cast to f32", True)


def check_deflated(converter):
    """A file that a ZIP program compressed is read; many tensors of one storage, each of which inflates it, are not."""
    for tensors in (16, 17):
        shared = torch.arange(8.0)
        torch.save({f"t{i}": shared for i in range(tensors)}, converter.path("stored.pth"))
        with zipfile.ZipFile(converter.path("stored.pth")) as stored, \
                zipfile.ZipFile(converter.path("deflated.pth"), "w", zipfile.ZIP_DEFLATED) as deflated:
            for name in stored.namelist():
                deflated.writestr(name, stored.read(name))
        done = subprocess.run([converter.program, converter.path("deflated.pth"), converter.path("d.npz"), "--force"],
                              capture_output=True, text=True)
        converter.check(f"{tensors} tensors of a deflated storage: {done.stderr.strip()}",
                        done.returncode == (0 if tensors == 16 else 5) and
                        ("a deflated storage of more than 16 tensors" in done.stderr) == (tensors == 17))


def check_onnx(converter):
    module = randomize(torchvision.models.resnet18(num_classes=CLASSES))
    torch.save(module.state_dict(), converter.path("w.pth"))
    converter.run("w.pth", "w.onnx", "--model=resnet18", "--image_size=65", "--preprocessing=torchvision")
    images = np.random.default_rng(1).random((2, 3, 65, 65), np.float32)
    session = onnxruntime.InferenceSession(converter.path("w.onnx"), providers=["CPUExecutionProvider"])
    found = session.run(["logits"], {"images": images})[0]
    pixels = (torch.from_numpy(images) - torch.tensor(MEAN).view(3, 1, 1)) / torch.tensor(STD).view(3, 1, 1)
    with torch.no_grad():
        expected = module(pixels).numpy()
    error = np.abs(found - expected).max() / np.abs(expected).max()
    converter.check(f"resnet18 .pth to ONNX: error {error:.1e}, bound {BOUND:.0e}", error <= BOUND)


def check_names(converter, name, timm_name, torchvision_name):
    """timm's weights to torchvision's names and back; both libraries load them strictly."""
    module = randomize(timm.create_model(timm_name, num_classes=CLASSES))
    torch.save(module.state_dict(), converter.path("timm.pth"))
    converter.run("timm.pth", "ours.npz", f"--model={name}", "--names=torchvision")
    converter.run("ours.npz", "back.safetensors", f"--model={name}", "--names=timm")
    expected = arrays_of(module.state_dict())
    found = {key: value.reshape(expected[key].shape) if key in expected and value.size == expected[key].size else value
             for key, value in converter.load("back.safetensors").items()}
    shapes = all(converter.load("back.safetensors")[key].shape == value.shape for key, value in expected.items())
    converter.check(f"{name}: timm's weights return with timm's shapes", equal(found, expected) and shapes)
    timm.create_model(timm_name, num_classes=CLASSES).load_state_dict(tensors_of(converter.load("back.safetensors")))
    converter.check(f"{name}: timm loads its weights from safetensors", True)
    if not torchvision_name:
        return
    peer = getattr(torchvision.models, torchvision_name)(num_classes=CLASSES).eval()
    peer.load_state_dict(tensors_of(converter.load("ours.npz")))
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(2))
    if name != "vgg11":  # timm's pools otherwise
        with torch.no_grad():
            converter.check(f"{name}: torchvision computes timm's logits",
                            torch.allclose(peer(images), module(images), rtol=1e-4, atol=1e-4))
    torch.save(peer.state_dict(), converter.path("peer.pth"))
    converter.run("peer.pth", "peer.npz", f"--model={name}", "--names=timm")
    converter.check(f"{name}: torchvision's weights to timm's names", equal(converter.load("peer.npz"), expected))


def check_detectors(converter):
    """A trained Mask R-CNN to detectron2's names, as a pickle of detectron2, and to TensorPack's."""
    folder = pathlib.Path(converter.folder)
    tiny_detector.make(pathlib.Path(converter.program).parent, folder / "data", folder / "run", 1)
    converter.run("run", "d2.npz", "--names=detectron2")
    converter.run("run", "tp.npz", "--names=tensorpack")
    with open(converter.path("model_final.pkl"), "wb") as file:
        pickle.dump({"model": converter.load("d2.npz"), "__author__": "test"}, file)
    keys = ("--preset=torchvision", "--config", *tiny_detector.KEYS)
    report = converter.run("model_final.pkl", "again.npz", "--names=tensorpack", *keys)
    converter.check("a pickle of detectron2: report", "detectron2's names\n" in report and "conv0/W  F32 [7, 7, 3, 64]\n" in report)
    found, expected = converter.load("again.npz"), converter.load("tp.npz")
    for name in ("W", "b"):  # detectron2 predicts no box of the background; it is never read
        expected["fastrcnn/outputs/box/" + name][..., :4] = 0
    converter.check("a pickle of detectron2 to TensorPack's .npz", equal(found, expected))
    converter.run("again.npz", "d2.safetensors", "--names=detectron2", *keys)
    converter.check("and back", equal(converter.load("d2.safetensors"), converter.load("d2.npz")))
    converter.run("model_final.pkl", "d.onnx", "--height=64", "--width=96", *keys)
    session = onnxruntime.InferenceSession(converter.path("d.onnx"), providers=["CPUExecutionProvider"])
    outputs = [output.name for output in session.get_outputs()]
    session.run(outputs, {"image": np.random.default_rng(1).random((3, 64, 96), np.float32)})
    converter.check("a pickle of detectron2 to ONNX", outputs == ["boxes", "scores", "labels", "masks"])


def main():
    torch.set_num_threads(2)
    with tempfile.TemporaryDirectory(prefix="dtrain_convert_") as folder:
        converter = Converter(sys.argv[1], folder)
        check_formats(converter)
        check_deflated(converter)
        check_onnx(converter)
        for model in MODELS + (LARGE if "--all" in sys.argv else []):
            check_names(converter, *model)
        check_detectors(converter)
    print(f"{converter.failed} comparisons failed" if converter.failed else "all comparisons hold")
    sys.exit(1 if converter.failed else 0)


main()
