"""Programs read data sets and weights from object storage as they do from local files."""

import io
import json
import pathlib
import subprocess
import sys
import tarfile
import tempfile

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
                                  (url, ("--local_ckpt",), "--local_ckpt needs a local --train_dir"),
                                  (url, ("--eval",), "--eval and --forward_only need a local --train_dir")):
            result = synthetic(server, other, where, 8, *more, check=1)
            assert text in result.stderr.decode(), result.stderr


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


if __name__ == "__main__":
    s3_server.run_cases(globals())
        scores = [server.run([bin_file("dtrain-mask-rcnn"), "eval", f"--data_dir={data}", "--device=cpu",
                              f"--load={place}"], check=0).stdout.decode().splitlines()
                  for place in (working.parent, "s3://bucket/run")]
        scores = [[line for line in lines if "AP" in line] for lines in scores]
        assert scores[0] and scores[0] == scores[1], scores
