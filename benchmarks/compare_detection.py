#!/usr/bin/env python3
"""Compares Mask R-CNN training and inference on a CPU with torchvision, and prints a table of ratios.

    cmake --preset release && cmake --build --preset release --target detector_bench
    benchmarks/compare_detection.py --python VENV/bin/python --save NAME

Both programs run on the same random weights and synthetic images. --python needs torch and torchvision. Figures are medians
over the rounds, for torchvision in the faster of NCHW and channels_last.
"""
import argparse
import json
import pathlib
import statistics
import tempfile

from compare_cpu import TORCH, Row, last_json, machine, name_of_results, output_of, root, table


def row_of(what, ours, peers, key, unit, target):
    """`peers` by layout; the ratio is peer / dtrain."""
    mine = statistics.median(run[key] for run in ours)
    layout, theirs = min(((name, statistics.median(run[key] for run in runs)) for name, runs in peers.items()),
                         key=lambda pair: pair[1])
    ratio = theirs / mine
    return Row(what, f"{mine:.2f} {unit}", f"{theirs:.2f} ({layout})", f"{ratio:.2f}", f">= {target}" if target else "",
               ("yes" if ratio >= target else "NO") if target else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--height", type=int, default=320)
    parser.add_argument("--width", type=int, default=480)
    parser.add_argument("--batch", type=int, default=2)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3")
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-detection-NAME.json")
    o = parser.parse_args()
    about, runs, rows = machine(), {}, []
    script = root / "benchmarks/peers/mask_rcnn_peer.py"
    with tempfile.TemporaryDirectory() as temporary:
        output_of([o.python, script, "--folder", temporary, "--make", "--height", o.height, "--width", o.width,
                   "--batch", o.batch])
        for _ in range(o.rounds):
            for mode in ("train", "infer"):
                rest = ["--folder", temporary, "--mode", mode, "--threads", o.threads, "--steps", o.steps]
                sides = {"ours": [root / o.build / "benchmarks/detector_bench", *rest],
                         TORCH[0]: [o.python, script, *rest], TORCH[1]: [o.python, script, *rest, "--channels_last"]}
                for side, command in sides.items():
                    runs.setdefault((mode, side), []).append(last_json(output_of(command, OMP_WAIT_POLICY="passive")))
                    print(f"  {mode}, {side}: {runs[mode, side][-1]}", flush=True)
    for mode, what, target in (("train", "step", 3), ("infer", "inference", 2)):
        peers = {name: runs[mode, name] for name in TORCH}
        shape = f"{what}, batch {o.batch}, {o.height}x{o.width}, {o.threads} threads"
        rows.append(row_of(shape, runs[mode, "ours"], peers, "seconds", "s", target))
        rows.append(row_of(f"{what}, processor time", runs[mode, "ours"], peers, "processor_seconds", "s", None))
        rows.append(row_of(f"{what}, peak memory", runs[mode, "ours"], peers, "peak_mib", "MiB", 1.25))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows))
    if o.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-detection-{o.save}.json"
        path.write_text(json.dumps({"machine": about, "rows": [row._asdict() for row in rows],
                                    "runs": {" ".join(key): run for key, run in runs.items()}}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
