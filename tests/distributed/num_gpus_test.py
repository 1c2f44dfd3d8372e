"""--num_gpus: the program starts its own ranks, which behave as one program. ctest runs each test_* function on its
own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import os
import re
import signal
import sys
import tempfile

import disk_test
import faults_test
from faults_test import HOST, Training, wait_until
from strangers_test import expect
from workers_test import Workers

FOR_EVER = "--num_batches=1000000"


def start(training, ranks, *flags, launcher=(), **options):
    return training.start(1, "--variable_update=replicated", f"--num_gpus={ranks}", *flags, before=launcher, **options)


def pids_of(job):
    """Live ranks, by number."""
    found = {}
    for pid, variables in job.processes().items():
        for variable in variables:
            if variable.startswith("DTRAIN_LOCAL_RANK="):
                found[int(variable.split("=")[1])] = pid
    return found


def expect_one_error(job):
    expect(job.errors().count("error: ") == 1, job.errors())


def test_ranks_are_one_program(folder):
    training = Training(folder, "--num_batches=4")
    job = start(training, 3)
    job.ends(0, "Batch size:  12 global\n             4 per device\n", "Devices:     ['/cpu:0', '/cpu:1', '/cpu:2']\n")
    expect(job.output().count("Running warm up\n") == 1 and job.output().count("total images/sec") == 1, job.output())
    by_hand = Workers(folder, 3, "--num_batches=4", name="by_hand")
    by_hand.run()
    expect(training.weights(4) == by_hand.training.weights(4), "the weights differ from workers started by hand")


def test_errors_are_printed_once(folder):
    training = Training(folder)
    for flag, text in (("--model=nothing", "nothing"), ("--variable_update=horovod", "--num_gpus=1")):
        job = start(training, 2, flag)
        job.ends(1, text)
        expect_one_error(job)


def test_a_killed_rank_ends_all(folder):
    training = Training(folder, "--save_model_steps=5")
    job = start(training, 3, FOR_EVER)
    training.wait_for_checkpoint(job)
    os.kill(pids_of(job)[1], signal.SIGKILL)
    job.ends(137, "error: rank 1 (process ", " was ended by signal 9 (Killed)\n")
    expect_one_error(job)
    start(training, 3, "--num_batches=20").ends(0, "Restored step ")


def test_a_stopped_rank_ends_all(folder):
    job = start(Training(folder, "--collective_timeout=2"), 3, FOR_EVER)
    job.wait_for_step(3)
    stopped = pids_of(job)[1]
    os.kill(stopped, signal.SIGSTOP)
    job.ends(4, "error: ", f"rank 1 on {HOST} did not ", ": stopped, ",  # "answer", or "reach it"
             f"warning: rank 1 (process {stopped}) is stopped by a signal; killing it, because another process failed\n")
    expect(re.search(r"^error: .* step \d+", job.errors(), re.M), job.errors())
    expect_one_error(job)


def test_a_killed_program_leaves_no_rank(folder):
    job = start(Training(folder), 3, FOR_EVER)
    job.wait_for_step(3)
    expect(len(pids_of(job)) == 3, job.processes())
    job.process.kill()
    wait_until(lambda: not job.processes(), "an end of all ranks", 10)


def test_stop_requests_are_forwarded(folder):
    for number, name in ((signal.SIGTERM, "term"), (signal.SIGUSR1, "usr1"), (signal.SIGHUP, "hup")):
        training = Training(folder, "--save_model_steps=1000", name=name)
        job = start(training, 2, FOR_EVER)
        job.wait_for_step(3)
        job.process.send_signal(number)
        job.ends(75, "stopped on request at step ")
        step = int(job.errors().split("stopped on request at step ")[1].split()[0].rstrip(":,;."))
        start(training, 2, f"--num_batches={step + 2}").ends(0, f"Restored step {step}")


def test_terminal_signals_reach_all_ranks(folder):
    job = start(Training(folder, "--save_model_steps=1000"), 2, FOR_EVER, launcher=("setsid",))
    job.wait_for_step(3)
    os.killpg(job.process.pid, signal.SIGINT)
    job.ends(75, "stopped on request at step ")


def test_failed_rank_reports_the_cause(folder):
    training = Training(folder, "--num_batches=20")
    job = start(training, 2, fault="rank=1,step=8,kind=exception")
    job.ends(2, f"error: rank 1 on {HOST}: step 8: an injected fault\n")
    expect_one_error(job)


def test_slow_disk(folder):
    disk_test.slow_disk(folder, lambda training, **options: start(training, 2, **options))


def test_workers_have_several_devices(folder):
    workers = Workers(folder, 2, "--num_batches=4", "--num_gpus=2")
    jobs = workers.start_all()
    jobs[0].ends(0, "Batch size:  16 global\n", "Ranks:       4 on 1 host\n")
    jobs[1].ends(0, f"note: rank 2 on {HOST} of 4 ranks: rank 0 on {HOST} prints the log\n")
    expect(jobs[1].errors().count("prints the log") == 1, jobs[1].errors())
    alone = Training(folder, "--num_batches=4", name="alone")
    start(alone, 4).ends(0)
    expect(workers.training.weights(4) == alone.weights(4), "the weights differ from four ranks of one program")


def test_a_killed_rank_of_a_worker_ends_all(folder):
    jobs = Workers(folder, 2, FOR_EVER, "--num_gpus=2").start_all()
    jobs[0].wait_for_step(3)
    os.kill(pids_of(jobs[1])[1], signal.SIGKILL)
    jobs[0].ends(4, f"lost rank 3 on {HOST}")
    jobs[1].ends(137, "error: rank 3 (process ")


if __name__ == "__main__":
    if sys.argv[1] == test_failed_rank_reports_the_cause.__name__ and not faults_test.HAS_FAULTS:
        faults_test.skip("there is no DTRAIN_FAULT in a build without DTRAIN_FAULTS")
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
