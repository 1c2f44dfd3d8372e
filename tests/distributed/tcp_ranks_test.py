"""Groups and communicators over TCP: the same program that mpirun starts. ctest runs each test_* function on its own,
with that program in DTRAIN_SUMMING_RANKS.
"""

import os
import pathlib
import secrets
import sys
import tempfile

from faults_test import Job
from strangers_test import free_port


def run(folder, ranks, **variables):
    places = {"DTRAIN_SIZE": str(ranks), "DTRAIN_MASTER_ADDR": "127.0.0.1", "DTRAIN_MASTER_PORT": str(free_port()),
              **variables}
    jobs = [Job(pathlib.Path(folder), [os.environ["DTRAIN_SUMMING_RANKS"]],
                dict(places, DTRAIN_RANK=str(rank), DTRAIN_LOCAL_RANK=str(rank))) for rank in range(ranks)]
    for job in jobs:
        job.ends(0, "[  PASSED  ]")


def test_one(folder):
    run(folder, 1)


def test_two(folder):
    run(folder, 2)


def test_three(folder):
    run(folder, 3)


def test_four_with_a_secret(folder):
    run(folder, 4, DTRAIN_JOB_SECRET=secrets.token_hex(32))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        globals()[sys.argv[1]](temporary)
