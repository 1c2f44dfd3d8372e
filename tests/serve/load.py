"""Well-behaved and malicious clients of dtrain-serve, for scripts/soak_server.py.

Each method of Load named `ask_...` is a kind of request: it returns the outcome, a word or status, and raises Wrong for
an invalid one. 503 (too many connections) and 504 (no time left for the model) are always valid; good clients then
retry for a minute.
"""
import base64
import http.client
import io
import json
import socket
import struct
import time

from serving import Image

PREDICT, PICTURE, SCENE = "/v1/models/classifier:predict", "/predictions/classifier", "/predictions/compare"
NOT_NOW = (503, 504)
BUSY = (ConnectionResetError, BrokenPipeError, http.client.RemoteDisconnected)
KEYS = b"{" + b",".join(b'"%d":0' % i for i in range(80_000)) + b"}"
HUGE_JSON = (KEYS, b'{"instances": [' + b"[" * 900_000 + b"]" * 900_000 + b"]}",
             b'{"instances": [' + b"1," * 900_000 + b"1]}", b'{"instances": [{"b64": "' + b"A" * 2_000_000 + b'"}]}',
             b'{"instances": ["' + b"\\u0000" * 300_000 + b'"]}')
WEIGHTS = {"classify": 24, "classify_batch": 6, "detect": 16, "damaged": 12, "no_image": 6, "many_pixels": 2,
           "huge_json": 3, "large_body": 3, "half_body": 6, "slow_body": 1, "flood": 1, "other_site": 5,
           "cancelled": 12, "slow_reader": 2, "hostile_head": 3, "refused": 6, "wrong_threshold": 3, "page": 6}


class Wrong(Exception):
    pass


def large_png():
    out = io.BytesIO()
    Image.new("RGB", (2001, 2000)).save(out, "PNG")
    return out.getvalue()


def head(path, length):
    return f"PUT {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n".encode()


class Load:
    def __init__(self, server, pictures, scenes, expected, tally):
        self.port, self.tally, self.expected = server.port, tally, expected
        self.pictures, self.scenes = pictures, scenes
        self.large = large_png()
        self.detections = [self.good("PUT", SCENE, scene)[1] for scene in scenes]
        if not any(b"bbox" in one for one in self.detections):
            raise Wrong("the detector finds nothing")

    def one(self, choice):
        kind = choice.choices(list(WEIGHTS), WEIGHTS.values())[0]
        begin, outcome = time.monotonic(), "none"
        try:
            outcome = getattr(self, f"ask_{kind}")(choice)
        except BUSY:
            outcome = "closed"
            if kind in ("classify", "classify_batch", "detect", "page"):
                self.tally.object_to(f"{kind}: closed")
        except Exception as problem:
            self.tally.object_to(f"{kind}: {problem!r}"[:300])
        seconds = time.monotonic() - begin
        if seconds > 75:
            self.tally.object_to(f"{kind}: {seconds:.1f} s")
        self.tally.add(kind, str(outcome), seconds)

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read(), response.headers
        finally:
            connection.close()

    def good(self, *request):
        """Retries until the status is 200."""
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            try:
                answer = self.ask(*request)
            except BUSY:
                answer = None
            if answer and answer[0] not in NOT_NOW:
                if answer[0] != 200:
                    raise Wrong(f"{answer[0]} {answer[1][:200]}")
                return answer
            self.tally.add("asked again", str(answer[0] if answer else "closed"), 0)
            time.sleep(0.1)
        raise Wrong("the server was busy for a minute")

    def bad(self, allowed, *request):
        status, body, _ = self.ask(*request)
        if status not in (*allowed, *NOT_NOW):
            raise Wrong(f"{status}, expected {allowed}: {body[:200]}")
        if status >= 400 and "error" not in json.loads(body):
            raise Wrong(f"{status} without a reason: {body[:200]}")
        return status

    def raw(self, data, *more):
        """Everything received until the server closes the connection; sends `more` in steps of 0.1 s."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            answer = b""
            try:
                client.sendall(data)
                for part in more:
                    time.sleep(0.1)
                    client.sendall(part)
                while part := client.recv(65536):
                    answer += part
            except (ConnectionResetError, BrokenPipeError):
                pass
            return answer

    def first_status(self, answer, allowed):
        status = int(answer[9:12]) if answer else "closed"
        if status not in (*allowed, *NOT_NOW):
            raise Wrong(f"{answer[:200]}, expected {allowed}")
        return status

    def compare(self, version, index, found):
        wanted = self.expected[version][index]
        if any(abs(wanted[one["class"]] - one["probability"]) > 2e-5 for one in found) or len(found) != 5:
            raise Wrong(f"version {version}, picture {index}: {found}, expected {wanted}")

    def ask_classify(self, choice):
        index = choice.randrange(len(self.pictures))
        _, body, headers = self.good("PUT", PICTURE, self.pictures[index])
        self.compare(int(headers["X-Model-Version"]), index, json.loads(body))
        return 200

    def ask_classify_batch(self, choice):
        chosen = [choice.randrange(len(self.pictures)) for _ in range(3)]
        instances = [{"b64": base64.b64encode(self.pictures[i]).decode()} for i in chosen]
        answer = json.loads(self.good("POST", PREDICT, json.dumps({"instances": instances}))[1])
        for index, found in zip(chosen, answer["predictions"], strict=True):
            self.compare(answer["version"], index, found)
        return 200

    def ask_detect(self, choice):
        index = choice.randrange(len(self.scenes))
        if (body := self.good("PUT", SCENE, self.scenes[index])[1]) != self.detections[index]:
            raise Wrong(f"scene {index}: {body[:200]}, expected {self.detections[index][:200]}")
        return 200

    def ask_damaged(self, choice):
        path, images = choice.choice(((PICTURE, self.pictures), (SCENE, self.scenes)))
        data = bytearray(choice.choice(images))
        for _ in range(choice.randrange(4)):
            data[choice.randrange(len(data))] ^= 1 << choice.randrange(8)
        return self.bad((200, 400), "PUT", path, bytes(data[:choice.randrange(1, len(data))]))

    def ask_no_image(self, choice):
        return self.bad((400,), "PUT", choice.choice((PICTURE, SCENE)), choice.randbytes(choice.randrange(2000)))

    def ask_many_pixels(self, choice):
        return self.bad((400,), "PUT", choice.choice((PICTURE, SCENE)), self.large)

    def ask_huge_json(self, choice):
        return self.bad((400,), "POST", PREDICT, choice.choice(HUGE_JSON))

    def ask_large_body(self, choice):
        length = (4 << 20) + choice.randrange(1, 1 << 40)
        return self.first_status(self.raw(head(PICTURE, length)), (413,))

    def ask_half_body(self, choice):
        picture = choice.choice(self.pictures)
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(head(PICTURE, len(picture)) + picture[:len(picture) // 2])
        return "left"

    def ask_slow_body(self, choice):
        """Ten bytes a second: the server ends the connection after its --request_seconds."""
        begin = time.monotonic()
        self.raw(head(PICTURE, 1000), *[b"x"] * 300)
        if time.monotonic() - begin > 20:
            raise Wrong(f"a slow client was kept for {time.monotonic() - begin:.1f} s")
        return "closed"

    def ask_flood(self, choice):
        """More connections than the limit, some with a partial request head."""
        clients = [socket.create_connection(("127.0.0.1", self.port), timeout=60) for _ in range(48)]
        for client in clients[::3]:
            client.sendall(b"GET /models HTTP/1.1\r\nHo")
        time.sleep(choice.random())
        for client in clients:
            client.close()
        return "left"

    def ask_other_site(self, choice):
        headers = choice.choice(({"Origin": "https://evil.example"}, {"Host": "evil.example"},
                                 {"Sec-Fetch-Site": "cross-site"}))
        return self.bad((403,), "PUT", PICTURE, self.pictures[0], headers)

    def ask_cancelled(self, choice):
        """Resets the connection after sending the request, or during the response."""
        path, images = choice.choice(((PICTURE, self.pictures), (SCENE, self.scenes)))
        image = choice.choice(images)
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(head(path, len(image)) + image)
            time.sleep(choice.choice((0, 0.01, 0.05)))
        return "reset"

    def ask_slow_reader(self, choice):
        index = choice.randrange(len(self.scenes))
        with socket.socket() as client:
            client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
            client.settimeout(60)
            client.connect(("127.0.0.1", self.port))
            scene = self.scenes[index]
            client.sendall(head(SCENE, len(scene)).replace(b"Content", b"Connection: close\r\nContent") + scene)
            answer = b""
            while part := client.recv(512):
                answer += part
                time.sleep(0.02)
        status = self.first_status(answer, (200,))
        if status == 200 and answer.split(b"\r\n\r\n", 1)[1] != self.detections[index]:
            raise Wrong(f"scene {index}, slowly: {answer[-200:]}")
        return status

    def ask_hostile_head(self, choice):
        data = choice.choice((b"\0" * 5000, b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n",
                              b"GET " + b"/a" * 50_000 + b" HTTP/1.1\r\n\r\n",
                              b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 20_000 + b"\r\n"))
        with socket.create_connection(("127.0.0.1", self.port), timeout=60) as client:
            client.sendall(data)
            client.shutdown(socket.SHUT_WR)
            answer = client.recv(65536)
        return self.first_status(answer, ("closed", 400, 403, 404, 414))

    def ask_refused(self, choice):
        method, path, headers, status = choice.choice((
            ("GET", "/nowhere", {}, 404), ("DELETE", PICTURE, {}, 405), ("GET", "/images/0", {}, 404),
            ("POST", "/v1/models/other:predict", {"Content-Length": "0"}, 404),
            ("PUT", PICTURE, {"Transfer-Encoding": "chunked"}, 411),
            ("PUT", PICTURE, {"Content-Encoding": "gzip"}, 415)))
        return self.bad((status,), method, path, None, headers)

    def ask_wrong_threshold(self, choice):
        least = choice.choice(("nan", "-1", "1e999", "x", "", "%00", "0.5,0.6"))
        return self.bad((400,), "PUT", f"{SCENE}?score_threshold={least}", self.scenes[0])

    def ask_page(self, choice):
        path = choice.choice(("/", "/models", "/metrics", "/healthz", "/readyz", "/images", "/v1/models/classifier"))
        return self.good("GET", path)[0]
