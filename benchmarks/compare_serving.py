#!/usr/bin/env python3
"""Compares throughput and latency of dtrain-serve and a FastAPI server with PyTorch, under load from wrk.

    benchmarks/compare_serving.py --train_dir T --peer_python VENV/bin/python IMAGE [--seconds 20] [--save NAME]

T has an ImageNet checkpoint of --model. Both servers have the same number of threads and are loaded alternately, --rounds
times, with 1 and with --connections connections. --peer_python needs PyTorch, torchvision, FastAPI and uvicorn. --save
writes every run to benchmarks/results/<date>-serving-NAME.json.
"""
import argparse
import datetime
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PATH = "/predictions/default"


def post(url, image):
    return urllib.request.urlopen(urllib.request.Request(url, image, {"Content-Type": "application/octet-stream"})).read()


def ready(url, image):
    for _ in range(600):
        try:
            return post(url, image)
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url}: no answer within 60 s")


def load(url, script, connections, seconds):
    """Requests per second, and the p50 and p99 latency in ms."""
    out = subprocess.run(["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout=60s", "--latency", "-s", script,
                          url], check=True, capture_output=True, text=True).stdout
    if "Non-2xx" in out:
        sys.exit(out)
    ms = {"us": 1e-3, "ms": 1, "s": 1e3, "m": 6e4}
    latency = {p: float(value) * ms[unit] for p, value, unit in re.findall(r"(50|99)%\s+([\d.]+)(us|ms|s|m)\b", out)}
    return {"rate": float(re.search(r"Requests/sec:\s+([\d.]+)", out)[1]), "p50_ms": latency["50"], "p99_ms": latency["99"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=Path)
    parser.add_argument("--train_dir", required=True)
    parser.add_argument("--peer_python", required=True)
    parser.add_argument("--build", default="build")
    parser.add_argument("--model", default="resnet18")
    parser.add_argument("--connections", type=int, default=16)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--save")
    o = parser.parse_args()
    image = o.image.read_bytes()
    servers = {
        "dtrain-serve": [str(ROOT / o.build / "bin/dtrain-serve"), "--port=8601", f"--train_dir={o.train_dir}",
                         f"--num_intra_threads={o.threads}", "--preprocessing=torchvision"],
        "FastAPI": [o.peer_python, str(ROOT / "benchmarks/peers/serve_peer.py"), o.model, "8602", str(o.threads)]}
    runs = []
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "application/octet-stream"\n'
                     f'local file = io.open("{o.image.resolve()}", "rb")\nwrk.body = file:read("*a")\n')
        script.flush()
        processes = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in servers.values()]
        try:
            for port in (8601, 8602):
                ready(f"http://127.0.0.1:{port}{PATH}", image)
            for turn in range(o.rounds):
                for connections in (1, o.connections):
                    for name, port in zip(servers, (8601, 8602)):
                        run = load(f"http://127.0.0.1:{port}{PATH}", script.name, connections, o.seconds)
                        runs.append({"server": name, "connections": connections, "round": turn, **run})
                        print(runs[-1], flush=True)
        finally:
            for process in processes:
                process.terminate()
                process.wait()
    print("| connections | server | requests/s | p50 ms | p99 ms |\n|---|---|---|---|---|")
    for connections in (1, o.connections):
        for name in servers:
            mine = [r for r in runs if r["server"] == name and r["connections"] == connections]
            print(f"| {connections} | {name} | " + " | ".join(
                f"{statistics.median(r[key] for r in mine):.1f}" for key in ("rate", "p50_ms", "p99_ms")) + " |")
    if o.save:
        cpu = re.search(r"model name\s*: (.*)", Path("/proc/cpuinfo").read_text())[1]
        commit = subprocess.run(["git", "rev-parse", "--short", "HEAD"], cwd=ROOT, capture_output=True, text=True).stdout
        result = {"machine": f"{cpu}, {os.cpu_count()} threads", "load_average": os.getloadavg(), "commit": commit.strip(),
                  "command": "benchmarks/" + " ".join([Path(sys.argv[0]).name] + [f"--{k}={v}" for k, v in (
                      ("model", o.model), ("threads", o.threads), ("connections", o.connections),
                      ("rounds", o.rounds), ("seconds", o.seconds))]), "runs": runs}
        path = ROOT / f"benchmarks/results/{datetime.date.today()}-serving-{o.save}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
