"""Shards of TFRecords and weights in a bucket are read as from local files, also under faults."""

import pathlib
import random
import struct
import tempfile

import s3_server

COUNTS = (60, 0, 40)  # records of each shard


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = TABLE[(crc ^ byte) & 255] ^ (crc >> 8)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def table_entry(byte):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    return byte


TABLE = [table_entry(byte) for byte in range(256)]


def record(content):
    length = struct.pack("<Q", len(content))
    return length + struct.pack("<I", crc32c(length)) + content + struct.pack("<I", crc32c(content))


def shards():
    generator = random.Random(4)
    return {f"train-{i:05}-of-{len(COUNTS):05}": b"".join(record(generator.randbytes(generator.randrange(6000)))
                                                           for _ in range(count)) for i, count in enumerate(COUNTS)}


def prepare(server, folder):
    """Local copy and bucket; returns the local output."""
    files = shards()
    local = pathlib.Path(folder) / "local"
    local.mkdir()
    for name, content in files.items():
        (local / name).write_bytes(content)
    server.objects("bucket", {f"data/{name}": content for name, content in files.items()})
    return server.tool("records", local, "train", f"{folder}/other-cache").stdout


def test_records(server):
    with tempfile.TemporaryDirectory() as folder:
        expected = prepare(server, folder)
        words = ("records", "s3://bucket/data", "train", f"{folder}/cache")
        assert server.tool(*words).stdout == expected
        indices = list(pathlib.Path(folder, "cache").rglob("*.dtidx"))
        assert len(indices) == 3, indices
        assert all(method != "PUT" for method, _, _ in server.requests)
        for kind in ("error", "reset", "truncated", "wrong_range", "slow_down"):
            server.fault(kind, method="GET", path="data/train", times=2)
        assert server.tool(*words, AWS_MAX_ATTEMPTS="11").stdout == expected  # one request may meet all ten faults
        # Another object gets a new index.
        shard = shards()["train-00002-of-00003"]
        server.ask("PUT", "/bucket/data/train-00002-of-00003", shard[:16 + struct.unpack("<Q", shard[:8])[0]])
        changed = server.tool(*words).stdout
        assert b"train-00002-of-00003: " in changed and b" 1 records" in changed, changed


def test_split_folders(server):
    with tempfile.TemporaryDirectory() as folder:
        expected = prepare(server, folder)
        for name, content in shards().items():
            server.ask("PUT", f"/bucket/tree/train/{name}", content)
        assert server.tool("records", "s3://bucket/tree", "train", f"{folder}/cache").stdout == expected


def test_errors(server):
    with tempfile.TemporaryDirectory() as folder:
        prepare(server, folder)
        cache = f"{folder}/cache"
        server.refused("s3://bucket/absent: no train-*-of-* files in it", "records", "s3://bucket/absent", "train", cache)
        damaged = bytearray(shards()["train-00002-of-00003"])
        damaged[-5] ^= 1
        server.ask("PUT", "/bucket/data/train-00002-of-00003", bytes(damaged))
        server.refused("s3://bucket/data/train-00002-of-00003: record 39 at byte", "records", "s3://bucket/data", "train",
                       cache)
        server.ask("DELETE", "/bucket/data/train-00001-of-00003")
        server.refused("s3://bucket/data: train-00001-of-00003 is missing", "records", "s3://bucket/data", "train", cache)
        server.fault("denied", path="list-type", times=-1)
        server.refused("access denied (AccessDenied)", "records", "s3://bucket/data", "train", cache)


def test_weights(server):
    header = b'{"a.weight":{"dtype":"F32","shape":[1000,300],"data_offsets":[0,1200000]},' \
             b'"b":{"dtype":"F32","shape":[3],"data_offsets":[1200000,1200012]}}'
    values = random.Random(5)
    content = struct.pack("<Q", len(header)) + header + struct.pack("<300003f", *(values.random() for _ in range(300003)))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "w.safetensors"
        path.write_bytes(content)
        server.objects("bucket", {"w.safetensors": content})
        expected = server.tool("weights", path).stdout
        assert server.tool("weights", "s3://bucket/w.safetensors").stdout == expected
        server.pages["/w.safetensors"] = s3_server.web_page(content)
        assert server.tool("weights", f"{server.url}/w.safetensors?signature=x").stdout == expected
        server.objects("bucket", {"w.safetensors": content[:-100]})
        server.refused("s3://bucket/w.safetensors: ", "weights", "s3://bucket/w.safetensors")


if __name__ == "__main__":
    s3_server.run_cases(globals())
