#!/usr/bin/env python3
"""HTTP interface of dtrain-serve: responses, errors, slow clients, checkpoint reload, and shutdown."""
import base64
import concurrent.futures
import io
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

from serving import BIN, Image, Server, jpeg, train, wait_for

TOKEN = "a-token-of-this-test-alone"
PREDICT, IMAGE = "/v1/models/default:predict", "/predictions/default"


class Serve(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.trained = Path(cls.folder.name) / "trained"
        train(cls.trained, 1)
        cls.server = Server(f"--train_dir={cls.trained}", "--max_body_mb=1", "--max_image_megapixels=1",
                            "--idle_seconds=1")

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def predict(self, instances):
        status, body = self.server.ask("POST", PREDICT, json.dumps({"instances": instances}))
        return status, json.loads(body)

    def test_answers_as_classify_does(self):
        pictures = [jpeg(i) for i in range(3)]
        files = []
        for i, picture in enumerate(pictures):
            files.append(Path(self.folder.name) / f"{i}.jpg")
            files[-1].write_bytes(picture)
        out = subprocess.run([BIN / "dtrain-classify", "--json", "--num_intra_threads=1", "--weights",
                              self.trained / "checkpoints/step-1/model.safetensors", *files],
                             check=True, capture_output=True, text=True).stdout
        expected = [json.loads(line)["top"] for line in out.splitlines()]
        status, answer = self.predict([{"b64": base64.b64encode(p).decode()} for p in pictures])
        self.assertEqual((status, answer["version"]), (200, 1))
        for found, wanted in zip(answer["predictions"], expected, strict=True):
            self.assertEqual([one["class"] for one in found], [one["class"] for one in wanted])
            for one, other in zip(found, wanted):
                self.assertAlmostEqual(one["probability"], other["probability"], places=5)
        for picture, wanted in zip(pictures, answer["predictions"]):
            status, body = self.server.ask("PUT", IMAGE, picture)
            self.assertEqual(status, 200)
            self.assertEqual([one["class"] for one in json.loads(body)], [one["class"] for one in wanted])

    def test_damaged_images_have_a_warning_or_are_refused(self):
        half = jpeg()[:-200]
        status, body = self.server.ask("PUT", IMAGE, half)
        self.assertEqual(status, 200, body)
        self.assertTrue(all("remature end" in one["warning"] for one in json.loads(body)), body)
        status, answer = self.predict([{"b64": base64.b64encode(part).decode()} for part in (jpeg(), half)])
        self.assertEqual(status, 200, answer)
        self.assertEqual(["warning" in predictions[0] for predictions in answer["predictions"]], [False, True])
        with Server(f"--train_dir={self.trained}", "--refuse_damaged_images") as strict:
            status, body = strict.ask("PUT", IMAGE, half)
            self.assertEqual((status, "damaged image: " in json.loads(body)["error"]), (400, True), body)
            odd = jpeg()[:-2] + bytes(20) + jpeg()[-2:]  # extra bytes before the last marker are harmless
            for sound in (jpeg(), odd):
                status, body = strict.ask("PUT", IMAGE, sound)
                self.assertEqual((status, b"warning" in body), (200, False), body)

    def test_curl_uploads_an_image(self):
        picture = Path(self.folder.name) / "curl.jpg"
        picture.write_bytes(jpeg())
        out = subprocess.run(["curl", "-sS", "-T", picture, f"http://127.0.0.1:{self.server.port}{IMAGE}"], check=True,
                             capture_output=True).stdout
        self.assertEqual(len(json.loads(out)), 5)

    def test_takes_arrays(self):
        status, answer = self.predict([[[[128, 0, 255]] * 32] * 32])
        self.assertEqual((status, len(answer["predictions"])), (200, 1), answer)
        for wrong in ([[[[128, 0, 255]] * 32] * 31], [[[[128, 0]] * 32] * 32], [[[[300, 0, 0]] * 32] * 32]):
            status, answer = self.predict(wrong)
            self.assertEqual(status, 400)
            self.assertIn("instances[0]", answer["error"])

    def test_says_how_it_is(self):
        self.assertEqual(self.server.ask("GET", "/healthz")[0], 200)
        self.assertEqual(self.server.ask("GET", "/readyz")[0], 200)
        status, body = self.server.ask("GET", "/v1/models/default")
        self.assertEqual((status, json.loads(body)["model_version_status"][0]["state"]), (200, "AVAILABLE"))
        self.server.ask("PUT", IMAGE, jpeg())
        text = self.server.ask("GET", "/metrics")[1].decode()
        self.assertIn("dtrain_serve_model_version 1", text)
        self.assertRegex(text, r'dtrain_serve_responses_total\{status="200"\} [1-9]')

    def test_refuses_bad_bodies_and_goes_on(self):
        for body in (b"", b"{", b"[]", b"\xff\xfe", b'{"instances": []}', b'{"instances": [{"b64": "a"}]}',
                     b'{"instances": [{"b64": "####"}]}', b'{"instances": [{"b64": "AAAA"}]}', b"[" * 100_000,
                     b'{"instances": 7}', b'{"instances": [7]}'):
            status, answer = self.server.ask("POST", PREDICT, body)
            self.assertEqual(status, 400, body[:40])
            self.assertTrue(json.loads(answer)["error"])
        whole = jpeg(1, 64)
        for body in (b"", b"no image", whole[:20], b"\x89PNG\r\n\x1a\n" + b"\0" * 64):
            self.assertEqual(self.server.ask("PUT", IMAGE, body)[0], 400)
        for i in range(0, len(whole), 37):  # the server survives any outcome
            self.assertIn(self.server.ask("PUT", IMAGE, whole[:i] + bytes([whole[i] ^ 255]) + whole[i + 1:])[0], (200, 400))
        self.assertEqual(self.server.ask("GET", "/nowhere")[0], 404)
        self.assertEqual(self.server.ask("POST", "/v1/models/other:predict", b"{}")[0], 404)
        self.assertEqual(self.server.ask("DELETE", IMAGE)[0], 405)
        self.assertEqual(self.server.ask("PUT", IMAGE, whole)[0], 200)

    def test_limits_bodies_and_images(self):
        self.assertEqual(self.server.ask("PUT", IMAGE, b"x" * (1 << 20))[0], 400)  # maximum size, not an image
        # Refused without reading the body.
        for more in (b"", b"Expect: 100-continue\r\n"):
            answer = self.server.raw(f"PUT {IMAGE} HTTP/1.1\r\nContent-Length: {(1 << 20) + 1}\r\n".encode() + more + b"\r\n")
            self.assertTrue(answer.startswith(b"HTTP/1.1 413"), answer)
            self.assertIn(b"a body may have 1048576 bytes", answer)
        out = io.BytesIO()
        Image.new("RGB", (1001, 1000)).save(out, "PNG")
        status, answer = self.server.ask("PUT", IMAGE, out.getvalue())
        self.assertEqual(status, 400)
        self.assertIn(b"1001", answer)

    def test_refuses_what_could_hide_a_second_request(self):
        hidden = b"GET /healthz HTTP/1.1\r\n\r\n"
        chunked = b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"
        too_long = b"4(00|13)"  # Boost before 1.83 takes a length above 64 bits for a body that is too large
        for method, headers, status in ((b"PUT", chunked, b"411"), (b"PUT", b"\r\n", b"411"),
                                        (b"PUT", b"Content-Length: 3\r\nContent-Length: 4\r\n\r\n", b"400"),
                                        (b"PUT", b"Content-Length: -1\r\n\r\n", b"400"),
                                        (b"PUT", b"Content-Length: 99999999999999999999999\r\n\r\n", too_long),
                                        (b"GET", b"Content-Length: 5\r\n\r\n", b"400"),
                                        (b"PUT", b"Content-Length: 5\r\nContent-Encoding: gzip\r\n\r\n", b"415")):
            answer = self.server.raw(method + b" " + IMAGE.encode() + b" HTTP/1.1\r\nHost: localhost\r\n" + headers + hidden)
            self.assertRegex(answer, b"^HTTP/1.1 " + status, headers)
            self.assertEqual(answer.count(b"HTTP/1.1"), 1, answer)

    def test_survives_hostile_heads(self):
        for head in (b"\0" * 5000, b"GET\r\n\r\n", b"GET / HTTP/9\r\n\r\n", b"GET " + b"/a" * 50_000 + b" HTTP/1.1\r\n\r\n",
                     b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 100_000 + b"\r\n",
                     b"GET / HTTP/1.1\r\nx: " + b"y" * 1_000_000 + b"\r\n\r\n"):
            answer = self.server.raw(head, half_close=True)
            self.assertNotIn(b"HTTP/1.1 200", answer, head[:60])
        status, body = self.server.ask("GET", "/healthz", None, {"Range": "bytes=" + "0-1," * 1900 + "5-9"})
        self.assertEqual((status, len(body)), (200, 16))  # no range is sent twice

    def test_ends_slow_clients(self):
        """Slowloris: a byte now and then does not extend a connection beyond --request_seconds."""
        with Server(f"--train_dir={self.trained}", "--request_seconds=2") as server, \
                socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(b"PUT " + IMAGE.encode() + b" HTTP/1.1\r\nContent-Length: 100000\r\n\r\n")

            def dripped():
                try:
                    client.sendall(b"x")
                    time.sleep(0.2)
                    client.settimeout(0.01)
                    return client.recv(1000) == b""
                except TimeoutError:
                    return False
                except (ConnectionResetError, BrokenPipeError):
                    return True
            wait_for("end of the connection", dripped, 30)

    def test_batches_concurrent_requests(self):
        with Server(f"--train_dir={self.trained}", "--batch_delay_ms=10000", "--max_batch=8") as server:
            with concurrent.futures.ThreadPoolExecutor(8) as pool:
                answers = list(pool.map(lambda i: server.ask("PUT", IMAGE, jpeg(i)), range(8)))
            self.assertEqual([status for status, _ in answers], [200] * 8)
            text = server.ask("GET", "/metrics")[1].decode()
            batches = int(re.search(r"dtrain_serve_batch_images_count (\d+)", text)[1])
            self.assertEqual(batches, 1)  # a full batch does not wait
            self.assertIn("dtrain_serve_batch_images_sum 8", text)

    def test_refuses_too_many(self):
        with Server(f"--train_dir={self.trained}", "--max_waiting=2", "--max_connections=2") as server:
            three = json.dumps({"instances": [{"b64": base64.b64encode(jpeg()).decode()}] * 3})
            self.assertEqual(server.ask("POST", PREDICT, three)[0], 400)
            held = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
            wait_for("refusal", lambda: server.ask("GET", "/healthz")[0] == 503)
            for client in held:
                client.close()
            wait_for("free connection", lambda: server.ask("GET", "/healthz")[0] == 200)

    def test_wants_its_token(self):
        file = Path(self.folder.name) / "token"
        file.write_text(TOKEN + "\n")
        file.chmod(0o600)
        for flags, variables in (((f"--token_file={file}",), {}), ((), {"DTRAIN_SERVE_TOKEN": TOKEN})):
            with Server(f"--train_dir={self.trained}", *flags, **variables) as server:
                self.assertEqual(server.ask("GET", "/healthz")[0], 200)
                for header in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN},
                               {"Authorization": f"Bearer {TOKEN}x"}):
                    self.assertEqual(server.ask("PUT", IMAGE, jpeg(), header)[0], 401)
                    self.assertEqual(server.ask("GET", "/metrics", None, header)[0], 401)
                self.assertEqual(server.ask("PUT", IMAGE, jpeg(), {"Authorization": f"Bearer {TOKEN}"})[0], 200)
        file.chmod(0o644)
        result = subprocess.run([BIN / "dtrain-serve", f"--train_dir={self.trained}", f"--token_file={file}"],
                                capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("every user", result.stderr)

    def test_takes_up_checkpoints_while_it_serves(self):
        folder = Path(self.folder.name) / "growing"
        folder.mkdir()
        with Server(f"--train_dir={folder}") as server:
            self.assertEqual(server.ask("GET", "/readyz")[0], 503)
            status, body = server.ask("PUT", IMAGE, jpeg())
            self.assertEqual((status, json.loads(body)["error"]), (503, "no checkpoint yet"))
            self.assertEqual(json.loads(server.ask("GET", "/v1/models/default")[1])["model_version_status"][0]["state"],
                             "START")
            for steps in (1, 2):
                train(folder, steps)
                wanted = f'"version":"{steps}"'.encode()
                wait_for("new version", lambda: wanted in server.ask("GET", "/v1/models/default")[1])
                self.assertEqual(server.ask("PUT", IMAGE, jpeg())[0], 200)
            damaged = folder / "checkpoints/step-2/model.safetensors"
            copy = folder / "checkpoints/step-3"
            subprocess.run(["cp", "-r", damaged.parent, copy], check=True)
            data = bytearray((copy / "model.safetensors").read_bytes())
            data[-5] ^= 255
            (copy / "model.safetensors").write_bytes(data)
            wait_for("refusal", lambda: b"failed_checkpoints_total 1" in server.ask("GET", "/metrics")[1])
            self.assertEqual(server.ask("PUT", IMAGE, jpeg())[0], 200)
            self.assertIn(b'"version":"2"', server.ask("GET", "/v1/models/default")[1])

    def test_answers_what_it_has_accepted_before_it_ends(self):
        # Four images must be queued before the first is computed.
        with Server(f"--train_dir={self.trained}", "--batch_delay_ms=5000") as server:
            with concurrent.futures.ThreadPoolExecutor(4) as pool:
                answers = [pool.submit(server.ask, "PUT", IMAGE, jpeg(i)) for i in range(4)]
                wait_for("images that wait", lambda: b"waiting_images 4" in server.ask("GET", "/metrics")[1])
                self.assertEqual(server.stop(), 0)
                self.assertEqual([one.result()[0] for one in answers], [200] * 4)
            with self.assertRaises(ConnectionRefusedError):
                server.ask("GET", "/healthz")

    def test_a_body_that_does_not_come_holds_no_shutdown(self):
        with Server(f"--train_dir={self.trained}", "--drain_seconds=0.5") as server, \
                socket.create_connection(("127.0.0.1", server.port), timeout=60) as client:
            client.sendall(f"POST {PREDICT} HTTP/1.1\r\nContent-Length: 1000\r\n\r\n{{".encode())
            time.sleep(0.3)  # until a thread waits for the remainder
            began = time.monotonic()
            self.assertEqual(server.stop(), 0)
            self.assertLess(time.monotonic() - began, 10)  # --request_seconds are 30

    def test_a_burst_of_connections_waits_to_be_accepted(self):
        server = self.server
        server.process.send_signal(signal.SIGSTOP)
        try:
            clients = [socket.create_connection(("127.0.0.1", server.port), timeout=5) for _ in range(40)]
        finally:
            server.process.send_signal(signal.SIGCONT)
        for client in clients:
            client.close()
        wait_for("answer", lambda: server.ask("GET", "/healthz")[0] == 200)

    def test_says_what_is_wrong_with_its_flags(self):
        taken = f"--port={self.server.port}"
        for flags, code, words in (((), 1, "--train_dir"), ((f"--train_dir={self.trained}", taken), 6, "--port"),
                                   ((f"--train_dir={self.trained}", "--name=a/b"), 1, "--name"),
                                   ((f"--weights={self.folder.name}/nowhere", "--model=resnet20"), 5, "/nowhere")):
            result = subprocess.run([BIN / "dtrain-serve", *flags], capture_output=True, text=True)
            self.assertEqual((result.returncode, len(result.stderr.splitlines())), (code, 1), result.stderr)
            self.assertIn(words, result.stderr)


if __name__ == "__main__":
    unittest.main()
