"""Ports of this machine for servers that a test starts."""
import random
import socket

_kept = []


def free_port():
    """A port that nobody listens on and that no other test takes before this process ends. Nor does the system, which
    gives connections and listeners without a port of their own one of its ephemeral range, unless that has all ports."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as file:
        first, last = map(int, file.read().split())
    ports = range(10000, 65536)
    outside = [port for port in ports if not first <= port <= last] or list(ports)
    random.shuffle(outside)
    for port in outside:
        mark = socket.socket(socket.AF_UNIX)
        try:
            mark.bind(f"\0dtrain-test-port-{port}")  # one process of a network namespace has it until it ends
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            mark.close()
            continue
        _kept.append(mark)
        return port
    raise RuntimeError("no port is free")
