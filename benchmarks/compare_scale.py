#!/usr/bin/env python3
"""Compares the predictions of dtrain-scale with training runs of a few ranks on one machine.

    cmake --preset release && cmake --build --preset release --target programs
    benchmarks/compare_scale.py --save NAME

Each round measures, for each number of ranks: the layers, in one process per rank at the same time, since ranks share
caches and memory bandwidth; the links, with dtrain-allreduce-benchmark; and the training. A figure is the median over the
rounds. --save writes every run to benchmarks/results/<date>-scale-NAME.json, whose "runs" are the input of dtrain-scale
--measured.
"""
import argparse
import json
import pathlib
import statistics
import sys
import tempfile

from compare_allreduce import bus_bandwidth, mpirun
from compare_cpu import last_json, machine, name_of_results, output_of, root
from compare_ranks import found_in

SMALL, LARGE = 4096, 25 << 20  # bytes: a latency-bound message, and a bucket


def measure_layers(o, ranks, folder):
    mpirun(ranks, ["sh", "-c", 'exec "$@" --layers_out=$0/$OMPI_COMM_WORLD_RANK.json', folder, root / o.build / "bin/dtrain-scale",
                   "--measure", f"--model={o.model}", f"--batch_size={o.batch}", "--num_intra_threads=1", f"--steps={o.steps}"])
    return folder / "0.json"


def measure_links(o, ranks, folder):
    """Bandwidth (bytes/s) and latency (s) of a link, solved from the cost model of the ring all-reduce."""
    if ranks == 1:
        return 1e9, 0.0
    file = folder / "links.json"
    mpirun(ranks, [root / o.build / "bin/dtrain-allreduce-benchmark", f"--sizes={SMALL},{LARGE}", f"--json_file={file}"])
    seconds = {row["bytes"]: row["seconds"] for row in json.loads(file.read_text())["rows"]}
    return bus_bandwidth(LARGE, seconds[LARGE], ranks), seconds[SMALL] / (2 * (ranks - 1))


def train(o, ranks):
    text = mpirun(ranks, [root / o.build / "bin/dtrain-cnn-benchmarks", f"--model={o.model}", "--device=cpu",
                          f"--batch_size={o.batch}", "--num_intra_threads=1", f"--num_batches={o.steps}",
                          "--num_warmup_batches=2", "--variable_update=replicated", "--optimizer=momentum"])
    return found_in(text, argparse.Namespace(batch=o.batch * ranks), ranks)


def one_round(o, ranks):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        bandwidth, latency = measure_links(o, ranks, folder)
        layers = measure_layers(o, ranks, folder)
        run = train(o, ranks)
        study = last_json(output_of([root / o.build / "bin/dtrain-scale", f"--layers={layers}", f"--gpus={ranks}",
                                     f"--gpus_per_host={ranks}", f"--inside_gbs={bandwidth / 1e9}", f"--inside_us={latency * 1e6}",
                                     "--all_reduce_algorithm=ring", "--json"]))
    predicted = study["weak"][0]
    return {**run, "link_bytes_per_second": bandwidth, "message_seconds": latency,
            "predicted_step_seconds": predicted["step_seconds"], "predicted_exposed_seconds": predicted["exposed_seconds"]}


def table(runs, counts):
    def median(ranks, key):
        return statistics.median(run[key] for run in runs if run["ranks"] == ranks)

    lines = ["| ranks | step, s | predicted | error | exposed, s | predicted |", "|---|---|---|---|---|---|"]
    for ranks in counts:
        step, predicted = median(ranks, "step_seconds"), median(ranks, "predicted_step_seconds")
        lines.append(f"| {ranks} | {step:.3f} | {predicted:.3f} | {100 * (predicted / step - 1):+.1f} % "
                     f"| {median(ranks, 'exposed_seconds'):.3f} | {median(ranks, 'predicted_exposed_seconds'):.3f} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=8, help="images per rank; a rank has one thread")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 2, 3, 4])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-scale-NAME.json")
    parser.add_argument("--build", default="build")
    options = parser.parse_args()

    about, runs = machine(), []
    for _ in range(options.rounds):
        for ranks in options.ranks:
            runs.append(one_round(options, ranks))
            print(f"  {runs[-1]}", flush=True)
    text = table(runs, options.ranks)
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + text)
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-scale-{options.save}.json"
        path.write_text(json.dumps({"machine": about, "command": " ".join(sys.argv), "table": text.splitlines(), "runs": runs},
                                   indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
