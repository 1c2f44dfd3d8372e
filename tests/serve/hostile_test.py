#!/usr/bin/env python3
"""Attacks on dtrain-serve: other clients are still served, and sanitizers report nothing."""
import base64
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import zlib
from pathlib import Path

from http_test import IMAGE, PREDICT
from serving import BIN, Server, jpeg, train, wait_for

CORPUS = Path(__file__).parents[1] / "fuzz/corpus"


def listening(process):
    """Listen addresses of a process, from /proc/net."""
    sockets = set()
    for entry in Path(f"/proc/{process}/fd").iterdir():
        with contextlib.suppress(FileNotFoundError):  # process or socket closed meanwhile
            sockets.add(os.readlink(entry))
    found = []
    for table in ("tcp", "tcp6", "udp", "udp6"):
        for line in Path(f"/proc/{process}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if f"socket:[{fields[9]}]" in sockets and (table.startswith("udp") or fields[3] == "0A"):
                found.append(fields[1])
    return found


def blank_png(side):
    """A PNG of side x side pixels of 16-bit RGBA, compressed a thousandfold."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    packer = zlib.compressobj(9)
    rows = b"".join(packer.compress(bytes(1 + 8 * side)) for _ in range(side)) + packer.flush()
    header = struct.pack(">IIBBBBB", side, side, 16, 6, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def body_of(images):
    return json.dumps({"instances": [{"b64": base64.b64encode(one).decode()} for one in images]})


class Hostile(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        trained = Path(cls.folder.name) / "trained"
        train(trained, 1)
        cls.trained = trained
        cls.server = Server(f"--train_dir={trained}", "--max_body_mb=1", "--max_image_megapixels=1",
                            "--request_seconds=20", "--max_connections=16")
        cls.answer = cls.server.ask("PUT", IMAGE, jpeg())

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def tearDown(self):
        # Another client gets the same response as before.
        self.assertEqual(self.answer[0], 200)
        self.assertEqual(wait_for("answer", lambda: [a for a in [self.server.ask("PUT", IMAGE, jpeg())] if a[0] != 503])[0],
                         self.answer)

    def test_listens_to_this_host_alone(self):
        self.assertEqual(listening(self.server.process.pid), [f"0100007F:{self.server.port:04X}"])

    def test_reads_or_refuses_whatever_image(self):
        images = [path for kind in ("jpeg", "png", "images") for path in sorted((CORPUS / kind).iterdir())]
        self.assertGreater(len(images), 20)
        outcomes = set()
        for path in images:
            data = path.read_bytes()
            # Skips the header for the fuzzer.
            start = 1 if path.parent.name == "images" else max(data.find(b"\xff\xd8"), data.find(b"\x89PNG"), 0)
            data = data[start:]
            flipped = bytearray(data)
            for place in (len(data) // 3, len(data) // 2, len(data) - 9):
                flipped[place] ^= 0x55
            for form in (data, data[:len(data) // 2], bytes(flipped)):
                status, body = self.server.ask("PUT", IMAGE, form)
                outcomes.add(status)
                self.assertIn(status, (200, 400, 413), path)
                self.assertEqual(status != 200, isinstance(json.loads(body), dict) and "error" in json.loads(body), path)
        self.assertLessEqual({200, 400}, outcomes)

    def test_reads_or_refuses_whatever_json(self):
        huge = b'{"instances": [' + b"[" * 400_000 + b"]" * 400_000 + b"]}"
        for body in (huge, b'{"instances": [' + b"1," * 300_000 + b"1]}", b'{"instances": [[[[1e999, 0, 0]]]]}',
                     b'{"instances": [[[[-1, 256, 0.5]]]]}', b'{"instances": {"a": 1}}', b'{"instances": [[]]}',
                     b'{"instances": [[[]]]}', b'{"instances": [[[[1, 2]]]]}', b'{"instances": [null]}',
                     b'{"instances": [{"b64": 7}]}', b'{"instances": [], "instances": [1]}',
                     b'{"instances": ["\\ud800"]}', b'\x00' * 1000, b'{"instances": [{"b64": "' + b"A" * 999_000 + b'"}]}'):
            status, answer = self.server.ask("POST", PREDICT, body)
            self.assertEqual(status, 400, (body[:60], answer[:200]))
            self.assertLess(len(answer), 1000)  # the input is not echoed

    def test_reads_many_keys_in_linear_time(self):
        """Other clients are served meanwhile, and the time is not quadratic in 80,000."""
        keys = b"{" + b",".join(b'"%d":0' % i for i in range(80_000)) + b"}"
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            began = time.monotonic()
            hostile = pool.submit(self.server.ask, "POST", PREDICT, keys)
            self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
            self.assertEqual(self.server.ask("PUT", IMAGE, jpeg()), self.answer)
            self.assertEqual(hostile.result()[0], 400)
            self.assertLess(time.monotonic() - began, 20)
        self.assertIn(b"more than 1000 keys", hostile.result()[1])

    def test_limits_the_pixels_of_a_request(self):
        """A body with many large images is rejected by the images' headers."""
        body = body_of([blank_png(1000)] * 40)
        self.assertLess(len(body), 1 << 20)
        status, answer = self.server.ask("POST", PREDICT, body)
        self.assertEqual(status, 400, answer)
        self.assertIn(b"instances[4]: the images have more than 4000000 pixels together", answer)
        self.assertEqual(self.server.ask("POST", PREDICT, body_of([blank_png(1000)] * 4))[0], 200)

    def test_serves_a_request_whose_inputs_take_more_than_all_images_may(self):
        """160 images of 32 pixels become 24 MB of input at 224 pixels; --max_image_megapixels=1 allows 12 MB."""
        folder = Path(self.folder.name) / "large"
        train(folder, 1, "--model=trivial", "--data_name=imagenet")
        with Server(f"--train_dir={folder}", "--max_image_megapixels=1") as server:
            with concurrent.futures.ThreadPoolExecutor(2) as pool:
                answers = list(pool.map(lambda _: server.ask("POST", PREDICT, body_of([jpeg()] * 160)), range(2)))
            self.assertEqual([status for status, _ in answers], [200, 200], answers[0][1][:200])
            self.assertEqual(server.stop(), 0)

    def test_decodes_no_longer_than_a_request_may_take(self):
        """Many images, with as many pixels as allowed, when the request's deadline or SIGTERM's arrives."""
        count, image = 250, blank_png(1000)
        body = body_of([image] * count)
        for stops, limit in ((False, "--request_seconds=1"), (True, "--drain_seconds=1")):
            with Server(f"--train_dir={self.trained}", "--max_image_megapixels=63", limit) as server, \
                    concurrent.futures.ThreadPoolExecutor(1) as pool:
                server.ask("PUT", IMAGE, image)
                began = time.monotonic()
                self.assertEqual(server.ask("PUT", IMAGE, image)[0], 200)
                whole = count * (time.monotonic() - began)
                began = time.monotonic()
                hostile = pool.submit(server.ask, "POST", PREDICT, body)
                wait_for("decoding", lambda: hostile.done() or time.monotonic() - began > 0.3)
                if stops:
                    self.assertEqual(server.stop(), 0)
                else:
                    self.assertEqual(server.ask("GET", "/healthz")[0], 200)
                self.assertEqual(hostile.result()[0], 503)
                self.assertLess(time.monotonic() - began, whole)

    def test_ends_on_request_while_it_loads(self):
        """A stop request before the listener runs is not lost."""
        with subprocess.Popen([BIN / "dtrain-serve", "--port=0", "--num_intra_threads=1", f"--train_dir={self.trained}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
            try:
                wait_for("port", lambda: listening(process.pid))
                process.send_signal(signal.SIGTERM)
                self.assertEqual(process.wait(60), 0, process.stderr.read())
            finally:
                process.kill()

    def test_answers_no_page_of_another_site(self):
        own = f"127.0.0.1:{self.server.port}"
        for method, path, headers, status in (
                ("GET", "/models", {"Host": "localhost:1"}, 200), ("GET", "/models", {"Host": "LOCALHOST"}, 200),
                ("GET", "/models", {"Host": "[::1]:8501"}, 200), ("GET", "/models", {"Host": "10.0.0.7:8501"}, 200),
                ("GET", "/models", {"Host": "evil.example"}, 403), ("GET", "/", {"Host": "evil.example:8501"}, 403),
                ("GET", "/models", {"Host": "127.0.0.1.evil.example"}, 403), ("GET", "/models", {"Host": "[::1].x"}, 403),
                ("GET", "/healthz", {"Sec-Fetch-Site": "cross-site"}, 403),
                ("GET", "/models", {"Sec-Fetch-Site": "same-site"}, 403),
                ("GET", "/models", {"Sec-Fetch-Site": "same-origin"}, 200),
                ("GET", "/", {"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate"}, 200),
                ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 200),
                ("GET", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"}, 403),
                ("POST", "/", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
                ("PUT", IMAGE, {"Origin": f"http://{own}"}, 200), ("PUT", IMAGE, {"Origin": "http://127.0.0.1:1"}, 403),
                ("PUT", IMAGE, {"Origin": "https://evil.example"}, 403), ("PUT", IMAGE, {"Origin": "null"}, 403),
                ("POST", IMAGE, {"Origin": "https://evil.example", "Content-Type": "text/plain"}, 403)):
            body = jpeg() if path == IMAGE or method == "POST" else None
            self.assertEqual(self.server.ask(method, path, body, headers)[0], status, (method, path, headers))
        with Server(f"--train_dir={self.trained}", "--allowed_hosts=a_b,svc.ns,.example.org") as named:
            port = named.port
            for host, origin, status in (
                    (f"a_b:{port}", None, 200), ("SVC.ns", None, 200), ("svc", None, 403), ("example.org", None, 200),
                    ("a.b.example.org:1", None, 200), ("badexample.org", None, 403), (".example.org", None, 403),
                    (f"a_b:{port}", f"http://a_b:{port}", 200), (f"a_b:{port}", "http://a_b:1", 403),
                    (f"a_b:{port}", "http://a_b", 403), (f"127.0.0.1:{port}", "https://svc.ns", 200),
                    (f"127.0.0.1:{port}", "https://x.example.org:8443", 200), (f"a_b:{port}", "http://svc", 403)):
                headers = {"Host": host, **({"Origin": origin} if origin else {})}
                self.assertEqual(named.ask("GET", "/models", None, headers)[0], status, headers)
        for wrong in (".", "..a", "a:1", "a,,b", "*"):
            refused = subprocess.run([BIN / "dtrain-serve", f"--train_dir={self.trained}", "--port=0",
                                      f"--allowed_hosts={wrong}"], capture_output=True, text=True, timeout=60)
            self.assertEqual((refused.returncode, "--allowed_hosts=" in refused.stderr), (1, True), refused.stderr)
        twice = self.server.raw(b"GET /models HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n", half_close=True)
        self.assertTrue(twice.startswith(b"HTTP/1.1 403"), twice)

    def test_tells_browsers_to_show_nothing_elsewhere(self):
        for path in (b"/", b"/models", b"/nowhere"):
            head = self.server.raw(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n",
                                   half_close=True).split(b"\r\n\r\n")[0]
            for line in (b"X-Frame-Options: DENY", b"X-Content-Type-Options: nosniff",
                         b"Cross-Origin-Resource-Policy: same-origin"):
                self.assertEqual(head.count(line), 1, head)
            policies = [line for line in head.splitlines() if line.startswith(b"Content-Security-Policy: ")]
            self.assertEqual(len(policies), 1, head)
            self.assertIn(b"default-src 'none'", policies[0])
            self.assertIn(b"frame-ancestors 'none'", policies[0])
            self.assertNotIn(b"unsafe", policies[0])

    def test_closes_connections_that_say_nothing(self):
        """The maximum number of idle connections: other clients are served after their timeout."""
        silent = [socket.create_connection(("127.0.0.1", self.server.port), timeout=60) for _ in range(16)]
        for client in silent[:8]:
            client.sendall(b"PUT /predictions/default HTTP/1.1\r\nContent-Le")
        self.assertEqual(wait_for("answer", lambda: [a for a in [self.server.ask("GET", "/healthz")] if a[0] == 200])[0][0],
                         200)
        for client in silent:
            client.close()

    def test_refuses_lengths_that_are_none(self):
        for length in (b"-1", b"99999999999999999999999", b"1e3", b"0x10", b"", b"5, 6", b"+5"):
            answer = self.server.raw(b"PUT " + IMAGE.encode() + b" HTTP/1.1\r\nHost: localhost\r\nContent-Length: " + length +
                                     b"\r\n\r\nhello", half_close=True)
            self.assertNotIn(b"HTTP/1.1 200", answer, length)
            self.assertLessEqual(answer.count(b"HTTP/1.1"), 1, length)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
