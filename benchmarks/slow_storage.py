"""Serves a folder as the bucket `bucket` of an S3 service that has a latency and a bandwidth.

    with SlowStorage(folder, delay=0.02, megabytes_per_second=200) as storage:
        subprocess.run([..., "s3://bucket/data"], env=dict(os.environ, **storage.environment()))

Each request waits `delay` seconds before its first byte; all bodies together take no more than the bandwidth. Signatures
are not verified. It serves what dtrain needs: ranged GETs and lists.
"""
import hashlib
import http.server
import pathlib
import threading
import time
import urllib.parse
from xml.sax.saxutils import escape

PIECE = 256 << 10  # bytes


class Link:
    """A link with a bandwidth that all connections share."""

    def __init__(self, bytes_per_second):
        self.bytes_per_second, self.lock, self.free_at = bytes_per_second, threading.Lock(), 0.0

    def send(self, to, content):
        for begin in range(0, len(content), PIECE):
            piece = content[begin:begin + PIECE]
            with self.lock:
                begins = max(self.free_at, time.monotonic())
                self.free_at = begins + len(piece) / self.bytes_per_second
            time.sleep(max(0.0, begins - time.monotonic()))
            to.write(piece)


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def log_message(self, *_):
        pass

    def do_GET(self):
        time.sleep(self.storage.delay)
        parts = urllib.parse.urlsplit(self.path)
        query = dict(urllib.parse.parse_qsl(parts.query, keep_blank_values=True))
        key = urllib.parse.unquote(parts.path).removeprefix("/bucket").lstrip("/")
        if "list-type" in query:
            return self.reply(200, self.storage.listing(query.get("prefix", ""), query.get("delimiter", "")))
        path = self.storage.folder / key
        if ".." in pathlib.PurePath(key).parts or not path.is_file():
            return self.reply(404, b"<Error><Code>NoSuchKey</Code></Error>")
        size, asked = path.stat().st_size, self.headers.get("Range")
        first, last = 0, size - 1
        if asked:
            first, last = (int(text) for text in asked.removeprefix("bytes=").split("-"))
            last = min(last, size - 1)
        with path.open("rb") as file:
            file.seek(first)
            content = file.read(last - first + 1)
        headers = {"ETag": f'"{hashlib.md5(f"{key} {size} {path.stat().st_mtime_ns}".encode()).hexdigest()}"'}
        if asked:
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
        return self.reply(206 if asked else 200, content, headers)

    def reply(self, status, content, headers=None):
        with self.storage.lock:
            self.storage.requests += 1
            self.storage.bytes += len(content)
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.storage.link.send(self.wfile, content)


class SlowStorage:
    def __init__(self, folder, delay, megabytes_per_second):
        self.folder, self.delay, self.link = pathlib.Path(folder), delay, Link(megabytes_per_second * 1e6)
        self.lock, self.requests, self.bytes = threading.Lock(), 0, 0

    def listing(self, prefix, delimiter):
        keys = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*") if path.is_file())
        below = [key for key in keys if key.startswith(prefix)]
        folders = sorted({prefix + key[len(prefix):].split(delimiter)[0] + delimiter
                          for key in below if delimiter and delimiter in key[len(prefix):]})
        files = [key for key in below if not (delimiter and delimiter in key[len(prefix):])]
        rows = [f"<Contents><Key>{escape(key)}</Key><Size>{(self.folder / key).stat().st_size}</Size></Contents>"
                for key in files]
        rows += [f"<CommonPrefixes><Prefix>{escape(folder)}</Prefix></CommonPrefixes>" for folder in folders]
        return f"<ListBucketResult><IsTruncated>false</IsTruncated>{''.join(rows)}</ListBucketResult>".encode()

    def environment(self):
        return {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{self.server.server_address[1]}", "AWS_ACCESS_KEY_ID": "any",
                "AWS_SECRET_ACCESS_KEY": "any", "AWS_EC2_METADATA_DISABLED": "true"}

    def __enter__(self):
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (Handler,), {"storage": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
