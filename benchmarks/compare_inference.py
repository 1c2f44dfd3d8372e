#!/usr/bin/env python3
"""ResNet-50's inference on a CPU beside other programs, turn by turn: milliseconds per call, medians over the rounds.

The peers are run by --peers, a Python with those of onnxruntime, openvino, torch and torchvision that are to be compared
(from PyPI: pip install onnxruntime openvino); what it lacks is left out, with a line. Programs are those of --build.
Nothing else should run on the machine.

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
ENGINES = ("onnxruntime", "openvino", "openvino_bf16", "torch", "torch_compile", "torch_bf16")
MODEL = ["--model=resnet50_v1.5", "--device=cpu"]


def output_of(command, **environment):
    done = subprocess.run([str(part) for part in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=dict(os.environ, **environment))
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr[-600:]}")
    return done.stdout


def engine_ms(programs, batch, options):
    """Ours: images per second of --forward_only after its warm-up."""
    calls = max(5, int(options.seconds / (0.04 * batch)))
    text = output_of([programs / "dtrain-cnn-benchmarks", *MODEL, "--forward_only", f"--batch_size={batch}",
                      f"--num_batches={calls}", f"--display_every={calls}", "--num_warmup_batches=3",
                      f"--num_intra_threads={options.threads}"])
    return 1000 * batch / float(re.search(r"total images/sec: ([\d.]+)", text)[1])


def export(programs, folder):
    output_of([programs / "dtrain-cnn-benchmarks", *MODEL, "--batch_size=1", "--num_batches=1", f"--train_dir={folder}"])
    [weights] = pathlib.Path(folder).glob("checkpoints/*/model.safetensors")
    model = pathlib.Path(folder) / "model.onnx"
    output_of([programs / "dtrain-classify", "--model=resnet50_v1.5", f"--weights={weights}", f"--onnx={model}"])
    return model


def peers_of(options, model):
    """The engines that the Python has."""
    found = []
    for engine in ENGINES:
        try:
            peer_ms(engine, model, 1, options, seconds=0)
            found.append(engine)
        except RuntimeError as error:
            print(f"left out: {engine}: {str(error).strip().splitlines()[-1]}", flush=True)
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
    parser.add_argument("--peers", default=sys.executable, help="Python that has the peers")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=5, help="of each measurement")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 16])
    parser.add_argument("--json", help="file to write the figures to")
    options = parser.parse_args()
    programs = root / options.build / "bin"
    figures = {}
    with tempfile.TemporaryDirectory() as folder:
        model = export(programs, folder)
        engines = peers_of(options, model)
        for batch in options.batches:
            times = figures[batch] = {name: [] for name in ("dtrain", *engines)}
            for _ in range(options.rounds):
                for name in times:
                    times[name].append(engine_ms(programs, batch, options) if name == "dtrain"
                                       else peer_ms(name, model, batch, options))
    processor = re.search(r"model name\s*: (.*)", pathlib.Path("/proc/cpuinfo").read_text())[1]
    commit = output_of(["git", "-C", root, "describe", "--always", "--dirty"]).strip()
    print(f"ResNet-50 v1.5, f32 unless said, {options.threads} threads of {processor}, commit {commit}; "
          f"{', '.join(f'{name} {version}' for name, version in peer_ms.versions.items())}")
    print(f"{'batch':>5} {'program':16} {'ms a call':>10} {'images/s':>9} {'ours is faster by':>18}")
    for batch, times in figures.items():
        ours = statistics.median(times["dtrain"])
        for name, values in times.items():
            ms = statistics.median(values)
            print(f"{batch:5} {name:16} {ms:10.1f} {1000 * batch / ms:9.1f} {ms / ours:18.2f}")
    if options.json:
        pathlib.Path(options.json).write_text(json.dumps(
            {"processor": processor, "threads": options.threads, "commit": commit, "versions": peer_ms.versions,
             "ms": figures}, indent=1) + "\n")


if __name__ == "__main__":
    try:
        main()
    except RuntimeError as error:
        sys.exit(str(error))
