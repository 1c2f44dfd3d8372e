"""Workers started by hand with --worker_hosts and --task_index over TCP: they train as ranks of mpirun do, and all exit
with code 4 and a line with the cause if they cannot continue. ctest runs each test_* function on its own, with the
folder of the programs in DTRAIN_BIN_DIR.
"""

import os
import shutil
import signal
import sys
import tempfile
import time

from faults_test import HOST, Training, wait_until
from strangers_test import expect, free_port


def hosts_of(count):
    return ",".join(f"127.0.0.1:{free_port()}" for _ in range(count))


class Workers:
    """A training by `count` workers that write to train_dir `name`."""

    def __init__(self, folder, count, *flags, name="run", job_name="worker", update="replicated"):
        self.training = Training(folder, "--collective_timeout=20", *flags, name=name)
        self.hosts = hosts_of(count)
        self.flags = [f"--variable_update={update}", *([f"--job_name={job_name}"] if job_name else [])]
        self.count = count

    def start(self, task, *flags, hosts=None):
        return self.training.start(1, *self.flags, f"--worker_hosts={hosts or self.hosts}", f"--task_index={task}", *flags)

    def start_all(self, *flags):
        return [self.start(task, *flags) for task in range(self.count)]

    def run(self):
        jobs = self.start_all()
        for job in jobs:
            job.ends(0)
        return jobs


def test_training_equals_ranks_of_mpirun(folder):
    jobs = Workers(folder, 3, "--num_batches=4", "--sync_batch_norm").run()
    log = jobs[0].output()
    expect("Batch size:  12 global\n" in log and "Sync:        True\n" in log, log)
    expect("doubling to 64 KiB, then direct over TCP, f32 on the wire\n" in log, log)
    for task in (1, 2):
        expect(not jobs[task].output(), jobs[task].output())
        expect(f"note: rank {task} on {HOST} of 3 ranks: rank 0 on {HOST} prints the log\n" in jobs[task].errors(),
               jobs[task].errors())
    if shutil.which("mpirun"):
        other = Training(folder, "--num_batches=4", "--sync_batch_norm", name="mpirun")
        other.start(3, "--variable_update=replicated").ends(0)
        workers = Training(folder, name="run")
        expect(workers.weights(4) == other.weights(4), "the weights differ from mpirun's ranks")
        expect(workers.losses() == other.losses(), "the losses differ from mpirun's ranks")


def test_torchrun_variables_are_adopted(folder):
    training = Training(folder, "--num_batches=3", "--collective_timeout=20")
    places = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    jobs = [training.start(1, environment={**places, "RANK": str(rank)}) for rank in range(2)]
    jobs[0].ends(0, "Batch size:  8 global\n", "Ranks:       2 on 1 host\n")
    jobs[1].ends(0)
    expect(not jobs[1].output(), jobs[1].output())
    alone = Training(folder, "--num_batches=1", name="alone")
    job = alone.start(1, environment={**places, "RANK": "0", "WORLD_SIZE": "1"})
    job.ends(0, "Batch size:  4 global\n")
    job = alone.start(1, environment={"RANK": "0", "WORLD_SIZE": "2"})
    job.ends(1, "where is rank 0? Set DTRAIN_MASTER_ADDR")


def losses(folder, update, batch=4):
    """Losses of two workers."""
    workers = Workers(folder, 2, "--num_batches=3", name=update, update=update,
                      job_name="" if update == "horovod" else "worker")
    workers.run()
    return workers.training.losses()


def test_update_modes_average_gradients(folder):
    alone = Training(folder, "--num_batches=3", name="alone")
    alone.start(1, batch=8).ends(0)
    expected = alone.losses()
    for update in ("parameter_server", "replicated", "distributed_replicated", "distributed_all_reduce",
                   "collective_all_reduce", "horovod"):
        found = losses(folder, update)
        worst = max(abs(found[step] / expected[step] - 1) for step in range(1, 4))
        expect(worst < 1e-5, f"{update}: losses {found}, of one process {expected}")
    found = losses(folder, "independent")
    expect(abs(found[1] / expected[1] - 1) < 1e-5, f"{found}, of one process {expected}")
    expect(abs(found[3] / expected[3] - 1) > 1e-5, "independent workers have the same losses")


def test_a_late_worker_is_awaited(folder):
    workers = Workers(folder, 2, "--num_batches=2")
    second = workers.start(1)
    time.sleep(2)
    first = workers.start(0)
    first.ends(0)
    second.ends(0)


def test_missing_worker_is_named(folder):
    job = Workers(folder, 2, "--num_batches=2", "--start_timeout=1").start(0)
    job.ends(4, "error: ", "no connection within 1 s from rank 1 (rank 0 on ")


def test_different_worker_lists_end_all(folder):
    workers = Workers(folder, 3, "--num_batches=2")
    other = workers.hosts.split(",")
    other[2] = "elsewhere:1"
    jobs = [workers.start(0), workers.start(1)]
    # Waits until rank 1 has connected: after the end it would wait for another rank 0.
    wait_until(lambda: "waiting for rank 2 on port " in jobs[0].errors(), "rank 0 to miss rank 2 alone")
    jobs.append(workers.start(2, hosts=",".join(other[:2] + [hosts_of(1)])))
    for job in jobs:
        job.ends(4, "the ranks were given different lists of processes: rank 0 on ")
        expect(job.errors().count("error: ") == 1, job.errors())


def test_invalid_worker_lists_are_rejected(folder):
    workers = Workers(folder, 2, "--num_batches=2")
    workers.start(0, hosts="a,b").ends(1, "--worker_hosts: 'a': expected HOST:PORT")
    workers.start(2).ends(1, "--task_index=2: --worker_hosts names 2 workers, counted from 0")
    workers.start(0, hosts="a.invalid:22,b.invalid:22").ends(1, "ranks that meet over a network need a secret")


def test_a_killed_worker_ends_all(folder):
    workers = Workers(folder, 3, "--num_batches=1000000")
    jobs = workers.start_all()
    jobs[0].wait_for_step(3)
    jobs[1].process.kill()
    for task in (0, 2):
        jobs[task].ends(4, f"lost rank 1 on {HOST}")
        expect(jobs[task].errors().count("error: ") == 1, jobs[task].errors())


def test_a_stopped_worker_ends_all(folder):
    workers = Workers(folder, 2, "--num_batches=1000000", "--collective_timeout=6")
    jobs = workers.start_all()
    jobs[0].wait_for_step(3)
    os.kill(jobs[1].process.pid, signal.SIGSTOP)
    jobs[0].ends(4, f"rank 1 on {HOST} did not ")  # "answer" within a step, "reach" a collective between steps
    os.kill(jobs[1].process.pid, signal.SIGCONT)
    jobs[1].ends(4)


def test_a_request_to_stop_reaches_all(folder):
    workers = Workers(folder, 2, "--save_model_steps=1000", "--num_batches=1000000")
    jobs = workers.start_all()
    jobs[0].wait_for_step(3)
    jobs[1].process.send_signal(signal.SIGTERM)
    jobs[0].ends(75, "stopped on request at step ")
    jobs[1].ends(75)


def test_parameter_server_waits_for_sigterm(folder):
    for name in ("ps", "controller"):
        job = Workers(folder, 2, "--ps_hosts=a:1", name=name, job_name=name).start(0)
        wait_until(lambda: "this process is idle and waits for SIGTERM\n" in job.errors(), "a note")
        expect(job.process.poll() is None, "the parameter server has exited")
        job.process.terminate()
        job.ends(0)


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
