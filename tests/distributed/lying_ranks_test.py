"""Attacks by a rank that knows the job's secret: invalid data after authentication, in all-gathered texts and in
all-reduced data. The others end in time with a documented code and one line that names the attacker, or train on where
the data is harmless. One row per attack; an argument selects those whose names contain it. Run with the folder of the
programs in DTRAIN_BIN_DIR.
"""

import concurrent.futures
import contextlib
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time

from lies import (busy_for_ever, closes, closes_sums, endless, first, frame, gives, half_then, hello_of, in_data,
                  in_headers, in_memory, late_for_ever, of_floats, other_settings, says, scribble, shouts,
                  stays_silent, then_silence, trickles, truncate, with_, without, zero_gives, zero_says)
from lying_rank import GIVE, RESULT, Rank, Relay, join, split
from strangers_test import FAILURE, PROGRAMS, WELCOME, free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from attack_results import finish

LIMIT = 40  # seconds; an attack takes about one, or as long as its ranks' timeouts
MOST_MIB = 400
SANITIZED = "DTRAIN_SANITIZED" in os.environ
FORGED = "error: all is lost"
EVIL = f"\n{FORGED}\x1b[2J\r".encode()
INFO = (PROGRAMS / "dtrain-info", "--ranks", "--collective_timeout=5")
SUMS = (PROGRAMS / "dtrain-allreduce-benchmark", "--sizes=1000", "--iterations=2", "--warmup=1",
        "--collective_timeout=5")
SENT = "rank 1 on .* sent an invalid message"


def train(*flags):
    return (PROGRAMS / "dtrain-cnn-benchmarks", "--variable_update=horovod", "--model=lenet", "--image_size=8",
            "--num_classes=11", "--device=cpu", "--num_intra_threads=1", "--optimizer=momentum",
            "--init_learning_rate=0.01", "--num_warmup_batches=0", "--display_every=1", "--collective_timeout=5",
            "--batch_size=4", "--data_dir={data}", "--train_dir={folder}/run", "--num_batches=6",
            "--save_model_steps=2", "--all_reduce_algorithm=ring", *flags)


EVALUATES = ("--eval_during_training_every_n_steps=2",)


def together():
    """Command of a training whose all-reduce uses shared memory."""
    return (*train(), "--all_reduce_algorithm=direct")


QUESTIONS = b"".join(frame(0, b"?\nall is well") for _ in range(200_000))
STATE = "rank 1 on .* sent a malformed watchdog state"
FOREIGN = "rank 1 on .*it does not follow the protocol of ranks"
DIFFERENT = "ranks are out of step: rank 0 on .* does .*, rank 1 on .* does"

# name, command, all-gather attack, all-reduce attack, attacked rank, its exit codes, pattern of its line; ranks
ROWS = [
    ("facts without a key", INFO, gives("facts of the ranks", without("cores")), None, 0, 4,
     f"facts of the ranks: {SENT}"),
    ("facts of a wrong type", INFO, gives("facts of the ranks", with_("versions", [{}, 7])), None, 0, 4, SENT),
    ("facts with a huge core number", INFO, gives("facts of the ranks", with_("cores", [2**31 - 1, 3])), None, 0, 4,
     SENT),
    ("facts with a negative core number", INFO, gives("facts of the ranks", with_("cores", [-2])), None, 0, 4, SENT),
    ("deeply nested facts", INFO, gives("facts of the ranks", lambda _: b"[" * 60000), None, 0, 4, SENT),
    ("long facts", INFO, gives("facts of the ranks", lambda _: b'{"a": "' + bytes(15 << 20)), None, 0, 4,
     SENT),
    ("facts that forge a line", INFO, gives("facts of the ranks", with_("device", EVIL.decode())), None, 0, 0,
     r"\\x1b\[2J"),
    ("facts with another version", INFO,
     gives("facts of the ranks", with_("versions", {"dtrain": EVIL.decode()})), None,
     0, 1, "has dtrain"),
    ("facts of 17 MiB", INFO, gives("facts of the ranks", lambda _: bytes(17 << 20)), None, 0, 4, SENT),
    ("another collective", INFO, says(lambda _, sequence, text: [(GIVE, sequence, join(EVIL, *split(text)[1:]))]),
     None, 0, 4,
     DIFFERENT),
    ("another number of a collective", INFO, says(lambda _, sequence, text: [(GIVE, sequence + 1, text)]), None, 0, 4,
     DIFFERENT),
    ("another section of a collective", INFO, says(lambda _, n, text: [(GIVE, n, join(split(text)[0], EVIL, b""))]),
     None, 0, 4,
     DIFFERENT),
    ("each message twice", INFO, says(lambda _, sequence, text: 2 * [(GIVE, sequence, text)], 1), None, 0, (0, 4),
     None),
    ("an unknown kind of message", INFO, says(lambda _, sequence, text: [(99, sequence, text)]), None, 0, 4,
     FOREIGN),
    ("a kind that only rank 0 sends", INFO, says(lambda _, sequence, text: [(RESULT, sequence, text)]), None, 0, 4,
     FOREIGN),
    ("a message without texts", INFO, says(lambda _, sequence, text: [(GIVE, sequence, b"")]), None, 0, 4, FOREIGN),
    ("texts of wrong lengths", INFO, says(lambda _, n, text: [(GIVE, n, struct.pack("<Q", 2**63) + text)]), None, 0, 4,
     FOREIGN),
    ("a length of 2^63", INFO, says(shouts(struct.pack("<QQQ", GIVE, 2, 2**63) + bytes(32))), None, 0, 4, FOREIGN),
    ("an invalid authentication tag", INFO, says(shouts(struct.pack("<QQQ", GIVE, 2, 10) + bytes(42))), None, 0, 4,
     "rank 1 on .* failed to authenticate"),
    ("half a message, then silence", INFO, says(shouts(struct.pack("<QQQ", GIVE, 2, 9000) + bytes(100))), None, 0, 4,
     "rank 1 on .* did not reach .* within 5 s"),
    ("a trickle of bytes", INFO, says(shouts(struct.pack("<QQQ", GIVE, 2, 1 << 20) + bytes(2000), 0.05)), None, 0, 4,
     "rank 1 on .* did not reach .* within 5 s"),
    ("an end in a message", INFO, says(closes), None, 0, 4, "lost rank 1 on .*the connection was closed"),
    ("a failure that forges a line", INFO, says(lambda _, sequence, text: [(FAILURE, sequence, EVIL * 1000)]), None,
     0, 4,
     r"\\x0aerror: all is lost"),
    ("a rank beyond the last", INFO, hello_of(b"7", b"2"), None, 0, 4,
     "rejected a rank from .* it is rank 7, expected 1 to 1"),
    ("a second rank 0", INFO, hello_of(b"0", b"2"), None, 0, 4,
     "rejected a rank from .* it is rank 0, expected 1 to 1"),
    ("a rank of another job's size", INFO, hello_of(b"1", b"99999999999999"), None, 0, 4,
     "does not follow the protocol of ranks"),
    ("rank 0 reports lateness for ever", INFO, zero_says(late_for_ever), None, 1, 4,
     "rank 0 on .*it does not follow the protocol of rank 0"),
    ("rank 0 is silent", INFO, zero_says(stays_silent), None, 1, 4, "rank 0 on .* did not reach"),
    ("rank 0 forwards too few texts", INFO, zero_says(lambda _, n, text: [(RESULT, n, join(b""))]), None, 1, 4,
     "rank 0 on .*it does not follow the protocol of rank 0"),
    ("rank 0 welcomes too many", INFO, lambda _, to_zero, kind, n, text:
     [(kind, n, text + text)] if kind == WELCOME else None, None, 1, 4, "rank 0 sent a malformed list of ranks"),
    ("an invalid chief", train(), gives("the chief", lambda _: b"-5"), None, 0, 4,
     "the chief: a rank says that it is rank -5"),
    ("a chief that is not a number", train(), gives("the chief", lambda _: b"12 " + EVIL), None, 0, 4,
     f"the chief: {SENT}"),
    ("settings of a wrong type", train(), gives("flags", other_settings), None, 0, 4, f"flags: {SENT}"),
    ("a table with 3,000 columns", train(), gives("table of the ranks", lambda _: b"\t" * 3000), None, 0, 4, SENT),
    ("a table with a wide column", train(), gives("table of the ranks", lambda text: bytes(10 << 20) + text), None, 0,
     4, SENT),
    ("a table that forges a line", train(), gives("table of the ranks", lambda text: EVIL + text), None, 0, 0,
     r"\\x1b"),
    ("cores of 15 MiB", train(), gives("cores", lambda _: b" 7" * (15 << 19)), None, 0, 0, "total images/sec"),
    ("an address with an invalid port", train(), gives("addresses", lambda _: join(b"127.0.0.1", b"99999")), None, 0, 4,
     f"addresses: {SENT}"),
    ("an address of 1 MB", train(), gives("addresses", lambda _: join(b"a" * 1_000_000, b"80")), None, 0, 4, SENT),
    ("a speed of NaN", train(), gives("speed of the ranks", lambda _: b"nan"), None, 0, 4, SENT),
    ("another checksum", train(), gives("checksum of the parameters", lambda _: b"17"), None, 0, 3,
     "the parameters after step 2 are not the same on all ranks"),
    ("a disk that is busy for ever", train("--checkpoint_timeout=1"),
     busy_for_ever(), None, 0,
     4, "rank 1 on .* has been writing a checkpoint for .* s, limit 1 s"),
    ("an invalid disk state", train(), gives("disks of the checkpoints", lambda _: b"9"), None, 0, 4, SENT),
    ("huge count of kills", train(), gives("kills", lambda _: str(2**63 - 1).encode()), None, 0, 0, "total images/sec"),
    ("huge counts", train(), gives("counts of the input", with_("records", 2**63 - 1)), None, 0, 4, SENT),
    ("counts of wrong types", train(), gives("counts of the input", with_("records", 1e300)), None, 0, 4, SENT),
    ("notices that forge lines", train(), gives("counts of the input", with_("damages", [EVIL.decode()] * 9000)),
     None, 0, 0,
     r"\\x1b"),
    ("empty times", SUMS, gives("times", lambda _: b""), None, 0, 4, f"times: {SENT}"),
    ("huge errors", SUMS, gives("errors", lambda _: b"9" * 18), None, 0, 4, f"errors: {SENT}"),
    ("too few sums of an evaluation", train(*EVALUATES), gives("evaluation", lambda _: b"1"), None, 0, 4,
     f"evaluation: {SENT}"),
    ("huge counts of an evaluation", train(*EVALUATES), gives("evaluation", endless), None, 0, 4,
     f"evaluation: {SENT}"),
    ("an invalid state of the chief", train(), zero_gives(lambda text: text[:-40], b'"cursor"'), None, 1, 4,
     "state of the chief: rank 0 on .* sent an invalid message"),
    ("sums: another number", train(), None, in_headers(lambda data: struct.pack("<Q", 77) + data[8:]), 0, 4, DIFFERENT),
    ("sums: other bytes", train(), None, in_headers(lambda data: data[:8] + struct.pack("<Q", 2**63) + data[16:]), 0, 4,
     DIFFERENT),
    ("sums: an invalid section", train(), None, in_headers(lambda data: data[:24] + bytes([255] * 8) + data[32:]),
     0, 4,
     DIFFERENT),
    ("sums: a name that forges a line", train(), None, in_headers(lambda data: data[:32] + EVIL.ljust(64, b"!")), 0, 4,
     DIFFERENT),
    ("sums: a short header", train(), None, in_headers(lambda data: data[:5]), 0, 4, "rank [01] on .*does"),
    ("sums: a long header", train(), None, in_headers(lambda data: data * 2), 0, 4,
     "rank 1 on .*a message of 192 bytes came, at most 96"),
    ("sums: an invalid channel", train(), None, first(struct.pack("<QQ", 1 << 31, 4) + b"1234"), 0, 4, FOREIGN),
    ("sums: a length of 2^63", train(), None, first(struct.pack("<QQ", 1, 2**63)), 0, 4, FOREIGN),
    ("sums: a length of 2 GB", train(), None, first(struct.pack("<QQ", 900, 2 << 30)), 0, 4,
     "rank 1 on .*it sent more than .* bytes without a request"),
    ("sums: other channels", train(), None, first(b"".join(frame(1000 + i, bytes(1 << 20)) for i in range(10))), 0, 0,
     "total images/sec"),
    ("sums: a state without lines", train(), None, first(frame(0, b"!")), 0, 4, STATE),
    ("sums: a huge count in a state", train(), None, first(frame(0, b"!gradients\t" + b"9" * 40 + b"\n\nwell")), 0, 4,
     STATE),
    ("sums: a state of 1 MB", train(), None, first(frame(0, b"?\n" + b"a" * 1_000_000)), 0, 4, STATE),
    ("sums: an empty state", train(), None, first(frame(0, b"")), 0, 4, STATE),
    ("sums: 200,000 questions", train(), None, first(QUESTIONS), 0, (0, 4), None),
    ("sums: a long message", train(), None, in_data(lambda _, channel, data: frame(channel, data + b"more")), 0, 4,
     "rank 1 on .*bytes came, at most"),
    ("sums: a short message", train(), None, in_data(lambda _, channel, data: frame(channel, data[:-4])), 0, 4,
     "bytes came from rank 1, .* were expected"),
    ("sums: each message twice", train(), None, in_data(lambda _, channel, data: 2 * frame(channel, data)), 0,
     (0, 3, 4), None),
    ("sums: half a message, then silence", train(), None, in_data(half_then(then_silence)), 0, 4, "has waited 5 s for"),
    ("sums: connection closed within a message", train(), None, in_data(half_then(closes_sums)), 0, 4,
     "lost rank 1 on|rank 1 on .*ended"),
    ("sums: a slow trickle of bytes", train(), None, in_data(trickles), 0, 4, "has waited 5 s for|at most"),
    ("sums: NaN", train(), None, in_data(of_floats(float("nan"))), 0, 3, None),
    ("sums: infinity", train(), None, in_data(of_floats(float("inf"))), 0, 3, None),
    ("sums: other values", train(), None, in_data(of_floats(0.001)), 0, (0, 3), None),
    ("sums: out of turn to a third rank", train(), None, first(frame(1, b"not your turn"), 2), 2, 4,
     "rank 1 on .*a message of 13 bytes came|13 bytes came from rank 1", 3),
    ("memory: truncated", together(), in_memory(truncate), None, 0, 0, "total images/sec"),
    ("memory: overwritten", together(), in_memory(scribble), None, 0, (0, 3, 4), None),
]


def problems_of(row, data, folder):
    name, command, lie, lie_in_sums, victim, codes, pattern, *count = row
    port = free_port()
    relay = Relay(port, lie, lie_in_sums)
    count = count[0] if count else 2
    words = [str(word).format(data=data, folder=folder) for word in command]
    ranks = [Rank(folder, rank, count, relay.port if rank == 1 else port, words) for rank in range(count)]
    relay.ranks = ranks
    try:
        began = time.monotonic()
        end = ranks[victim].wait(LIMIT)
        seconds = time.monotonic() - began
    finally:
        relay.close()
        for rank in ranks:
            rank.kill()
    output = ranks[victim].written()
    lines = output.splitlines()
    problems = []
    if end is None:
        problems.append(f"no end within {LIMIT} s")
    elif end not in (codes if isinstance(codes, tuple) else (codes,)):
        problems.append(f"exit code {end}, expected {codes}")
    elif ranks[victim].most_mib > MOST_MIB and not SANITIZED:
        problems.append(f"{ranks[victim].most_mib} MiB of memory")
    if pattern and not any(re.search(pattern, line) for line in lines):
        problems.append(f"no line matches {pattern!r}")
    if any(line.startswith(FORGED) for line in lines) or "\x1b" in output:
        problems.append("a line was forged")
    if len([line for line in lines if line.startswith("error: ")]) > 1:
        problems.append("more than one line of an error")
    if sum(len(line) for line in lines) > 100_000:
        problems.append(f"{len(output)} bytes of output")
    if "Sanitizer" in output or "runtime error" in output:
        problems.append("a report of a sanitizer")
    problems += damaged_checkpoints(folder)
    shown = "\n".join(f"    {line[:300]}" for line in lines[-8:])
    if os.environ.get("DTRAIN_TEST_SHOW"):
        print(f"{name}: {seconds:.1f} s, code {end}, {ranks[victim].most_mib} MiB\n{shown}")
    return f"{name}: {'; '.join(problems)}\n{shown}" if problems else ""


def damaged_checkpoints(folder):
    """Problems of the checkpoints: each existing one must be complete."""
    found = []
    for path in pathlib.Path(folder).glob("run/checkpoints/step-*/model.safetensors"):
        whole = path.read_bytes()
        size = struct.unpack("<Q", whole[:8])[0]
        with contextlib.suppress(ValueError):
            tensors = json.loads(whole[8:8 + size])
            most = max(one["data_offsets"][1] for key, one in tensors.items() if key != "__metadata__")
            if len(whole) == 8 + size + most:
                continue
        found.append(f"{path} is damaged")
    return found


def run(row, data):
    with tempfile.TemporaryDirectory() as folder:
        return problems_of(row, data, folder)


def main():
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    is_root = os.geteuid() == 0  # may access the memory of other processes
    rows = [row for row in ROWS if word in row[0] and (is_root or not row[0].startswith("memory:"))]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(6) as pool:
        subprocess.run([PROGRAMS / "dtrain-data", "synthesize", f"--output={folder}/data", "--train=32",
                        "--validation=4",
                        "--image_size=16", "--shards=2"], check=True, stdout=subprocess.DEVNULL)
        problems = [problem for problem in pool.map(lambda row: run(row, f"{folder}/data"), rows) if problem]
    finish(problems, len(rows))


if __name__ == "__main__":
    main()
