"""A malicious rank that knows the job's secret: an honest rank 1 behind a relay that has authenticated with both sides
and can read and change all messages.
"""

import contextlib
import os
import pathlib
import re
import socket
import struct
import subprocess
import threading
import time

from faults_test import wait_until
from strangers_test import FAILURE, HELLO, PROOF, SECRET, WELCOME, Endpoint, join

GIVE, RESULT = 5, 6
HERE = "127.0.0.1"


def split(text):
    """Splits a message into texts."""
    texts, at = [], 0
    while at < len(text):
        size = struct.unpack_from("<Q", text, at)[0]
        texts.append(text[at + 8:at + 8 + size])
        at += 8 + size
    return texts


def take(connection, count):
    """Reads exactly `count` bytes."""
    data = bytearray()
    while len(data) < count:
        part = connection.recv(min(count - len(data), 1 << 20))
        if not part:
            raise ConnectionResetError("the other end has closed")
        data += part
    return bytes(data)


class Relay:
    """Relay between rank 0, which listens on `port`, and another rank, which connects to self.port. `lie` is a function
    of (relay, to_zero, kind, sequence, text) that returns the messages (kind, sequence, text) to forward, or None to
    forward the message unchanged. `lie_in_sums`, for all-reduce connections, takes (relay, to, channel, bytes) and
    returns the bytes to forward, headers included, or None."""

    hides_ends = True


    def __init__(self, port, lie=None, lie_in_sums=None, here=HERE):
        self.port_of_zero, self.lie, self.lie_in_sums, self.here = port, lie, lie_in_sums, here
        self.server, self.mesh = (socket.create_server((here, 0)) for _ in range(2))
        self.port, self.mesh_port = self.server.getsockname()[1], self.mesh.getsockname()[1]
        # Ports of ranks; connections; all-reduce connections to lower ranks.
        self.real, self.open, self.sums, self.ranks = {}, [], [], []
        self.ended = threading.Event()
        self.run(self.meet)
        self.run(self.serve_mesh)

    def run(self, what, *arguments):
        def guarded():
            with contextlib.suppress(OSError, struct.error):
                what(*arguments)
        threading.Thread(target=guarded, daemon=True).start()

    def close(self):
        self.ended.set()
        for one in (self.server, self.mesh, *self.open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()

    def meet(self):
        self.meet_one(self.server.accept()[0])

    def meet_one(self, caller):
        zero = wait_until(self.call_zero, "a rank 0 that listens")
        self.open += [caller, zero]
        self.to_rank, self.to_zero = Endpoint(caller, True, SECRET), Endpoint(zero, False, SECRET)
        self.shaken_hands()
        self.run(self.carry, self.to_rank, self.to_zero, True)
        self.carry(self.to_zero, self.to_rank, False)

    def shaken_hands(self):
        """Messages after this one are authenticated."""

    def call_zero(self):
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection((self.here, self.port_of_zero))

    def carry(self, source, target, to_zero):
        try:
            while True:
                kind, sequence, text = self.receive(source)
                text = self.with_own_addresses(to_zero, kind, text)
                if to_zero and kind == FAILURE and self.hides_ends:
                    continue
                told = self.lie(self, to_zero, kind, sequence, text) if self.lie else None
                for one in [(kind, sequence, text)] if told is None else told:
                    target.send(one[0], one[2], one[1])
        finally:
            self.end(target.connection)

    def end(self, connection):
        """Shuts down a connection whose other peer has exited; the rank behind the relay may exit by the attack."""
        if not self.hides_ends:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)

    def receive(self, endpoint):
        kind, sequence, size = struct.unpack("<QQQ", take(endpoint.connection, 56)[:24])
        return kind, sequence, take(endpoint.connection, size)

    def with_own_addresses(self, to_zero, kind, text):
        """Replaces addresses, so that all-reduce connections go through the relay, too."""
        if to_zero and kind == GIVE and split(text)[0] == b"addresses":
            what, where, mine = split(text)
            self.real[1] = int(split(mine)[1])
            return join(what, where, self.address())
        if not to_zero and kind == RESULT and 1 in self.real and 0 not in self.real:
            addresses = split(text)
            self.real[0] = int(split(addresses[0])[1])
            return join(self.address(), *addresses[1:])
        return text

    def address(self):
        return join(self.here.encode(), str(self.mesh_port).encode())

    def serve_mesh(self):
        while True:
            caller = self.mesh.accept()[0]
            self.open.append(caller)
            self.run(self.join_sums, caller)

    def join_sums(self, caller):
        endpoint = Endpoint(caller, True, SECRET)
        self.receive(endpoint)
        endpoint.send(PROOF)
        hello = self.receive(endpoint)[2]
        source, target = (int(text) for text in split(hello)[:2])
        called = socket.create_connection((self.here, self.real[target]))
        self.open.append(called)
        self.sums.append(called)
        other = Endpoint(called, False, SECRET)
        other.send(PROOF)
        self.receive(other)
        other.send(HELLO, hello)
        endpoint.send(WELCOME, self.receive(other)[2])
        self.run(self.carry_sums, called, caller, source)
        self.carry_sums(caller, called, target)

    def carry_sums(self, source, target, to):
        try:
            while True:
                header = take(source, 16)
                channel, size = struct.unpack("<QQ", header)
                data = take(source, size)
                told = self.lie_in_sums(self, to, channel, data) if self.lie_in_sums else None
                target.sendall(header + data if told is None else told)
        finally:
            self.end(target)


class Rank:
    """A rank's process and its result."""

    def __init__(self, folder, rank, ranks, port, command, **variables):
        """`variables`: environment, in addition to the rank's own variables."""
        self.file, self.most_mib = pathlib.Path(folder) / f"rank{rank}", 0
        environment = {**os.environ, "OMP_WAIT_POLICY": "passive", "DTRAIN_RANK": str(rank), "DTRAIN_SIZE": str(ranks),
                       "DTRAIN_LOCAL_RANK": str(rank), "DTRAIN_MASTER_ADDR": HERE, "DTRAIN_MASTER_PORT": str(port),
                       "DTRAIN_JOB_SECRET": SECRET, **variables}
        with self.file.open("wb") as out:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=out,
                                            stderr=subprocess.STDOUT, env=environment)

    def wait(self, limit):
        """Exit code, or 128 + signal; None if it is still running."""
        deadline = time.monotonic() + limit
        while self.process.poll() is None and time.monotonic() < deadline:
            self.look_at_memory()
            time.sleep(0.01)
        code = self.process.poll()
        return 128 - code if code and code < 0 else code

    def look_at_memory(self):
        with contextlib.suppress(OSError):
            status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
            if found := re.search(r"VmHWM:\s*(\d+)", status):
                self.most_mib = int(found[1]) >> 10

    def kill(self):
        self.process.kill()
        self.process.wait()

    def written(self):
        return self.file.read_text(errors="replace")

