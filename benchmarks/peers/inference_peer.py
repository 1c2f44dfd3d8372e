"""Times ResNet-50 inference in another engine: prints the median milliseconds per call as a line of JSON.

Usage: inference_peer.py ENGINE MODEL.onnx --batch N --threads N --seconds S
ENGINE: onnxruntime, openvino, openvino_bf16; onnxruntime_int8, openvino_int8 (a model from quantize_onnx.py); torch,
torch_compile, torch_bf16 (torchvision's model in channels_last).
"""
import argparse
import json
import statistics
import time

import numpy as np


def onnxruntime(options, images):
    import onnxruntime as ort
    settings = ort.SessionOptions()
    settings.intra_op_num_threads, settings.inter_op_num_threads = options.threads, 1
    session = ort.InferenceSession(options.model, settings, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return ort.__version__, lambda: session.run(None, {name: images})


def openvino(options, images, precision="f32"):
    import openvino as ov
    core = ov.Core()
    model = core.read_model(options.model)
    model.reshape(list(images.shape))
    compiled = core.compile_model(model, "CPU", {"INFERENCE_NUM_THREADS": options.threads, "NUM_STREAMS": 1,
                                                 "INFERENCE_PRECISION_HINT": precision})
    request = compiled.create_infer_request()
    return ov.__version__, lambda: request.infer([images])


def torch(options, images, compiles=False, bf16=False):
    import torch
    import torchvision
    torch.set_num_threads(options.threads)
    model = torchvision.models.resnet50().eval().to(memory_format=torch.channels_last)
    x = torch.from_numpy(images).contiguous(memory_format=torch.channels_last)
    if compiles:
        model = torch.compile(model)

    def call():
        with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16, enabled=bf16):
            model(x)

    return torch.__version__, call


ENGINES = {
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "openvino_bf16": lambda options, images: openvino(options, images, "bf16"),
    "onnxruntime_int8": onnxruntime,
    "openvino_int8": openvino,
    "torch": torch,
    "torch_compile": lambda options, images: torch(options, images, compiles=True),
    "torch_bf16": lambda options, images: torch(options, images, bf16=True),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("model")
    parser.add_argument("--batch", type=int, default=1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=5)
    options = parser.parse_args()
    images = np.random.default_rng(1).standard_normal((options.batch, 3, 224, 224), dtype=np.float32)
    version, call = ENGINES[options.engine](options, images)
    for _ in range(3):
        call()
    times, end = [], time.monotonic() + options.seconds
    while time.monotonic() < end or len(times) < 3:
        begin = time.monotonic()
        call()
        times.append(1000 * (time.monotonic() - begin))
    print(json.dumps({"engine": options.engine, "version": version, "ms": statistics.median(times), "calls": len(times)}))


if __name__ == "__main__":
    main()
