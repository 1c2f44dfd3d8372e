#!/usr/bin/env python3
"""Trains a ResNet on CIFAR-10 in dtrain and PyTorch by the same recipe and prints both accuracies.

    cmake --preset release && cmake --build --preset release --target programs
    benchmarks/compare_cifar10.py --seeds 3 --save NAME
    benchmarks/compare_cifar10.py --recipe 94 --device gpu --build build-cuda --python python3 --save NAME

The recipe "short" trains ResNet-20 for ten epochs. "94" trains ResNet-56 for 200 epochs in bf16 on a GPU and aims at 94 %.

The images are cifar10_jpg.tar.gz, with train/<class>/*.jpg and test/<class>/*.jpg, in $DTRAIN_TEST_DATA (default
../shared/data). --save writes benchmarks/results/<date>-cifar10-NAME.json after every run; --resume FILE completes an
interrupted comparison from such a file.
"""
import argparse
import collections
import json
import pathlib
import re
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time

from compare_cpu import Row, data, last_json, machine, name_of_results, root, table

# Weight decay for ten epochs: with momentum 0.9 its time constant is 0.1 / (rate * decay) = 2,000 of 3,907 steps. The 1e-4
# of long schedules has a time constant of 10,000 steps and would have no effect.
SHORT = {"batch_size": 128, "learning_rate": 0.1, "warmup_epochs": 1, "weight_decay": 5e-4}
RECIPES = {"short": (SHORT, {"depth": 20, "epochs": 10, "precision": "fp32"}),
           "94": ({**SHORT, "batch_size": 256}, {"depth": 56, "epochs": 200, "precision": "bf16"})}


def unpack(archive, folder, limit):
    """Extracts the first limit / 10 images per class and split, or all."""
    seen = collections.Counter()
    with tarfile.open(archive) as tar:
        for member in tar:
            if not member.isfile():
                continue
            path = pathlib.PurePosixPath(member.name)
            seen[path.parent] += 1
            if not limit or seen[path.parent] <= limit // 10:
                tar.extract(member, folder)


def ours(options, folder, seed):
    threads = [f"--num_intra_threads={options.threads}", "--datasets_num_private_threads=1"] if options.device == "cpu" else []
    return [root / options.build / "bin/dtrain-cnn-benchmarks", f"--model=resnet{options.depth}", "--data_name=cifar10",
            f"--data_dir={folder}/records", "--num_classes=10", f"--device={options.device}", f"--precision={options.precision}",
            f"--batch_size={options.recipe['batch_size']}",
            "--num_warmup_batches=0", f"--num_epochs={options.epochs}", "--optimizer=momentum", "--lr_schedule=cosine",
            f"--weight_decay={options.recipe['weight_decay']}", f"--init_learning_rate={options.recipe['learning_rate']}",
            f"--num_learning_rate_warmup_epochs={options.recipe['warmup_epochs']}", f"--tf_random_seed={seed}",
            f"--eval_during_training_every_n_epochs={options.epochs}", "--num_eval_epochs=1", "--display_every=100"] + threads


def peer(options, folder, seed):
    settings = {**options.recipe, "seed": seed, "depth": options.depth, "epochs": options.epochs, "device": options.device,
                "precision": options.precision, "threads": options.threads}
    return [options.python, root / "benchmarks/peers/cifar10_peer.py", folder / "images",
            *(f"--{key}={value}" for key, value in settings.items())]


def found_by_ours(text):
    top_1, examples = re.findall(r"^Accuracy @ 1 = (\S+) .*\[(\d+) examples\]$", text, re.M)[-1]
    return {"top_1": float(top_1), "examples": int(examples),
            "images_per_sec": float(re.findall(r"^\d+\timages/sec: (\S+)", text, re.M)[-1])}


def echoed(command):
    """Runs a command, echoes its output line by line and returns it."""
    lines = []
    with subprocess.Popen([str(part) for part in command], cwd=root, text=True, stdout=subprocess.PIPE) as process:
        for line in process.stdout:
            print(f"    {line}", end="", flush=True)
            lines.append(line)
    if process.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {process.returncode}")
    return "".join(lines)


def measured(command, folder, parse):
    line = " ".join(map(str, command)).replace(f"{root}/", "").replace(str(folder), "DIR")
    print(f"  {line}", flush=True)
    wall, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    found = parse(echoed(command))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return dict(found, wall_seconds=round(time.perf_counter() - wall, 1),
                processor_seconds=round(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, 1), command=line)


def rows_of(runs):
    """A row per seed that both sides finished, then the means, which have a target if there are two seeds or more."""
    rows = [Row(f"top-1, seed {a['seed']}", f"{a['top_1']:.4f}", f"{b['top_1']:.4f}", f"{a['top_1'] / b['top_1']:.3f}", "", "")
            for a, b in zip(runs["ours"], runs["peer"])]
    if not rows:
        return []
    mean, peer_mean = (statistics.mean(run["top_1"] for run in runs[side][:len(rows)]) for side in ("ours", "peer"))
    target = met = ""
    if len(rows) > 1:
        accuracies = [run["top_1"] for run in runs["peer"]]
        least = peer_mean - (max(accuracies) - min(accuracies))
        target, met = f">= {least:.4f}, the peer's mean less its spread", "yes" if mean >= least else "NO"
    rows.append(Row("top-1, mean", f"{mean:.4f}", f"{peer_mean:.4f}", f"{mean / peer_mean:.3f}", target, met))
    for key in ("wall_seconds", "processor_seconds"):
        a, b = (statistics.median(run[key] for run in runs[side]) for side in ("ours", "peer"))
        rows.append(Row(key.replace("_", " ") + ", median", f"{a:.0f}", f"{b:.0f}", f"{a / b:.2f}", "", ""))
    return rows


def settings_of(options):
    return {key: getattr(options, key) for key in ("recipe", "depth", "device", "precision", "epochs", "threads", "limit")}


def save(path, options, about, runs):
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps({"machine": about, **settings_of(options), "rows": [row._asdict() for row in rows_of(runs)],
                                "runs": runs}, indent=1) + "\n")


def runs_of(path, options):
    """Reads the runs of an earlier file, which must have the same settings; each run names its commit."""
    earlier = json.loads(pathlib.Path(path).read_text())
    for key, value in settings_of(options).items():
        if earlier[key] != value:
            sys.exit(f"{path}: {key} is {earlier[key]}; expected {value}. Start without --resume")
    for run in earlier["runs"]["ours"] + earlier["runs"]["peer"]:
        run.setdefault("commit", earlier["machine"]["commit"])
    return earlier["runs"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipe", choices=RECIPES, default="short")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    for key in ("depth", "epochs"):
        parser.add_argument(f"--{key}", type=int, help="overrides the recipe")
    parser.add_argument("--precision", choices=("fp32", "bf16"), help="overrides the recipe")
    parser.add_argument("--seeds", type=int, default=1, help="number of seeds, from 1")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=int, default=0, help="images per split, for a trial run; 0: all")
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-cifar10-NAME.json")
    parser.add_argument("--resume", metavar="FILE", help="results file to complete")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3", help="has torch and PIL")
    options = parser.parse_args()
    options.recipe, defaults = RECIPES[options.recipe]
    for key, value in defaults.items():
        setattr(options, key, getattr(options, key) or value)
    archive = data / "cifar10_jpg.tar.gz"
    if not archive.is_file():
        sys.exit(f"{archive}: no such file. Set DTRAIN_TEST_DATA to its folder")

    about = machine()
    path = root / "benchmarks/results" / f"{about['date'][:10]}-cifar10-{options.save}.json" if options.save else None
    runs = runs_of(options.resume, options) if options.resume else {"ours": [], "peer": []}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        unpack(archive, folder / "images", options.limit)
        echoed([root / options.build / "bin/dtrain-data", "cifar10", "--input", folder / "images", "--output", folder / "records"])
        for seed in range(1, options.seeds + 1):
            for side, command, parse in (("ours", ours, found_by_ours), ("peer", peer, last_json)):
                if any(run["seed"] == seed for run in runs[side]):
                    continue
                runs[side].append(dict(measured(command(options, folder, seed), folder, parse), seed=seed, commit=about["commit"]))
                if path:
                    save(path, options, about, runs)
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows_of(runs)))
    if path:
        print(f"saved as {path.relative_to(root)}")


main()
