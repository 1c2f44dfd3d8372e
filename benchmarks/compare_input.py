#!/usr/bin/env python3
"""Compares the input pipeline on class folders with TFRecord shards of the same images, in a warm page cache.

    cmake --preset release && cmake --build --preset release --target dtrain-data
    benchmarks/compare_input.py --save NAME

Images are imagenet_sample and cifar10_jpg.tar.gz in $DTRAIN_TEST_DATA (default ../shared/data): large JPEGs, whose time
is their decoding, and 32x32 JPEGs, whose time is also their reading. Each round measures both sources, first one, then the
other, in turns; a figure is the median over the rounds. Processor seconds per image are compared, too, because other
processes of the machine hardly change them. --save writes benchmarks/results/<date>-input-NAME.json.
"""
import argparse
import json
import os
import pathlib
import statistics
import tarfile
import tempfile

from compare_cpu import Row, data, last_json, machine, name_of_results, output_of, root, table

SETS = {"imagenet_sample": "224", "cifar10": "32"}


def class_folders(name, folder, limit):
    """Places the images in folder/train/CLASS."""
    if name == "imagenet_sample":
        (folder / "train").symlink_to(data / "imagenet_sample/train", target_is_directory=True)
        return
    with tarfile.open(data / "cifar10_jpg.tar.gz") as tar:
        members = [member for member in tar if member.isfile() and member.name.removeprefix("./").startswith("train/")]
        for member in members[:: max(1, len(members) // limit)]:
            tar.extract(member, folder)


def measure(options, folder, size):
    return last_json(output_of([options.program, "throughput", folder, "--threads", options.threads, "--seconds",
                                options.seconds, "--image_size", size, "--json"]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4, help="of a measurement")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--limit", type=int, default=20000, help="images of cifar10")
    parser.add_argument("--program", type=pathlib.Path, default=root / "build/bin/dtrain-data")
    parser.add_argument("--save", metavar="NAME", type=name_of_results, help="write benchmarks/results/<date>-input-NAME.json")
    options = parser.parse_args()
    about, runs, rows = machine(), {}, []
    with tempfile.TemporaryDirectory() as temporary:
        os.environ["XDG_CACHE_HOME"] = f"{temporary}/cache"
        for name, size in SETS.items():
            sources = {kind: pathlib.Path(temporary) / name / kind for kind in ("folders", "shards")}
            sources["folders"].mkdir(parents=True)
            class_folders(name, sources["folders"], options.limit)
            output_of([options.program, "imagenet", "--input", sources["folders"], "--output", sources["shards"],
                       "--shards", "4", "--on_bad_image", "skip"])
            for number in range(options.rounds):
                for kind in list(sources)[:: 1 if number % 2 == 0 else -1]:
                    runs.setdefault((name, kind), []).append(measure(options, sources[kind], size))
                    print(f"  {name}, {kind}: {runs[name, kind][-1]}", flush=True)
            for what, key, of in (("images/s", "seconds", lambda run: run["images"] / run["seconds"]),
                                  ("images per processor second", "processor_seconds",
                                   lambda run: run["images"] / run["processor_seconds"])):
                ours, peer = (statistics.median(of(run) for run in runs[name, kind]) for kind in ("folders", "shards"))
                rows.append(Row(f"{name}, {what}", f"{ours:.0f}", f"{peer:.0f}", f"{ours / peer:.3f}",
                                ">= 0.9" if key == "processor_seconds" else "",
                                ("yes" if ours >= 0.9 * peer else "NO") if key == "processor_seconds" else ""))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows))
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-input-{options.save}.json"
        path.write_text(json.dumps({"machine": about, "threads": options.threads, "rounds": options.rounds,
                                    "rows": [row._asdict() for row in rows],
                                    "runs": {" ".join(key): run for key, run in runs.items()}}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
