#!/usr/bin/python3
"""Soak test of dtrain-serve: valid and hostile clients for minutes or hours; checks memory and responses.

    soak_server.py --bin DIR --out FILE [--minutes 30] [--seed 1] [--rate 40]

The server has a classifier and a Mask R-CNN named `compare`. Every 30 seconds the classifier gets the next checkpoint
of a training, and sometimes a damaged checkpoint. Half of the requests are hostile. The seed selects the requests of
each client; --rate is the total number of requests per second. FILE gets JSON Lines: a "start" line for each start of
this program and one line per minute. If FILE exists, the remaining minutes run with a new server. The last line is the
verdict:

    memory_flat          median RSS (MiB) in the last third of the minutes <= 1.1 * median in the first third + 16;
                         the first two minutes of each start are warm-up
    descriptors_flat     minimum of open files in each minute <= minimum in the first minute + 4
    threads_flat         no minute has more threads than the first minute after the warm-up
    no_wrong_answer      every status is allowed for its request, every prediction equals dtrain-classify with the
                         checkpoint of the response, every detection equals the first response for its image
    checkpoints_in_time  each new checkpoint was loaded, and each damaged one rejected, within a minute
    clean_end            SIGTERM ended the server with exit code 0; its only warnings are about damaged checkpoints

Exit status: 0 if all of them are true, else 1. Needs Pillow (python3-pil for Debian's interpreter).
"""
import argparse
import collections
import datetime
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CLIENTS = 6
SWAP_SECONDS = 30
FLAGS = ("--name=classifier", "--device=cpu", "--max_connections=32", "--max_body_mb=4", "--max_image_megapixels=4",
         "--request_seconds=5", "--idle_seconds=2")
WARM_UP = 2


class Tally:
    """Results of all clients in the current minute."""

    def __init__(self):
        self.lock = threading.Lock()
        self.clear()

    def clear(self):
        self.requests = collections.defaultdict(collections.Counter)
        self.wrong, self.milliseconds = [], []

    def add(self, kind, outcome, seconds):
        with self.lock:
            self.requests[kind][outcome] += 1
            if kind == "classify":
                self.milliseconds.append(1000 * seconds)

    def object_to(self, text):
        with self.lock:
            self.wrong.append(text)

    def take(self):
        with self.lock:
            percentiles = statistics.quantiles(self.milliseconds, n=100) if len(self.milliseconds) > 1 else [0] * 99
            line = {"requests": {kind: dict(counts) for kind, counts in sorted(self.requests.items())},
                    "classify_ms": {"p50": round(percentiles[49], 1), "p99": round(percentiles[98], 1)},
                    "wrong": len(self.wrong), "wrong_first": self.wrong[:3]}
            self.clear()
            return line


class Checkpoints(threading.Thread):
    """Adds the next checkpoint of a training, and sometimes a damaged copy, to the served folder."""

    def __init__(self, bin_dir, stock, served, pictures, tally, done):
        super().__init__()
        self.bin_dir, self.pictures, self.tally, self.done = bin_dir, pictures, tally, done
        self.load = None  # the client; set it before start()
        self.stock = sorted((stock / "checkpoints").glob("step-*"), key=lambda path: int(path.name[5:]))
        self.served = served / "checkpoints"
        self.expected = {}  # probabilities of the classes, per version and picture
        self.swaps = self.damaged = self.late = 0

    def put(self):
        source = self.stock.pop(0)
        version = int(source.name[5:])
        out = subprocess.run([self.bin_dir / "dtrain-classify", "--json", "--top=10", "--num_intra_threads=1",
                              "--device=cpu", f"--weights={source}/model.safetensors", *self.pictures],
                             check=True, capture_output=True, text=True).stdout
        tops = [json.loads(line)["top"] for line in out.splitlines()]
        self.expected[version] = [{one["class"]: one["probability"] for one in top} for top in tops]
        source.rename(self.served / source.name)
        return version

    def put_damaged(self, version):
        copy = self.served / f"step-{version + 1}"
        shutil.copytree(self.served / f"step-{version}", self.served / "copy.tmp-0-0")
        weights = self.served / "copy.tmp-0-0/model.safetensors"
        data = bytearray(weights.read_bytes())
        data[len(data) // 2] ^= 255
        weights.write_bytes(data)
        weights.parent.rename(copy)
        return copy

    def wait(self, what, holds):
        deadline = time.monotonic() + 60
        while not holds(self.load.good("GET", "/metrics")[1].decode()):
            if time.monotonic() > deadline:
                self.late += 1
                return self.tally.object_to(f"no {what} within a minute")
            time.sleep(0.2)

    def run(self):
        try:
            while not self.done.wait(SWAP_SECONDS) and self.stock:
                version = self.put()
                self.wait(f"version {version}", lambda text: f"dtrain_serve_model_version {version}\n" in text)
                self.swaps += 1
                for old in self.served.glob("step-*"):
                    if int(old.name[5:]) < version:
                        shutil.rmtree(old)
                if self.swaps % 4 == 0:
                    copy = self.put_damaged(version)
                    self.damaged += 1
                    self.wait("rejection of a damaged checkpoint",
                              lambda text: f"failed_checkpoints_total {self.damaged}\n" in text)
                    shutil.rmtree(copy)
        except Exception as problem:
            self.tally.object_to(f"checkpoints: {problem!r}")


def sample(process):
    """RSS in MiB, open files and threads of a process."""
    status = dict(line.split(":", 1) for line in Path(f"/proc/{process}/status").read_text().splitlines())
    return int(status["VmRSS"].split()[0]) / 1024, len(os.listdir(f"/proc/{process}/fd")), int(status["Threads"])


def client(load, seed, rate, done):
    choice = random.Random(seed)
    while not done.is_set():
        load.one(choice)
        done.wait(choice.expovariate(rate / CLIENTS))


def verdict(lines, code, errors, checkpoints):
    minutes = [line for line in lines if "minute" in line]
    settled = [line for line in minutes if line["minute_of_start"] > WARM_UP] or minutes[-1:]
    third = max(1, len(settled) // 3)
    first, last = (statistics.median(line["rss_mb"] for line in part) for part in (settled[:third], settled[-third:]))
    warnings = [line for line in errors.splitlines() if not line.startswith("note: ")]
    wrong = sum(line["wrong"] for line in minutes)
    judged = {"memory_flat": last <= 1.1 * first + 16,
              "descriptors_flat": all(line["fds"][0] <= settled[0]["fds"][0] + 4 for line in settled),
              "threads_flat": all(line["threads"] <= settled[0]["threads"] for line in settled),
              "no_wrong_answer": wrong == 0, "checkpoints_in_time": checkpoints.late == 0,
              "clean_end": code == 0 and len(warnings) == checkpoints.damaged and
                           all("warning: cannot load" in warning for warning in warnings)}
    total = collections.Counter()
    for line in minutes:
        for counts in line["requests"].values():
            total.update(counts)
    return {"verdict": all(judged.values()), **judged, "rss_mb_first_third": round(first, 1),
            "rss_mb_last_third": round(last, 1), "minutes": len(minutes), "responses": dict(sorted(total.items())),
            "exit_code": code, "stderr": warnings[:3] if not judged["clean_end"] else []}


def prepare(bin_dir, folder, count):
    """Creates checkpoints, pictures and the detector."""
    sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests/serve")]
    os.environ["DTRAIN_BIN_DIR"] = str(bin_dir)
    import serving
    import tiny_detector
    serving.train(folder / "stock", 2 * count, "--save_model_steps=2", f"--max_ckpts_to_keep={count}")
    (folder / "served/checkpoints").mkdir(parents=True)
    tiny_detector.make(bin_dir, folder / "data", folder / "detector", 20)
    pictures = []
    for seed in range(6):
        pictures.append(folder / f"{seed}.jpg")
        pictures[-1].write_bytes(serving.jpeg(seed, 32 + 16 * seed))
    return serving, pictures, sorted((folder / "data").glob("val*/*"))


def soak(arguments, folder, lines, record):
    begin = sum("minute" in line for line in lines)
    serving, pictures, scenes = prepare(arguments.bin, folder, 60 * (arguments.minutes - begin) // SWAP_SECONDS + 2)
    import load as loads
    done, tally = threading.Event(), Tally()
    checkpoints = Checkpoints(arguments.bin, folder / "stock", folder / "served", pictures, tally, done)
    checkpoints.put()
    with serving.Server(f"--train_dir={folder}/served", f"--compare={folder}/detector", *FLAGS) as server:
        load = loads.Load(server, [path.read_bytes() for path in pictures], [path.read_bytes() for path in scenes],
                          checkpoints.expected, tally)
        checkpoints.load = load
        threads = [threading.Thread(target=client, args=(load, f"{arguments.seed}/{begin}/{i}", arguments.rate, done))
                   for i in range(CLIENTS)] + [checkpoints]
        for thread in threads:
            thread.start()
        try:
            for minute in range(begin, arguments.minutes):
                samples = []
                for _ in range(60):
                    time.sleep(1)
                    samples.append(sample(server.process.pid))
                rss, files, count = zip(*samples)
                record({"minute": minute + 1, "minute_of_start": minute - begin + 1,
                        "rss_mb": round(statistics.median(rss), 1), "rss_mb_max": round(max(rss), 1),
                        "fds": [min(files), max(files)], "threads": max(count), "checkpoints": checkpoints.swaps,
                        "damaged_checkpoints": checkpoints.damaged, **tally.take()})
        finally:
            done.set()
            for thread in threads:
                thread.join()
        code = server.stop()
        return verdict(lines, code, server.errors, checkpoints)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, help="folder of the programs")
    parser.add_argument("--out", type=Path, required=True, help="JSON Lines file, appended to")
    parser.add_argument("--minutes", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rate", type=float, default=40, help="requests per second")
    arguments = parser.parse_args()
    lines = [json.loads(line) for line in arguments.out.read_text().splitlines()] if arguments.out.exists() else []
    if any("verdict" in line for line in lines):
        sys.exit(f"{arguments.out}: already has a verdict. Choose another --out")

    def record(line):
        lines.append(line)
        with open(arguments.out, "a") as file:
            file.write(json.dumps(line) + "\n")

    version = subprocess.run([arguments.bin / "dtrain-serve", "--version"], check=True, capture_output=True,
                             text=True).stdout
    record({"start": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"), "seed": arguments.seed,
            "version": version.split("\n")[0], "rate": arguments.rate, "cores": os.cpu_count(), "flags": FLAGS})
    with tempfile.TemporaryDirectory() as folder:
        record(result := soak(arguments, Path(folder), lines, record))
    print(json.dumps(result, indent=1))
    sys.exit(0 if result["verdict"] else 1)


if __name__ == "__main__":
    main()
