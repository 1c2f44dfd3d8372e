"""A DNS server for names of pods and Services in Kubernetes' format: A records; NXDOMAIN for all other names."""

import socket
import struct
import threading

TYPE_A, CLASS_IN = 1, 1
NO_SUCH_NAME = 3
SECONDS_TO_LIVE = 1


def question(query):
    """Name of a query in lower case, offset of the question's end, and record type."""
    labels, at = [], 12
    while query[at]:
        labels.append(query[at + 1:at + 1 + query[at]].decode("ascii", "replace"))
        at += 1 + query[at]
    return ".".join(labels).lower(), at + 5, struct.unpack_from(">H", query, at + 1)[0]


def answer(query, lookup):
    """Response to a query; `lookup` returns a name's addresses, or None for NXDOMAIN."""
    name, end, kind = question(query)
    addresses = lookup(name)
    code = NO_SUCH_NAME if addresses is None else 0
    records = [struct.pack(">HHHIH4s", 0xC00C, TYPE_A, CLASS_IN, SECONDS_TO_LIVE, 4, socket.inet_aton(address))
               for address in (addresses or []) if kind == TYPE_A]
    flags = 0x8580 | code  # authoritative, recursion available
    return query[:2] + struct.pack(">HHHHH", flags, 1, len(records), 0, 0) + query[12:end] + b"".join(records)


class Server:
    """Answers in a separate thread until it is closed."""

    def __init__(self, address, lookup):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind((address, 53))
        self.socket.settimeout(0.2)
        self.lookup = lookup
        self.refused = 0  # number of NXDOMAIN responses
        self.open = True
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while self.open:
            try:
                query, client = self.socket.recvfrom(4096)
                reply = answer(query, self.lookup)
            except TimeoutError:
                continue
            except (IndexError, struct.error):
                continue  # not a query
            self.refused += reply[3] & 15 == NO_SUCH_NAME
            self.socket.sendto(reply, client)

    def close(self):
        self.open = False
        self.thread.join()
        self.socket.close()
