"""Malicious messages of a rank, for lying_rank.Relay: in all-gathered texts, in all-reduced data, and in shared memory.
"""

import contextlib
import json
import mmap
import os
import pathlib
import socket
import struct
import time

from lying_rank import GIVE, RESULT, join, split
from strangers_test import HELLO, LATE

STATES = 0  # channel of watchdog states
LIMIT = 60  # seconds without a message


# Malicious all-gathered messages.

def gives(what, lie):
    """Rank 1 sends lie(text) in the collective `what`."""
    def change(relay, to_zero, kind, sequence, text):
        if not to_zero or kind != GIVE or split(text)[0] != what.encode():
            return None
        name, where, mine = split(text)
        return [(GIVE, sequence, join(name, where, lie(mine)))]
    return change


def says(lie, turn=2):
    """Replaces the `turn`th and all later messages of rank 1; `lie` takes relay, sequence, text."""
    def change(relay, to_zero, kind, sequence, text):
        if not to_zero or kind != GIVE or sequence < turn:
            return None
        return lie(relay, sequence, text)
    return change


def shouts(data, pause=0.0):
    """Sends raw bytes instead of a message and then nothing; with a pause after each byte."""
    def lie(relay, sequence, text):
        connection = relay.to_zero.connection
        if not pause:
            connection.sendall(data)
        for byte in data if pause else b"":
            connection.sendall(bytes([byte]))
            time.sleep(pause)
        relay.ended.wait(LIMIT)
        return []
    return lie


def closes(relay, sequence, text):
    relay.to_zero.connection.sendall(struct.pack("<QQQ", GIVE, sequence, 1 << 20) + bytes(100))
    relay.to_zero.connection.shutdown(socket.SHUT_RDWR)
    return []


def zero_says(lie, turn=2):
    """Attacks rank 1 from rank 0 instead."""
    def change(relay, to_zero, kind, sequence, text):
        return lie(relay, sequence, text) if not to_zero and kind == RESULT and sequence >= turn else None
    return change


def late_for_ever(relay, sequence, text):
    while not relay.ended.wait(0.1):
        relay.to_rank.send(LATE, sequence=sequence)
    return []


def busy_for_ever():
    """Rank 1 reports endlessly that it is writing a checkpoint."""
    place = []

    def change(relay, to_zero, kind, sequence, text):
        if to_zero and kind == GIVE and (place or split(text)[0] == b"disks of the checkpoints"):
            if place:
                return []
            place.extend(split(text)[:2])
            return [(GIVE, sequence, join(*place, b"1"))]
        if to_zero or kind != RESULT or not place:
            return None
        time.sleep(0.05)
        relay.to_zero.send(GIVE, join(*place, b"1"), sequence + 1)
        return []
    return change


def stays_silent(relay, sequence, text):
    relay.ended.wait(LIMIT)
    return []


def hello_of(rank, size):
    def change(relay, to_zero, kind, sequence, text):
        if kind != HELLO:
            return None
        texts = split(text)
        return [(kind, sequence, join(*texts[:2], rank, size, *texts[4:]))]
    return change


def zero_gives(lie, rank_zeros_part):
    """Rank 0 attacks rank 1 in the collective in which rank 0 sends `rank_zeros_part`."""
    def change(relay, to_zero, kind, sequence, text):
        if to_zero or kind != RESULT or rank_zeros_part not in (texts := split(text))[0]:
            return None
        return [(kind, sequence, join(lie(texts[0]), *texts[1:]))]
    return change


def without(key):
    def lie(text):
        facts = json.loads(text)
        del facts[key]
        return json.dumps(facts).encode()
    return lie


def with_(key, value):
    def lie(text):
        return json.dumps(dict(json.loads(text), **{key: value})).encode()
    return lie


def other_settings(text):
    """Replaces a checksum by another one, and settings by an invalid list."""
    return b"0badf00d 7" if len(text) < 30 else b'[["a", 1], {"b": []}, "c"]'


def endless(text):
    """Replaces the last number by an invalid count."""
    return text.rpartition(b" ")[0] + b" inf"


# Malicious all-reduced data.

def in_headers(lie):
    """Invalid header of a collective from rank 1: number, bytes, step, section and name."""
    def change(relay, to, channel, data):
        return frame(channel, lie(data)) if to == 0 and len(data) == 96 else None
    return change


def in_data(lie, after=5):
    """Invalid data from rank 1, from message `after` on."""
    count = []

    def change(relay, to, channel, data):
        if to != 0 or channel == STATES or len(data) == 96:
            return None
        count.append(1)
        return lie(relay, channel, data) if len(count) > after else None
    return change


def frame(channel, data):
    return struct.pack("<QQ", channel, len(data)) + data


def first(message, liar_to=0):
    """An additional message of rank 1 before the first; `message`: its bytes with the header."""
    told = []

    def change(relay, to, channel, data):
        if to != liar_to or told:
            return None
        told.append(1)
        return message + frame(channel, data)
    return change


def of_floats(value):
    """Replaces the first gradients of a message; its end may contain the step."""
    def lie(relay, channel, data):
        count = min(250, len(data) // 8)
        return frame(channel, struct.pack("<f", value) * count + data[4 * count:])
    return lie


def then_silence(relay, channel, data):
    relay.ended.wait(LIMIT)
    raise ConnectionResetError


def half_then(end):
    def lie(relay, channel, data):
        for one in relay.sums:
            one.sendall(frame(channel, data)[:16 + len(data) // 2])
        return end(relay, channel, data)
    return lie


def trickles(relay, channel, data):
    for byte in struct.pack("<QQ", channel, 1 << 20) + bytes(1000):
        for one in relay.sums:
            one.sendall(bytes([byte]))
        if relay.ended.wait(0.05):
            break
    raise ConnectionResetError


def closes_sums(relay, channel, data):
    for one in relay.sums:
        one.shutdown(socket.SHUT_RDWR)
    raise ConnectionResetError


# Attacks on the shared memory of a host's ranks.

def in_memory(act):
    """When a checkpoint is due, act(path of the memory)."""
    def change(relay, to_zero, kind, sequence, text):
        if to_zero and kind == GIVE and split(text)[0] == b"checksum of the parameters":
            folder = pathlib.Path(f"/proc/{relay.ranks[1].process.pid}/map_files")
            act([path for path in folder.iterdir() if "memfd:dtrain-sums" in os.readlink(path)][0])
        return None
    return change


def truncate(path):
    with contextlib.suppress(PermissionError):
        os.truncate(path, 0)


def scribble(path):
    with open(path, "r+b") as file, mmap.mmap(file.fileno(), 0) as memory:
        for _ in range(20):
            memory[:] = os.urandom(len(memory))
            time.sleep(0.01)
