#!/usr/bin/env python3
"""Sends the lines of a metrics file to MLflow or Weights & Biases while a training writes them.

    forward_metrics.py RUN/metrics.jsonl --to=mlflow --project=imagenet --config=RUN/config.toml
    forward_metrics.py RUN/metrics.jsonl --to=wandb --project=imagenet --once

METRICS_FILE is the JSON Lines file of --metrics_file; it need not exist yet. The script needs Python 3.11 and the
package mlflow, mlflow-skinny or wandb, whose own variables select server and credentials (MLFLOW_TRACKING_URI,
WANDB_API_KEY, WANDB_MODE). It follows the file until SIGTERM or SIGINT, sends what is left, and ends the run: as
complete after the training's last step, otherwise as interrupted. With --once it sends what the file has and ends.

METRICS_FILE.forwarded.json has the run and the last step sent of each metric. Either program may be restarted:
  - a restarted script continues the same run;
  - a training that resumes from a checkpoint cuts the file and repeats steps with equal losses: each step of a metric
    is sent once;
  - a training that begins the file anew gets a new run.
Exit codes: 0 all lines were sent; 1 usage, a missing package, or a server that cannot be reached at the end; 2 other
lines in the file.
"""

import argparse
import hashlib
import importlib
import json
import os
import pathlib
import re
import signal
import sys
import threading
import time
import tomllib

MOST_BYTES = 4 << 20  # read and sent at once


def fail(code, message):
    print(f"forward_metrics.py: {message}", file=sys.stderr)
    sys.exit(code)


class Lines:
    """Complete lines of a file that grows, and that a restarted training may cut."""

    def __init__(self, path):
        self.path, self.offset, self.number, self.first, self.last = path, 0, 1, b"", b""

    def read(self):
        """Returns the number of the first new line, and the lines since the last call, or all if the file was cut."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            return self.number, []
        with file:
            first = file.readline()
            if not first.endswith(b"\n"):
                return self.number, []
            file.seek(self.offset - len(self.last))
            if first != self.first or file.read(len(self.last)) != self.last:
                self.offset, self.number, self.last = 0, 1, b""
            self.first = first
            file.seek(self.offset)
            data = file.read(MOST_BYTES)
        lines = data[:data.rfind(b"\n") + 1].splitlines(keepends=True)
        begin = self.number
        self.offset += sum(map(len, lines))
        self.number += len(lines)
        self.last = lines[-1] if lines else self.last
        return begin, lines


class MLflow:
    def __init__(self, options, run, config):
        mlflow = importlib.import_module("mlflow")
        self.metric = importlib.import_module("mlflow.entities").Metric
        self.client = mlflow.MlflowClient()
        if run:
            self.client.update_run(run, status="RUNNING")
        else:
            experiment = self.client.get_experiment_by_name(options.project)
            number = experiment.experiment_id if experiment else self.client.create_experiment(options.project)
            run = self.client.create_run(number, run_name=options.name).info.run_id
            for name, value in config.items():
                self.client.log_param(run, legal(name), value)
        self.run = run

    def send(self, rows):
        now = int(time.time() * 1000)
        metrics = [self.metric(legal(name), value, now, step)
                   for step, values in rows for name, value in values.items()]
        for begin in range(0, len(metrics), 1000):  # the server's limit
            self.client.log_batch(self.run, metrics=metrics[begin:begin + 1000])

    def end(self, complete):
        self.client.set_terminated(self.run, "FINISHED" if complete else "KILLED")


def legal(name):
    """MLflow allows no other characters in names."""
    return re.sub(r"[^\w\-. /]", "_", name)


class WeightsAndBiases:
    def __init__(self, options, run, config):
        wandb = importlib.import_module("wandb")
        self.run = run or os.urandom(8).hex()
        new = {} if run else {"config": config}
        self.writer = wandb.init(project=options.project, name=options.name, id=self.run, resume="allow", **new)
        # A checkpoint's line may follow those of later steps, which W&B's own step counter would refuse.
        self.writer.define_metric("step")
        self.writer.define_metric("*", step_metric="step")

    def send(self, rows):
        for step, values in rows:
            self.writer.log({"step": step, **values})

    def end(self, complete):
        if not complete:
            self.writer.mark_preempting()
        self.writer.finish(exit_code=0 if complete else 1)


class Forwarder:
    """The run of a metrics file, and what has been sent of it."""

    def __init__(self, options):
        self.options, self.lines, self.tracker = options, Lines(options.file), None
        self.state_file = options.file.with_name(options.file.name + ".forwarded.json")
        self.number, self.unsent = 1, []
        self.state = {}
        try:
            if self.state_file.exists():
                self.state = json.loads(self.state_file.read_text())
            made_with = self.state["to"] if self.state_file.exists() else options.to
        except (ValueError, KeyError, TypeError):
            fail(1, f"{self.state_file}: not a state of this script; move it away to begin a new run")
        if made_with != options.to:
            fail(1, f"{self.state_file}: made with --to={made_with}; move it away to begin a new run")

    def step(self):
        """Sends the next lines; returns whether there were any."""
        if not self.unsent:
            self.number, self.unsent = self.lines.read()
        if not self.unsent:
            return False
        self.begin()
        sent = dict(self.state["sent"])
        rows = [row for row in map(self.parse, range(len(self.unsent)), self.unsent) if keep_new(row, sent)]
        if self.tracker is None:
            self.connect()
        self.tracker.send(rows)
        self.unsent = []
        left = [values["seconds_left"] for _, values in rows if "seconds_left" in values]
        self.state.update(sent=sent, complete=left[-1] == 0 if left else self.state["complete"])
        self.save()
        return True

    def begin(self):
        """Begins a new run if the file is not the one of the state."""
        mark = hashlib.sha256(self.lines.first).hexdigest()
        if self.state.get("first_line") == mark:
            return
        self.end()
        self.state = {"to": self.options.to, "run": None, "first_line": mark, "sent": {}, "complete": False}

    def connect(self):
        config = {}
        if not self.state["run"] and self.options.config:
            config = dict(flat(tomllib.loads(self.options.config.read_text())))
        tracker = {"mlflow": MLflow, "wandb": WeightsAndBiases}[self.options.to]
        self.tracker = tracker(self.options, self.state["run"], config)
        if self.state["run"] is None:
            print(f"forward_metrics.py: run {self.tracker.run}", file=sys.stderr)
        self.state["run"] = self.tracker.run
        self.save()

    def parse(self, index, line):
        try:
            row = json.loads(line)
            return row.pop("step"), row
        except (ValueError, AttributeError, KeyError, TypeError):
            fail(2, f"{self.options.file}, line {self.number + index}: expected a JSON object with a \"step\", as of "
                    "--metrics_file=NAME.jsonl")

    def save(self):
        temporary = self.state_file.with_name(self.state_file.name + ".tmp")
        temporary.write_text(json.dumps(self.state))
        temporary.replace(self.state_file)

    def end(self):
        if self.tracker:
            self.tracker.end(self.state["complete"])
        self.tracker = None


def keep_new(row, sent):
    """Removes values that were sent before, or that are not finite numbers, and records the others in `sent`."""
    step, values = row
    for name in list(values):
        if not isinstance(values[name], (int, float)) or step <= sent.get(name, -1):
            del values[name]
        else:
            sent[name] = step
    return values


def flat(table, prefix=""):
    for name, value in table.items():
        if isinstance(value, dict):
            yield from flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, value


def follow(forwarder, options, stop):
    waited = options.poll
    while True:
        ending = stop.is_set()
        try:
            while forwarder.step():
                pass
            waited = options.poll
        except tomllib.TOMLDecodeError as error:
            fail(1, f"{options.config}: {error}")
        except ImportError as error:
            fail(1, f"{error}: pip install {'mlflow-skinny' if options.to == 'mlflow' else 'wandb'}")
        except Exception as error:  # the packages' own types, such as of an unreachable server
            if isinstance(error, OSError) and error.filename:
                fail(1, f"{error.filename}: {error.strerror}")
            message = f"{options.to}: {str(error).splitlines()[0] if str(error) else type(error).__name__}"
            if options.once or ending:
                fail(1, message)
            waited = min(waited * 2, 300)
            print(f"forward_metrics.py: {message}; trying again in {waited:g} s", file=sys.stderr)
        if options.once or ending:
            return forwarder.end()
        stop.wait(waited)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", metavar="METRICS_FILE", type=pathlib.Path)
    parser.add_argument("--to", required=True, choices=("mlflow", "wandb"))
    parser.add_argument("--project", default="dtrain", help="MLflow's experiment, W&B's project (dtrain)")
    parser.add_argument("--name", help="of a new run")
    parser.add_argument("--config", type=pathlib.Path, help="parameters of a new run: the TRAIN_DIR/config.toml")
    parser.add_argument("--poll", type=float, default=5, help="seconds between looks at the file (5)")
    parser.add_argument("--once", action="store_true", help="send what the file has, and end")
    try:
        options = parser.parse_args()
    except SystemExit as error:
        sys.exit(1 if error.code else 0)
    if options.file.suffix == ".csv":
        fail(1, f"{options.file}: expected JSON Lines, as of --metrics_file=NAME.jsonl")
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    follow(Forwarder(options), options, stop)


if __name__ == "__main__":
    main()
