#!/usr/bin/env python3
"""Trains the same Mask R-CNN in dtrain-mask-rcnn and torchvision on real data and compares their average precision.

    cmake --preset release && cmake --build --preset release --target dtrain-mask-rcnn
    benchmarks/compare_convergence.py --python VENV/bin/python --data DIR --save NAME

DIR has the nuclei of the Data Science Bowl 2018 in COCO's layout: annotations/instances_{train,val}2018.json and the
images in train2018/ and val2018/. --python needs torch, torchvision, pycocotools and Pillow. The recipe is
benchmarks/nuclei.cfg. For each seed both programs start from the same weights, initialised by torchvision, and use the same
learning rate in each step. The order of images, flips and sampled regions differ.
"""
import argparse
import json
import pathlib
import statistics
import tempfile
import time

from compare_cpu import Row, last_json, machine, name_of_results, output_of, root, table

PEER = root / "benchmarks/peers/nuclei_peer.py"
FIGURES = [(kind, i, f"{what} {name}") for kind, what in (("bbox", "box"), ("segm", "mask"))
           for i, name in enumerate(("AP", "AP50"))]


def train_ours(o, folder, seed):
    run = folder / f"run-{seed}"
    program = [root / o.build / "bin/dtrain-mask-rcnn"]
    common = ["--device=cpu", f"--config_file={root}/benchmarks/nuclei.cfg", f"--data_dir={o.data}",
              f"--num_intra_threads={o.threads}"]
    begin = time.perf_counter()
    output_of([*program, "train", *common, f"--load={folder}/weights-{seed}.safetensors", f"--tf_random_seed={seed}",
               f"--train_dir={run}", "--display_every=1", f"--metrics_file={folder}/metrics-{seed}.jsonl"])
    seconds = time.perf_counter() - begin
    scores = json.loads((run / "stats.json").read_text())[-1]
    return {"seed": seed, "seconds": seconds,
            **{kind: [scores[f"val2018-mAP({kind})/IoU={iou}"] for iou in ("0.5:0.95", "0.5")]
               for kind in ("bbox", "segm")}}


def row_of(kind, i, what, ours, peers):
    """The target is the lowest value of the peer's seeds."""
    mine, theirs = ([run[kind][i] for run in runs] for runs in (ours, peers))
    show = lambda values: f"{statistics.mean(values):.3f} ({', '.join(f'{v:.3f}' for v in values)})"
    return Row(what, show(mine), show(theirs), f"{statistics.mean(mine) / statistics.mean(theirs):.3f}",
               f">= {min(theirs):.3f}", "yes" if statistics.mean(mine) >= min(theirs) else "NO")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=pathlib.Path, required=True)
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-convergence-NAME.json")
    o = parser.parse_args()
    about, ours, peers = machine(), [], []
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        for seed in o.seeds:
            weights = folder / f"weights-{seed}.safetensors"
            output_of([o.python, PEER, "--make", weights, "--seed", seed])
            ours.append(train_ours(o, folder, seed))
            print(f"  ours: {ours[-1]}", flush=True)
            peers.append(last_json(output_of([
                o.python, PEER, "--weights", weights, "--seed", seed, "--metrics", folder / f"metrics-{seed}.jsonl",
                "--data", o.data, "--threads", o.threads])))
            print(f"  torchvision: {peers[-1]}", flush=True)
    rows = [row_of(*figure, ours, peers) for figure in FIGURES]
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows))
    if o.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-convergence-{o.save}.json"
        path.write_text(json.dumps({"machine": about, "rows": [row._asdict() for row in rows], "ours": ours,
                                    "torchvision": peers}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
