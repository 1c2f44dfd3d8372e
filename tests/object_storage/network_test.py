"""TLS with certificates of an own authority, proxies, redirects between protocols, and Retry-After."""

import base64
import contextlib
import http.client
import http.server
import pathlib
import random
import select
import socket
import ssl
import subprocess
import threading
import urllib.parse

import s3_server

CONTENT = random.Random(7).randbytes(6_000_000)
FILE = "s3://bucket/file"
OTHERS = dict.fromkeys(("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE", "SSL_CERT_DIR", "http_proxy", "https_proxy",
                        "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"))  # those of this machine
PROXY_SECRET = "proxy-secret-that-no-output-may-hold"


def read(server, **variables):
    assert server.tool("read", FILE, f"0:{len(CONTENT)}", **variables).stdout == CONTENT


def make_certificates(folder):
    """An authority's certificate, and one of 127.0.0.1 that it has signed, with its key."""
    (folder / "extensions").write_text("subjectAltName = IP:127.0.0.1\n")
    for command in (
            "req -x509 -newkey rsa:2048 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=authority",
            "req -newkey rsa:2048 -nodes -keyout server.key -out server.csr -subj /CN=server",
            "x509 -req -in server.csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile extensions -out server.pem"):
        subprocess.run(["openssl", *command.split()], cwd=folder, check=True, capture_output=True)
    return folder / "ca.pem"


@contextlib.contextmanager
def running(handler):
    """A server of this class of requests on 127.0.0.1."""
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as listening:
        listening.daemon_threads = True
        yield listening
        listening.shutdown()


@contextlib.contextmanager
def tls(server):
    """The certificate of the authority, and the address of the service over TLS."""
    folder = pathlib.Path(server.folder())
    authority = make_certificates(folder)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "server.pem", folder / "server.key")

    class Quiet(server.server.RequestHandlerClass):
        def handle(self):
            with contextlib.suppress(OSError):  # also of handshakes
                self.request.do_handshake()
                super().handle()
    with running(Quiet) as listening:
        listening.socket = context.wrap_socket(listening.socket, server_side=True, do_handshake_on_connect=False)
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield authority, f"https://127.0.0.1:{listening.server_address[1]}"


def test_own_authority(server):
    server.objects("bucket", {"file": CONTENT})
    with tls(server) as (authority, url):
        for name in ("AWS_CA_BUNDLE", "CURL_CA_BUNDLE", "SSL_CERT_FILE"):
            read(server, **{**OTHERS, "AWS_ENDPOINT_URL": url, name: str(authority)})
        trusted = {**OTHERS, "AWS_ENDPOINT_URL": url, "AWS_CA_BUNDLE": str(authority)}
        server.tool("upload", "s3://bucket/new", 5 << 20, input=CONTENT, **trusted)
        assert server.ask("GET", "/bucket/new") == CONTENT
        assert server.tool("list", "s3://bucket", **trusted).stdout == b'["file","new"]\n'
        server.requests.clear()
        server.refused(f"{FILE}: cannot be read: ", "read", FILE, "0:1", **OTHERS, AWS_ENDPOINT_URL=url)
        # The certificate has no such name.
        server.refused(f"{FILE}: cannot be read: ", "read", FILE, "0:1",
                       **{**trusted, "AWS_ENDPOINT_URL": url.replace("127.0.0.1", "localhost")})
        missing = f"{server.folder()}/none.pem"
        server.refused(f"{FILE}: cannot be read: ", "read", FILE, "0:1", **{**trusted, "AWS_CA_BUNDLE": missing})
        assert not server.requests, server.requests


def test_redirects_keep_tls(server):
    server.pages["/file"] = s3_server.web_page(CONTENT[:1000])
    with tls(server) as (authority, url):
        trusted = {**OTHERS, "AWS_CA_BUNDLE": str(authority)}
        server.pages["/up"] = lambda *_: (302, [("Location", f"{url}/file")], b"")
        server.pages["/down"] = lambda *_: (302, [("Location", f"{server.url}/file?from-tls")], b"")
        assert server.tool("read", f"{server.url}/up", "0:10", **trusted).stdout == CONTENT[:10]
        server.requests.clear()
        server.refused(f"{url}/down: cannot be read: ", "read", f"{url}/down", "0:10", **trusted)
        assert [path for _, path, _ in server.requests] == ["/down"], server.requests  # not followed, once


class Proxy(http.server.BaseHTTPRequestHandler):
    """A forward proxy with a password, which sends all requests to `target`."""
    protocol_version = "HTTP/1.1"
    target, seen = None, None

    def log_message(self, *_):
        pass

    def is_allowed(self):
        wanted = base64.b64encode(f"user:{PROXY_SECRET}".encode()).decode()
        allowed = self.headers.get("Proxy-Authorization") == f"Basic {wanted}"
        self.seen.append((self.command, self.path))
        if not allowed:
            self.send_response(407)
            self.send_header("Proxy-Authenticate", "Basic")
            self.send_header("Content-Length", "0")
            self.end_headers()
        return allowed

    def forward(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if not self.is_allowed():
            return
        parts = urllib.parse.urlsplit(self.path)
        connection = http.client.HTTPConnection(*self.target)
        headers = {name: value for name, value in self.headers.items() if not name.lower().startswith("proxy-")}
        connection.request(self.command, parts._replace(scheme="", netloc="").geturl(), body, headers)
        response = connection.getresponse()
        content = response.read()
        self.send_response_only(response.status)
        for name, value in response.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_PUT = do_POST = do_DELETE = forward

    def do_CONNECT(self):
        if not self.is_allowed():
            return
        with socket.create_connection(self.target) as there:
            self.send_response_only(200)
            self.end_headers()
            ends = {self.connection: there, there: self.connection}
            while True:
                for one in select.select(list(ends), [], [])[0]:
                    data = one.recv(1 << 16)
                    if not data:
                        self.close_connection = True
                        return
                    ends[one].sendall(data)


@contextlib.contextmanager
def proxy(url):
    """A proxy to the server of this address: its own address, with the password, and its requests."""
    parts = urllib.parse.urlsplit(url)
    handler = type("Bound", (Proxy,), {"target": (parts.hostname, parts.port), "seen": []})
    with running(handler) as listening:
        threading.Thread(target=listening.serve_forever, daemon=True).start()
        yield f"http://user:{PROXY_SECRET}@127.0.0.1:{listening.server_address[1]}", handler.seen


def test_proxy(server):
    """The proxy alone can reach the service. The pod's service for credentials is never asked through it."""
    server.objects("bucket", {"file": CONTENT})
    server.secrets |= {"proxy": PROXY_SECRET, "ASIAPOD": "pod-secret-that-no-output-may-hold"}
    server.pages["/credentials"] = s3_server.json_page(AccessKeyId="ASIAPOD", SecretAccessKey=server.secrets["ASIAPOD"],
                                                       Token="t", Expiration="2100-01-01T00:00:00Z")
    elsewhere = {**OTHERS, "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None,
                 "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials"}
    with proxy(server.url) as (url, seen):
        for name in ("http_proxy", "all_proxy"):
            seen.clear()
            read(server, **{**elsewhere, name: url})
            assert seen and all(path.startswith("http://127.0.0.1:9/bucket/file") for _, path in seen), seen
        seen.clear()
        code = server.refused("cannot be read", "read", FILE, "0:1", **{**elsewhere, "http_proxy": url, "no_proxy": "127.0.0.1"})
        assert code == 6 and not seen
        wrong = {**elsewhere, "http_proxy": url.replace("user:", "other:")}
        server.refused(f"{FILE}: the server answers 407", "read", FILE, "0:1", **wrong)
    gone = {**elsewhere, "http_proxy": url}
    assert server.refused(f"{FILE}: cannot be read: ", "read", FILE, "0:1", **gone) == 6


def test_proxy_of_tls(server):
    server.objects("bucket", {"file": CONTENT})
    server.secrets["proxy"] = PROXY_SECRET
    with tls(server) as (authority, there), proxy(there) as (url, seen):
        trusted = {**OTHERS, "AWS_CA_BUNDLE": str(authority), "AWS_ENDPOINT_URL": there}
        read(server, **{**trusted, "https_proxy": url})
        assert {method for method, _ in seen} == {"CONNECT"}, seen
        seen.clear()
        read(server, **{**trusted, "http_proxy": url})
        assert not seen


def test_retry_after(server):
    """A pause that the service asks for is kept, and is not begun if it were longer than the time that is left."""
    server.objects("bucket", {"file": CONTENT[:100]})
    busy = [("Retry-After", "1")]

    def page(handler, body):
        return handler.forward(body) if not busy else (503, [busy.pop()], s3_server.error_body("SlowDown"))
    server.pages["/bucket/file"] = page
    assert server.tool("read", FILE, "0:100").stdout == CONTENT[:100]
    assert [status for _, status in server.methods()] == [503, 206]
    for value, requests in (("4", 1), ("Wed, 21 Oct 2015 07:28:00 GMT", 3), ("-7", 3), ("99999999999999999999", 3)):
        server.requests.clear()
        busy[:] = [("Retry-After", value)] * 20
        code = server.refused("the server answers 503 (SlowDown)", "read", FILE, "0:100", AWS_MAX_ATTEMPTS="3",
                              DTRAIN_REMOTE_TIMEOUT="3")
        assert code == 6 and len(server.requests) == requests, (value, server.requests)


def test_long_headers(server):
    server.pages["/file"] = lambda *_: (206, [(f"x-{i}", "x" * 1000) for i in range(90)], b"x")
    server.refused("the server sends more than 65536 bytes of headers", "read", f"{server.url}/file", "0:1")


if __name__ == "__main__":
    s3_server.run_cases(globals())
