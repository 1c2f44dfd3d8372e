"""Fault injection in the network between rank 1 and rank 0: a relay that delays, splits, drops, corrupts and cuts
messages, and two hosts connected by a cable, in network namespaces of this process.
"""

import contextlib
import ctypes
import itertools
import re
import socket
import subprocess
import time

from lying_rank import GIVE, Relay, split

LIBC = ctypes.CDLL(None, use_errno=True)


class Wire:
    """A connection of the relay; `network.fault` handles each message."""

    def __init__(self, connection, network, where, to_zero):
        self.connection, self.network, self.where, self.to_zero, self.sent = connection, network, where, to_zero, 0
        self.other = None  # the sender's connection

    def sendall(self, data):
        if not self.network.fault(self, data):
            self.connection.sendall(data)
        self.sent += len(data)

    def __getattr__(self, name):
        return getattr(self.connection, name)


class Network(Relay):
    """Forwarding relay. `fault` receives the wire and the bytes to forward; it returns True if it handled them."""

    hides_ends = False

    def __init__(self, port, fault, here="127.0.0.1"):
        self.fault, self.what, self.calls = fault, "", 0
        super().__init__(port, here=here)

    def meet(self):
        while True:
            caller = self.server.accept()[0]
            self.calls += 1
            self.run(self.meet_one, caller)

    def shaken_hands(self):
        self.to_rank.connection = Wire(self.to_rank.connection, self, "gather", False)
        self.to_zero.connection = Wire(self.to_zero.connection, self, "gather", True)
        self.to_rank.connection.other, self.to_zero.connection.other = (
            self.to_zero.connection.connection, self.to_rank.connection.connection)

    def receive(self, endpoint):
        kind, sequence, text = super().receive(endpoint)
        if kind == GIVE:
            self.what = split(text)[0].decode()
        return kind, sequence, text

    def join_sums(self, caller):
        """Forwards the handshake of an all-reduce connection unchanged."""
        called = socket.create_connection((self.here, self.real[0]))
        self.open.append(called)
        wires = Wire(called, self, "sums", True), Wire(caller, self, "sums", False)
        wires[0].other, wires[1].other = caller, called
        self.run(self.carry_bytes, called, wires[1])
        self.carry_bytes(caller, wires[0])

    def carry_bytes(self, source, target):
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
        finally:
            with contextlib.suppress(OSError):
                target.shutdown(socket.SHUT_WR)


def ends(wire):
    return wire.connection, wire.other


# Actions of a fault on bytes to be forwarded.

def pause(seconds):
    def act(wire, data):
        wire.network.ended.wait(seconds)
        return False
    return act


def cut(wire, data):
    wire.connection.sendall(data[:len(data) // 2])
    for one in ends(wire):
        one.shutdown(socket.SHUT_RDWR)
    return True


def reset(wire, data):
    wire.connection.sendall(data[:len(data) // 2])
    for one in ends(wire):
        LIBC.connect(one.fileno(), bytes(16), 16)  # AF_UNSPEC: the kernel resets the connection at once
    return True


def half_close(wire, data):
    wire.connection.shutdown(socket.SHUT_WR)
    return True


def lose(wire, data):
    return True


def corrupt(wire, data):
    at = len(data) // 2
    wire.connection.sendall(data[:at] + bytes([data[at] ^ 4]) + data[at + 1:])
    return True


def in_pieces(size, most=1 << 30):
    """Splits the first `most` bytes of a message into pieces of `size` bytes."""
    def act(wire, data):
        wire.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for at in range(0, min(most, len(data)), size):
            wire.connection.sendall(data[at:min(at + size, most)])
        wire.connection.sendall(data[most:])
        return True
    return act


# Times of a fault.

def always(act, where):
    return lambda wire, data: wire.where == where and act(wire, data)


def once(act, where, to_zero, when, for_good=False):
    """Applies `act` when `when` holds for the first time; with `for_good` to all later messages, too."""
    done = []

    def fault(wire, data):
        if wire.where != where or wire.to_zero != to_zero or (done and not for_good) or not (done or when(wire)):
            return False
        done.append(1)
        return act(wire, data)
    return fault


def after(count):
    return lambda wire: wire.sent > count


def in_collective(what, times=1):
    """True in the `times`th collective of that name."""
    seen = []

    def when(wire):
        if wire.network.what == what:
            seen.append(1)
        return len(seen) >= times
    return when


# Two hosts.

def run(*command):
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, capture_output=True)


class Hosts:
    """Two connected network namespaces; rank 0 is in the first."""
    numbers = itertools.count()  # of several threads

    def __init__(self):
        number = next(self.numbers)
        self.names = [f"h{number}-{end}" for end in "ab"]
        self.addresses = ["10.8.0.1", "10.8.0.2"]
        for name in self.names:
            run("ip", "netns", "add", name)
        run("ip", "link", "add", "eth0", "netns", self.names[0], "type", "veth", "peer", "name", "eth0", "netns",
            self.names[1])
        for end in range(2):
            self.ip(end, "address", "add", f"{self.addresses[end]}/24", "dev", "eth0")
            self.ip(end, "link", "set", "lo", "up")
            self.ip(end, "link", "set", "eth0", "up")

    def ip(self, end, *words):
        run("ip", "-n", self.names[end], *words)

    def drops(self):
        """A queue of two packets, so that fast senders lose packets."""
        for name in self.names:
            run("tc", "-n", name, "qdisc", "add", "dev", "eth0", "root", "tbf", "rate", "30mbit", "burst", "3000",
                "limit",
                "6000")

    def dropped(self):
        told = subprocess.run(["tc", "-n", self.names[0], "-s", "qdisc"], capture_output=True, text=True).stdout
        return any(int(count) for count in re.findall(r"dropped (\d+)", told))

    def cut(self):
        self.ip(0, "link", "set", "eth0", "down")

    def mend(self):
        self.ip(0, "link", "set", "eth0", "up")

    def close(self):
        for name in self.names:
            run("ip", "netns", "del", name)


def wait_for(condition, limit):
    deadline = time.monotonic() + limit
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
