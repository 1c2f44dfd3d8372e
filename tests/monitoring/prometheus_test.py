#!/usr/bin/env python3
"""A real Prometheus watches a real training: examples/monitoring as a user would use it.

Debian's Prometheus is taken from PATH, or extracted from its package: an installed one would listen on
the network.
"""
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from pathlib import Path

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/monitoring"
BIN = Path(os.environ["DTRAIN_BIN_DIR"])
LOOPBACK = "127.0.0.1"


def programs(folder):
    """Paths of prometheus and promtool; skips the test without them."""
    if all(map(shutil.which, ("prometheus", "promtool"))):
        return "prometheus", "promtool"
    # promtool has its own package since Debian 13.
    found = [subprocess.run(["apt-get", "download", "-qq", package], cwd=folder, capture_output=True, text=True)
             for package in ("prometheus", "promtool")]
    if not list(folder.glob("prometheus_*.deb")):
        print(f"SKIPPED: there is no Prometheus, and no package of it: {found[0].stderr.strip()}")
        sys.exit(77)
    for package in folder.glob("*.deb"):
        subprocess.run(["dpkg", "-x", package, folder / "root"], check=True)
    return folder / "root/usr/bin/prometheus", folder / "root/usr/bin/promtool"


def wait_for(what, attempt, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        result = attempt()
        if result:
            return result
        time.sleep(0.2)
    raise AssertionError(f"no {what} within {seconds} s")


class Server:
    """Prometheus with the example's configuration and a shorter scrape interval, for a training at `port`."""

    def __init__(self, program, folder, port):
        shutil.copy(EXAMPLE / "alerts.yml", folder)
        config = (EXAMPLE / "prometheus.yml").read_text()
        assert "127.0.0.1:9400" in config and "interval: 5s" in config
        config = config.replace("127.0.0.1:9400", f"{LOOPBACK}:{port}").replace("interval: 5s", "interval: 500ms")
        (folder / "prometheus.yml").write_text(config)
        self.log = open(folder / "prometheus.log", "w+")
        self.process = subprocess.Popen(
            [program, f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data",
             f"--web.listen-address={LOOPBACK}:0"], stdout=self.log, stderr=self.log)
        self.port = wait_for("port of Prometheus", self.find_port)

    def find_port(self):
        """Port of its only listening socket; its log does not name an automatically chosen port."""
        listed = subprocess.run(["ss", "-ltnpH"], capture_output=True, text=True).stdout
        ports = re.findall(rf":(\d+)\s.*pid={self.process.pid},", listed)
        return int(ports[0]) if ports else None

    def get(self, path, **arguments):
        url = f"http://{LOOPBACK}:{self.port}/api/v1/{path}?{urllib.parse.urlencode(arguments)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{path} {arguments}: {error.read().decode()}") from None

    def query(self, expression):
        return self.get("query", query=expression)["result"]

    def losses_if_more_than(self, count):
        """Distinct losses of the last minute; None while there are no more than `count`."""
        losses = {float(sample[1]) for sample in self.query("dtrain_loss[1m]")[0]["values"]}
        return losses if len(losses) > count else None


def expressions():
    """Expressions of the dashboard's panels, for all trainings."""
    dashboard = json.loads((EXAMPLE / "grafana-dashboard.json").read_text())
    return [target["expr"].replace("$instance", ".*") for panel in dashboard["panels"] for target in panel["targets"]]


def train(folder, *more):
    return subprocess.Popen(
        [BIN / "dtrain-cnn-benchmarks", "--model=lenet", "--device=cpu", "--num_gpus=2", "--batch_size=4",
         "--num_batches=1000000", "--num_warmup_batches=0", "--display_every=50", f"--train_dir={folder}/run",
         "--save_model_steps=500", f"--metrics_file={folder}/metrics.json", "--eval_during_training_every_n_steps=1000",
         "--num_eval_batches=1", "--metrics_port=0", *more], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def check_what_prometheus_sees(server, folder):
    wait_for("evaluation", lambda: server.query("dtrain_evaluation"))
    wait_for("two checkpoints", lambda: server.query("dtrain_checkpoints_total >= 2"))
    wait_for("rate", lambda: server.query("rate(dtrain_step_duration_seconds_count[5m]) > 0"))
    for expression in expressions():
        assert server.query(expression), f"the dashboard's {expression} finds nothing"
    for group in server.get("rules")["groups"]:
        for rule in group["rules"]:
            assert rule["health"] == "ok", rule
            # On a busy machine a rank is slow at times; the alert fires only after minutes.
            assert rule["state"] != "firing", rule
    assert len(server.query("dtrain_rank_step_seconds")) == 2
    losses = wait_for("four losses", lambda: server.losses_if_more_than(3))
    lines = [json.loads(line) for line in (folder / "metrics.json").read_text().splitlines()]
    written = [line["loss"] for line in lines if "loss" in line]
    strange = [loss for loss in losses if not any(abs(loss - one) <= 1e-6 * abs(one) for one in written)]
    assert not strange, f"{strange} are not losses in the metrics file"


def check_what_prometheus_does_not_see(folder, port):
    taken = subprocess.run([BIN / "dtrain-cnn-benchmarks", "--model=trivial", "--device=cpu", "--num_batches=1",
                            f"--metrics_port={port}"], capture_output=True, text=True)
    assert taken.returncode == 6, taken
    assert f"cannot serve metrics at 127.0.0.1:{port}: another program listens there" in taken.stderr, taken.stderr
    listed = subprocess.run(["ss", "-ltnH", f"sport = :{port}"], capture_output=True, text=True).stdout.split()
    assert listed[3] == f"127.0.0.1:{port}", listed


def main():
    # In memory: on a slow disk, neither checkpoints nor Prometheus would be ready in time.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) and shutil.disk_usage("/dev/shm").free > 2**30 else None
    with tempfile.TemporaryDirectory(prefix="dtrain-prometheus-", dir=memory) as name:
        folder = Path(name)
        prometheus, promtool = programs(folder)
        subprocess.run([promtool, "test", "rules", "alerts_test.yml"], cwd=EXAMPLE, check=True)
        training = train(folder)
        server = None
        try:
            line = next((line for line in training.stderr if "metrics are at" in line), "")
            port = int(re.search(r"http://127\.0\.0\.1:(\d+)/metrics", line)[1])
            server = Server(prometheus, folder, port)
            check_what_prometheus_sees(server, folder)
            check_what_prometheus_does_not_see(folder, port)
            training.send_signal(signal.SIGTERM)
            training.communicate(timeout=120)
            assert training.returncode == 75, training.returncode
            wait_for("end of the training", lambda: server.query('up{job="dtrain"} == 0'))
        finally:
            for process in (training, *([server.process] if server else [])):
                process.kill()
                process.wait()


if __name__ == "__main__":
    main()
