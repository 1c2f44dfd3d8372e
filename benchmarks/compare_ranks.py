#!/usr/bin/env python3
"""Compares training by one rank with all threads and by several ranks that share the threads, on one machine.

    cmake --preset release && cmake --build --preset release --target programs
    benchmarks/compare_ranks.py --rounds 3 --save NAME

--save writes every run to benchmarks/results/<date>-ranks-NAME.json, whose "runs" are the input of dtrain-scale --measured.
"""
import argparse
import json
import re
import statistics
import sys

from compare_cpu import Row, machine, name_of_results, output_of, root, table


def command_of(options, ranks):
    mpirun = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none", "-np", ranks] if ranks > 1 else []
    return mpirun + [root / options.build / "bin/dtrain-cnn-benchmarks", f"--model={options.model}", "--device=cpu",
                     f"--batch_size={options.batch // ranks}", f"--num_intra_threads={options.threads // ranks}",
                     f"--num_batches={options.steps}", "--num_warmup_batches=2", "--variable_update=replicated",
                     "--optimizer=momentum"]


def found_in(text, options, ranks):
    speed = float(re.findall(r"^total images/sec: (\S+)", text, re.M)[-1])
    exposed = re.findall(r"wait for (?:sums|all-reduce) (\S+) ms", text)
    return {"ranks": ranks, "batch": options.batch // ranks, "images_per_sec": speed, "step_seconds": options.batch / speed,
            "exposed_seconds": float(exposed[-1]) / 1e3 if exposed else 0.0}


def rows_of(runs, options):
    def median(ranks, key):
        return statistics.median(run[key] for run in runs if run["ranks"] == ranks)

    one, rows = median(1, "images_per_sec"), []
    for ranks in options.ranks:
        many, share = median(ranks, "images_per_sec"), median(ranks, "exposed_seconds") / median(ranks, "step_seconds")
        rows += [Row(f"images/s, {ranks} ranks x {options.threads // ranks} threads", f"{many:.2f}", f"{one:.2f}",
                     f"{many / one:.3f}", ">= 0.97", "yes" if many / one >= 0.97 else "NO"),
                 Row(f"exposed share of the step, {ranks} ranks", f"{share:.3f}", "", "", "< 0.05",
                     "yes" if share < 0.05 else "NO")]
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="resnet50")
    parser.add_argument("--batch", type=int, default=32, help="global batch size")
    parser.add_argument("--threads", type=int, default=2, help="threads of all ranks together")
    parser.add_argument("--ranks", type=int, nargs="+", default=[2])
    parser.add_argument("--steps", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-ranks-NAME.json")
    parser.add_argument("--build", default="build")
    options = parser.parse_args()
    for ranks in options.ranks:
        if options.batch % ranks or options.threads % ranks:
            sys.exit(f"{ranks} ranks: expected a number that divides --batch={options.batch} and --threads={options.threads}")

    about, runs, commands = machine(), [], []
    for _ in range(options.rounds):
        for ranks in [1] + options.ranks:
            command = command_of(options, ranks)
            line = " ".join(map(str, command)).replace(f"{root}/", "")
            commands += [line] if line not in commands else []
            runs.append(found_in(output_of(command, OMP_WAIT_POLICY="passive"), options, ranks))
            print(f"  {line}\n    {runs[-1]}", flush=True)
    rows = rows_of(runs, options)
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n"
          + table(rows).replace("peer", "1 rank"))
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-ranks-{options.save}.json"
        path.write_text(json.dumps({"machine": about, "commands": commands, "rows": [row._asdict() for row in rows],
                                    "runs": runs}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
