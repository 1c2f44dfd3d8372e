"""A server of the S3 API behind a proxy that verifies signatures with botocore, injects faults, and serves credentials:
moto's, or OpenStack Swift.

    with S3Server() as server:
        server.objects("bucket", {"a/key": b"content"})
        server.fault("slow_down", method="GET", path="a/key", times=2)
        server.tool("read", "s3://bucket/a/key", "0:7")

Run it with the Python of tests/k8s/aws/tools.sh.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import time
import urllib.parse

import botocore.auth
import botocore.awsrequest
import botocore.credentials

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "k8s" / "aws"))
import mock  # noqa: E402

TOOL = os.environ.get("DTRAIN_REMOTE_TOOL", "")
BINARIES = pathlib.Path(os.environ.get("DTRAIN_BIN_DIR", ""))
# kind: status and code of an answer in place of the service's.
ANSWERS = {"error": (500, "InternalError"), "slow_down": (503, "SlowDown"), "unavailable": (502, "BadGateway"),
           "throttled": (429, "TooManyRequests"), "denied": (403, "AccessDenied"), "body_timeout": (400, "RequestTimeout")}
SECRETS = {mock.ACCESS_KEY: mock.SECRET_KEY}


def error_body(code, more=""):
    return f'<?xml version="1.0" encoding="UTF-8"?>\n<Error><Code>{code}</Code>{more}</Error>'.encode()


class Handler(mock.Proxy):
    timeout = 60

    def answer(self, kind, body):
        path = urllib.parse.urlsplit(self.path).path
        if path in self.mock.pages:
            self.mock.web_headers.append(str(self.headers))
            return self.mock.pages[path](self, body)
        if kind in ANSWERS:
            return self.fail(*ANSWERS[kind])
        if kind == "expired":
            return self.fail(400, "ExpiredToken")
        if kind == "skewed":
            return self.fail(403, "RequestTimeTooSkewed")
        if kind == "reset":
            self.reset()
        if self.mock.gate and self.mock.gate(self.command, self.path):
            self.reset()
        problem = self.signature_problem(body)
        if problem:
            self.mock.problems.append(f"{self.command} {self.path}: {problem}")
            return self.fail(403, "SignatureDoesNotMatch")
        if not self.headers.get("Authorization"):  # moto reads the caller's account
            self.headers["Authorization"] = self.mock.signature()["Authorization"]
        region = self.mock.region
        if region and f"/{region}/s3/" not in self.headers.get("Authorization", ""):
            return self.fail(301, "PermanentRedirect", [("x-amz-bucket-region", region)])
        if self.command == "POST" and self.path in self.mock.completed:
            return self.fail(404, "NoSuchUpload")
        status, headers, content = self.forward(body)
        if self.command == "POST" and "uploadId=" in self.path and status == 200 and self.mock.forgets_uploads:
            self.mock.completed.add(self.path)
        if kind == "lost":
            self.reset()
        if not self.mock.conditional and self.headers.get("If-Match") and kind != "replaced_silently" and status == 206:
            if self.headers["If-Match"] != dict(headers).get("ETag", dict(headers).get("etag")):
                return self.fail(412, "PreconditionFailed")
        if kind == "wrong_range":
            headers = [(name, value if name.lower() != "content-range" else "bytes 7-9/1000") for name, value in headers]
        return status, headers, content

    def send_body(self, kind, content):
        if kind == "slow_body":
            self.wfile.write(content[:100])
            time.sleep(self.mock.pause)
        super().send_body(kind, content[100:] if kind == "slow_body" else content)

    def reset(self):
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.connection.close()
        raise ConnectionResetError

    def fail(self, status, code, headers=()):
        more = "<RequestTime>x</RequestTime>"
        return status, [("Content-Type", "application/xml"), ("Date", self.date_time_string()), *headers], \
            error_body(code, more)

    def signature_problem(self, body):
        """Why the request's signature is wrong; empty for a right one, and for anonymous requests where they may be."""
        given = self.headers.get("Authorization")
        if not given:
            return "" if self.mock.anonymous else "no signature"
        fields = dict(part.strip().split("=", 1) for part in given.split(" ", 1)[1].split(","))
        access, date, region, service, _ = fields["Credential"].split("/")
        secret = self.mock.secrets.get(access)
        if not secret:
            return f"unknown access key {access}"
        signed = fields["SignedHeaders"].split(";")
        if self.headers.get("X-Amz-Content-Sha256") != hashlib.sha256(body).hexdigest():
            return "wrong hash of the body"
        for name in self.headers:
            name = name.lower()
            if (name.startswith("x-amz-") or name in ("host", "content-type", "range", "if-match")) and name not in signed:
                return f"{name} is not signed"
        request = botocore.awsrequest.AWSRequest(self.command, f"http://{self.headers['Host']}{self.path}",
                                                 {name: self.headers[name] for name in signed}, body)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(access, secret), service, region)
        text = auth.string_to_sign(request, auth.canonical_request(request))
        return "" if auth.signature(text, request) == fields["Signature"] else "wrong signature"


class S3Server(mock.Mock):
    shared = None  # process and port of moto's server
    conditional = False  # moto ignores If-Match
    own_region = "eu-north-1"  # moto takes any
    kinds = (*ANSWERS, "expired", "slow", "truncated", "skewed", "reset", "wrong_range", "slow_body", "replaced_silently",
             "lost")

    def __init__(self):
        self.pages, self.problems, self.secrets = {}, [], dict(SECRETS)
        self.region, self.anonymous, self.pause, self.web_headers = "", False, 0, []
        self.forgets_uploads, self.completed = False, set()  # as other services than S3 and moto do
        self.gate = None  # called with method and path before a request is forwarded; true: resets its connection
        self.buckets = set()
        self.temporary = tempfile.TemporaryDirectory()

    def start(self):
        """Takes moto's server of an earlier case, without its objects: its start takes two seconds."""
        if not S3Server.shared:
            super().start()
            S3Server.shared = self.service, self.service_port
        self.service, self.service_port = S3Server.shared
        self.ask("POST", "/moto-api/reset")

    def _stop(self):
        """Leaves moto's server to later cases; run_cases() ends it."""

    def handler(self):
        return Handler

    def folder(self):
        return self.temporary.name

    def objects(self, bucket, contents):
        """Makes the bucket and its objects, without the proxy."""
        if bucket not in self.buckets:
            self.ask("PUT", f"/{bucket}")
            self.buckets.add(bucket)
        with concurrent.futures.ThreadPoolExecutor(8) as threads:
            for _ in threads.map(lambda key: self.ask("PUT", f"/{bucket}/{urllib.parse.quote(key)}", contents[key]), contents):
                pass

    def environment(self, **more):
        here = super().environment(**{"AWS_MAX_ATTEMPTS": "4", **more})
        return {name: value for name, value in here.items() if value is not None}

    def run(self, command, input=None, check=None, timeout=120, **variables):
        """Result of a program; its output must not contain a secret."""
        result = subprocess.run([str(word) for word in command], env=self.environment(**variables), input=input,
                                capture_output=True, timeout=timeout, check=False)
        for text in (result.stdout, result.stderr):
            for secret in (*self.secrets.values(), "AWS4-HMAC", "session-token"):
                assert secret.encode() not in text, f"{command} prints a secret: {text}"
        if check is not None:
            assert result.returncode == check, f"{command}: exit code {result.returncode}: {result.stderr.decode()}"
        return result

    def tool(self, *words, check=0, **variables):
        return self.run([TOOL, *words], check=check, **variables)

    def refused(self, expected, *words, **variables):
        """The tool must fail with one line that contains the text; returns the exit code."""
        result = self.tool(*words, check=None, **variables)
        lines = result.stderr.decode().splitlines()
        assert result.returncode and len(lines) == 1 and expected in lines[0], f"{words}: {result}"
        return result.returncode

    def methods(self, path=""):
        """(method, status) of the requests whose path contains the text."""
        return [(method, status) for method, where, status in self.requests if path in where]


class SwiftServer(S3Server):
    """Debian's OpenStack Swift, which verifies signatures itself, in place of moto; `direct` is its own address."""
    conditional = True
    clock = 0  # seconds by which it is ahead
    _stop = mock.Mock._stop
    user, secret, own_region = "AUTH:training", "swift-secret-that-no-output-may-hold", "us-west-2"

    def start(self):
        self.secrets = {self.user: self.secret}
        root = pathlib.Path(os.environ["DTRAIN_SWIFT"])
        storage = pathlib.Path(self.folder()) / "swift"
        storage.mkdir()
        try:
            os.setxattr(storage, "user.test", b"x")
        except OSError as error:
            print(f"SKIPPED: Swift needs extended attributes, which {tempfile.gettempdir()} does not have: {error.strerror}")
            sys.exit(77)
        libraries, = root.glob("usr/lib/*-linux-gnu")
        self.service = subprocess.Popen(
            ["/usr/bin/python3", "-B", "-S", pathlib.Path(__file__).with_name("swift_server.py"), storage, self.user,
             self.secret, self.own_region, "localhost", str(self.clock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "usr/lib/python3/dist-packages"),
                 "LD_LIBRARY_PATH": str(libraries), "EVENTLET_NO_GREENDNS": "yes"})
        port = self.service.stdout.readline()
        if not port:
            raise RuntimeError("Swift ended at its start")
        self.service_port = int(port)
        self.direct = f"http://127.0.0.1:{self.service_port}"

    def signature(self, method, path, body):
        request = botocore.awsrequest.AWSRequest(method, f"{self.direct}{path}", data=body)
        auth = botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(self.user, self.secret), "s3", self.own_region)
        auth.add_auth(request)
        return dict(request.headers)

    def environment(self, **more):
        return super().environment(**{"AWS_ACCESS_KEY_ID": self.user, "AWS_SECRET_ACCESS_KEY": self.secret, **more})


def json_page(**values):
    return lambda *_: (200, [("Content-Type", "application/json")], json.dumps(values).encode())


def web_page(content):
    """A file on a server with ranges."""
    def page(handler, _):
        first, last = (int(text) for text in handler.headers["Range"].removeprefix("bytes=").split("-"))
        last = min(last, len(content) - 1)
        return 206, [("Content-Range", f"bytes {first}-{last}/{len(content)}"), ("ETag", '"1"')], content[first:last + 1]
    return page


def run_cases(cases, server_class=S3Server):
    """Runs the functions test_* of a module, each with a server without objects.

    The command line, [--server=swift] [NAME...], selects the server and the functions.
    """
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")]
    server_class = SwiftServer if "--server=swift" in sys.argv else server_class
    known = {name: case for name, case in cases.items() if name.startswith("test_")}
    assert known.keys() >= set(chosen), f"no such cases: {set(chosen) - known.keys()}"
    try:
        for name in chosen or known:
            with server_class() as server:
                known[name](server)
                assert not server.problems, server.problems
            print(f"{name}: passed", flush=True)
    finally:
        if S3Server.shared:
            S3Server.shared[0].kill()
            S3Server.shared[0].wait()
