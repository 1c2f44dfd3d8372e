#!/usr/bin/env python3
"""Measurements and comparisons of scripts/gpu_check.sh, one function per part.

compare_gpu.py kernels|steps|profile|jpegs|curves|same_bits|one_rank|ranks|several_ranks|detection --programs FOLDER --out FOLDER
    [--records FOLDER] [--depth quick|full]
compare_gpu.py summary --out FOLDER --gpu NAME
Each part writes FOLDER/<part>.json (profile: an SVG) and prints a line that starts with RESULT. Without a GPU it prints the
commands that it would run.
"""
import argparse
import datetime
import functools
import json
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

import predict_gpu

root = pathlib.Path(__file__).resolve().parent.parent
PRECISIONS = ("fp32", "bf16", "fp16")
BATCH = 256


@functools.cache
def has_gpu():
    return shutil.which("nvidia-smi") is not None and subprocess.run(["nvidia-smi", "-L"], capture_output=True).returncode == 0


def output_of(command, seconds=300):
    line = " ".join(str(part) for part in command).replace(f"{root}/", "")
    print(f"  {line}", flush=True)
    if not has_gpu():
        return None
    done = subprocess.run([str(part) for part in command], cwd=root, text=True, capture_output=True, timeout=seconds)
    if done.returncode != 0:
        raise RuntimeError(f"{line}: exit {done.returncode}: {(done.stderr or done.stdout)[-500:]}")
    return done.stdout


def save(options, part, value):
    (pathlib.Path(options.out) / f"{part}.json").write_text(json.dumps(value, indent=1) + "\n")


def result(text):
    print(f"RESULT {text}" if has_gpu() else f"SKIPPED: no GPU: {text}")


def kernels(options):
    """Kernel times against the roofline of predict_gpu.py. chain_bench saves its choice of fusions in the plan file, which
    the following step uses."""
    found = {}
    size, quick = f"--batch={BATCH}", "--benchmark_min_time=0.1"
    # The optimiser update does not depend on the batch.
    for bench, flags in (("conv_bench", [size, plan_file(options)]), ("chain_bench", [size, plan_file(options)]),
                         ("batch_norm_bench", [size, "--dtype=bf16", quick]),
                         ("op_bench", [size, quick]), ("update_bench", [quick])):
        path = pathlib.Path(options.programs) / "benchmarks" / bench
        if not path.exists():
            print(f"  there is no {path}")
            continue
        text = output_of([path, "--device=gpu", *flags, "--benchmark_format=json"])
        found[bench] = json.loads(text)["benchmarks"] if text else []
    rows = []
    for group, members in predict_gpu.step(BATCH).items():
        for kernel in members:
            rows.append({"group": group, "kernel": kernel.name, "count": kernel.count, "mib": round(kernel.bytes / 2**20, 1),
                         "gflop": round(kernel.flops / 1e9, 1), "ceiling_us": round(1e6 * predict_gpu.seconds(kernel), 1),
                         **{f"{name}_us": round(1e6 * predict_gpu.expected_seconds(kernel, of), 1) for name, of in predict_gpu.MACHINES["h200"].items()}})
    columns = ("ceiling_us", "hopeful_us", "cautious_us")
    if (pathlib.Path(options.programs) / "benchmarks/step_bench").exists():
        text = output_of(ours(options, BATCH, "fp16", True))
        found["step_bench"] = json.loads(text.splitlines()[-1]) if text else {}
    print(f"{'kernel':44} {'count':>5} {'MiB':>8} {'GFLOP':>8}", *(f"{name:>12}" for name in columns))
    for row in rows:
        print(f"{row['kernel']:44} {row['count']:5} {row['mib']:8} {row['gflop']:8}", *(f"{row[name]:12}" for name in columns))
    total = {name.removesuffix("_us"): round(sum(row["count"] * row[name] for row in rows) / 1e3, 1) for name in columns}
    save(options, "kernels", {"batch": BATCH, "predicted_ms": total, "predicted": rows, "measured": found})
    result(f"a step of batch {BATCH} on an H200 is predicted at {total['hopeful']} to {total['cautious']} ms, at least {total['ceiling']}")


def plan_file(options):
    """Flag for the shared cuDNN plan file, so that only the first program autotunes convolutions."""
    return f"--plan_file={options.out}/convolution_plans"


def ours(options, batch, precision, captured):
    return [pathlib.Path(options.programs) / "benchmarks/step_bench", "--device=gpu", f"--precision={precision}", f"--batch={batch}",
            "--size=224", "--steps=40", "--warmup=15", f"--cuda_graph={int(captured)}", plan_file(options)]


def peer(batch, precision, mode):
    return [sys.executable, "-B", root / "benchmarks/peers/resnet50_peer.py", "--device=gpu", "--channels_last",
            f"--precision={precision}", f"--mode={mode}", f"--batch={batch}", "--steps=40", "--warmup=15"]


def from_records(options, batch, precision, decoder):
    return [program(options, "dtrain-cnn-benchmarks"), "--device=gpu", "--model=resnet50_v1.5", f"--precision={precision}",
            f"--batch_size={batch}", "--num_batches=60", "--num_warmup_batches=15", f"--data_dir={options.records}", "--display_every=20",
            f"--jpeg_decoder={decoder}"]


def jpegs(options):
    """Throughput of the input pipeline from TFRecords to samples on the GPU, with host decoding and with nvJPEG."""
    bench, found = pathlib.Path(options.programs) / "benchmarks/jpeg_decode_bench", {}
    if not options.records:
        return result("no TFRecords to decode")
    for preset in ("torchvision", "tf_cnn"):
        for name, flags in {"host": ["--decoder=host"], "gpu": ["--decoder=gpu"], "gpu.alone": ["--decoder=gpu", "--repeat"]}.items():
            try:
                text = output_of([bench, f"--records={options.records}", f"--batch={BATCH}", f"--preprocessing={preset}", *flags], 60)
                if text:
                    found[f"{preset}.{name}"] = json.loads(text)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"  {preset}.{name}: {str(error)[:300]}", flush=True)
    save(options, "jpegs", found)
    for name, run in found.items():
        print(f"{name:24} {run['images_per_sec']:9.1f} images/s {run['host_cores']:6.1f} cores, {run['share_left_to_the_gpu']:.2f} left to the GPU")
    host, gpu = (found.get(f"torchvision.{name}", {}).get("images_per_sec", 0) for name in ("host", "gpu"))
    result(f"JPEGs to samples: {gpu:.0f} images/s decoded by the GPU, {host:.0f} by the host")


def profile(options):
    """Roofline profile of the ResNet-50 step, op by op."""
    text = output_of([program(options, "dtrain-cnn-benchmarks"), "--device=gpu", "--model=resnet50_v1.5", "--precision=bf16", f"--batch_size={BATCH}",
                      "--num_batches=20", "--num_warmup_batches=15", f"--profile={options.out}/resnet50.svg"])
    print(text or "")
    result("the table is in profile.log, the roofline in resnet50.svg")


def plan(options):
    """(name, command) of each run in a round; dtrain and PyTorch alternate."""
    for batch in (BATCH,) if options.depth == "quick" else (BATCH, 64, 32, 512):
        for precision in ("bf16", "fp16"):
            yield f"ours.captured.{precision}.b{batch}", ours(options, batch, precision, True)
            yield f"torch.graph.{precision}.b{batch}", peer(batch, precision, "graph")
            if batch == BATCH or options.depth == "full":
                yield f"torch.eager.{precision}.b{batch}", peer(batch, precision, "eager")
            if options.depth == "full":
                yield f"ours.eager.{precision}.b{batch}", ours(options, batch, precision, False)
    if options.depth == "full":
        yield f"ours.captured.tf32.b{BATCH}", ours(options, BATCH, "tf32", True)
        yield f"torch.eager.tf32.b{BATCH}", peer(BATCH, "tf32", "eager")
        yield f"torch.compile.bf16.b{BATCH}", peer(BATCH, "bf16", "compile")


def steps(options):
    """ResNet-50 v1.5 training step against PyTorch on the same GPU, and real data against synthetic."""
    found, rounds = {}, 1 if options.depth == "quick" else 2
    for turn in range(rounds):
        for name, command in plan(options):
            if turn > 0 and f"b{BATCH}" not in name:
                continue
            try:
                text = output_of(command)
                if text:
                    found.setdefault(name, []).append(json.loads(text.strip().splitlines()[-1]))
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(f"  {name}: {str(error)[:300]}", flush=True)
            save(options, "steps", found)
    for decoder in ("host", "gpu") if options.records else ():
        try:
            text = output_of(from_records(options, BATCH, "bf16", decoder))
            if text:
                rate = float(re.findall(r"^total images/sec: (\S+)", text, re.M)[-1])
                found[f"ours.records.{decoder}.bf16.b{BATCH}"] = [{"images_per_sec": rate}]
                save(options, "steps", found)
        except (RuntimeError, subprocess.TimeoutExpired) as error:
            print(f"  records, decoded by the {decoder}: {str(error)[:300]}", flush=True)
    rates = {name: statistics.median(run["images_per_sec"] for run in runs) for name, runs in found.items()}
    for name, rate in sorted(rates.items(), key=lambda item: -item[1]):
        print(f"{name:36} {rate:9.1f} images/s")
    best = {side: max((rate for name, rate in rates.items() if name.startswith(side) and name.endswith(f"b{BATCH}")), default=0)
            for side in ("ours", "torch")}
    result(f"batch {BATCH}: {best['ours']:.0f} images/s, PyTorch's best {best['torch']:.0f}"
           + (f": {best['ours'] / best['torch']:.2f} times" if best["torch"] else ""))


def program(options, name):
    return pathlib.Path(options.programs) / "bin" / name


def one_rank(options):
    """Cost of a one-rank NCCL communicator in the captured ResNet-50 v1.5 step; must be below 1 %."""
    found = {"alone": [], "nccl": []}
    for _ in range(5 if options.depth == "full" else 3):
        for name, flags in (("alone", ()), ("nccl", ("--all_reduce_spec=nccl",))):
            text = output_of([program(options, "dtrain-cnn-benchmarks"), "--device=gpu", "--variable_update=horovod", "--model=resnet50_v1.5",
                              "--precision=bf16", f"--batch_size={BATCH}", "--num_batches=60", "--num_warmup_batches=15", "--display_every=20", *flags])
            if text:
                found[name].append(float(re.search(r"^GPU time: +(\S+) ms per step", text, re.M)[1]))
    middle = {name: statistics.median(runs) if runs else None for name, runs in found.items()}
    ratio = middle["nccl"] / middle["alone"] if has_gpu() else None
    save(options, "one_rank", {"step_ms": found, "ratio": ratio})
    if ratio is None:
        return result("would train with and without --all_reduce_spec=nccl")
    result(f"a step takes {middle['nccl']:.2f} ms with a one-rank NCCL communicator, {middle['alone']:.2f} ms without: {100 * (ratio - 1):+.2f} %")
    if ratio >= 1.01:
        sys.exit(f"FAIL: {100 * (ratio - 1):.2f} % slower with NCCL; expected less than 1 %")


def ranks(options):
    """Multi-rank features with one rank: checked NCCL all-reduces, dtrain-info --ranks, and training under mpirun."""
    for part, messages in (("sizes", ["--min_bytes=1M", "--max_bytes=256M"]), ("gradients", ["--model=resnet50_v1.5"])):
        output_of([program(options, "dtrain-allreduce-benchmark"), "--device=gpu", *messages, f"--json_file={options.out}/allreduce_{part}.json"])
    table = output_of([program(options, "dtrain-info"), "--ranks", "--expect_ranks=1"])
    mpirun = shutil.which("mpirun")
    text = output_of([mpirun or "mpirun", "--allow-run-as-root", "-np", "1", program(options, "dtrain-cnn-benchmarks"), "--device=gpu", "--expect_ranks=1",
                      "--variable_update=horovod", "--all_reduce_spec=nccl", "--model=resnet18", "--image_size=64", "--batch_size=32", "--num_batches=10",
                      "--num_warmup_batches=5"]) if mpirun or not has_gpu() else None
    if not has_gpu():
        return result("would all-reduce over NCCL, show the rank and train under mpirun")
    print(table, text or "", sep="\n")
    rows = [row for path in pathlib.Path(options.out).glob("allreduce_*.json") for row in json.loads(path.read_text())["rows"]]
    result(f"{len(rows)} all-reduces over NCCL are correct; " + ("trained under mpirun" if mpirun else "no mpirun found, training under it skipped"))


def several_ranks(options):
    """One rank per GPU: captured steps and eager steps have bit-identical losses. The only part that captures NCCL kernels
    and overlaps them with others."""
    gpus = len(subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout.splitlines()) if has_gpu() else 0
    if gpus < 2:
        return print(f"SKIPPED: {gpus} GPUs, needs two: would train with one rank per GPU, captured and eager")
    found = {}
    for name, flags in (("captured", ()), ("eager", ("--nocuda_graph",))):
        with tempfile.TemporaryDirectory() as folder:
            found[name] = train(options, pathlib.Path(folder), "--num_batches=12", "--deterministic", "--precision=bf16",
                                "--init_learning_rate=0.05", f"--num_gpus={gpus}", "--variable_update=replicated", *flags)
    save(options, "several_ranks", {"gpus": gpus, "losses": found})
    result(f"{gpus} ranks, 12 steps, captured and eager: {found['captured'][-1]} and {found['eager'][-1]}")
    if found["captured"] != found["eager"]:
        sys.exit(f"FAIL: the losses differ: {found}")


def train(options, folder, *flags):
    """Trains a small ResNet for a few steps and returns the losses."""
    metrics = folder / "metrics.jsonl"
    data = [f"--data_dir={options.records}"] if options.records else ["--data_name=imagenet"]
    text = output_of([program(options, "dtrain-cnn-benchmarks"), "--device=gpu", "--model=resnet18", "--image_size=64",
                      "--batch_size=32", "--num_warmup_batches=0", "--display_every=1", f"--metrics_file={metrics}", *data, *flags])
    lines = [json.loads(line) for line in metrics.read_text().splitlines()] if text else []
    return [line["loss"] for line in lines if "loss" in line]  # other lines describe checkpoints


def curves(options):
    """Mean loss over 100 steps on real data: bf16 and fp16 must be within 5 % of fp32. The last 20 steps alone are no test:
    the small data set is overfitted by then, and rounding moves their mean by 7 % on an H200."""
    found = {}
    for precision in PRECISIONS:
        with tempfile.TemporaryDirectory() as folder:
            found[precision] = train(options, pathlib.Path(folder), "--num_batches=100", f"--precision={precision}",
                                     "--init_learning_rate=0.05", "--num_learning_rate_warmup_epochs=0")
    save(options, "curves", found)
    if not has_gpu():
        return result("would train 100 steps in each of " + ", ".join(PRECISIONS))
    mean = {precision: statistics.mean(losses) for precision, losses in found.items()}
    off = {precision: abs(mean[precision] / mean["fp32"] - 1) for precision in PRECISIONS}
    result("mean loss of 100 steps: " + ", ".join(f"{precision} {value:.3f}" for precision, value in mean.items()))
    if max(off.values()) > 0.05 or statistics.mean(found["fp32"][-20:]) >= found["fp32"][0]:
        sys.exit(f"FAIL: relative differences {off}")


def same_bits(options):
    """Bit-identical losses over 12 steps: captured, repeated, eager, and resumed after 6 steps."""
    common = ("--deterministic", "--precision=bf16", "--init_learning_rate=0.05")
    runs = {}
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for run, flags in {"captured": (), "again": (), "eager": ("--cuda_graph=false",)}.items():
            (folder / run).mkdir()
            runs[run] = train(options, folder / run, "--num_batches=12", *common, *flags)
        (folder / "resumed").mkdir()
        directory = f"--train_dir={folder}/checkpoints"
        train(options, folder / "resumed", "--num_batches=6", *common, directory)
        runs["resumed"] = train(options, folder / "resumed", "--num_batches=12", *common, directory)
    save(options, "same_bits", runs)
    if not has_gpu():
        return result("would compare four runs of 12 steps")
    runs["resumed"] = runs["resumed"][-12:]
    different = [run for run, losses in runs.items() if losses != runs["captured"]]
    result(f"captured, again, eager and resumed: losses end in {[losses[-1] for losses in runs.values()]}")
    if different:
        sys.exit(f"FAIL: differ from the captured run: {different}")


def detection(options):
    """Mask R-CNN (ResNet-50 FPN) training step at 800x1344, batch 8, against torchvision, and its parts against the
    prediction for an H200."""
    bench, peer = pathlib.Path(options.programs) / "benchmarks/detector_bench", root / "benchmarks/peers/mask_rcnn_peer.py"
    runs, failed, batch = {}, [], 8
    with tempfile.TemporaryDirectory() as folder:
        shape = ["--height", 800, "--width", 1344, "--batch", batch]
        output_of([sys.executable, peer, "--folder", folder, "--make", *shape])
        for _ in range(1 if options.depth == "quick" else 3):
            for precision in ("bf16",) if options.depth == "quick" else PRECISIONS:
                rest = ["--folder", folder, "--mode", "train", "--device", "gpu", "--precision", precision, "--steps", 20,
                        "--warmup", 10]
                for name, command in ((f"ours.{precision}", [bench, *rest]),
                                      (f"torchvision.{precision}", [sys.executable, peer, *rest]),
                                      (f"torchvision.channels_last.{precision}", [sys.executable, peer, *rest, "--channels_last"])):
                    try:
                        if found := output_of(command):
                            runs.setdefault(name, []).append(json.loads(found.strip().splitlines()[-1]))
                            print(f"  {found.strip().splitlines()[-1]}", flush=True)
                    except (RuntimeError, subprocess.TimeoutExpired) as error:
                        failed.append(name)
                        print(f"  {name}: {str(error)[:300]}", flush=True)
                    save(options, "detection", runs)
        measured = pathlib.Path(folder) / "measured.json"
        measured.write_text(json.dumps(runs.get("ours.bf16", [{"parts_ms": {}}])[-1]))
        subprocess.run([sys.executable, root / "benchmarks/predict_detection.py", "--measured", measured], check=True)
    rates = {name: batch / statistics.median(run["seconds"] for run in found) for name, found in runs.items()}
    result(", ".join(f"{name} {rate:.1f} images/s" for name, rate in rates.items()) or "Mask R-CNN step, target 220 images/s")
    if failed:
        sys.exit(f"FAIL: {', '.join(failed)}")


def summary(options):
    """Writes all figures into one file and prints measured values and targets."""
    out = pathlib.Path(options.out)
    parts = {path.stem: json.loads(path.read_text()) for path in out.glob("*.json") if path.stem != "summary"}
    date, runs = datetime.date.today().isoformat(), parts.get("steps", {})
    rates = {name: statistics.median(run["images_per_sec"] for run in found) for name, found in runs.items()}
    at_batch = {name: rate for name, rate in rates.items() if name.endswith(f".b{BATCH}")}
    mine = max((rate for name, rate in at_batch.items() if name.startswith("ours.") and "records" not in name), default=None)
    best = max((rate for name, rate in at_batch.items() if name.startswith("torch.")), default=None)
    report = {"date": date, "gpu": options.gpu, "driver": os.environ.get("GPU_CHECK_DRIVER", ""), "commit": os.environ.get("GPU_CHECK_COMMIT", ""),
              "command": "scripts/gpu_check.sh", "images_per_sec": rates,
              f"resnet50_v1.5.train.b{BATCH}": {"images_per_sec": mine, "best_pytorch_images_per_sec": best,
                                                "ratio_to_best_pytorch": mine / best if mine and best else None}, **parts}
    slug = re.sub(r"[^a-z0-9]+", "-", options.gpu.lower().replace("nvidia", "")).strip("-")
    (out / "summary.json").write_text(json.dumps(report, indent=1) + "\n")
    predicted = parts.get("kernels", {}).get("predicted_ms", {})
    print(f"\n{'what':64} {'measured':>12} {'target':>12}")
    real = max((rates.get(f"ours.records.{decoder}.bf16.b{BATCH}", 0) for decoder in ("host", "gpu"))) or None
    peaks = {side: min((run[0].get("peak_device_mib", 0) for name, run in runs.items() if name.startswith(side) and name.endswith(f"b{BATCH}")
                        and "peak_device_mib" in run[0]), default=None) for side in ("ours", "torch")}
    for what, value, wanted in (
            (f"ResNet-50 v1.5, batch {BATCH}, images/s", mine, ">= 7000"), ("ratio to the fastest PyTorch", mine and best and mine / best, ">= 1.5"),
            ("real data / synthetic data", real and mine and real / mine, ">= 0.97"),
            ("peak device memory / PyTorch", peaks["ours"] and peaks["torch"] and peaks["ours"] / peaks["torch"], "<= 0.8"),
            ("step with a one-rank NCCL communicator / without", parts.get("one_rank", {}).get("ratio"), "< 1.01"),
            ("roofline lower bound of a step, ms", predicted.get("ceiling"), "")):
        print(f"{what:64} {'' if value is None else f'{value:.2f}':>12} {wanted:>12}")
    if options.gpu != "none":
        results = root / "benchmarks/results" / f"{date}-gpu-{slug}.json"
        results.write_text(json.dumps(report, indent=1) + "\n")
        print(f"saved as {results.relative_to(root)}")


def main():
    parts = {function.__name__: function for function in (kernels, steps, profile, jpegs, curves, same_bits, one_rank, ranks, several_ranks, detection, summary)}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=parts)
    parser.add_argument("--programs", default="build-cuda")
    parser.add_argument("--records", default="")
    parser.add_argument("--out", default="gpu-check-results")
    parser.add_argument("--depth", choices=("quick", "full"), default="quick")
    parser.add_argument("--gpu", default="none")
    options = parser.parse_args()
    parts[options.part](options)


if __name__ == "__main__":
    main()
