"""Programs read data sets and weights from object storage as they do from local files."""

import hashlib
import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import time

import s3_server

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
import tiny_detector  # noqa: E402


def bin_file(name):
    return s3_server.BINARIES / name


def made_records(folder):
    """TFRecords of 64 synthetic images: two splits of two shards."""
    images = pathlib.Path(folder) / "images"
    make_images(images)
    records = pathlib.Path(folder) / "records"
    subprocess.run([bin_file("dtrain-data"), "imagenet", f"--input={images}", f"--output={records}", "--shards=2",
                    "--validation_shards=2"], check=True, capture_output=True)
    return records


def make_images(folder):
    for split, count in (("train", 32), ("validation", 16)):
        for i in range(count):
            place = folder / split / f"n{i % 4:08}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"n{i % 4:08}_{i}.bmp").write_bytes(bmp(48, i))


def bmp(side, seed):
    pixels = bytes((x * 5 + y * 3 + seed * 7 + c * 40) % 256 for y in range(side) for x in range(side) for c in range(3))
    header = b"BM" + (54 + len(pixels)).to_bytes(4, "little") + bytes(4) + (54).to_bytes(4, "little")
    return header + (40).to_bytes(4, "little") + side.to_bytes(4, "little") * 2 + (1).to_bytes(2, "little") + \
        (24).to_bytes(2, "little") + bytes(24) + pixels


def upload(server, folder, prefix):
    server.objects("bucket", {f"{prefix}/{path.relative_to(folder)}": path.read_bytes()
                              for path in sorted(folder.rglob("*")) if path.is_file() and not path.name.startswith(".")})


def lines_of(result):
    return [json.loads(line) for line in result.stdout.splitlines()]


def test_inspect(server):
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        upload(server, records, "data")
        local = lines_of(server.run([bin_file("dtrain-data"), "inspect", records], check=0))
        remote = lines_of(server.run([bin_file("dtrain-data"), "inspect", "s3://bucket/data"], check=0))
        assert len(local) == 4
        for one in local:
            one["file"] = one["file"].replace(str(records), "s3://bucket/data")
        assert remote == local
        one = server.run([bin_file("dtrain-data"), "inspect", "s3://bucket/none"], check=2)
        assert one.stderr == b"error: s3://bucket/none: not found (NoSuchKey)\n", one.stderr


def train(server, data, folder, name, *more, check=0, **variables):
    log = pathlib.Path(folder) / f"{name}.jsonl"
    result = server.run([bin_file("dtrain-cnn-benchmarks"), "--model=trivial", "--data_name=imagenet", "--device=cpu",
                         "--batch_size=8", "--num_batches=4", "--num_warmup_batches=0", "--display_every=1",
                         f"--data_dir={data}", f"--metrics_file={log}", *more],
                        check=check, XDG_CACHE_HOME=str(pathlib.Path(folder) / "cache"), **variables)
    if check:
        return result
    return [line["loss"] for line in map(json.loads, log.read_text().splitlines()) if "loss" in line]


def test_training_and_weights(server):
    """Losses are equal to those of local files, also under faults; the second start reads indices from the cache."""
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        upload(server, records, "data")
        local = train(server, records, folder, "local", f"--train_dir={folder}/run")
        assert len(local) == 4, local
        assert train(server, "s3://bucket/data", folder, "remote") == local
        assert list((pathlib.Path(folder) / "cache").rglob("*.dtidx"))
        for kind in ("error", "reset", "truncated", "wrong_range", "slow_down"):
            server.fault(kind, method="GET", path="data/", times=1)
        # One request may meet all five faults.
        assert train(server, "s3://bucket/data", folder, "faults", AWS_MAX_ATTEMPTS="6") == local
        weights = next(pathlib.Path(folder, "run").rglob("model.safetensors"))
        server.objects("bucket", {"weights/model.safetensors": weights.read_bytes()})
        continued = train(server, records, folder, "continued", f"--weights={weights}")
        assert continued != local
        assert train(server, "s3://bucket/data", folder, "both", "--weights=s3://bucket/weights/model.safetensors") \
            == continued
        server.pages["/web.safetensors"] = s3_server.web_page(weights.read_bytes())
        server.secrets["query"] = "secret-of-the-url"
        url = f"--weights={server.url}/web.safetensors?signature={server.secrets['query']}"
        assert train(server, records, folder, "web", url) == continued


def make_tars(folder):
    """WebDataset archives of 32 and 16 images: train/{0,1}.tar and val/0.tar."""
    for split, archives, count in (("train", 2, 16), ("val", 1, 16)):
        (folder / split).mkdir(parents=True)
        for number in range(archives):
            with tarfile.open(folder / split / f"{number}.tar", "w") as tar:
                for i in range(count):
                    for extension, content in (("bmp", bmp(48, number * count + i)), ("cls", str(i % 4).encode())):
                        member = tarfile.TarInfo(f"{number}_{i}.{extension}")
                        member.size = len(content)
                        tar.addfile(member, io.BytesIO(content))


def test_web_dataset(server):
    """WebDataset archives give the samples of local ones, from a folder, a pattern, and single archives of a web server."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        make_tars(folder / "tars")
        upload(server, folder / "tars", "tars")
        local = train(server, folder / "tars", folder, "local")
        assert len(local) == 4
        cache = (f"--data_cache_dir={folder}/blocks", "--data_cache_gb=1")
        for name, more in (("remote", ()), ("cold", cache), ("warm", cache)):
            assert train(server, "s3://bucket/tars", folder, name, *more) == local, name
        assert list((folder / "blocks").rglob("*.block"))
        assert train(server, "s3://bucket/tars/train/{0..1}.tar", folder, "pattern") == local
        one = train(server, folder / "tars/train/0.tar", folder, "one")
        server.pages["/0.tar"] = s3_server.web_page((folder / "tars/train/0.tar").read_bytes())
        assert train(server, f"{server.url}/0.tar", folder, "web") == one != local
        evaluated = ["--eval", "--num_eval_batches=1"]
        weights = train(server, folder / "tars", folder, "run", f"--train_dir={folder}/run")
        assert weights == local
        outputs = [server.run([bin_file("dtrain-cnn-benchmarks"), "--model=trivial", "--data_name=imagenet", "--device=cpu",
                               "--batch_size=8", f"--train_dir={folder}/run", f"--data_dir={data}", *evaluated],
                              check=0).stdout for data in (folder / "tars", "s3://bucket/tars")]
        accuracies = [[line for line in output.splitlines() if b"Accuracy" in line] for output in outputs]
        assert accuracies[0] and accuracies[0] == accuracies[1], outputs
        server.ask("DELETE", "/bucket/tars/train/1.tar")
        result = train(server, "s3://bucket/tars/train/{0..1}.tar", folder, "gap", check=2)
        assert b"s3://bucket/tars/train/1.tar: not found (NoSuchKey)" in result.stderr, result.stderr


def test_errors(server):
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        upload(server, records, "data")
        result = train(server, "s3://bucket/absent", folder, "absent", check=2)
        assert b"error: s3://bucket/absent: no train-*-of-* files in it" in result.stderr, result.stderr
        server.fault("slow_down", path="list-type", times=-1)
        result = train(server, "s3://bucket/data", folder, "outage", check=6, AWS_MAX_ATTEMPTS="2")
        assert b"the server answers 503 (SlowDown)" in result.stderr, result.stderr
        assert sum(status == 503 for _, status in server.methods("list-type")) == 2, server.requests
        server.clear()
        server.ask("DELETE", "/bucket/data/train-00001-of-00002")
        result = train(server, "s3://bucket/data", folder, "gap", check=2)
        assert b"train-00001-of-00002 is missing" in result.stderr, result.stderr
        result = train(server, "gs://bucket/data", folder, "gs", check=1)
        assert b"--data_dir: expected a local path" in result.stderr, result.stderr


def synthetic(server, folder, train_dir, steps, *more, check=0, **variables):
    """Training without data, which saves after every second step."""
    return server.run([bin_file("dtrain-cnn-benchmarks"), "--model=trivial", "--device=cpu", "--num_intra_threads=1",
                       "--batch_size=2", f"--num_batches={steps}", "--num_warmup_batches=0", "--save_model_steps=2",
                       "--summary_verbosity=1", "--save_summaries_steps=1", f"--train_dir={train_dir}", *more],
                      check=check, XDG_CACHE_HOME=str(pathlib.Path(folder) / "cache"), **variables)


def test_train_dir(server):
    """Checkpoints, settings and event files of a run, which another machine continues."""
    server.objects("bucket", {})
    url = "s3://bucket/runs/one"
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        synthetic(server, folder, f"{folder}/local", 4)
        expected = {str(path.relative_to(f"{folder}/local")): path.read_bytes()
                    for path in pathlib.Path(folder, "local/checkpoints").rglob("*") if path.is_file()}
        synthetic(server, folder, url, 4)
        keys = server.keys("bucket", "runs/one/")
        for name, content in expected.items():
            assert server.ask("GET", f"/bucket/runs/one/{name}") == content, name
        assert {"checkpoints/step-2.json", "checkpoints/step-4.json", "config.toml"} <= keys, keys
        assert f'train_dir = "{url}"' in server.ask("GET", "/bucket/runs/one/config.toml").decode()
        assert len([key for key in keys if key.startswith("events.out.tfevents.")]) == 1, keys
        result = synthetic(server, other, url, 6)
        assert b"note: downloading the checkpoint of step 4, " in result.stderr, result.stderr
        synthetic(server, folder, f"{folder}/local", 6)
        model = pathlib.Path(folder, "local/checkpoints/step-6/model.safetensors").read_bytes()
        assert server.ask("GET", "/bucket/runs/one/checkpoints/step-6/model.safetensors") == model
        keys = server.keys("bucket", "runs/one/")
        assert len([key for key in keys if key.startswith("events.out.tfevents.")]) == 2 and \
            ".dtrain/lease.json" not in keys, keys
        server.fault("slow_down", method="PUT", path="checkpoints/", times=-1)
        result = synthetic(server, other, url, 8, check=6, AWS_MAX_ATTEMPTS="2")
        assert b"error: the last checkpoint could not be written; see above" in result.stderr, result.stderr
        for where, more, text in (("https://host/run", (), "--train_dir: expected a local path or s3://BUCKET/PREFIX"),
                                  ("gs://bucket/run", (), "--train_dir: expected a local path"),
                                  (url, ("--local_ckpt",), "--local_ckpt needs a local --train_dir")):
            result = synthetic(server, other, where, 8, *more, check=1)
            assert text in result.stderr.decode(), result.stderr


def evaluate(server, folder, *more, check=0, **variables):
    """Lines about checkpoints and accuracies, and stderr."""
    result = server.run([bin_file("dtrain-cnn-benchmarks"), "--device=cpu", "--num_intra_threads=1", "--batch_size=8",
                         "--num_eval_batches=2", *more], check=check, XDG_CACHE_HOME=str(pathlib.Path(folder) / "cache"),
                        **variables)
    lines = [line for line in result.stdout.decode().splitlines()
             if "Accuracy" in line or line.startswith(("Successfully loaded", "Checkpoint not found"))]
    return lines, result.stderr.decode()


def test_evaluation(server):
    """--eval and --forward_only read the checkpoints of a prefix as of a local train_dir, while a job writes there, and
    with credentials that can only read."""
    server.objects("bucket", {})
    url = "s3://bucket/runs/one"
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        local = f"{folder}/run"
        train(server, records, folder, "local", f"--train_dir={local}", "--save_model_steps=2", "--weight_ema=0.9")
        here = f"--data_dir={records}"

        def expected(*more, place=""):
            lines = evaluate(server, folder, here, f"--train_dir={local}{place}", *more)[0]
            assert any("Accuracy" in line for line in lines) or "--forward_only" in more, lines
            return [line.replace(local, url) for line in lines]
        named = ("--model=trivial", "--data_name=imagenet")
        errors = evaluate(server, folder, here, "--eval", f"--train_dir={url}", *named, check=5)[1]
        assert errors.splitlines()[-1] == f"error: Checkpoint not found in {url}", errors
        job = subprocess.Popen(
            [bin_file("dtrain-cnn-benchmarks"), *named, "--device=cpu", "--batch_size=8", "--num_batches=1000000", here,
             f"--train_dir={url}", "--save_model_steps=1000000", "--init_learning_rate=1e-6"],
            env=server.environment(XDG_CACHE_HOME=f"{folder}/job"), stdout=subprocess.DEVNULL)
        try:
            for _ in range(1200):
                if ".dtrain/lease.json" in server.keys("bucket", "runs/one/"):
                    break
                assert job.poll() is None
                time.sleep(0.1)
            for step in (2, 4):
                put_checkpoint(server, pathlib.Path(local), "runs/one", step)
            assert evaluate(server, folder, here, "--eval", f"--train_dir={url}")[0] == expected("--eval")
            assert job.poll() is None
        finally:
            job.kill()
            job.wait()
        assert ".dtrain/lease.json" in server.keys("bucket", "runs/one/")
        server.clear()
        for method in ("PUT", "POST", "DELETE"):
            server.fault("denied", method=method, times=-1)
        for more in (("--eval",), ("--eval", "--eval_nth_checkpoints=1"), ("--forward_only", "--num_batches=2", *named)):
            assert evaluate(server, folder, here, f"--train_dir={url}", *more)[0] == expected(*more), more
        place = "/checkpoints/step-2"
        assert evaluate(server, folder, here, f"--train_dir={url}{place}", "--eval")[0] == expected("--eval", place=place)
        assert {method for method, _, _ in server.requests} == {"GET"}, server.requests


def put_checkpoint(server, run, prefix, step):
    """Makes a local checkpoint one of the prefix, as another writer would."""
    files = {path.name: path.read_bytes() for path in (run / f"checkpoints/step-{step}").iterdir()}
    sums = {name: {"bytes": len(text), "sha256": hashlib.sha256(text).hexdigest()} for name, text in files.items()}
    for name, text in files.items():
        server.ask("PUT", f"/bucket/{prefix}/checkpoints/step-{step}/{name}", text)
    server.ask("PUT", f"/bucket/{prefix}/checkpoints/step-{step}.json",
               json.dumps({"format": 1, "step": step, "files": sums}).encode())


def test_repeated_evaluation(server):
    """--eval_interval_secs takes up checkpoints that appear, and waits for the first; a signal ends it."""
    server.objects("bucket", {})
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        train(server, records, folder, "local", f"--train_dir={folder}/run", "--save_model_steps=2")
        process = subprocess.Popen(
            [bin_file("dtrain-cnn-benchmarks"), "--model=trivial", "--data_name=imagenet", "--device=cpu", "--batch_size=8",
             "--num_eval_batches=1", "--eval", "--eval_interval_secs=1", f"--data_dir={records}",
             "--train_dir=s3://bucket/run"], env=server.environment(XDG_CACHE_HOME=f"{folder}/cache"), text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        try:
            def wait_for(text):
                for line in process.stdout:
                    if text in line:
                        return
                raise AssertionError(f"no '{text}': {process.communicate()}")
            wait_for("Checkpoint not found in s3://bucket/run")
            for step in (2, 4):
                put_checkpoint(server, pathlib.Path(folder, "run"), "run", step)
                wait_for(f"Successfully loaded model from s3://bucket/run/checkpoints/step-{step}.")
                wait_for("Accuracy @ 1 = ")
            process.terminate()
            _, errors = process.communicate(timeout=120)
            assert process.returncode == 75, errors
            assert errors.count("note: downloading the checkpoint of step ") == 2, errors
        finally:
            process.kill()
            process.wait()


def test_weights_of_a_train_dir(server):
    """--weights takes the newest checkpoint of a train_dir."""
    server.objects("bucket", {})
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        train(server, records, folder, "local", f"--train_dir={folder}/run", "--save_model_steps=2")
        for step in (2, 4):
            put_checkpoint(server, pathlib.Path(folder, "run"), "run", step)
        continued = train(server, records, folder, "continued", f"--weights={folder}/run")
        for number, name in enumerate(("run", "run/", "run/checkpoints/step-4")):
            assert train(server, records, folder, f"remote-{number}", f"--weights=s3://bucket/{name}") == continued, name
        older = train(server, records, folder, "older", f"--weights={folder}/run/checkpoints/step-2")
        server.ask("DELETE", "/bucket/run/checkpoints/step-4.json")
        assert train(server, records, folder, "previous", "--weights=s3://bucket/run") == older != continued
        here = ("--eval", f"--data_dir={records}")
        local = evaluate(server, folder, *here, f"--weights={folder}/run/checkpoints/step-2")[0]
        assert local and evaluate(server, folder, *here, "--weights=s3://bucket/run")[0] == local
        result = train(server, records, folder, "none", "--weights=s3://bucket/none", check=5)
        assert b"s3://bucket/none: not found (NoSuchKey)" in result.stderr, result.stderr


def test_train_dir_of_ranks(server):
    """Two ranks: the chief writes."""
    server.objects("bucket", {})
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
        ranks = ("--variable_update=replicated", "--num_gpus=2")
        for steps in (2, 4):
            synthetic(server, folder, f"{folder}/local", steps, *ranks)
        synthetic(server, folder, "s3://bucket/run", 2, *ranks)
        result = synthetic(server, other, "s3://bucket/run", 4, *ranks)
        assert result.stderr.count(b"note: downloading the checkpoint of step 2, ") == 1, result.stderr
        model = "checkpoints/step-4/model.safetensors"
        assert server.ask("GET", f"/bucket/run/{model}") == pathlib.Path(folder, "local", model).read_bytes()
        outputs = [evaluate(server, other, "--eval", "--eval_nth_checkpoints=1", f"--train_dir={train_dir}", *ranks)
                   for train_dir in (f"{folder}/local", "s3://bucket/run")]
        assert outputs[0][0] and outputs[1][0] == [line.replace(f"{folder}/local", "s3://bucket/run")
                                                   for line in outputs[0][0]]
        assert outputs[1][1].count("note: downloading the checkpoint of step ") == 2, outputs


def drawn_coco(folder):
    data = pathlib.Path(folder) / "data"
    subprocess.run([bin_file("dtrain-data"), "shapes", "--output", data, "--images=4", "--validation=2", "--size=96x64"],
                   check=True, capture_output=True)
    return data


def test_coco(server):
    """A detector trains and is evaluated on annotations and images of a bucket as on local files."""
    with tempfile.TemporaryDirectory() as folder:
        data = drawn_coco(folder)
        upload(server, data, "coco")

        def detector(place, name):
            train_dir = pathlib.Path(folder, name)
            result = server.run([bin_file("dtrain-mask-rcnn"), "train", f"--data_dir={place}", "--device=cpu",
                                 f"--train_dir={train_dir}", "--batch_size=1", "--num_batches=3", "--display_every=1",
                                 "--config", *tiny_detector.KEYS], check=0)
            lines = [line for line in result.stdout.decode().splitlines() if "total_loss" in line or "mAP" in line]
            return lines, (next(train_dir.rglob("model.safetensors"))).read_bytes()
        local = detector(data, "local")
        server.fault("error", method="GET", path="/bucket/coco/train", times=1)
        assert detector("s3://bucket/coco", "remote") == local
        assert local[0], "no losses and scores in the log"
        result = server.run([bin_file("dtrain-mask-rcnn"), "train", "--data_dir=s3://bucket/none", "--device=cpu",
                             "--num_batches=1", "--config", *tiny_detector.KEYS], check=2)
        assert b"s3://bucket/none/annotations: no file instances_*train*.json" in result.stderr, result.stderr
        server.run([bin_file("dtrain-cnn-benchmarks"), "--model=ssd300", "--data_dir=s3://bucket/coco", "--device=cpu",
                    "--batch_size=1", "--num_batches=1", "--num_warmup_batches=0"], check=0)


def test_train_dir_of_a_detector(server):
    server.objects("bucket", {})
    with tempfile.TemporaryDirectory() as folder:
        data = drawn_coco(folder)
        for steps in (2, 4):
            result = server.run([bin_file("dtrain-mask-rcnn"), "train", f"--data_dir={data}", "--device=cpu",
                                 "--train_dir=s3://bucket/run", "--batch_size=1", f"--num_batches={steps}", "--config",
                                 *tiny_detector.KEYS], check=0, XDG_CACHE_HOME=f"{folder}/cache-{steps}")
        assert b"note: downloading the checkpoint of step 2, " in result.stderr, result.stderr
        keys = server.keys("bucket", "run/")
        assert {"checkpoints/step-2.json", "checkpoints/step-4.json", "log.log", "stats.json"} <= keys, keys
        working = next(pathlib.Path(folder, "cache-4/dtrain/train_dirs").glob("run-*/log.log"))
        assert server.ask("GET", "/bucket/run/log.log") == working.read_bytes()
        scores = [server.run([bin_file("dtrain-mask-rcnn"), "eval", f"--data_dir={data}", "--device=cpu",
                              f"--load={place}"], check=0).stdout.decode().splitlines()
                  for place in (working.parent, "s3://bucket/run")]
        scores = [[line for line in lines if "AP" in line] for lines in scores]
        assert scores[0] and scores[0] == scores[1], scores


if __name__ == "__main__":
    s3_server.run_cases(globals())
