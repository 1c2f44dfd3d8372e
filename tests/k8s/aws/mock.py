"""A mock of AWS: moto's server behind a proxy that injects faults.

    with Mock() as mock:
        subprocess.run(["aws", "s3", "ls"], env=mock.environment())
        mock.fault(method="PUT", path="/bucket/key", kind="error", times=2)

Run it with the Python of tools.sh's virtual environment, or any Python 3.8 with DTRAIN_AWS_TOOLS set.
As a program, it prints "export NAME=VALUE" lines for a shell and serves until stdin is closed.
"""

import contextlib
import html
import http.client
import http.server
import os
import pathlib
import re
import shlex
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
from ports import free_port  # noqa: E402

TOOLS = pathlib.Path(os.environ.get("DTRAIN_AWS_TOOLS") or pathlib.Path(
    os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache") / "dtrain/aws-tools")
# Secrets that must not appear in any output.
ACCESS_KEY = "AKIAMOCKDTRAINACCESS"
SECRET_KEY = "mock-secret-that-no-file-may-hold"
EXPIRED = (b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>ExpiredToken</Code>'
           b"<Message>The provided token has expired.</Message></Error>")
INTERNAL = (b'<?xml version="1.0" encoding="UTF-8"?><Error><Code>InternalError</Code>'
            b"<Message>We encountered an internal error.</Message></Error>")
HOP_BY_HOP = {"connection", "transfer-encoding", "keep-alive", "content-length"}


class Mock:
    """Serves on free loopback ports; `url` is the proxy's address, and `requests` holds (method, path, status)."""
    kinds = ("error", "expired", "slow", "truncated")

    def handler(self):
        """Class of the proxy's requests."""
        return Proxy

    def __enter__(self):
        self.rules, self.requests, self.lock = [], [], threading.Lock()
        self.start()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), type("Bound", (self.handler(),), {"mock": self}))
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self._stop()

    def start(self):
        """Starts the service behind the proxy: sets `service`, its process, and `service_port`."""
        self.service_port = free_port()
        self.service = subprocess.Popen([TOOLS / "bin/moto_server", "-H", "127.0.0.1", "-p", str(self.service_port)],
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(600):
            if self.service.poll() is not None:
                raise RuntimeError("moto_server ended at its start")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.service_port), 1):
                return
            time.sleep(0.1)
        self._stop()
        raise RuntimeError("moto_server does not respond after 60 s")

    def _stop(self):
        self.service.terminate()
        self.service.wait()

    def fault(self, kind, method=".*", path=".*", times=1, seconds=1.0, after=0):
        """Adds a rule for requests that match the regular expressions; the first one that matches is applied.

        kind: "error" answers 500, "expired" 400 ExpiredToken, "slow" waits `seconds`, "truncated" sends half of the
        response body and closes. times: number of requests to apply it to, after `after` others; -1: all.
        """
        if kind not in self.kinds:
            raise ValueError(f"no such fault: {kind}")
        with self.lock:
            self.rules.append({"kind": kind, "method": method, "path": path, "times": times, "seconds": seconds,
                               "after": after})

    def clear(self):
        """Removes all rules and recorded requests."""
        with self.lock:
            self.rules.clear()
            self.requests.clear()

    def take(self, method, path):
        with self.lock:
            for rule in self.rules:
                if rule["times"] and re.fullmatch(rule["method"], method) and re.search(rule["path"], path):
                    if rule["after"] > 0:
                        rule["after"] -= 1
                        continue
                    rule["times"] -= rule["times"] > 0
                    return rule
        return None

    def ask(self, method, path, body=None):
        """Body of the service's response, without faults, and without the CLI, which takes a second to start."""
        connection = http.client.HTTPConnection("127.0.0.1", self.service_port, timeout=60)
        connection.request(method, path, body, self.signature(method, path, body))
        answer = connection.getresponse()
        text = answer.read()
        connection.close()
        assert answer.status in (200, 204), f"{method} {path}: {answer.status} {text}"
        return text

    def signature(self, *_):
        """Headers of a request (method, path, body): moto reads the caller's identity, and checks no signature."""
        return {"Authorization": "AWS4-HMAC-SHA256 Credential=any/20260101/us-east-1/s3/aws4_request, "
                                 "SignedHeaders=host, Signature=any"}

    def keys(self, bucket, prefix=""):
        """Names of the objects below a prefix, without the prefix."""
        listed = self.ask("GET", f"/{bucket}?prefix={urllib.parse.quote(prefix)}").decode()
        return {html.unescape(key).removeprefix(prefix) for key in re.findall("<Key>(.*?)</Key>", listed)}

    def environment(self, **more):
        """Environment for the AWS CLI of tools.sh: the proxy as endpoint, and fake credentials."""
        return {**os.environ, "PATH": f"{TOOLS / 'bin'}:{os.environ['PATH']}", "AWS_ENDPOINT_URL": self.url,
                "AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
                "AWS_DEFAULT_REGION": "us-west-2", "AWS_EC2_METADATA_DISABLED": "true",
                "AWS_CONFIG_FILE": os.devnull, "AWS_SHARED_CREDENTIALS_FILE": os.devnull, **more}


class Proxy(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def handle(self):
        try:
            super().handle()
        except (ConnectionResetError, BrokenPipeError):
            self.close_connection = True

    def read_body(self):
        if "chunked" not in self.headers.get("Transfer-Encoding", ""):
            size = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(size)
            if len(body) < size:
                raise ConnectionResetError  # the client was killed while it sent the request
            return body
        parts = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            parts.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(parts)

    def handle_one(self):
        body = self.read_body()
        rule = self.mock.take(self.command, self.path) or {"kind": None}
        if rule["kind"] == "slow":
            time.sleep(rule["seconds"])
        status, headers, answer = self.answer(rule["kind"], body)
        with self.mock.lock:
            self.mock.requests.append((self.command, self.path, status))
        self.send_response_only(status)
        lengths = [value for name, value in headers if name.lower() == "content-length"]
        for name, value in headers:
            if name.lower() not in HOP_BY_HOP:
                self.send_header(name, value)
        length = lengths[0] if self.command == "HEAD" and lengths else str(len(answer))
        self.send_header("Content-Length", length)
        self.end_headers()
        if rule["kind"] == "truncated":
            answer, self.close_connection = answer[:len(answer) // 2], True
        if self.command != "HEAD":
            self.send_body(rule["kind"], answer)

    def send_body(self, _, content):
        self.wfile.write(content)

    def answer(self, kind, body):
        """Status, headers and body."""
        if kind in ("error", "expired"):
            status, answer = (500, INTERNAL) if kind == "error" else (400, EXPIRED)
            return status, [("Content-Type", "application/xml")], answer
        return self.forward(body)

    def forward(self, body):
        connection = http.client.HTTPConnection("127.0.0.1", self.mock.service_port, timeout=120)
        headers = {name: value for name, value in self.headers.items() if name.lower() not in HOP_BY_HOP | {"expect"}}
        headers["Content-Length"] = str(len(body))
        connection.request(self.command, self.path, body, headers)
        response = connection.getresponse()
        answer = response.read()
        connection.close()
        return response.status, response.getheaders(), answer

    do_GET = do_PUT = do_POST = do_HEAD = do_DELETE = handle_one


def main():
    with Mock() as mock:
        here = mock.environment()
        for name in sorted(here):
            if name == "PATH" or name.startswith("AWS_"):
                print(f"export {name}={shlex.quote(here[name])}")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
