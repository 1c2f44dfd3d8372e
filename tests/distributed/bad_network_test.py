"""Training of two ranks over TCP through a faulty network. It ends bitwise equal to an undisturbed run, or each rank
exits with code 4 within its timeout and a line that names the peer and the place, and the same command resumes to the
same bits. One row per attack; an argument selects those whose names contain it. Run as root, with the folder of the
programs in DTRAIN_BIN_DIR.
"""

import concurrent.futures
import pathlib
import re
import subprocess
import sys
import tempfile
import time

import bad_network
from bad_network import (Hosts, Network, after, always, corrupt, cut, half_close, in_collective, in_pieces, lose,
                         once, pause,
                         reset)
from cluster import isolate
from lying_rank import HERE, Rank
from strangers_test import PROGRAMS, free_port

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from attack_results import finish

STEPS = 8
# --collective_timeout of runs that end by it, and of runs that go on although processors and disks are busy.
TIMEOUT, PATIENCE = 5, 12
LIMIT = 60
FAR = "10.9.0.1"  # this machine, but not loopback: messages carry authentication tags
STATE = ("model.safetensors", "state.safetensors")
CHECKS = "checksum of the parameters"


def command(data, folder, *flags):
    return (PROGRAMS / "dtrain-cnn-benchmarks", "--variable_update=horovod", "--model=lenet", "--image_size=8",
            "--num_classes=11", "--device=cpu", "--num_intra_threads=1", "--optimizer=momentum", "--batch_size=4",
            "--init_learning_rate=0.01", "--num_warmup_batches=0", "--display_every=1", "--all_reduce_algorithm=ring",
            "--start_timeout=20", f"--data_dir={data}", f"--train_dir={folder}/run",
            f"--num_batches={STEPS}", "--save_model_steps=4", *flags)


EVALUATES = ("--eval_during_training_every_n_steps=4",)
LOST_0, LOST_1 = "rank 0 on .*", "rank 1 on .*"
SUMS, TEXTS, UP, DOWN = "sums", "gather", True, False
STEP = r"(after )?step \d"
FIRST_SUMS = 1_700_000  # bytes from rank 1, reached in step 3

# Texts are all-gathered messages, sums all-reduced data; sealed: authenticated.
# name, fault, exit codes of both ranks, pattern of a line of either, address of rank 0, flags
RELAYED = [
    ("texts byte by byte", always(in_pieces(1, 200), TEXTS), 0, None, HERE, ()),
    ("sums in small pieces", always(in_pieces(700), SUMS), 0, None, HERE, ()),
    ("sealed sums in small pieces", always(in_pieces(700), SUMS), 0, None, FAR, ()),
    ("texts with delays", always(pause(0.02), TEXTS), 0, None, HERE, ()),
    ("sums with delays", always(pause(0.02), SUMS), 0, None, HERE, ()),
    ("texts that stall below the limit", once(pause(6), TEXTS, UP, in_collective(CHECKS)), 0, "waiting for rank 1",
     HERE, ()),
    ("sums that stall below the limit", once(pause(6), SUMS, UP, after(FIRST_SUMS)), 0, "waiting for gradients",
     HERE, ()),
    ("texts that stall above the limit", once(pause(20), TEXTS, UP, in_collective(CHECKS)), 4,
     f"{LOST_1} did not reach '{CHECKS}'.* in {STEP}", HERE, ()),
    ("sums that stall above the limit", once(pause(20), SUMS, UP, after(FIRST_SUMS)), 4,
     f"rank . on .* has waited . s for gradients .* of {STEP}", HERE, ()),
    ("texts cut", once(cut, TEXTS, UP, in_collective(CHECKS)), 4, f"lost {LOST_1} in '{CHECKS}'.* in {STEP}", HERE, ()),
    ("answers cut", once(cut, TEXTS, DOWN, in_collective(CHECKS)), 4, f"lost {LOST_0} in '{CHECKS}'.* in {STEP}",
     HERE, ()),
    ("sums cut", once(cut, SUMS, UP, after(FIRST_SUMS)), 4, f"of {STEP}.*: lost {LOST_1}the connection was closed",
     HERE, ()),
    ("texts reset", once(reset, TEXTS, UP, in_collective(CHECKS)), 4,
     f"lost rank . on .*in {STEP}.*: Connection reset by peer",
     HERE, ()),
    ("sums reset", once(reset, SUMS, UP, after(FIRST_SUMS)), 4,
     f"of {STEP}.*: lost rank . on .*: Connection reset by peer", HERE,
     ()),
    ("texts half closed", once(half_close, TEXTS, UP, in_collective(CHECKS), True), 4, f"lost {LOST_1}", HERE, ()),
    ("sums half closed", once(half_close, SUMS, UP, after(FIRST_SUMS), True), 4,
     f"of {STEP}.*: lost {LOST_1}the connection was closed", HERE, ()),
    ("texts lost one way", once(lose, TEXTS, UP, in_collective(CHECKS), True), 4,
     f"{LOST_1} did not reach .* in {STEP}", HERE,
     ()),
    ("answers lost one way", once(lose, TEXTS, DOWN, in_collective(CHECKS), True), 4,
     f"{LOST_0} did not reach|lost {LOST_0}",
     HERE, ()),
    ("sums lost one way", once(lose, SUMS, UP, after(FIRST_SUMS), True), 4,
     f"has waited . s for gradients .* of {STEP}", HERE, ()),
    ("a text corrupted", once(corrupt, TEXTS, UP, in_collective(CHECKS)), 4,
     f"lost {LOST_1}it failed to authenticate with this job's secret", HERE, ()),
    ("a sealed sum corrupted", once(corrupt, SUMS, UP, after(FIRST_SUMS)), 4,
     f"{LOST_1}it (failed to authenticate with this job's secret|does not follow the protocol of ranks)|at most",
     FAR, ()),
    ("cut in the set-up", once(cut, TEXTS, UP, in_collective("flags")), 4, f"lost {LOST_1} in 'flags'", HERE, ()),
    ("cut in the first broadcast", once(cut, SUMS, DOWN, after(10_000)), 4, "lost rank . on .*", HERE, ()),
    ("cut in a save", once(cut, TEXTS, UP, in_collective("disks of the checkpoints")), 4,
     f"lost {LOST_1} in .*, in the checkpoint {STEP}", HERE, ()),
    ("cut in an evaluation", once(cut, TEXTS, UP, in_collective("evaluation")), 4,
     f"lost {LOST_1} in .*, in the evaluation {STEP}",
     HERE, EVALUATES),
    ("cut in the last checkpoint", once(cut, TEXTS, UP, in_collective("the last checkpoint")), 4,
     f"lost {LOST_1} in 'the last",
     HERE, ()),
    ("a welcome cut", once(cut, TEXTS, DOWN, lambda wire: wire.network.what == ""), (0, 4), None, HERE, ()),
    ("a hello cut", once(cut, TEXTS, UP, lambda wire: wire.network.what == ""), 0, None, HERE, ()),
    ("a handshake for sums cut", once(cut, SUMS, UP, after(-1)), 0, None, HERE, ()),
]


def far_apart(act, at_step):
    """Applies `act` to the hosts after the step `at_step`."""
    def fault(hosts, ranks):
        bad_network.wait_for(lambda: f"\n{at_step}\timages/sec" in ranks[0].written(), LIMIT)
        act(hosts)
    return fault


def away_for_a_while(hosts):
    hosts.cut()
    time.sleep(1.5)
    hosts.mend()


def other_address(hosts):
    hosts.ip(1, "address", "del", "10.8.0.2/24", "dev", "eth0")
    hosts.ip(1, "address", "add", "10.8.0.3/24", "dev", "eth0")


def small_packets(hosts):
    for end in range(2):
        hosts.ip(end, "link", "set", "eth0", "mtu", "576")


LONG = ("--num_batches=1000000",)
LOST = r"rank \d on .* has waited . s for|rank \d on .* did not reach|lost rank \d on"
# name, action before the start, action during training, exit codes, pattern of a line, flags
HOSTS = [
    ("packets of 576 bytes", small_packets, None, 0, None, ()),
    ("packets lost", Hosts.drops, None, 0, None, ()),
    ("a cable that is out for a while", None, far_apart(away_for_a_while, 2), 0, None, ("--num_batches=40",)),
    ("a cable that is out", None, far_apart(Hosts.cut, 3), 4, LOST, LONG),
    ("one way only", None, far_apart(lambda hosts: hosts.ip(0, "route", "add", "blackhole", "10.8.0.2/32"), 3), 4,
     LOST, LONG),
    ("no way any more", None, far_apart(lambda hosts: hosts.ip(1, "route", "add", "prohibit", "10.8.0.1/32"), 3), 4,
     LOST, LONG),
    ("another address", None, far_apart(other_address, 3), 4, LOST, LONG),
    ("a cable that comes late", Hosts.cut, lambda hosts, ranks: time.sleep(2) or hosts.mend(), 0, None, ()),
]


class Attack:
    def __init__(self, data, folder, calm, codes=0):
        self.data, self.folder, self.calm, self.codes, self.problems, self.ranks = data, folder, calm, codes, [], []

    def start(self, port, port_of_one, address, *flags, before=((), ())):
        timeout = TIMEOUT if self.codes == 4 else PATIENCE
        words = command(self.data, self.folder, f"--collective_timeout={timeout}", *flags)
        self.ranks = [Rank(self.folder, rank, 2, port_of_one if rank else port, (*before[rank], *words),
                           DTRAIN_MASTER_ADDR=address) for rank in range(2)]

    def expect_end(self, pattern):
        codes = self.codes if isinstance(self.codes, tuple) else (self.codes,)
        try:
            found = [rank.wait(LIMIT) for rank in self.ranks]
        finally:
            for rank in self.ranks:
                rank.kill()
        if not all(code in codes for code in found):
            self.problems.append(f"exit codes {found}, expected {codes}")
        lines = [line for rank in self.ranks for line in rank.written().splitlines()]
        if pattern and not any(re.search(pattern, line) for line in lines):
            self.problems.append(f"no line matches {pattern!r}")
        self.lines = [line[:300] for line in lines if line.startswith(("error", "warning"))][-8:]
        if found == [0, 0] and not self.has_calm_bits():
            self.problems.append("the bits differ from an undisturbed run")
        return found

    def has_calm_bits(self):
        last = pathlib.Path(self.folder) / f"run/checkpoints/step-{STEPS}"
        return not self.calm or not last.exists() or [(last / name).read_bytes() for name in STATE] == self.calm

    def resume(self):
        port, self.codes = free_port(), 0
        self.start(port, port, HERE)
        self.expect_end(None)
        if not (pathlib.Path(self.folder) / f"run/checkpoints/step-{STEPS}").exists():
            self.problems.append("it did not resume")

    def told(self, name):
        lines = "\n".join(f"    {line}" for line in self.lines)
        return f"{name}: {'; '.join(self.problems)}\n{lines}" if self.problems else ""


def run_relayed(row, data, calm):
    name, fault, codes, pattern, address, flags = row
    with tempfile.TemporaryDirectory() as folder:
        attack, port = Attack(data, folder, calm, codes), free_port()
        network = Network(port, fault, here=address)
        try:
            attack.start(port, network.port, address, *flags)
            found = attack.expect_end(pattern)
        finally:
            network.close()
        if 4 in found and ("cut" in name or "reset" in name):
            attack.resume()
        return attack.told(name)


def run_on_hosts(row, data, calm):
    name, before, fault, codes, pattern, flags = row
    with tempfile.TemporaryDirectory() as folder:
        attack, port, hosts = Attack(data, folder, calm, codes), free_port(), Hosts()
        try:
            if before:
                before(hosts)
            attack.start(port, port, hosts.addresses[0], *flags,
                         before=[("ip", "netns", "exec", name) for name in hosts.names])
            if fault:
                fault(hosts, attack.ranks)
            attack.expect_end(pattern)
            if name == "packets lost" and not hosts.dropped():
                attack.problems.append("no packet was lost")
        finally:
            hosts.close()
        return attack.told(name)


def main():
    isolate()
    bad_network.run("ip", "address", "add", f"{FAR}/32", "dev", "lo")
    word = sys.argv[1] if len(sys.argv) > 1 else ""
    rows = [(run, row) for run, rows in ((run_relayed, RELAYED),
                                         (run_on_hosts, HOSTS)) for row in rows if word in row[0]]
    with tempfile.TemporaryDirectory() as folder, concurrent.futures.ThreadPoolExecutor(8) as pool:
        data = f"{folder}/data"
        subprocess.run([PROGRAMS / "dtrain-data", "synthesize", f"--output={data}", "--train=96", "--validation=4",
                        "--image_size=16", "--shards=2"], check=True, stdout=subprocess.DEVNULL)
        calm = Attack(data, folder, None)
        calm.resume()
        if calm.problems:
            sys.exit(calm.told("the undisturbed run"))
        bits = [(pathlib.Path(folder) / f"run/checkpoints/step-{STEPS}" / name).read_bytes() for name in STATE]
        problems = [problem for problem in pool.map(lambda one: one[0](one[1], data, bits), rows) if problem]
    finish(problems, len(rows))


if __name__ == "__main__":
    main()
