"""Tests k8s/data/stage.sh and save-results.sh with a mock of S3, a loopback server for downloads, and faults."""

import contextlib
import functools
import hashlib
import http.server
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import urllib.request
import zipfile

import mock
import python_packages
import warm_aws
import weight_files

SCRIPTS = pathlib.Path(__file__).resolve().parents[3] / "k8s/data"
DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", SCRIPTS.parents[2] / "shared/data"))
BINARIES = os.environ.get("DTRAIN_BIN_DIR", "")


TOKEN = "token-of.imagenet~that+no/file-may-hold="
TRAINING = ["--model=resnet20", "--data_name=imagenet", "--image_size=16", "--num_classes=4", "--batch_size=4",
            "--num_batches=2", "--num_warmup_batches=0", "--display_every=1", "--save_model_steps=1",
            "--summary_verbosity=1", "--save_summaries_steps=1", "--device=cpu"]


def needs(*programs):
    for program in programs:
        if not shutil.which(program, path=BINARIES):
            print(f"SKIPPED: there is no {program}")
            sys.exit(77)


def run(arguments, environment, code=0):
    result = subprocess.run([str(part) for part in arguments], env=environment, text=True, timeout=200,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == code, f"exit {result.returncode}, not {code}: {result.stdout}"
    for secret in (mock.ACCESS_KEY, mock.SECRET_KEY, TOKEN):
        assert secret not in result.stdout, "a credential is in the output"
    return result.stdout


@contextlib.contextmanager
def setting():
    with tempfile.TemporaryDirectory() as name, mock.Mock() as server, warm_aws.Warm(f"{name}/warm"):
        folder = pathlib.Path(name)
        environment = server.environment(DTRAIN_RETRY_SECONDS="0", STAGE_GB="0", STAGE_DIR=str(folder / "stage"),
                                         SHARDS="2", AWS_MAX_ATTEMPTS="2", WEIGHTS_LOCK=str(folder / "weights.lock"))
        environment["PATH"] = f"{folder / 'warm'}:{BINARIES}:{environment['PATH']}"
        server.ask("PUT", "/bucket")
        (folder / "out/logs").mkdir(parents=True)
        (folder / "out/checkpoint").write_bytes(bytes(range(256)) * 99)
        (folder / "out/logs/rank 0.txt").write_text("loss 1\n")
        yield folder, server, environment
        for path in folder.rglob("*"):
            if path.is_file():
                for secret in (mock.SECRET_KEY, TOKEN):
                    assert secret.encode() not in path.read_bytes(), f"{path} holds a credential"


@contextlib.contextmanager
def web_server(folder, handler=http.server.SimpleHTTPRequestHandler):
    """Serves a folder on loopback; yields its URL."""
    files = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=str(folder)))
    threading.Thread(target=files.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    yield f"http://127.0.0.1:{files.server_address[1]}"
    files.shutdown()
    files.server_close()


def test_save():
    with setting() as (folder, server, environment):
        save = [SCRIPTS / "save-results.sh", folder / "out"]
        assert "2 files" in run(save + ["bucket/a"], environment)
        assert server.keys("bucket", "a/") == {"checkpoint", "logs/rank 0.txt", "SHA256SUMS"}
        assert server.ask("GET", "/bucket/a/checkpoint") == (folder / "out/checkpoint").read_bytes()
        # A source that is read-only, through a read-only bind mount where the test may create one.
        read_only = ["unshare", "-rm", "bash", "-ec", 'mount --bind "$1" "$1"; mount -o remount,ro,bind "$1"; '
                     '! touch "$1/x" 2>/dev/null; exec "${@:2}"', "-", folder / "out"]
        if subprocess.run([*read_only, "true"], stderr=subprocess.DEVNULL, check=False).returncode == 0:
            run([*read_only, *save, "bucket/read-only"], environment)
        else:
            print("no mounts can be made here, so the folder was not made read-only")
        assert sorted(path.name for path in (folder / "out").iterdir()) == ["checkpoint", "logs"]
        # Links, and names that sha256sum would escape.
        link = folder / "out/best"
        link.symlink_to("logs")
        assert "is not copied itself" in run(save + ["bucket/a"], environment)
        for target in (folder, folder / "nonexistent"):
            link.unlink()
            link.symlink_to(target)
            assert "would not be saved" in run(save + ["bucket/c"], environment, 2)
        link.unlink()
        for name in ("new\nline", "back\\slash", "SHA256SUMS"):
            (folder / "out" / name).write_text("")
            run(save + ["bucket/c"], environment, 2)
            (folder / "out" / name).unlink()
        assert not server.keys("bucket", "c/")


def test_save_checkpoints():
    needs("dtrain-cnn-benchmarks")
    with setting() as (folder, server, environment):
        run(["dtrain-cnn-benchmarks", *TRAINING, f"--train_dir={folder / 'run'}"], environment)
        save = [SCRIPTS / "save-results.sh", folder / "run", "bucket/run"]
        assert "2 checkpoints have the files of their manifests" in run(save, environment)
        [checkpoint, *_] = sorted((folder / "run/checkpoints").glob("step-*"))
        for name, damage in (("state.json", lambda path: path.write_bytes(path.read_bytes()[1:])),
                             ("model.safetensors", pathlib.Path.unlink), ("MANIFEST.json", pathlib.Path.unlink)):
            damage(checkpoint / name)
            server.ask("DELETE", f"/bucket/run/{checkpoint.relative_to(folder / 'run')}/{name}")
            assert f"{checkpoint} is damaged: {name} " in run(save, environment, 2), name


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
    with setting() as (folder, server, environment):
        run(save + [folder / "out", "bucket/a"], environment)
        server.ask("PUT", "/bucket/a/checkpoint", bytes(256 * 99))
        run(save + [folder / "out", "bucket/a"], environment)
        assert server.ask("GET", "/bucket/a/checkpoint") == (folder / "out/checkpoint").read_bytes()
        server.ask("PUT", "/bucket/a/stranger", b"x")
        assert "remove" in run(save + [folder / "out", "bucket/a"], environment, 2)


def test_stage_rejects():
    with setting() as (folder, _, environment):
        stage = [SCRIPTS / "stage.sh", "coco", "bucket"]
        assert "needed" in run(stage, {**environment, "STAGE_GB": "99999999"}, 6)
        for name, octal in (("STAGE_GB", "010"), ("SHARDS", "08")):
            assert "positive integers" in run(stage, {**environment, name: octal}, 1)
        (folder / "stage").mkdir()
        assert "exists" in run(stage, environment, 1)
        elsewhere = {**environment, "PATH": environment["PATH"].replace(f"{BINARIES}:", "")}
        assert "dtrain-data is not installed: a release's dtrain-VERSION-linux" in run(stage, elsewhere, 1)
        run([SCRIPTS / "stage.sh", "mnist", "bucket"], environment, 1)
        run([SCRIPTS / "stage.sh", "coco", "Bad_Bucket"], environment, 1)


def test_stage_coco():
    needs("dtrain-data", "dtrain-mask-rcnn")
    if not (DATA / "coco_mini").is_dir():
        print("SKIPPED: there is no coco_mini")
        sys.exit(77)
    with setting() as (folder, server, environment), contextlib.ExitStack() as here:
        web = folder / "web"
        for name, parts in {"zips/train2017": ["train2017"], "zips/val2017": ["val2017"],
                            "annotations/annotations_trainval2017": ["annotations"]}.items():
            (web / name).parent.mkdir(parents=True, exist_ok=True)
            with zipfile.ZipFile(web / f"{name}.zip", "w") as archive:
                for path in sorted((DATA / "coco_mini" / parts[0]).rglob("*")):
                    archive.write(path, path.relative_to(DATA / "coco_mini"))
        environment["COCO_URL"] = environment["WEIGHTS_URL"] = here.enter_context(web_server(web))
        weight_files.save_all(web)
        stage = [str(SCRIPTS / "stage.sh")]
        server.fault("slow", method="PUT", times=-1, seconds=1)
        whole = {**environment, "PATH": environment["PATH"].split(":", 1)[1]}  # a CLI that can be killed
        killed = subprocess.Popen(stage + ["coco", "bucket/p"], env=whole, start_new_session=True)
        while killed.poll() is None and not any(entry[0] == "PUT" and "/p/" in entry[1] for entry in server.requests):
            time.sleep(0.1)
        assert killed.poll() is None, "it ended before it could be killed"
        os.killpg(killed.pid, signal.SIGKILL)
        killed.wait()
        server.clear()
        assert "checksums of" in run(stage + ["--resume", "coco", "bucket/p"], environment)
        run(["aws", "s3", "cp", "--only-show-errors", "--recursive", "s3://bucket/p/coco2017", folder / "back"],
            environment)
        for line in (folder / "back/SHA256SUMS").read_text().splitlines():
            digest, name = line.split("  ", 1)
            assert hashlib.sha256((folder / "back" / name).read_bytes()).hexdigest() == digest, name
        run(["dtrain-data", "verify", folder / "back/records"], environment)
        weights = folder / "back/pretrained-models"
        assert len(list(weights.glob("*.npz"))) == 3
        assert (weights / "weights.lock").read_text() == (folder / "weights.lock").read_text()
        for line in (folder / "weights.lock").read_text().splitlines():
            name, size, digest = line.split()
            content = (weights / name).read_bytes()
            assert (len(content), hashlib.sha256(content).hexdigest()) == (int(size), digest), name


def test_stage_weights():
    """Weights that cannot be used, or differ from their record, are refused before COCO is downloaded."""
    needs("dtrain-data", "dtrain-mask-rcnn")
    name, other = "ImageNet-R50-AlignPadding.npz", "COCO-R50FPN-MaskRCNN-Standard.npz"
    with setting() as (folder, server, environment), contextlib.ExitStack() as here:
        web, fetched, record = folder / "web", folder / "stage/fetched", folder / "weights.lock"
        web.mkdir()
        environment["COCO_URL"] = environment["WEIGHTS_URL"] = here.enter_context(web_server(web))

        def stage(code, **variables):
            return run([SCRIPTS / "stage.sh", *(["--resume"] if fetched.exists() else []), "coco", "bucket"],
                       {**environment, **variables}, code)

        assert "WEIGHTS: none.npz is not in " in stage(1, WEIGHTS=f"{name}\nnone.npz")
        assert f"{name}: could not be downloaded" in stage(6, WEIGHTS=name)
        wrong, lacking = weight_files.backbone(), weight_files.detector()
        wrong["group1/block0/conv1/W"] = (1, 1, 256, 64)
        del lacking["maskrcnn/conv/W"], lacking["rpn/box/b"]
        weight_files.save(web / name, wrong)
        weight_files.save(web / other, lacking)
        for one, reason in ((name, "1 tensors of the backbone (BACKBONE.RESNET_NUM_BLOCKS=[3,4,6,3]) are missing or have "
                                   "another shape: group1/block0/conv1/W: file [1, 1, 256, 64], model [1, 1, 256, 128]"),
                            (other, "2 tensors of the detector (BACKBONE.RESNET_NUM_BLOCKS=[3,4,6,3]) are missing or have "
                                    "another shape: no rpn.head.bbox_pred.bias (rpn/box/b)")):
            assert f"{one}: {reason}" in stage(2, WEIGHTS=one)
            (fetched / one).unlink()
        (web / name).write_text("<html>not found</html>")
        assert "an HTML page" in stage(2, WEIGHTS=name)
        assert record.read_text() == ""
        (fetched / name).unlink()
        # The first good download is recorded; then the archives of COCO are missing.
        weight_files.save(web / name, weight_files.backbone())
        assert "train2017.zip: could not be downloaded" in stage(6, WEIGHTS=name)
        recorded = record.read_text()
        assert recorded.startswith(f"{name} {(web / name).stat().st_size} ")
        changed = {one: shape for one, shape in weight_files.backbone().items() if not one.startswith("linear")}
        weight_files.save(web / name, changed)
        (fetched / name).unlink()
        output = stage(2, WEIGHTS=name)
        assert f"has {recorded.split(' ', 1)[1].strip()} of an earlier download" in output and str(record) in output
        assert record.read_text() == recorded and not server.keys("bucket")
        assert "train2017.zip: could not be downloaded" in stage(6, WEIGHTS="")


class Guarded(http.server.SimpleHTTPRequestHandler):
    """Requires the token, and searches the command lines of all processes for it while a download waits."""
    requests, seen = [], []

    def do_GET(self):
        Guarded.requests.append(self.path)
        for path in pathlib.Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                if TOKEN.encode() in path.read_bytes():
                    Guarded.seen.append(path.read_bytes())
        if self.headers["Authorization"] != f"Bearer {TOKEN}":
            self.send_error(401)
        else:
            super().do_GET()


def add(archive, name, data):
    member = tarfile.TarInfo(name)
    member.size = len(data)
    archive.addfile(member, io.BytesIO(data))


def make_archives(web):
    """Archives of ImageNet with three classes of four images each, and three validation images."""
    classes = sorted((DATA / "imagenet_sample/train").iterdir())[:3]
    web.mkdir()
    with tarfile.open(web / "ILSVRC2012_img_train.tar", "w") as outer:
        for folder in classes:
            image, inner = next(folder.iterdir()).read_bytes(), io.BytesIO()
            with tarfile.open(fileobj=inner, mode="w") as archive:
                for number in range(4):
                    add(archive, f"{folder.name}_{number}.JPEG", image)
            add(outer, f"{folder.name}.tar", inner.getvalue())
    with tarfile.open(web / "ILSVRC2012_img_val.tar", "w") as archive:
        for number, folder in enumerate(classes, 1):
            add(archive, f"ILSVRC2012_val_{number:08}.JPEG", next(folder.iterdir()).read_bytes())
    (web / "imagenet_2012_validation_synset_labels.txt").write_text("".join(f"{one.name}\n" for one in classes))


def test_stage_imagenet():
    needs("dtrain-data")
    if not (DATA / "imagenet_sample").is_dir():
        print("SKIPPED: there is no imagenet_sample")
        sys.exit(77)
    with setting() as (folder, server, environment), web_server(folder / "web", Guarded) as address:
        make_archives(folder / "web")
        environment["IMAGENET_URL"] = address
        stage = [SCRIPTS / "stage.sh", "imagenet", "bucket/p"]
        # Line breaks that would add a header or a curl option reach neither curl nor any output.
        for odd in ('"', "\\", "\n", "\r", "\nurl = http://127.0.0.1:1/x\n", " "):
            output = run(stage, {**environment, "IMAGENET_TOKEN": f"beg{odd}end"}, 1)
            assert "IMAGENET_TOKEN" in output and "beg" not in output and "end" not in output, output
        run(stage, {**environment, "IMAGENET_URL": f'{address}/"'}, 1)
        assert not Guarded.requests and not (folder / "stage").exists()
        environment["IMAGENET_TOKEN"] = TOKEN
        # The labels come first, by default from the development kit.
        assert "ILSVRC2012_devkit_t12.tar.gz: could not be downloaded" in run(stage, environment, 6)
        assert set(Guarded.requests) == {"/ILSVRC2012_devkit_t12.tar.gz"}
        assert "VALIDATION_LABELS must be" in run(stage, {**environment, "VALIDATION_LABELS": "a/b"}, 1)
        stage.insert(1, "--resume")
        kit, tools = folder / "web/ILSVRC2012_devkit_t12.tar.gz", folder / "tools"
        kit.write_bytes(b"kit")
        tools.mkdir()
        (tools / "dtrain-data").write_text("#!/bin/sh\necho \"$@\"\nexit 2\n")
        (tools / "dtrain-data").chmod(0o755)
        output = run(stage, {**environment, "PATH": f"{tools}:{environment['PATH']}"}, 2)
        assert f"--validation_labels {folder}/stage/fetched/{kit.name}" in output, output
        environment["VALIDATION_LABELS"] = "imagenet_2012_validation_synset_labels.txt"
        assert "checksums of" in run(stage, environment)
        assert not Guarded.seen, "the token is in a command line"
        names = server.keys("bucket", "p/imagenet/")
        assert names == {"SHA256SUMS", "classes.txt", "train/train-00000-of-00002", "train/train-00001-of-00002",
                         "validation/validation-00000-of-00001"}, names
        for name in names - {"SHA256SUMS", "classes.txt"}:
            (folder / "back").mkdir(exist_ok=True)
            (folder / "back" / pathlib.Path(name).name).write_bytes(server.ask("GET", f"/bucket/p/imagenet/{name}"))
        assert "3 files, 15 records, 0 faults" in run(["dtrain-data", "verify", folder / "back"], environment)


def test_stage_code():
    with setting() as (folder, server, environment):
        source, tools = folder / "source", folder / "tools"
        for command in (["init", "-q", source], ["-C", source, "config", "user.email", "a@b.test"],
                        ["-C", source, "config", "user.name", "a"]):
            run(["git", *command], environment)
        (source / "train.sh").write_text("echo step 1\n")
        (source / "untracked").write_text("x")
        run(["git", "-C", source, "add", "train.sh"], environment)
        run(["git", "-C", source, "commit", "-qm", "one"], environment)
        # A disk of this size: staged files count towards the required gigabyte.
        tools.mkdir()
        (tools / "df").write_text("#!/bin/sh\necho Avail\necho $FREE\n")
        (tools / "df").chmod(0o755)
        environment.update(STAGE_GB="1", PATH=f"{tools}:{environment['PATH']}")
        stage = ["bash", "-c", 'cd "$1" && exec "${@:2}"', "-", source, SCRIPTS / "stage.sh"]
        run(stage + ["code", "bucket"], {**environment, "FREE": "999000000"}, 6)
        (folder / "stage/fetched").mkdir(parents=True)
        (folder / "stage/fetched/held").write_bytes(bytes(2000000))
        run(stage + ["--resume", "code", "bucket"], {**environment, "FREE": "997000000"}, 6)
        run(stage + ["--resume", "code", "bucket"], {**environment, "FREE": "999000000"})
        assert server.keys("bucket") == {"code/SHA256SUMS", "code/code.tar"}
        with tarfile.open(fileobj=io.BytesIO(server.ask("GET", "/bucket/code/code.tar"))) as archive:
            assert archive.getnames() == ["train.sh"]


def wait_for(what, condition, process):
    """Waits for a condition while the process runs; fails if the process exits or does not respond."""
    for _ in range(2000):
        if condition():
            return
        assert process.poll() is None, f"{what}: it ended with {process.returncode}"
        time.sleep(0.1)
    raise AssertionError(f"{what}: not within 200 s")


def test_tensorboard():
    needs("dtrain-cnn-benchmarks")
    if not python_packages.installed():
        print(f"SKIPPED: there is no TensorBoard: {python_packages.INSTALL}")
        sys.exit(77)
    rendered = SCRIPTS.parent / "rendered/tensorboard.yaml"
    read = "import json, sys, yaml; print(json.dumps(list(yaml.safe_load_all(open(sys.argv[1])))))"
    objects = json.loads(subprocess.run([mock.TOOLS / "bin/python3", "-c", read, rendered], text=True, check=True,
                                        stdout=subprocess.PIPE).stdout)
    [pod] = [one["spec"]["template"]["spec"] for one in objects if one["kind"] == "Deployment"]
    containers = {one["name"]: one for one in pod["containers"]}
    sync = containers["sync"]
    with setting() as (folder, server, environment), contextlib.ExitStack() as here:
        run(["dtrain-cnn-benchmarks", *TRAINING, "--num_batches=4", f"--train_dir={folder / 'run'}"], environment)
        [events] = (folder / "run").glob("*tfevents*")
        whole, name = events.read_bytes(), f"/bucket/logs/one/{events.name}"
        records = [0]  # offset of each: length, two checksums, data
        while records[-1] < len(whole):
            records.append(records[-1] + 16 + int.from_bytes(whole[records[-1]:records[-1] + 8], "little"))
        server.ask("PUT", name, whole[:records[-4] + 5])  # truncated within a record
        server.ask("PUT", "/bucket/logs/one/checkpoint", b"not to be fetched")
        environment.update({one["name"]: one["value"] for one in sync["env"]})
        logs = folder / "logs"
        environment.update(LOGS=str(logs), S3_URL="s3://bucket/logs", PAUSE_SECONDS="0.2", HOME=str(folder))
        ready = sync["readinessProbe"]["exec"]["command"]
        server.fault("error", method="GET", path="list-type", times=2)

        def is_ready():
            return subprocess.run(ready, env={**environment, "PAUSE_SECONDS": "30"}, check=False,
                                  stderr=subprocess.DEVNULL).returncode == 0

        assert not is_ready()
        sidecar = subprocess.Popen(sync["command"], env=environment, start_new_session=True)
        here.callback(lambda: (sidecar.terminate(), sidecar.wait()))
        wait_for("the first sync", is_ready, sidecar)
        copy = logs / "copy/one" / events.name
        assert [path.name for path in (logs / "copy").rglob("*") if path.is_file()] == [events.name]

        port = mock.free_port()
        arguments = containers["tensorboard"]["args"]
        replaced = {"/logs/copy": str(logs / "copy"), "6006": str(port), "15": "1", "0.0.0.0": "127.0.0.1"}
        assert arguments[0] == "tensorboard" and set(replaced) <= set(arguments)
        served = subprocess.Popen([python_packages.FOLDER / "bin/tensorboard",
                                   *(replaced.get(word, word) for word in arguments[1:])],
                                  start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        here.callback(lambda: (os.killpg(served.pid, signal.SIGKILL), served.wait()))

        def steps():
            query = "run=one&tag=total_loss"
            with contextlib.suppress(OSError, ValueError), urllib.request.urlopen(
                    f"http://127.0.0.1:{port}/data/plugin/scalars/scalars?{query}") as answer:
                return [step for _, step, _ in json.load(answer)]
            return []

        wait_for("the first steps", steps, served)
        assert len(steps()) < 4, steps()
        server.ask("PUT", name, whole)
        wait_for("the last step", lambda: steps() == [1, 2, 3, 4], served)
        assert copy.read_bytes() == whole
        assert containers["tensorboard"]["readinessProbe"]["httpGet"]["path"] == "/data/environment"
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/environment") as answer:
            assert answer.status == 200
        server.fault("expired", times=-1)
        for _ in range(2):  # a sync in progress may still succeed, and touch the file after the first removal
            os.utime(logs / "synced", (0, 0))
            seen = len(server.requests)
            wait_for("a failed sync", lambda: len(server.requests) > seen + 1, sidecar)
        assert not is_ready()
        sidecar.terminate()
        assert sidecar.wait(60) == 0


if __name__ == "__main__":
    globals()[sys.argv[1]]()
