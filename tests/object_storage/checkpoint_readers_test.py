"""A train_dir in a bucket is read without a lease: copies of its checkpoints, and weights in place."""

import json
import pathlib
import subprocess

import s3_server
from train_dir_test import LEASE, PREFIX, TOOL, URL, Machine, expected_checkpoints


class Reader:
    """A process that copies checkpoints, and writes nothing to the bucket."""

    def __init__(self, server, url=URL):
        self.process = subprocess.Popen([TOOL, "copies", url, f"{server.folder()}/copies"], env=server.environment(), text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def ask(self, words):
        self.process.stdin.write(f"{words}\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().rstrip("\n")

    def end(self, code=0):
        """What it wrote to stderr."""
        _, errors = self.process.communicate()
        assert self.process.returncode == code, errors
        return errors


def content_of(folder):
    return {path.name: path.read_bytes() for path in pathlib.Path(folder).iterdir()}


def objects_of(expected, step):
    return {name.split("/")[1]: text for name, text in expected.items() if name.startswith(f"step-{step}/")}


def refuse_writes(server):
    for method in ("PUT", "POST", "DELETE"):
        server.fault("denied", method=method, times=-1)


def test_copies(server):
    """Copies of the newest checkpoint, while a job holds the lease, by credentials that can only read."""
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 4)
    with Reader(server) as reader:
        assert reader.ask("newest") == "none" and reader.ask("steps") == ""
        Machine(server, "first").train(2)
        copy = reader.ask("newest")
        assert copy.endswith("-0/step-2") and content_of(copy) == objects_of(expected, 2)
        Machine(server, "second").train(4)
        server.ask("PUT", f"/bucket/{LEASE}", json.dumps({"writer": "another", "seconds": 100}).encode())
        refuse_writes(server)
        copy = reader.ask("newest")
        assert copy.endswith("-0/step-4") and content_of(copy) == objects_of(expected, 4)
        assert not pathlib.Path(copy).with_name("step-2").exists()
        with Reader(server) as other:  # the folder of the first one is in use
            own = other.ask("newest")
            assert own.endswith("-1/step-4") and content_of(own) == content_of(copy)
        assert reader.ask("steps") == "2 4 "
        assert content_of(reader.ask("2")) == objects_of(expected, 2)
        assert reader.ask("3") == "none"
        assert reader.end().count("note: downloading the checkpoint of step ") == 3
    with Reader(server, f"{URL}/checkpoints/step-2") as one:
        assert one.ask("steps") == "2 " and content_of(one.ask("newest")) == objects_of(expected, 2)
    for downloads in (1, 0):  # a copy that an earlier process left is used again
        with Reader(server) as again:
            copy = pathlib.Path(again.ask("newest"))
            assert content_of(copy) == objects_of(expected, 4)
            assert again.end().count("downloading") == downloads
    (copy / "state.json").write_bytes(b"?" + (copy / "state.json").read_bytes()[1:])
    with Reader(server) as again:
        assert content_of(again.ask("newest")) == objects_of(expected, 4)
    assert {method for method, path, status in server.requests if status == 403} == set(), "it wrote to the bucket"


def test_copies_of_damaged_and_deleted_checkpoints(server):
    server.objects("bucket", {})
    expected = expected_checkpoints(server, 8)
    Machine(server, "first").train(6)
    model = f"/bucket/{PREFIX}checkpoints/step-6/model.safetensors"
    content = server.ask("GET", model)
    server.ask("PUT", model, content[:-1] + bytes([content[-1] ^ 1]))
    with Reader(server) as reader:
        assert reader.ask("newest").endswith("/step-4")
        assert reader.ask("6") == "none"
        assert reader.end().count("note: skipped a damaged checkpoint: s3://bucket/runs/one/checkpoints/step-6/") == 2
    server.ask("PUT", model, content)
    trained = []

    def delete(method, path):
        """The job saves step 8, and deletes step 6, while it is downloaded."""
        if f"GET {model}" == f"{method} {path}" and not trained:
            trained.append(1)
            for key in sorted(server.keys("bucket", PREFIX + "checkpoints/step-6"), key=lambda name: name != ".json"):
                server.ask("DELETE", f"/bucket/{PREFIX}checkpoints/step-6{key}")
            for key, text in expected.items():
                if key.startswith("step-8"):
                    server.ask("PUT", f"/bucket/{PREFIX}checkpoints/{key}", text)
        return False
    server.gate = delete
    with Reader(server) as reader:
        copy = reader.ask("newest")
        assert trained and copy.endswith("/step-8"), reader.end()
        assert content_of(copy) == objects_of(expected, 8)
        server.ask("DELETE", f"/bucket/{PREFIX}checkpoints/step-2.json")
        assert reader.ask("2") == "none"
        notes = reader.end()
        assert "skipped the checkpoint of step 2, which was deleted meanwhile" in notes and "damaged" not in notes, notes
    manifest = f"/bucket/{PREFIX}checkpoints/step-8.json"
    server.ask("PUT", manifest, server.ask("GET", manifest).replace(b'"format": 1', b'"format": 2'))
    with Reader(server) as reader:
        reader.ask("newest")
        assert "step-8.json: checkpoint in object storage format 2" in reader.end(5)
    server.fault("denied", method="GET", path="list-type")
    with Reader(server) as reader:
        reader.ask("newest")
        assert "s3://bucket/runs/one/checkpoints/: access denied" in reader.end(6)


def test_weights(server):
    """A file, a checkpoint and a train_dir, as local ones."""
    server.objects("bucket", {"file": b"content", "moved/model.safetensors": b"content", "runs/one/log": b""})

    def weights(url, check=0):
        result = server.run([TOOL, "weights", url], check=check)
        return (result.stderr if check else result.stdout).decode().rstrip("\n")
    for url in (URL, URL + "/"):
        assert f"{url}: neither a checkpoint nor a train_dir with a complete one" in weights(url, check=5)
    Machine(server, "first").train(6)
    newest = f"{URL}/checkpoints/step-6/model.safetensors"
    for url, expected in (("s3://bucket/file", "s3://bucket/file"), ("s3://bucket/none", "s3://bucket/none"),
                          (URL, newest), (URL + "/", newest), (f"{URL}/checkpoints/step-6", newest),
                          ("s3://bucket/moved", "s3://bucket/moved/model.safetensors"), (newest, newest)):
        assert weights(url) == expected, url
    server.ask("PUT", f"/bucket/{PREFIX}checkpoints/step-6/state.json", b"{")
    assert weights(URL) == newest.replace("step-6", "step-4")
    server.ask("DELETE", f"/bucket/{PREFIX}checkpoints/step-4.json")
    assert weights(URL) == newest.replace("step-6", "step-2")
    server.ask("DELETE", f"/bucket/{PREFIX}checkpoints/step-2/state.json")
    assert "nor a train_dir with a complete one" in weights(URL, check=5)
    server.fault("denied", method="GET", path="/bucket/file")  # opening it reports that
    assert weights("s3://bucket/file") == "s3://bucket/file"
    server.fault("slow_down", method="GET", path="list-type", times=-1)
    assert "503 (SlowDown)" in weights(URL, check=6)


if __name__ == "__main__":
    s3_server.run_cases(globals())
