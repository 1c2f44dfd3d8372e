"""A running server, and requests of tests."""
import http.client
import io
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

try:
    from PIL import Image
except ImportError:
    print("SKIPPED: python3-pil is not installed")
    sys.exit(77)

BIN = Path(os.environ["DTRAIN_BIN_DIR"])


def jpeg(seed=0, size=32):
    image = Image.new("RGB", (size, size))
    image.putdata([((x * 7 + seed * 50) % 256, x * 3 % 256, seed * 31 % 256) for x in range(size * size)])
    out = io.BytesIO()
    image.save(out, "JPEG")
    return out.getvalue()


def train(folder, steps, *flags):
    """Trains a small network on synthetic data for `steps` steps, with a final checkpoint."""
    subprocess.run([BIN / "dtrain-cnn-benchmarks", "--model=resnet20", "--data_name=cifar10", "--batch_size=2",
                    f"--num_batches={steps}", "--num_warmup_batches=0", "--num_intra_threads=1",
                    f"--train_dir={folder}", *flags], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


class Server:
    def __init__(self, *flags, **environment):
        self.process = subprocess.Popen(
            [BIN / "dtrain-serve", "--port=0", "--num_intra_threads=1", "--poll_seconds=0.1", *flags],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **environment})
        line = self.process.stdout.readline()
        found = re.match(r"http://127\.0\.0\.1:(\d+)/", line)
        assert found, line + self.process.stderr.read()
        self.port = int(found[1])

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.communicate()

    def ask(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            return response.status, response.read()
        finally:
            connection.close()

    def raw(self, data, half_close=False):
        """Everything that the server sends in response to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=120) as client:
            client.sendall(data)
            if half_close:
                client.shutdown(socket.SHUT_WR)
            answer = b""
            try:
                while part := client.recv(65536):
                    answer += part
            except ConnectionResetError:
                pass
            return answer

    def stop(self):
        """Stops the server; returns its exit code and sets `errors` to its stderr."""
        self.process.send_signal(signal.SIGTERM)
        self.errors = self.process.communicate(timeout=120)[1]
        return self.process.returncode


def wait_for(what, attempt, seconds=120):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := attempt():
            return result
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {seconds} s")
