"""All-reduce through shared memory: the same bits without it, and ranks that die or stop during an all-reduce. ctest
runs each test_* function on its own, with the all-reduce program in DTRAIN_SUMMING_RANKS.
"""

import ctypes
import os
import pathlib
import platform
import signal
import struct
import sys
import tempfile

from faults_test import HOST, MPIRUN, PROGRAMS, Job, wait_until
from tcp_ranks_test import run

SUMS = os.environ["DTRAIN_SUMMING_RANKS"]
NOTICE = "instead of shared memory, which is faster: rank 0 on"
MEMORY = "/memfd:dtrain-sums"


def refuse_memory():
    """Makes memfd_create fail in this process and its descendants, by a seccomp filter."""
    number = {"x86_64": 319, "aarch64": 279}[platform.machine()]
    load, if_equal, answer = 0x20, 0x15, 0x06
    refused, allowed = 0x00050001, 0x7FFF0000  # return EPERM; allow
    steps = [(load, 0, 0, 0), (if_equal, 0, 1, number), (answer, 0, 0, refused), (answer, 0, 0, allowed)]
    filters = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *step) for step in steps))
    program = ctypes.create_string_buffer(struct.pack("HxxxxxxQ", len(steps), ctypes.addressof(filters)))
    libc = ctypes.CDLL(None, use_errno=True)
    no_new_privileges, set_seccomp, filter_mode = 38, 22, 2
    if libc.prctl(no_new_privileges, 1, 0, 0, 0) or libc.prctl(set_seccomp, filter_mode, program, 0, 0):
        raise OSError(ctypes.get_errno(), "seccomp")


def refused(folder, ranks):
    job = Job(pathlib.Path(folder), (*MPIRUN, "-np", ranks, sys.executable, "-B", __file__, "refuse", SUMS,
                                     "--gtest_filter=Communicator.AddsInAFixedOrder:TheEnd.*"),
              {"DTRAIN_TEST_SHARES": "0"})
    job.ends(0, "[  PASSED  ]", f"all-reduce over MPI {NOTICE}", "memfd_create: Operation not permitted")
    communicators = 5  # created by the tests
    if job.errors().count(NOTICE) != communicators:
        raise AssertionError(f"expected a notice for each of {communicators} communicators; {job.written()}")


def test_two_ranks_without_memfd(folder):
    refused(folder, 2)


def test_four_ranks_without_memfd(folder):
    refused(folder, 4)


def test_tcp(folder):
    run(folder, 4, GTEST_FILTER="Communicator.AddsInAFixedOrder:TheEnd.*")


def pids_that_share(job):
    def shares(pid):
        try:
            return MEMORY in pathlib.Path(f"/proc/{pid}/maps").read_text()
        except OSError:
            return False
    return [pid for pid in job.processes() if shares(pid)]


def in_the_midst_of_sums(folder, ranks, *flags):
    job = Job(pathlib.Path(folder), (*MPIRUN, "-np", ranks, PROGRAMS / "dtrain-allreduce-benchmark", "--sizes=400K,40M",
                                     "--iterations=400", "--warmup=0", *flags), {})
    wait_until(lambda: "409600" in job.output() or job.process.poll() is not None, "sums")
    if len(pids_that_share(job)) != ranks:
        raise AssertionError(f"{ranks} ranks do not share memory; {job.written()}")
    return job


def test_killed_rank(folder):
    job = in_the_midst_of_sums(folder, 4)
    os.kill(job.pid_of_rank(2), signal.SIGKILL)
    job.ends(128 + signal.SIGKILL, "process rank 2", "signal 9")


def test_stopped_rank(folder):
    job = in_the_midst_of_sums(folder, 4, "--collective_timeout=10")
    os.kill(job.pid_of_rank(1), signal.SIGSTOP)
    job.ends(4, "error: rank ", f"rank 1 on {HOST} did not answer: stopped, or cut off")


if __name__ == "__main__":
    if sys.argv[1] == "refuse":
        refuse_memory()
        os.execv(sys.argv[2], sys.argv[2:])
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
