"""Unauthenticated peers that connect to rank 0's port or listen in its place: they take no rank's place, learn nothing,
and none of their text is printed; the job starts or ends by its own timeout. The program is dtrain-info with ranks over
TCP. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import contextlib
import hashlib
import pathlib
import secrets
import socket
import struct
import sys
import tempfile
import threading

from faults_test import PROGRAMS, Job, wait_until

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from ports import free_port  # noqa: E402

SECRET = secrets.token_hex(32)
PROOF, HELLO, WELCOME, LATE, FAILURE = 1, 2, 3, 7, 8
HELLO_BEFORE, FAILURE_BEFORE = 1, 7


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def connect(port):
    """Connects to rank 0 once it listens."""
    def attempt():
        with contextlib.suppress(ConnectionRefusedError):
            return socket.create_connection(("127.0.0.1", port))
    return wait_until(attempt, "a rank 0 that listens")


def start(folder, rank, port, address="127.0.0.1", secret=SECRET, timeout=20, before=(), **variables):
    """Rank 0 or 1 of 2. `before`: command prefix."""
    environment = {"DTRAIN_RANK": str(rank), "DTRAIN_SIZE": "2", "DTRAIN_MASTER_ADDR": address,
                   "DTRAIN_MASTER_PORT": str(port), **({"DTRAIN_JOB_SECRET": secret} if secret else {}), **variables}
    return Job(pathlib.Path(folder), [*before, PROGRAMS / "dtrain-info", "--ranks", f"--collective_timeout={timeout}"],
               environment)


def expect_a_start(folder, rank_zero, port, **options):
    """The job still starts."""
    rank_one = start(folder, 1, port, **options)
    rank_one.ends(0)
    rank_zero.ends(0, "2 ranks")


def receive_all(connection):
    """Data until the peer closes the connection."""
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(4096):
            data += part
    return data


def join(*texts):
    return b"".join(struct.pack("<Q", len(text)) + text for text in texts)


class Endpoint:
    """One end of a connection in the ranks' protocol. Without the secret all its tags are wrong."""

    def __init__(self, connection, is_rank_zero, secret):
        self.connection = connection
        mine = secrets.token_bytes(32)
        connection.sendall(b"dtcp2\0\0\0" + mine)
        theirs = connection.recv(40, socket.MSG_WAITALL)[8:]
        zero, other = (mine, theirs) if is_rank_zero else (theirs, mine)
        job = hashlib.blake2b(b"dtrain's job secret: " + secret.encode(), digest_size=32).digest()
        direction = b"0" if is_rank_zero else b"1"
        self.key = hashlib.blake2b(direction + zero + other, key=job, digest_size=32).digest()
        self.count = 0

    def send(self, kind, text=b"", sequence=0):
        header = struct.pack("<QQQ", kind, sequence, len(text))
        tag = hashlib.blake2b(struct.pack("<Q", self.count) + header + text, key=self.key, digest_size=32).digest()
        self.count += 1
        self.connection.sendall(header + tag + text)

    def receive(self):
        """Kind, sequence number and text of the next message."""
        header = self.connection.recv(56, socket.MSG_WAITALL)
        if len(header) < 56:
            raise ConnectionResetError("the rank has left")
        kind, sequence, size = struct.unpack("<QQQ", header[:24])
        return kind, sequence, self.connection.recv(size, socket.MSG_WAITALL) if size else b""


def hello(rank, job=b"", size=2):
    return join(job, b"elsewhere", str(rank).encode(), str(size).encode(), b"1", b"")


def plain_message(kind, text):
    """Protocol of versions without secrets."""
    return struct.pack("<IIQQ", 0x31747464, kind, 0, len(text)) + text


def test_idle_connections_do_no_harm(folder):
    port = free_port()
    rank_zero = start(folder, 0, port, before=("bash", "-c", 'ulimit -n 30; exec "$@"', "limited"))
    idle = [connect(port) for _ in range(150)]
    expect_a_start(folder, rank_zero, port)
    for connection in idle:
        connection.close()


def test_unauthenticated_peer_takes_no_rank_and_ends_no_job(folder):
    port = free_port()
    rank_zero = start(folder, 0, port)
    words = b"\x1b[2Jstranger's words"
    with connect(port) as plain, connect(port) as sealed, contextlib.suppress(OSError):  # they are rejected
        plain.sendall(plain_message(HELLO_BEFORE, hello(1)) + plain_message(FAILURE_BEFORE, words))
        endpoint = Endpoint(sealed, False, "a guess of the secret")
        endpoint.send(PROOF)
        endpoint.send(HELLO, hello(1))
        endpoint.send(FAILURE, words)
        receive_all(plain)
        receive_all(sealed)
    expect_a_start(folder, rank_zero, port)
    expect("stranger's words" not in rank_zero.written(), rank_zero.written())


def test_unauthenticated_peers_learn_nothing(folder):
    port = free_port()
    rank_zero = start(folder, 0, port, DTRAIN_JOB_ID="a-name-of-the-job")
    request = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n" + 100 * b" "
    for text in (request, plain_message(HELLO_BEFORE, hello(1, b"another"))):
        with connect(port) as connection:
            connection.sendall(text)
            told = receive_all(connection)
            expect(len(told) <= 40 and b"a-name" not in told, told)
    with connect(port) as connection:
        endpoint = Endpoint(connection, False, "a guess of the secret")
        endpoint.send(PROOF)
        expect(receive_all(connection) == b"", "an answer to a false proof")
    expect_a_start(folder, rank_zero, port, DTRAIN_JOB_ID="a-name-of-the-job")


def test_wrong_secret_is_rejected(folder):
    port = free_port()
    rank_zero = start(folder, 0, port)
    wait_until(lambda: listening_addresses(port), "a rank 0 that listens")  # rank 1 waits only 1.5 s
    for secret in ("another secret of a job", None):
        start(folder, 1, port, secret=secret, timeout=1).ends(
            4, "failed to authenticate as rank 0 of this job", "it probably has another job secret")
    expect_a_start(folder, rank_zero, port)


def test_replayed_messages_are_rejected(folder):
    """Replays all messages of rank 1 to rank 0 of another job with the same secret."""
    ports, said = (free_port(), free_port()), []
    rank_zero = start(folder, 0, ports[0])
    with socket.create_server(("127.0.0.1", ports[1])) as server:
        rank_one = start(folder, 1, ports[1])
        one, zero = server.accept()[0], connect(ports[0])

        def carry(source, target, keep):
            with contextlib.suppress(OSError):
                while part := source.recv(4096):
                    keep.append(part)
                    target.sendall(part)
                target.shutdown(socket.SHUT_WR)
        back = threading.Thread(target=carry, args=(zero, one, []))
        back.start()
        carry(one, zero, said)
        back.join()
    rank_one.ends(0)
    rank_zero.ends(0)
    rank_zero = start(folder, 0, ports[0])
    with connect(ports[0]) as connection:
        with contextlib.suppress(OSError):  # rejected
            connection.sendall(b"".join(said))
        expect_a_start(folder, rank_zero, ports[0])


@contextlib.contextmanager
def false_rank_zero(secret, after):
    """Listens in rank 0's place, and calls `after` after the greeting of each connection. Yields its port."""
    def serve():
        with contextlib.suppress(OSError):
            while True:
                with server.accept()[0] as connection, contextlib.suppress(OSError):
                    after(Endpoint(connection, True, secret))
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield server.getsockname()[1]
        finally:
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def late_for_ever(endpoint):
    endpoint.send(PROOF)
    expect(endpoint.receive()[0] == PROOF and endpoint.receive()[0] == HELLO, "what a rank says first")
    endpoint.send(WELCOME, join(b"here\x1b[2J", b"1", b"there", b"2"))
    _, sequence, _ = endpoint.receive()
    while True:
        endpoint.send(LATE, sequence=sequence)


def test_false_rank_zero_is_detected(folder):
    with false_rank_zero("a guess of the secret", late_for_ever) as port:
        start(folder, 1, port, timeout=2).ends(
            4, "failed to authenticate as rank 0 of this job (this rank was given a secret)")


def test_stalling_rank_zero_does_not_block_others(folder):
    with false_rank_zero("", late_for_ever) as port:
        job = start(folder, 1, port, secret=None, timeout=2).ends(4, "it does not follow the protocol of rank 0")
    expect("\x1b" not in job.errors(), job.errors())


def listening_addresses(port):
    """Listen addresses of a port, in the kernel's format."""
    rows = [line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [row[1].split(":")[0] for row in rows if row[3] == "0A" and int(row[1].split(":")[1], 16) == port]


def test_local_job_listens_on_loopback_only(folder):
    for address in ("localhost", "127.0.0.1"):
        port = free_port()
        rank_zero = start(folder, 0, port, address=address, secret=None)
        addresses = wait_until(lambda: listening_addresses(port), "a rank 0 that listens")
        expect(addresses == ["0100007F"], addresses)
        expect_a_start(folder, rank_zero, port, address=address, secret=None)


def test_a_network_needs_a_secret_or_trust(folder):
    far, port = "192.0.2.1", free_port()
    for rank in (0, 1):
        start(folder, rank, port, address=far, secret=None).ends(
            1, f"rank 0 at {far}: ranks that meet over a network need a secret")
    start(folder, 0, port, secret=None, DTRAIN_BIND_ADDR="0.0.0.0").ends(1, "ranks that meet over a network need")
    rank_zero = start(folder, 0, port, secret=None, DTRAIN_BIND_ADDR="0.0.0.0", DTRAIN_TRUST_NETWORK="1")
    expect_a_start(folder, rank_zero, port, secret=None)


def test_a_secret_comes_from_a_file(folder):
    file, port = pathlib.Path(folder) / "secret", free_port()
    file.write_text(SECRET + "\n")
    file.chmod(0o644)
    start(folder, 0, port, secret=None, DTRAIN_JOB_SECRET_FILE=str(file)).ends(1, "chmod 600")
    file.chmod(0o600)
    rank_zero = start(folder, 0, port, secret=None, DTRAIN_JOB_SECRET_FILE=str(file))
    expect_a_start(folder, rank_zero, port)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
