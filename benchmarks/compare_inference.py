#!/usr/bin/env python3
"""Compares ResNet-50 inference on a CPU with ONNX Runtime, OpenVINO and PyTorch: milliseconds per call, medians.

--peers is a Python with onnxruntime, openvino, torch and torchvision; missing ones are skipped with a notice. The programs
alternate within each round. Nothing else should run on the machine.

Exit codes: 0 done, 1 usage or a program failed.
"""
import argparse
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
ENGINES = {
    "fp32": ("onnxruntime", "openvino", "torch", "torch_compile"),
    "bf16": ("openvino_bf16", "torch_bf16"),
    "int8": ("onnxruntime_int8", "openvino_int8"),
}
MODEL = ["--model=resnet50_v1.5", "--device=cpu"]


def output_of(command, **environment):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, **environment))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-600:]}")
    return done.stdout


def engine_ms(build, precision, batch, options):
    """Milliseconds per call of inference_bench."""
    text = output_of([build / "benchmarks/inference_bench", "--model=resnet50_v1.5", f"--precision={precision}",
                      f"--batch={batch}", f"--threads={options.threads}", f"--seconds={options.seconds}"],
                     GOMP_SPINCOUNT="1000")  # as dtrain-classify and dtrain-serve set it
    return json.loads(text.splitlines()[-1])["ms"]


def export(programs, folder):
    output_of([programs / "dtrain-cnn-benchmarks", *MODEL, "--batch_size=1", "--num_batches=1", f"--train_dir={folder}"])
    [weights] = pathlib.Path(folder).glob("checkpoints/*/model.safetensors")
    model = pathlib.Path(folder) / "model.onnx"
    output_of([programs / "dtrain-classify", "--model=resnet50_v1.5", f"--weights={weights}", f"--onnx={model}"])
    return model


def quantize(options, model):
    """Quantises the model to int8 with ONNX Runtime; OpenVINO reads the same file."""
    quantized = model.with_name("int8.onnx")
    output_of([options.peers, root / "benchmarks/peers/quantize_onnx.py", model, quantized])
    return quantized


def peers_of(options, precision, model):
    """Engines that are installed in the Python of --peers."""
    found = []
    for engine in ENGINES[precision]:
        try:
            peer_ms(engine, model, 1, options, seconds=0)
            found.append(engine)
        except RuntimeError as error:
            print(f"skipped: {engine}: {str(error).strip().splitlines()[-1]}", flush=True)
    return found


def peer_ms(engine, model, batch, options, seconds=None):
    done = json.loads(output_of([options.peers, root / "benchmarks/peers/inference_peer.py", engine, model, f"--batch={batch}",
                                 f"--threads={options.threads}", f"--seconds={options.seconds if seconds is None else seconds}"],
                                OMP_WAIT_POLICY="active").splitlines()[-1])
    peer_ms.versions[engine] = done["version"]
    return done["ms"]


peer_ms.versions = {}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build-release")
    parser.add_argument("--peers", default=sys.executable, help="Python with the peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="duration of each measurement")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--precision", default="fp32", help="fp32, bf16, int8, separated by commas")
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--json", help="writes the figures to this file, such as benchmarks/results/<date>-inference-NAME.json")
    options = parser.parse_args()
    build = root / options.build
    precisions = options.precision.split(",")
    if not set(precisions) <= set(ENGINES):
        parser.error(f"--precision={options.precision}: expected a list of {','.join(ENGINES)}")
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        model = export(build / "bin", folder)
        for precision in precisions:
            own_model, engines = model, []
            try:
                own_model = quantize(options, model) if precision == "int8" else model
                engines = peers_of(options, precision, own_model)
            except RuntimeError as error:
                print(f"skipped: {', '.join(ENGINES[precision])}: {str(error).strip().splitlines()[-1]}", flush=True)
            for batch in options.batches:
                times = figures[f"{precision} {batch}"] = {name: [] for name in ("dtrain", *engines)}
                for _ in range(options.rounds):
                    for name in times:
                        times[name].append(engine_ms(build, precision, batch, options) if name == "dtrain"
                                           else peer_ms(name, own_model, batch, options))
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    commit = output_of(["git", "-C", root, "describe", "--always", "--dirty"]).strip()
    print(f"ResNet-50 v1.5, {options.threads} threads of {processor}, commit {commit}; "
          f"{', '.join(f'{name} {version}' for name, version in peer_ms.versions.items())}")
    print(f"{'precision':9} {'batch':>5} {'program':16} {'ms a call':>10} {'images/s':>9} {'speed-up of dtrain':>18}")
    for case, times in figures.items():
        precision, batch = case.split()[0], int(case.split()[1])
        ours = statistics.median(times["dtrain"])
        for name, values in times.items():
            ms = statistics.median(values)
            print(f"{precision:9} {batch:5} {name:16} {ms:10.1f} {1000 * batch / ms:9.1f} {ms / ours:18.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"processor": processor, "threads": options.threads, "commit": commit, "versions": peer_ms.versions,
             "ms": figures}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(str(error))
