#!/usr/bin/env python3
"""examples/tracking/forward_metrics.py with MLflow's file store, and with a stub of wandb that records calls: W&B needs
a server, or writes a format of its own. ctest runs each test_* function on its own."""

import atexit
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time

TESTS = pathlib.Path(__file__).resolve().parents[1]
ROOT = TESTS.parent
SCRIPT = ROOT / "examples/tracking/forward_metrics.py"
sys.path.insert(0, str(TESTS))
from python_packages import PYTHON, installed, required  # noqa: E402

STUB = """
import json, os
def _record(**call):
    with open(os.environ["CALLS"], "a") as file:
        print(json.dumps(call), file=file)
def init(**arguments):
    _record(init=arguments)
    return Run()
class Run:
    def define_metric(self, *names, **arguments): _record(define_metric=[*names, arguments])
    def log(self, values):
        if os.path.exists(os.environ["CALLS"] + ".outage"):
            raise ConnectionError("no route to the server")
        _record(log=values)
    def mark_preempting(self): _record(mark_preempting=True)
    def finish(self, exit_code): _record(finish=exit_code)
"""


def wait_until(condition, what, seconds=120):
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        assert time.monotonic() < deadline, f"{what}: not within {seconds} s"
        time.sleep(0.05)
    return value


class Forwarder:
    """The script for a metrics file, with the stub of wandb or with MLflow's file store in `folder`."""

    def __init__(self, folder, to, file="metrics.jsonl", more=(), **variables):
        self.errors_file = folder / "errors.txt"
        (folder / "stub").mkdir(exist_ok=True)
        (folder / "stub/wandb.py").write_text(STUB)
        environment = dict(os.environ, CALLS=str(folder / "calls"), **variables)
        if to == "wandb":
            environment["PYTHONPATH"] = str(folder / "stub")
        environment.setdefault("MLFLOW_TRACKING_URI", f"file://{folder}/mlruns")
        environment["MLFLOW_ALLOW_FILE_STORE"] = "true"
        python = PYTHON if to == "mlflow" and installed() else sys.executable
        with self.errors_file.open("w") as errors:
            self.process = subprocess.Popen([python, SCRIPT, folder / file, f"--to={to}", "--poll=0.1", *more],
                                            env=environment, stdout=errors, stderr=errors)
        atexit.register(self.process.kill)

    def errors(self):
        return self.errors_file.read_text()

    def ends(self, code=0, message=""):
        found = self.process.wait(120)
        assert found == code and message in self.errors(), (found, self.errors())

    def stop(self):
        self.process.terminate()
        self.ends()


def write(path, *rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def append(path, *rows):
    with path.open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))


def calls(folder, name):
    path = folder / "calls"
    rows = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [row[name] for row in rows if name in row]


def row(step, loss, left=9.0):
    return {"step": step, "loss": loss, "seconds_left": left}


def test_wandb_restarts(folder):
    metrics, config = folder / "metrics.jsonl", folder / "config.toml"
    config.write_text('model = "lenet"\n[input]\nbatch_size = 4\n')
    more = ("--project=p", "--name=n", f"--config={config}")
    script = Forwarder(folder, "wandb", more=more)  # before there is a file
    write(metrics, row(1, 2.5), row(2, 2.25), {"step": 1, "checkpoint_bytes": 7.0}, {"step": 2, "loss_scale": None})
    wait_until(lambda: len(calls(folder, "log")) == 3, "three lines")
    assert calls(folder, "log") == [row(1, 2.5), row(2, 2.25), {"step": 1, "checkpoint_bytes": 7.0}]
    first = calls(folder, "init")[0]
    assert (first["project"], first["name"], first["resume"]) == ("p", "n", "allow"), first
    assert first["config"] == {"model": "lenet", "input.batch_size": 4}, first
    # Lines are sent again if the script is killed before it has noted them.
    wait_until(lambda: json.loads((folder / "metrics.jsonl.forwarded.json").read_text())["sent"], "noted lines")
    script.process.kill()
    script.process.wait()
    script = Forwarder(folder, "wandb", more=more)  # continues the run
    append(metrics, row(3, 2.0), row(4, 1.75))
    wait_until(lambda: len(calls(folder, "log")) == 5, "five lines")
    write(metrics, row(1, 2.5), row(2, 2.25), dict(row(3, 2.0), seconds_left=5.0), row(4, 1.75), row(5, 1.5, 0.0))
    wait_until(lambda: len(calls(folder, "log")) == 6, "the step after those that were repeated")
    script.stop()
    assert [line["step"] for line in calls(folder, "log")] == [1, 2, 1, 3, 4, 5], calls(folder, "log")
    runs = [call["id"] for call in calls(folder, "init")]
    assert len(runs) == 2 and runs[0] == runs[1], runs
    assert calls(folder, "finish") == [0] and not calls(folder, "mark_preempting")


def test_wandb_new_training(folder):
    metrics = folder / "metrics.jsonl"
    write(metrics, row(1, 2.5), row(2, 2.25))
    script = Forwarder(folder, "wandb")
    wait_until(lambda: len(calls(folder, "log")) == 2, "two lines")
    write(metrics, row(1, 9.5))
    wait_until(lambda: len(calls(folder, "log")) == 3, "the line of the new training")
    script.stop()
    first, second = calls(folder, "init")
    assert first["id"] != second["id"], (first, second)
    assert calls(folder, "finish") == [1, 1] and len(calls(folder, "mark_preempting")) == 2, "both were interrupted"


def test_wandb_outage(folder):
    metrics, outage = folder / "metrics.jsonl", folder / "calls.outage"
    write(metrics, row(1, 2.5))
    outage.touch()
    Forwarder(folder, "wandb", more=("--once",)).ends(1, "wandb: no route to the server")
    script = Forwarder(folder, "wandb")
    wait_until(lambda: "no route to the server; trying again in 0.2 s" in script.errors(), "a message")
    append(metrics, row(2, 2.25))
    outage.unlink()
    wait_until(lambda: len(calls(folder, "log")) == 2, "both lines")
    script.stop()
    assert len({call["id"] for call in calls(folder, "init")}) == 1


def test_wrong_files_are_named(folder):
    write(folder / "metrics.jsonl", row(1, 2.5), ["step"])
    Forwarder(folder, "wandb", more=("--once",)).ends(2, 'metrics.jsonl, line 2: expected a JSON object with a "step"')
    Forwarder(folder, "wandb", "metrics.csv").ends(1, "metrics.csv: expected JSON Lines")
    write(folder / "metrics.jsonl", row(1, 2.5))
    Forwarder(folder, "wandb", more=("--once",)).ends()
    Forwarder(folder, "mlflow").ends(1, "metrics.jsonl.forwarded.json: made with --to=wandb")
    (folder / "metrics.jsonl.forwarded.json").write_text("[1]")
    Forwarder(folder, "wandb").ends(1, "not a state of this script")
    (folder / "metrics.jsonl.forwarded.json").unlink()
    (folder / "config.toml").write_text("model =\n")
    faulty = f"--config={folder}/config.toml"
    Forwarder(folder, "wandb", more=(faulty,)).ends(1, "config.toml: Invalid value (at line 1")
    (folder / "stub/mlflow.py").write_text("raise ModuleNotFoundError(\"No module named 'mlflow'\")\n")
    without = subprocess.run([sys.executable, SCRIPT, folder / "metrics.jsonl", "--to=mlflow", "--once"],
                             env=dict(os.environ, PYTHONPATH=str(folder / "stub")), capture_output=True, text=True)
    assert without.returncode == 1 and "pip install mlflow-skinny" in without.stderr, without


def train(folder, steps):
    """A training that resumes from its checkpoints, every 20 steps."""
    training = subprocess.Popen(
        [pathlib.Path(os.environ["DTRAIN_BIN_DIR"]) / "dtrain-cnn-benchmarks", "--model=lenet", "--device=cpu",
         "--batch_size=2", "--num_warmup_batches=0", "--display_every=5", f"--num_batches={steps}",
         f"--train_dir={folder}/run", "--save_model_steps=20", f"--metrics_file={folder}/metrics.jsonl",
         "--eval_during_training_every_n_steps=50", "--num_eval_batches=1"], stdout=subprocess.DEVNULL)
    atexit.register(training.kill)
    return training


def rows_of(folder):
    path = folder / "metrics.jsonl"
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def test_mlflow_follows_a_training(folder):
    with required():
        import mlflow
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
    client = mlflow.MlflowClient(f"file://{folder}/mlruns")
    script = Forwarder(folder, "mlflow", more=("--project=tests",))
    training = train(folder, 1000000)
    wait_until(lambda: rows_of(folder) and rows_of(folder)[-1]["step"] >= 200, "step 200")
    script.process.kill()
    training.kill()  # the file has steps after the last checkpoint
    training.wait()
    script.process.wait()
    reached = rows_of(folder)[-1]["step"]
    script = Forwarder(folder, "mlflow", more=("--project=tests",))
    assert train(folder, reached + 200 - reached % 5).wait(120) == 0
    script.stop()
    run, = client.search_runs([client.get_experiment_by_name("tests").experiment_id])
    assert run.info.status == "FINISHED", run
    expected = {}
    for line in rows_of(folder):
        for name in ("loss", "eval_loss", "checkpoint_bytes"):
            if name in line:
                expected.setdefault(name, {})[line["step"]] = line[name]
    for name, values in expected.items():
        history = [(metric.step, metric.value) for metric in client.get_metric_history(run.info.run_id, name)]
        assert len(dict(history)) == len(history), f"{name}: steps were sent twice: {history}"
        # A start also displays its first step, which need not be after those that were sent.
        steps = {step for step in values if name != "loss" or step % 5 == 0}
        assert steps <= set(dict(history)), (name, history, values)
        if name != "checkpoint_bytes":
            assert all(values.get(step, value) == value for step, value in history), (name, history, values)


def test_mlflow_unreachable(folder):
    with required():
        import sqlparse  # noqa: F401, of mlflow, which takes seconds to import
    write(folder / "metrics.jsonl", row(1, 2.5))
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    server = {"MLFLOW_TRACKING_URI": f"http://127.0.0.1:{port}", "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
              "MLFLOW_HTTP_REQUEST_BACKOFF_FACTOR": "0"}
    script = Forwarder(folder, "mlflow", **server)
    wait_until(lambda: "trying again in" in script.errors(), "a message")
    script.process.send_signal(signal.SIGINT)
    script.ends(1, "forward_metrics.py: mlflow: ")
    Forwarder(folder, "mlflow", more=("--once",)).ends()
    assert list((folder / "mlruns").glob("*/*/metrics/loss")), "the line was not sent"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](pathlib.Path(temporary))
