"""k8s/data/stage.sh and save-results.sh for real, with a mock of S3, a loopback server for downloads, and faults."""

import contextlib
import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import zipfile

import mock

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "k8s/data"
DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", "/nonexistent"))
BINARIES = os.environ.get("DTRAIN_BIN_DIR", "")


def run(arguments, environment, code=0):
    result = subprocess.run([str(part) for part in arguments], env=environment, text=True, timeout=100,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == code, f"exit {result.returncode}, not {code}: {result.stdout}"
    for secret in (mock.ACCESS_KEY, mock.SECRET_KEY):
        assert secret not in result.stdout, "a credential is in the output"
    return result.stdout


@contextlib.contextmanager
def setting():
    with tempfile.TemporaryDirectory() as name, mock.Mock() as server:
        folder = pathlib.Path(name)
        environment = server.environment(DTRAIN_RETRY_SECONDS="0", STAGE_GB="0", STAGE_DIR=str(folder / "stage"),
                                         SHARDS="2", AWS_MAX_ATTEMPTS="2")
        environment["PATH"] = f"{BINARIES}:{environment['PATH']}"
        run(["aws", "s3", "mb", "s3://bucket"], environment)
        (folder / "out/logs").mkdir(parents=True)
        (folder / "out/checkpoint").write_bytes(bytes(range(256)) * 99)
        (folder / "out/logs/rank 0.txt").write_text("loss 1\n")
        yield folder, server, environment
        for path in folder.rglob("*"):
            if path.is_file():
                assert mock.SECRET_KEY.encode() not in path.read_bytes(), f"{path} holds a credential"


def test_save():
    with setting() as (folder, _, environment):
        assert "2 files" in run([SCRIPTS / "save-results.sh", folder / "out", "bucket/a"], environment)
        run(["aws", "s3", "cp", "--recursive", "s3://bucket/a", folder / "back"], environment)
        assert (folder / "back/checkpoint").read_bytes() == (folder / "out/checkpoint").read_bytes()


def test_save_faults():
    save = [SCRIPTS / "save-results.sh"]
    with setting() as (folder, server, environment):
        server.fault("error", method="PUT", times=3)
        server.fault("truncated", method="GET", path="/bucket/a/checkpoint")
        server.fault("slow", method="PUT", seconds=2)
        run(save + [folder / "out", "bucket/a"], environment)
        server.fault("expired", times=-1)
        assert "ExpiredToken" in run(save + [folder / "out", "bucket/b"], environment, 6)
        server.clear()
        run(save + [folder / "out", "bucket/b"], environment)


def test_save_compares():
    save = [SCRIPTS / "save-results.sh"]
    with setting() as (folder, _, environment):
        run(save + [folder / "out", "bucket/a"], environment)
        (folder / "wrong").write_bytes(bytes(256 * 99))
        run(["aws", "s3", "cp", folder / "wrong", "s3://bucket/a/checkpoint"], environment)
        run(save + [folder / "out", "bucket/a"], environment)
        run(["aws", "s3", "cp", "s3://bucket/a/checkpoint", folder / "back"], environment)
        assert (folder / "back").read_bytes() == (folder / "out/checkpoint").read_bytes()
        run(["aws", "s3", "cp", folder / "wrong", "s3://bucket/a/stranger"], environment)
        assert "remove" in run(save + [folder / "out", "bucket/a"], environment, 2)


def test_stage_refuses():
    with setting() as (folder, _, environment):
        stage = [SCRIPTS / "stage.sh", "coco", "bucket"]
        assert "needed" in run(stage, {**environment, "STAGE_GB": "99999999"}, 6)
        (folder / "stage").mkdir()
        assert "exists" in run(stage, environment, 1)
        run([SCRIPTS / "stage.sh", "mnist", "bucket"], environment, 1)
        run([SCRIPTS / "stage.sh", "coco", "Bad_Bucket"], environment, 1)


def test_stage_coco():
    if not (DATA / "coco_mini").is_dir() or not shutil.which("dtrain-data", path=BINARIES):
        print("SKIPPED: there is no coco_mini or no dtrain-data")
        sys.exit(77)
    with setting() as (folder, server, environment):
        web = folder / "web"
        for name, parts in {"zips/train2017": ["train2017"], "zips/val2017": ["val2017"],
                            "annotations/annotations_trainval2017": ["annotations"]}.items():
            (web / name).parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(web / f"{name}.zip", "w") as archive:
                for path in sorted((DATA / "coco_mini" / parts[0]).rglob("*")):
                    archive.write(path, path.relative_to(DATA / "coco_mini"))
        handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(web))
        files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=files.serve_forever, daemon=True).start()
        environment["COCO_URL"] = f"http://127.0.0.1:{files.server_address[1]}"
        stage = [str(SCRIPTS / "stage.sh")]
        server.fault("slow", method="PUT", times=-1, seconds=1)
        killed = subprocess.Popen(stage + ["coco", "bucket/p"], env=environment, start_new_session=True)
        while killed.poll() is None and not any(entry[0] == "PUT" and "/p/" in entry[1] for entry in server.requests):
            time.sleep(0.1)
        assert killed.poll() is None, "it ended before it could be killed"
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        server.clear()
        assert "those of" in run(stage + ["--resume", "coco", "bucket/p"], environment)
        run(["aws", "s3", "cp", "--only-show-errors", "--recursive", "s3://bucket/p/coco2017", folder / "back"],
            environment)
        for line in (folder / "back/SHA256SUMS").read_text().splitlines():
            digest, name = line.split("  ", 1)
            assert hashlib.sha256((folder / "back" / name).read_bytes()).hexdigest() == digest, name
        run(["dtrain-data", "verify", folder / "back/records"], environment)
        files.shutdown()


if __name__ == "__main__":
    globals()[sys.argv[1]]()
