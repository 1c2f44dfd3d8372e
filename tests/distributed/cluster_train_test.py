"""Training on a cluster with injected faults: exit codes, named culprits, no ranks left over, and a bitwise equal
resume by the same command. ctest runs each test_* function on its own.
"""

import contextlib
import pathlib
import re
import signal
import subprocess
import time

import training
from cluster import Cluster, main, skip
from cluster_test import MPIRUN, expect, expect_errors

FOLDER = pathlib.Path("/run/training")  # shared by all pods
FOR_EVER = 10**6
WAITED = r"has waited (?:[5-9]|\d\d+) s for"  # the limit, or more: a busy core may delay the watchdog
BEFORE_THE_FAULT = 12  # steps


def in_one_host(ranks, *command):
    done = subprocess.run([*map(str, (*training.IN_ONE_HOST, "-np", ranks, *command))], capture_output=True, text=True)
    if done.returncode:
        raise AssertionError(f"an undisturbed run ended with {done.returncode}: {done.stderr}")
    return done.stdout


class Job:
    """Training on all ranks of a cluster, saving every five steps."""

    def __init__(self, cluster, train_dir):
        self.cluster, self.train_dir, self.ranks = cluster, train_dir, len(cluster.workers) * cluster.slots
        training.make_data(FOLDER / "data")

    def command(self, steps, *flags):
        return training.command(FOLDER / "data", self.train_dir, steps, "--save_model_steps=5", *flags)

    def start(self, *flags, launcher=MPIRUN, environment=None):
        """Starts an endless training; waits for steps and a checkpoint on disk."""
        self.cluster.start(launcher, "-np", self.ranks, *self.command(FOR_EVER, *flags), environment=environment)
        self.wait_for_step(BEFORE_THE_FAULT)
        folder = self.train_dir / "checkpoints"
        self.cluster.wait_for(lambda: any(".tmp-" not in str(path) for path in folder.glob("step-*/MANIFEST.json")),
                              f"a checkpoint in {folder}", timeout=120)

    def step(self):
        return max(training.losses_of(self.cluster.launcher.output()), default=0)

    def wait_for_step(self, step):
        self.cluster.wait_for_output(f"\n{step}\timages/sec", timeout=120)

    def expect_collective(self, before):
        """Checks that the report names a collective of gradients or of ranks' values after the text `before`."""
        collective = before + r" ?(gradients|control) #\d+ '[^']+', \d+ bytes, of (the \w+ after )?step \d+"
        if not re.search(collective, self.cluster.launcher.errors()):
            raise AssertionError(f"no collective after '{before}'; {self.cluster.launcher.written()}")

    def expect_end(self, codes, *errors, before=None):
        code = self.cluster.wait()
        if code not in codes:
            raise AssertionError(f"exit code {code}, expected {codes}; {self.cluster.launcher.written()}")
        expect_errors(self.cluster, *errors)
        if before is not None:
            self.expect_collective(before)
        self.cluster.wait_for_ranks(0)
        return code

    def stop(self):
        """Stops it like a kubelet, without losing a step."""
        self.cluster.launcher.signal(signal.SIGTERM)
        self.expect_end({75}, "stopped on request at step ")
        stopped = re.search(r"stopped on request at step (\d+)", self.cluster.launcher.errors())
        expect(self.saved_step(), int(stopped[1]), self.cluster)

    def saved_step(self):
        names = [folder.name for folder in (self.train_dir / "checkpoints").iterdir()]
        return max(int(name[len("step-"):]) for name in names if name[len("step-"):].isdigit())

    def expect_same_as_undisturbed(self):
        """Resumes for some steps, and compares with an uninterrupted run."""
        saved, cluster = self.saved_step(), self.cluster
        last = saved + 3
        expect(cluster.run(MPIRUN, "-np", self.ranks, *self.command(last, "--collective_timeout=60")), 0, cluster)
        expect(f"Restored step {saved} from" in cluster.launcher.output(), True, cluster)
        left = [path.name for path in (self.train_dir / "checkpoints").iterdir() if ".tmp-" in path.name]
        expect(left, [], cluster)
        undisturbed = training.command(FOLDER / "data", FOLDER / "undisturbed", last, "--collective_timeout=60")
        expect(cluster.run(MPIRUN, "-np", self.ranks, *undisturbed), 0, cluster)
        if training.state_of(self.train_dir, last) != training.state_of(FOLDER / "undisturbed", last):
            raise AssertionError(f"step {last} differs from an undisturbed training")


@contextlib.contextmanager
def job(train_dir=FOLDER / "train", **arguments):
    with Cluster(**{"slots": 1, **arguments}) as cluster:
        yield Job(cluster, train_dir)


def test_training_equals_one_host():
    with job() as one:
        cluster = one.cluster
        expect(cluster.run(MPIRUN, "-np", 2, *one.command(12, "--collective_timeout=60")), 0, cluster)
        in_one_host(2, *training.command(FOLDER / "data", FOLDER / "one_host", 12))
        expect(training.state_of(one.train_dir, 12) == training.state_of(FOLDER / "one_host", 12), True, cluster)


# Four ranks on two hosts reduce within a host first, which changes the rounding.
def test_training_equals_one_rank():
    with job(slots=2) as one:
        cluster = one.cluster
        expect(cluster.run(MPIRUN, "-np", 4, *one.command(12, "--collective_timeout=60")), 0, cluster)
        losses = training.losses_of(cluster.launcher.output())
        alone = training.losses_of(in_one_host(1, *training.command(FOLDER / "data", FOLDER / "alone", 12, batch=16)))
        expect(sorted(losses), list(range(1, 13)), cluster)
        far = {step: (loss, alone[step]) for step, loss in losses.items() if abs(loss - alone[step]) > 0.0011}
        expect(far, {}, cluster)  # printed with three digits


def test_training_survives_a_killed_rank():
    with job(slots=2) as one:
        one.start()
        one.cluster.signal_rank(2, signal.SIGKILL)
        one.expect_end({137}, "process rank 2", "on node job-worker-1", "signal 9")
        one.expect_same_as_undisturbed()


# mpirun notices first, unless a message to that host is in flight: then keepalive is inactive, and the ranks notice.
def test_training_survives_a_host_that_is_cut_off():
    with job() as one:
        one.start("--collective_timeout=30")
        one.cluster.workers[1].cut_off()
        one.expect_end({205, 4}, "job-worker-1")
        one.cluster.workers[1].reconnect()
        one.expect_same_as_undisturbed()


# The ranks notice first; mpirun then sends a message to the host and gets no response.
def test_training_survives_a_host_that_is_cut_off_at_an_end():
    with job() as one:
        one.start()
        one.cluster.workers[1].cut_off()
        one.expect_end({4}, "rank 1 on job-worker-1 did not answer: stopped, or cut off", "but 1 do not respond",
                       before="rank 0 on job-worker-0 " + WAITED)
        one.cluster.workers[1].reconnect()
        one.expect_same_as_undisturbed()


def test_training_survives_a_stopped_rank():
    with job() as one:
        one.start()
        one.cluster.signal_rank(1, signal.SIGSTOP)
        one.expect_end({4}, "rank 1 on job-worker-1 did not answer: stopped, or cut off",
                       before="rank 0 on job-worker-0 " + WAITED)
        one.expect_same_as_undisturbed()


def test_training_waits_for_a_paused_rank():
    with job() as one:
        one.start("--collective_timeout=20")
        one.cluster.signal_rank(1, signal.SIGSTOP)
        warning = "rank 1 on job-worker-1 did not answer: stopped, or cut off"
        deadline = time.monotonic() + 15
        while warning not in one.cluster.launcher.errors() and time.monotonic() < deadline:
            time.sleep(0.1)
        one.cluster.signal_rank(1, signal.SIGCONT)
        expect_errors(one.cluster, warning, "(limit 20 s)")
        one.expect_collective("warning: rank 0 on job-worker-0: waiting for")
        one.wait_for_step(one.step() + 3)
        one.stop()
        one.expect_same_as_undisturbed()


def test_training_survives_a_partition():
    with job() as one:
        one.start()
        one.cluster.separate_workers()  # mpirun reaches both
        one.expect_end({4}, "did not answer: stopped, or cut off", before=WAITED)
        one.cluster.join_workers()
        one.expect_same_as_undisturbed()


def test_partitioned_workers_fail_at_start():
    with Cluster(slots=1) as cluster:
        cluster.separate_workers()
        ranks = (training.BINARIES / "dtrain-info", "--ranks", "--collective_timeout=12")
        expect(cluster.run(MPIRUN, "-np", 2, *ranks), 4, cluster)
        expect_errors(cluster, "MPI has not started within 3 s (limit 12 s)", "do they reach one another")
        cluster.wait_for_ranks(0)


def test_training_stops_on_request_and_resumes():
    with job() as one:
        one.start()
        one.stop()
        one.expect_same_as_undisturbed()


def test_training_waits_for_its_workers():
    with job(start_workers=False) as one:
        cluster = one.cluster
        cluster.start_sshd(cluster.workers[0])
        run = (MPIRUN, "-np", 2, *one.command(6, "--collective_timeout=60"))
        expect(cluster.run(*run, environment={"DTRAIN_WORKER_TIMEOUT": "5"}), 4, cluster)
        expect_errors(cluster, "job-worker-1.job.default.svc: ssh: connect to host")
        cluster.start(*run)
        cluster.wait_for(lambda: "waiting for 2 workers" in cluster.launcher.errors(), "a wrapper that waits")
        cluster.start_sshd(cluster.workers[1])
        expect(cluster.wait(), 0, cluster)
        one.expect_same_as_undisturbed()


# Open MPI reconnects if no message is in flight, and training continues. Otherwise the ranks end the job, also if it
# hangs in a call, which happens if both ends reconnect at once.
def test_reset_connection_loses_nothing():
    with job() as one:
        one.start()
        worker, other = one.cluster.workers
        cut = subprocess.run(["nsenter", f"--net=/run/netns/{worker.name}", "ss", "-K", "dst", other.address],
                             capture_output=True, text=True)
        if "ESTAB" not in cut.stdout:
            skip(f"connections cannot be reset here (CONFIG_INET_DIAG_DESTROY): {cut.stderr}")
        far, has_ended = one.step() + 100, lambda: one.cluster.launcher.first_process() is None
        one.cluster.wait_for(lambda: has_ended() or one.step() > far, "an end, or more steps", timeout=120)
        if has_ended():
            one.expect_end({4}, before="")
        else:
            one.stop()
        one.expect_same_as_undisturbed()


# Each pod has 64 MiB of /dev/shm, the containers' default.
def test_little_shared_memory_is_sufficient():
    with job(workers=1, slots=2) as one:
        cluster = one.cluster
        fill = "mount -o remount,size=1m /dev/shm; dd if=/dev/zero of=/dev/shm/full 2>/dev/null; exec "
        full = ("bash", "-c", fill + '"$@"')
        expect(cluster.run(MPIRUN, "-np", 2, *full, "rank", *one.command(6, "--collective_timeout=60")), 0, cluster)
        one.expect_same_as_undisturbed()


# The limit is lowered on rank 1 only: mpirun kills all ranks when one exits, perhaps before they have printed errors.
def test_limit_of_open_files_is_raised_or_named():
    with job() as one:
        cluster = one.cluster
        for limit, code in (("-n", 6), ("-S -n", 0)):
            limited = ("bash", "-c", f'(( OMPI_COMM_WORLD_RANK != 1 )) || ulimit {limit} 24; exec "$@"', "rank")
            expect(cluster.run(MPIRUN, "-np", 2, *limited, *one.command(6, "--collective_timeout=60")), code, cluster)
            if code:
                expect_errors(cluster, "on job-worker-1: a process may open 24 files here, one of 2 ranks may need 68")
            cluster.wait_for_ranks(0)


def test_worker_writes_where_the_launcher_has_no_volume():
    folder = pathlib.Path("/run/pod/train")  # not shared by the pods
    with job(train_dir=folder) as one:
        cluster = one.cluster
        cluster.hostfile.write_text(f"{cluster.launcher.host} slots=1\n{cluster.hostfile.read_text()}")
        for steps in (6, 8):
            expect(cluster.run(MPIRUN, "-np", 3, *one.command(steps, "--collective_timeout=60")), 0, cluster)
        expect("Restored step 6 from" in cluster.launcher.output(), True, cluster)
        writers = [pod.name for pod in cluster.workers
                   if pathlib.Path(f"/proc/{pod.first_process()}/root{folder}").exists()]
        expect(writers, ["job-worker-0"], cluster)


def test_ranks_on_several_hosts_connect_without_mpi():
    with Cluster(slots=1) as cluster:
        info = (training.BINARIES / "dtrain-info", "--ranks", "--collective_timeout=30")
        at = (f"DTRAIN_MASTER_ADDR={cluster.workers[0].host}", "DTRAIN_MASTER_PORT=7777")
        expect(cluster.run(MPIRUN, "-np", 2, "env", *at, *info), 1, cluster)
        expect_errors(cluster, "ranks that meet over a network need a secret")
        cluster.wait_for_ranks(0)
        expect(cluster.run(MPIRUN, "-np", 2, "env", *at, "DTRAIN_JOB_SECRET=0123456789abcdef", *info), 0, cluster)
        expect("2 ranks" in cluster.launcher.output(), True, cluster)


def test_ranks_on_several_hosts_agree():
    with Cluster() as cluster:
        program = training.BINARIES.parent / "tests" / "test_distributed_summing_ranks"
        expect(cluster.run(MPIRUN, "-np", 4, program), 0, cluster)
        expect(cluster.launcher.output().count("[  PASSED  ]"), 4, cluster)


if __name__ == "__main__":
    main(globals())
