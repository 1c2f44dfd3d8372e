#!/usr/bin/env python3
"""Compares the all-reduce of dtrain with MPI_Allreduce of Open MPI and with gloo, over ranks of one host.

Needs a build with MPI and benchmarks, and a Python with torch. The programs alternate within each round; every run starts
new ranks and reduces all sizes. A figure is the median over the rounds. A ratio is the median of the ratios within the
rounds, so that load which slows a whole round cancels.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(root / "benchmarks"))
from compare_cpu import Row, machine, name_of_results, output_of, table

OURS, MPI, YIELDING, GLOO = "dtrain", "Open MPI", "Open MPI, yielding", "gloo"


def mpirun(ranks, command, *parameters):
    return output_of(["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", *parameters, "-np", ranks, *command],
                     OMP_NUM_THREADS=1)


def bus_bandwidth(size, seconds, ranks):
    return size / seconds * 2 * (ranks - 1) / ranks


class Comparison:
    def __init__(self, options):
        self.options = options
        self.sizes = [int(size) for size in options.sizes.split(",")]
        self.runs = {}  # by ranks, program, size: seconds, one per round

    def ours(self, ranks):
        o = self.options
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "figures.json"
            mpirun(ranks, [root / o.build / "bin/dtrain-allreduce-benchmark", f"--sizes={o.sizes}", f"--iterations={o.iterations}",
                           f"--warmup={o.warmup}", f"--json_file={file}", *o.flags])
            return {str(row["bytes"]): row["seconds"] for row in json.loads(file.read_text())["rows"]}

    def mpi(self, ranks, *parameters):
        o = self.options
        peer = [root / o.build / "benchmarks/mpi_allreduce", o.sizes, o.iterations, o.warmup]
        return json.loads(mpirun(ranks, peer, *parameters))

    def gloo(self, ranks):
        o = self.options
        with tempfile.TemporaryDirectory() as folder:
            peer = [o.python, root / "benchmarks/peers/gloo_allreduce.py", o.sizes, o.iterations, o.warmup, f"{folder}/store"]
            return json.loads(mpirun(ranks, peer))

    def run(self, ranks):
        turns = {OURS: self.ours, MPI: self.mpi, YIELDING: lambda n: self.mpi(n, "--mca", "mpi_yield_when_idle", "1"), GLOO: self.gloo}
        names = list(turns)
        for i in range(self.options.rounds):
            for name in names[i % len(names):] + names[:i % len(names)]:  # rotated: no program always follows the same one
                for size, seconds in turns[name](ranks).items():
                    self.runs.setdefault((ranks, name, int(size)), []).append(seconds)
            print(f"  {ranks} ranks, round {i + 1} of {self.options.rounds}", flush=True)

    def rows(self, ranks):
        rows = []
        for size in self.sizes:
            ours = self.runs[ranks, OURS, size]
            rate = bus_bandwidth(size, statistics.median(ours), ranks) / 1e9
            for name in (MPI, YIELDING, GLOO):
                theirs = self.runs[ranks, name, size]
                peer = bus_bandwidth(size, statistics.median(theirs), ranks) / 1e9
                ratio = statistics.median(their / our for our, their in zip(ours, theirs))
                rows.append(Row(f"{ranks} ranks, {size / 1e6:.0f} MB fp32", f"{rate:.2f} GB/s", f"{peer:.2f} ({name})", f"{ratio:.2f}",
                                ">= 1", "yes" if ratio >= 1 else "NO"))
        return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-allreduce-NAME.json")
    parser.add_argument("--ranks", default="4,2", help="numbers of ranks, separated by commas")
    parser.add_argument("--sizes", default="1000000,25000000,100000000", help="in bytes, separated by commas")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--iterations", type=int, default=7)
    parser.add_argument("--warmup", type=int, default=2)
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3", help="has torch")
    parser.add_argument("flags", nargs="*", help="after --: flags of dtrain-allreduce-benchmark")
    options = parser.parse_args()

    c = Comparison(options)
    about = machine()
    ranks = [int(count) for count in options.ranks.split(",")]
    for count in ranks:
        c.run(count)
    rows = [row for count in ranks for row in c.rows(count)]
    about["open_mpi"] = output_of(["mpirun", "--version"]).splitlines()[0]
    about["gloo"] = "torch " + output_of([options.python, "-c", "import torch; print(torch.__version__)"]).strip()
    text = "\n".join([f"{key}: {value}" for key, value in about.items()] +
                     [f"rounds: {options.rounds} of {options.iterations} iterations after {options.warmup}; bus bandwidth", "",
                      table(rows)]) + "\n"
    print("\n" + text)
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-allreduce-{options.save}.json"
        runs = [{"ranks": n, "program": name, "bytes": size, "seconds": seconds} for (n, name, size), seconds in c.runs.items()]
        path.write_text(json.dumps(
            {"machine": about, "rows": [row._asdict() for row in rows], "runs": runs}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
