"""The disk cache: blocks of remote files are read once, verified, shared by processes, and change no result."""

import hashlib
import json
import pathlib
import random
import signal
import subprocess
import tempfile
import threading

import programs_test
import s3_server

BLOCK = 1 << 20
CONTENT = random.Random(6).randbytes(12 * BLOCK + 1000)
FILE = "s3://bucket/file"
LARGE = 1 << 30
SCATTERED = [f"{at}:20000" for at in random.Random(7).sample(range(0, len(CONTENT) - 20_000), 60)]


def cached(server, folder, *words, size=LARGE, **variables):
    """Standard output, and the counts of the cache."""
    result = server.tool("cache", folder, size, *words, **variables)
    return result.stdout, json.loads(result.stderr.splitlines()[-1])


def gets(server):
    return sum(method == "GET" and path.startswith("/bucket/file") for method, path, _ in server.requests)


def bytes_of(ranges):
    return b"".join(CONTENT[int(at):int(at) + int(size)] for at, size in (one.split(":") for one in ranges))


def blocks(folder):
    return sorted(pathlib.Path(folder).rglob("*.block"))


def test_cold_and_warm(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        out, counts = cached(server, folder, "read", FILE, *SCATTERED)
        assert out == bytes_of(SCATTERED)
        assert gets(server) <= 1 + 13, server.requests  # the beginning, and each block once
        assert len(CONTENT) - 6 * BLOCK <= counts["fetched"] <= len(CONTENT), counts
        server.requests.clear()
        out, counts = cached(server, folder, "threads", FILE, 300_000)
        assert out.decode().strip() == hashlib.sha256(CONTENT).hexdigest()
        server.requests.clear()
        out, counts = cached(server, folder, "read", FILE, f"0:{len(CONTENT)}", *SCATTERED)
        assert out == CONTENT + bytes_of(SCATTERED)
        assert gets(server) == 1 and counts["fetched"] == 0, (server.requests, counts)  # opening asks the server
        assert all(path.stat().st_mode & 0o077 == 0 for path in blocks(folder))


def test_prefetched(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        for size in (LARGE, 4 * BLOCK):
            out, counts = cached(server, f"{folder}/{size}", "prefetch", FILE, *SCATTERED, size=size)
            assert out == bytes_of(SCATTERED)
            if size == LARGE:
                assert gets(server) <= 1 + 13 and counts["fetched"] <= len(CONTENT), (server.requests, counts)
        server.requests.clear()
        out, counts = cached(server, f"{folder}/{LARGE}", "prefetch", FILE, *SCATTERED)
        assert out == bytes_of(SCATTERED)
        # What is on the disk is read in windows, which may reach into a block that no range touches.
        assert gets(server) <= 2 and counts["fetched"] <= BLOCK, (server.requests, counts)


def test_damage(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        cached(server, folder, "read", FILE, f"0:{len(CONTENT)}")
        chosen = blocks(folder)
        assert len(chosen) == 13
        content = bytearray(chosen[0].read_bytes())
        content[len(content) // 2] ^= 1
        chosen[0].write_bytes(content)
        chosen[1].write_bytes(b"")
        chosen[2].write_bytes(chosen[3].read_bytes())
        out, counts = cached(server, folder, "read", FILE, f"0:{len(CONTENT)}")
        assert out == CONTENT and counts["damaged"] == 3, counts
        out, counts = cached(server, folder, "read", FILE, f"0:{len(CONTENT)}")
        assert out == CONTENT and counts["damaged"] == 0 and counts["fetched"] == 0, counts


def test_other_contents(server):
    """Blocks of an object that was replaced, of another object, and of another endpoint are others."""
    with tempfile.TemporaryDirectory() as folder:
        for content in (CONTENT, CONTENT[::-1]):
            server.objects("bucket", {"file": content, "file2": content[1:]})
            assert cached(server, folder, "read", FILE, f"0:{len(content)}")[0] == content
            assert cached(server, folder, "read", f"{FILE}2", f"0:{len(content)}")[0] == content[1:]
        other = server.url.replace("127.0.0.1", "localhost")
        assert cached(server, folder, "read", FILE, "0:100", "5000000:100", AWS_ENDPOINT_URL=other)[1]["fetched"] > 0


def test_web(server):
    """Files of web servers are kept only if a strong ETag identifies their contents."""
    for etag, kept in (('"1"', True), ('W/"1"', False), ("", False)):
        def page(handler, body, etag=etag):
            status, headers, content = s3_server.web_page(CONTENT)(handler, body)
            return status, [one for one in headers if one[0] != "ETag"] + [("ETag", etag)] * bool(etag), content
        server.pages["/file"] = page
        with tempfile.TemporaryDirectory() as folder:
            assert cached(server, folder, "read", f"{server.url}/file?a=b", "3000000:10")[0] == CONTENT[3_000_000:3_000_010]
            assert bool(blocks(folder)) == kept, etag


def test_small_cache(server):
    """The folder stays below the size."""
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        size = 4 * BLOCK
        for _ in range(3):
            out, _ = cached(server, folder, "read", FILE, *SCATTERED, size=size)
            assert out == bytes_of(SCATTERED)
            assert sum(path.stat().st_size for path in blocks(folder)) <= size
        out, _ = cached(server, folder, "threads", FILE, 300_000, size=size)
        assert out.decode().strip() == hashlib.sha256(CONTENT).hexdigest()
        out, _ = cached(server, folder, "read", FILE, *SCATTERED, size=1000)
        assert out == bytes_of(SCATTERED)


def test_processes_share(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        results = []

        def work():
            results.append(cached(server, folder, "read", FILE, f"0:{len(CONTENT)}"))
        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert [out == CONTENT for out, _ in results] == [True] * 4
        assert gets(server) == 4 + 13, server.requests  # each opens the file


def test_killed_process(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        server.fault("slow", method="GET", path="file", times=-1, seconds=0.3)
        for wait in (0.5, 0.8, 1.2):
            with subprocess.Popen([s3_server.TOOL, "cache", folder, str(LARGE), "read", FILE, *SCATTERED],
                                  env=server.environment(), stdout=subprocess.DEVNULL) as process:
                try:
                    process.wait(wait)
                except subprocess.TimeoutExpired:
                    process.send_signal(signal.SIGKILL)
        server.clear()
        out, counts = cached(server, folder, "read", FILE, f"0:{len(CONTENT)}")
        assert out == CONTENT and counts["damaged"] == 0, counts


def test_unusable_folder(server):
    server.objects("bucket", {"file": CONTENT})
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "file").write_text("")
        assert server.refused("is not a directory", "cache", f"{folder}/file", LARGE, "read", FILE, "0:9") == 1
    result = server.tool("cache", "/proc/none", LARGE, "read", FILE, "0:9")
    assert result.stdout == CONTENT[:9]
    assert result.stderr.startswith(b"note: remote data is read without a disk cache: mkdir /proc/none: "), result.stderr
    assert result.stderr.count(b"note:") == 1


def made_records(folder):
    """Shards of more than one block: noise hardly compresses."""
    images = pathlib.Path(folder) / "images"
    generator = random.Random(8)
    for split, count in (("train", 48), ("validation", 8)):
        for i in range(count):
            place = images / split / f"n{i % 4:08}"
            place.mkdir(parents=True, exist_ok=True)
            (place / f"n{i % 4:08}_{i}.bmp").write_bytes(programs_test.bmp(160, i)[:54] + generator.randbytes(3 * 160 * 160))
    records = pathlib.Path(folder) / "records"
    subprocess.run([programs_test.bin_file("dtrain-data"), "imagenet", f"--input={images}", f"--output={records}",
                    "--shards=2", "--validation_shards=2"], check=True, capture_output=True)
    return records


def test_training(server):
    """Losses are those of local files with a cold, a warm, a small and a damaged cache."""
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        programs_test.upload(server, records, "data")
        steps = ["--num_batches=8"]
        local = programs_test.train(server, records, folder, "local", *steps)
        assert len(local) == 8, local
        cache = f"--data_cache_dir={folder}/blocks"

        def remote(name, size):
            before = len(server.requests)
            losses = programs_test.train(server, "s3://bucket/data", folder, name, *steps, cache, f"--data_cache_gb={size}")
            assert losses == local, name
            return [path for method, path, _ in server.requests[before:] if method == "GET" and "train-0" in path]
        assert len(remote("cold", 1)) > 6
        assert len(blocks(folder)) > 2
        assert len(remote("warm", 1)) == 4  # to open two shards, first for their compression
        for path in blocks(folder):
            content = bytearray(path.read_bytes())
            content[-1000] ^= 1
            path.write_bytes(content)
        assert len(remote("damaged", 1)) > 6
        remote("tiny", 0.002)
        assert sum(path.stat().st_size for path in blocks(folder)) <= 0.002 * (1 << 30)
        server.fault("truncated", method="GET", path="data/train", times=3)
        remote("faults", 1)


def test_killed_training_resumes(server):
    """A run that is killed between two checkpoints continues with the same bits from a cache that was left as it was."""
    with tempfile.TemporaryDirectory() as folder:
        records = made_records(folder)
        programs_test.upload(server, records, "data")
        words = ["--num_batches=10", "--save_model_steps=4"]
        local = programs_test.train(server, records, folder, "local", *words, f"--train_dir={folder}/local-run")
        assert len(local) == 10
        log = pathlib.Path(folder) / "killed.jsonl"
        command = [programs_test.bin_file("dtrain-cnn-benchmarks"), "--model=trivial", "--data_name=imagenet",
                   "--device=cpu", "--batch_size=8", "--num_warmup_batches=0", "--display_every=1",
                   "--data_dir=s3://bucket/data", f"--metrics_file={log}", f"--train_dir={folder}/run",
                   f"--data_cache_dir={folder}/blocks", "--data_cache_gb=1", *words]
        server.fault("slow", method="GET", path="data/train-0", times=-1, seconds=0.1)
        with subprocess.Popen(command, env=server.environment(XDG_CACHE_HOME=f"{folder}/cache"),
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
            while process.poll() is None and (not log.exists() or log.read_text().count('"loss"') < 5):
                try:
                    process.wait(0.02)
                except subprocess.TimeoutExpired:
                    pass
            process.kill()
        server.clear()
        before = blocks(folder)
        assert before
        server.run(command, check=0, timeout=250, XDG_CACHE_HOME=f"{folder}/cache")
        losses = {}
        for line in map(json.loads, log.read_text().splitlines()):
            if "loss" in line:
                losses[line["step"]] = line["loss"]
        assert [losses[step] for step in sorted(losses)] == local
        assert newest_weights(pathlib.Path(folder, "local-run")) == newest_weights(pathlib.Path(folder, "run"))


def newest_weights(folder):
    return max(folder.rglob("model.safetensors"), key=lambda path: path.stat().st_mtime).read_bytes()


if __name__ == "__main__":
    s3_server.run_cases(globals())
