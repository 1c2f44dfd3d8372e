#!/usr/bin/env python3
"""Compares training on data in object storage with training on local files: images per second.

    cmake --preset release && cmake --build --preset release --target dtrain-data dtrain-cnn-benchmarks
    benchmarks/compare_storage.py --save NAME

The storage is benchmarks/slow_storage.py on this machine: 20 ms before each answer, and 200 MB/s for all of them. Sources:
local files in the page cache; s3:// without the disk cache; with an empty one (cold); and with one that a run has filled
(warm). The model is `trivial`, so that the input pipeline is measured; the order of samples is random, as in training.
Images are imagenet_sample in $DTRAIN_TEST_DATA (default ../shared/data), each --copies times. The sources alternate within
each round; a figure is the median over the rounds. The server takes processor time, too: with few cores, ratios are lower
than with storage elsewhere. --save writes benchmarks/results/<date>-storage-NAME.json; NAME is in benchmarks/results/machines.json.
"""
import argparse
import json
import pathlib
import shutil
import statistics
import tempfile

from compare_cpu import Row, data, machine, name_of_results, output_of, root, table
from slow_storage import SlowStorage

SOURCES = ("local", "s3 without cache", "s3 cold cache", "s3 warm cache")


def make_shards(options, folder):
    images = sorted((data / "imagenet_sample/train").rglob("*.*"))
    for copy in range(options.copies):
        for image in images:
            place = folder / "images/train" / image.parent.name
            place.mkdir(parents=True, exist_ok=True)
            (place / f"{copy}_{image.name}").symlink_to(image)
    output_of([options.build / "dtrain-data", "imagenet", "--input", folder / "images", "--output", folder / "bucket/data",
               "--shards", "16", "--on_bad_image", "skip"])


def train(options, folder, source, storage):
    cache = folder / "blocks"
    if source == "s3 cold cache":
        shutil.rmtree(cache, ignore_errors=True)
    log = folder / "metrics.jsonl"
    log.unlink(missing_ok=True)
    command = [options.build / "dtrain-cnn-benchmarks", "--model=trivial", "--data_name=imagenet", "--device=cpu",
               f"--batch_size={options.batch}", f"--num_batches={options.batches}", "--num_warmup_batches=1",
               f"--display_every={options.batches}", f"--datasets_num_private_threads={options.threads}",
               f"--metrics_file={log}", f"--data_dir={folder / 'bucket/data' if source == 'local' else 's3://bucket/data'}"]
    if source.endswith("cache") and "without" not in source:
        command += [f"--data_cache_dir={cache}", "--data_cache_gb=4"]
    requests, received = storage.requests, storage.bytes
    output_of(command, XDG_CACHE_HOME=folder / "cache", **storage.environment())
    rates = [json.loads(line)["images_per_sec"] for line in log.read_text().splitlines() if "images_per_sec" in line]
    return {"images_per_sec": rates[-1], "requests": storage.requests - requests, "bytes": storage.bytes - received}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--copies", type=int, default=4)
    parser.add_argument("--delay_ms", type=float, default=20)
    parser.add_argument("--megabytes_per_second", type=float, default=200)
    parser.add_argument("--build", type=pathlib.Path, default=root / "build/bin", help="folder of the programs")
    parser.add_argument("--save", metavar="NAME", type=name_of_results, help="write benchmarks/results/<date>-storage-NAME.json; NAME is in benchmarks/results/machines.json")
    options = parser.parse_args()
    about, runs = machine(), {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_shards(options, folder)
        with SlowStorage(folder / "bucket", options.delay_ms / 1000, options.megabytes_per_second) as storage:
            for source in SOURCES:  # indices of shards, and the page cache
                train(options, folder, source, storage)
            for number in range(options.rounds):
                # A warm cache follows a cold one.
                for source in SOURCES[2:] + SOURCES[:2] if number % 2 else SOURCES:
                    runs.setdefault(source, []).append(train(options, folder, source, storage))
                    print(f"  {source}: {runs[source][-1]}", flush=True)
    local = statistics.median(run["images_per_sec"] for run in runs["local"])
    rows = []
    for source in SOURCES[1:]:
        rate = statistics.median(run["images_per_sec"] for run in runs[source])
        rows.append(Row(f"{source}, images/s", f"{rate:.0f}", f"{local:.0f}", f"{rate / local:.3f}", "", ""))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in about.items()) + "\n\n" + table(rows))
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-storage-{options.save}.json"
        settings = {key: getattr(options, key) for key in ("rounds", "batches", "batch", "threads", "copies", "delay_ms",
                                                           "megabytes_per_second")}
        path.write_text(json.dumps({"machine": about, **settings, "rows": [row._asdict() for row in rows], "runs": runs},
                                   indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
