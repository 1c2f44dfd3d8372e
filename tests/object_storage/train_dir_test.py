"""Checkpoints and files of a train_dir in object storage, under kills, lost answers, outages and a second job. The tool
saves after every second step."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

import s3_server

TOOL = os.environ.get("DTRAIN_TRAIN_DIR_TOOL", "")
URL = "s3://bucket/runs/one"
PREFIX = "runs/one/"
LEASE = PREFIX + ".dtrain/lease.json"


class Machine:
    """A disk with the working folder."""

    def __init__(self, server, name):
        self.server, self.folder = server, pathlib.Path(server.folder()) / name

    def command(self, steps, *options, url=URL):
        return [TOOL, url, str(self.folder), str(steps), *options]

    def train(self, steps=4, *options, url=URL, check=0, **variables):
        """What it writes to stderr."""
        return self.server.run(self.command(steps, *options, url=url), check=check, **variables).stderr.decode()

    def start(self, steps=4, *options):
        return subprocess.Popen(self.command(steps, *options), env=self.server.environment(), text=True,
                                stderr=subprocess.PIPE)


def checkpoints(server):
    """Content of all objects below checkpoints/."""
    keys = server.keys("bucket", PREFIX + "checkpoints/")
    return {key: server.ask("GET", f"/bucket/{PREFIX}checkpoints/{key}") for key in keys}


def steps_of(found):
    return sorted({int(key.split("/")[0].removeprefix("step-").removesuffix(".json")) for key in found})


def expected_checkpoints(server, steps):
    """The objects that a local run's checkpoints become."""
    machine = Machine(server, f"local-{steps}")
    machine.folder.mkdir()
    machine.train(steps, url="local")
    files = machine.folder / "checkpoints"
    found = {str(path.relative_to(files)): path.read_bytes() for path in files.rglob("*") if path.is_file()}
    for step in {name.split("/")[0] for name in found}:
        content = {name.split("/")[1]: text for name, text in found.items() if name.startswith(step + "/")}
        sums = {name: {"bytes": len(text), "sha256": s3_server.hashlib.sha256(text).hexdigest()}
                for name, text in sorted(content.items())}
        found[step + ".json"] = (json.dumps({"format": 1, "step": int(step[5:]), "files": sums}, indent=2) + "\n").encode()
    return found


def expire_lease(server):
    """The state of the prefix a while after a job was killed."""
    if LEASE in server.keys("bucket"):
        lease = json.loads(server.ask("GET", f"/bucket/{LEASE}"))
        server.ask("PUT", f"/bucket/{LEASE}", json.dumps({**lease, "seconds": 0}).encode())


def empty(server):
    for key in server.keys("bucket", PREFIX):
        server.ask("DELETE", f"/bucket/{PREFIX}{key}")


def wait_for(server, key, process):
    for _ in range(1200):
        if key in server.keys("bucket", PREFIX):
            return
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    raise AssertionError(f"no {key}")


def test_objects(server):
    """What a run writes, in which order, and its continuation on another machine."""
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 4)
    assert len(expected["step-4/model.safetensors"]) > 16 << 20, "expected an upload in parts"
    first = Machine(server, "first")
    first.train()
    assert checkpoints(server) == expected
    keys = server.keys("bucket", PREFIX)
    assert {key for key in keys if not key.startswith("checkpoints/")} == {"run.log", ".dtrain/run.json"}, keys
    assert server.ask("GET", f"/bucket/{PREFIX}run.log") == b"step 1\nstep 2\nstep 3\nstep 4\n"
    # Data objects and files, then the manifest.
    order = [path.split("?")[0].removeprefix(f"/bucket/{PREFIX}") for method, path, _ in server.requests
             if method == "PUT" or "uploadId" in path]
    manifest = order.index("checkpoints/step-2.json")
    assert {"run.log", "checkpoints/step-2/state.json", "checkpoints/step-2/MANIFEST.json"} <= set(order[:manifest])
    assert not any(path.startswith("checkpoints/step-2/") for path in order[manifest:]), order

    other = Machine(server, "other")
    assert "downloading the checkpoint of step 4, 16 MiB" in other.train(6)
    assert checkpoints(server) == expected_checkpoints(server, 6)
    assert (other.folder / "run.log").read_text().splitlines() == [f"step {i}" for i in range(1, 7)]
    # The first machine has an older checkpoint than the prefix.
    assert "downloading the checkpoint of step 6, " in first.train(6)
    assert (first.folder / "run.log").read_bytes() == (other.folder / "run.log").read_bytes()


def run_killed_at(server, machine, number):
    """Kills the run at this request, which is lost. Returns whether there is one, and all requests until then."""
    started, seen, lock = threading.Event(), [], threading.Lock()

    def gate(method, path):
        with lock:
            seen.append(f"{method} {path}")
            if len(seen) != number:
                return len(seen) > number
        started.wait()
        process.kill()
        process.wait()
        return True
    server.gate = gate
    process = machine.start()
    started.set()
    _, errors = process.communicate(timeout=120)
    server.gate = None
    if len(seen) < number:
        assert process.returncode == 0, errors
        return False, seen
    assert process.returncode == -signal.SIGKILL, errors
    return True, seen[:number]


SHARES = 4


def killed_at_each(share):
    """A test that kills a run at each request of a share of them, in turn: a run that resumes with an empty folder ends
    with the same bits."""
    def test(server):
        server.objects("bucket", {})
        expected = expected_checkpoints(server, 4)
        for number in range(1 + share, 1000, SHARES):
            killed, requests = run_killed_at(server, Machine(server, f"killed-{number}"), number)
            if not killed:
                break
            expire_lease(server)
            resumed = Machine(server, f"resumed-{number}")
            resumed.train()
            assert checkpoints(server) == expected, f"killed at request {number}, {requests[-1]}"
            assert LEASE not in server.keys("bucket"), requests
            empty(server)
            shutil.rmtree(resumed.folder)
        made = {request.split("?")[0].replace(f"/bucket/{PREFIX}", "") for request in requests}
        for step in (2, 4):
            assert {f"PUT checkpoints/step-{step}.json", f"PUT checkpoints/step-{step}/state.json",
                    f"POST checkpoints/step-{step}/model.safetensors"} <= made, made
    return test


test_killed_first_share = killed_at_each(0)
test_killed_second_share = killed_at_each(1)
test_killed_third_share = killed_at_each(2)
test_killed_fourth_share = killed_at_each(3)


def test_every_answer_lost(server):
    """Each request is carried out, its answer is lost, and it is repeated."""
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 4)
    for method in ("GET", "PUT", "POST", "DELETE"):
        for path in (r"run\.json", r"lease\.json", r"run\.log", "uploadId", "uploads", "list-type", "state.safetensors",
                     r"step-2\.json", "step-2/model", "step-2/state.json", "step-2/MANIFEST", r"step-4\.json",
                     "step-4/model", "step-4/state.json", "step-4/MANIFEST"):
            server.fault("lost", method=method, path=path)
    Machine(server, "first").train(AWS_MAX_ATTEMPTS="10")
    lost = [rule["path"] for rule in server.rules if rule["times"] == 0]
    assert len(lost) > 15, lost
    assert checkpoints(server) == expected
    assert LEASE not in server.keys("bucket")


def test_outage(server):
    """Failed uploads lose nothing on the disk, and the next start makes up for them."""
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 4)
    machine = Machine(server, "first")
    server.fault("slow_down", method="PUT", path="checkpoints/", times=-1)
    text = machine.train(check=6, AWS_MAX_ATTEMPTS="2")
    assert "checkpoint of step 4 failed (2 in a row, the run ends at 3): s3://bucket/runs/one/checkpoints/step-4/" in text
    assert f"503 (SlowDown); the checkpoint is complete in {machine.folder}/checkpoints/step-4" in text, text
    assert not checkpoints(server)
    server.clear()
    assert "uploading the checkpoint of step 4" in machine.train()
    assert checkpoints(server) == {name: text for name, text in expected.items() if name.startswith("step-4")}
    server.fault("denied", method="PUT", path="lease")
    assert "lease.json: cannot be written: access denied (AccessDenied)" in machine.train(check=6)
    assert "not found (NoSuchBucket)" in machine.train(url="s3://absent/run", check=6)


def test_second_job(server):
    """A live job keeps its prefix and its folder."""
    server.objects("bucket", {})
    first = Machine(server, "first")
    process = first.start(1_000_000, "pause=50", "lease=20")
    try:
        wait_for(server, "checkpoints/step-2.json", process)
        lines = Machine(server, "second").train(check=1).splitlines()
        holder = f"s3://bucket/{LEASE}: held by process {process.pid} on host-{process.pid}, run "
        assert lines[0].startswith("note: " + holder) and "waiting for up to " in lines[0], lines
        assert lines[1].startswith("error: " + holder), lines
        assert lines[1].endswith(" writes to this folder; wait for it, stop it, or choose another --train_dir"), lines
        assert f"first.lock: locked by process {process.pid}, which writes to this" in first.train(check=1)
    finally:
        process.kill()
        process.communicate()
    # The lease of a process of the same folder, which is dead, is taken over at once.
    assert "waiting" not in first.train(2)
    assert LEASE not in server.keys("bucket")


def test_expired_lease(server):
    """A suspended job loses its lease, and ends when it notices."""
    server.objects("bucket", {})
    process = Machine(server, "first").start(1_000_000, "pause=50", "lease=2")
    try:
        wait_for(server, "checkpoints/step-2.json", process)
        process.send_signal(signal.SIGSTOP)
        second = Machine(server, "second")
        other = second.start(1_000_000, "pause=50", "lease=60")
        try:
            while not list(second.folder.glob("checkpoints/step-*")):
                assert other.poll() is None, other.communicate()
                time.sleep(0.1)
            process.send_signal(signal.SIGCONT)
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 1, errors
            assert f"error: s3://bucket/{LEASE}: held by process {other.pid} on host-" in errors, errors
            assert "it has taken over from this job" in errors, errors
        finally:
            other.kill()
            _, errors = other.communicate()
        assert "waiting for up to " in errors and "downloading the checkpoint of step " in errors, errors
    finally:
        process.kill()
        process.wait()


def test_without_conditions(server):
    """A service that refuses conditional requests, and one that ignores them."""
    server.objects("bucket", {})
    for answer in ((501, [], s3_server.error_body("NotImplemented")), None):
        def lease(handler, body):
            condition = handler.headers["If-None-Match"] or handler.headers["If-Match"]
            del handler.headers["If-None-Match"], handler.headers["If-Match"]
            return answer if answer and condition else handler.forward(body)
        server.pages[f"/bucket/{LEASE}"] = lease
        Machine(server, f"machine-{answer is None}").train(2)
        assert LEASE not in server.keys("bucket")
    server.ask("PUT", f"/bucket/{LEASE}", b"<html>")
    assert "lease.json: is not a lease of dtrain; choose another" in Machine(server, "other").train(check=1)


def test_retention(server):
    server.objects("bucket", {"runs/one/checkpoints/step-1/model.safetensors": b"left by a killed run"})
    Machine(server, "first").train(8, "keep=2")
    assert steps_of(checkpoints(server)) == [6, 8]
    deleted = [path for method, path, _ in server.requests if method == "DELETE" and "/step-2" in path]
    assert deleted[0].endswith("/checkpoints/step-2.json") and len(deleted) == 5, deleted
    Machine(server, "second").train(10, "keep=2")
    assert steps_of(checkpoints(server)) == [8, 10]


def test_best_checkpoint(server):
    """It is kept in the prefix, and another machine downloads it."""
    server.objects("bucket", {})
    Machine(server, "first").train(8, "keep=2", "best=2")
    assert steps_of(checkpoints(server)) == [2, 6, 8]
    assert server.ask("GET", f"/bucket/{PREFIX}best") == b"checkpoints/step-2"
    other = Machine(server, "other")
    other.train(12, "keep=2")
    assert os.readlink(other.folder / "best") == "checkpoints/step-2"
    assert (other.folder / "best/model.safetensors").exists()
    assert steps_of(checkpoints(server)) == [2, 10, 12]


def test_damage(server):
    """A checkpoint that differs from its manifest is passed over, and one of a later format refused."""
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 4)
    Machine(server, "first").train()
    model = f"/bucket/{PREFIX}checkpoints/step-4/model.safetensors"
    content = expected["step-4/model.safetensors"]
    server.ask("PUT", model, content[:-1] + bytes([content[-1] ^ 1]))
    text = Machine(server, "second").train()
    assert "skipped a damaged checkpoint: s3://bucket/runs/one/checkpoints/step-4/model.safetensors: damaged: " in text
    assert " with another SHA-256" in text and "downloading the checkpoint of step 2, " in text, text
    assert checkpoints(server) == expected
    server.ask("DELETE", model)
    server.fault("denied", method="GET", path="step-2/model")
    assert "step-2/model.safetensors: access denied" in Machine(server, "denied").train(check=6)
    assert "step-4/: damaged: model.safetensors is missing" in Machine(server, "third").train()
    manifest = f"/bucket/{PREFIX}checkpoints/step-4.json"
    server.ask("PUT", manifest, server.ask("GET", manifest).replace(b'"format": 1', b'"format": 2'))
    assert "step-4.json: checkpoint in object storage format 2" in Machine(server, "fourth").train(check=5)
    server.ask("PUT", manifest, b"{}")
    server.ask("DELETE", f"/bucket/{PREFIX}checkpoints/step-2/state.json")
    assert "no usable checkpoint in s3://bucket/runs/one/: " in Machine(server, "fifth").train(check=5)
    assert steps_of(checkpoints(server)) == [2, 4]


def test_other_run(server):
    """The working folder of an earlier run on the prefix is set aside, not continued."""
    server.objects("bucket", {})
    machine = Machine(server, "first")
    machine.train()
    empty(server)
    assert " belongs to an earlier run of s3://bucket/runs/one/: renamed to " in machine.train(2)
    assert steps_of(checkpoints(server)) == [2]
    Machine(server, "second").train(6, "clear=1")
    assert " belongs to an earlier run of " in machine.train(6)
    assert steps_of(checkpoints(server)) == [2, 4, 6]


if __name__ == "__main__":
    s3_server.run_cases(globals())
