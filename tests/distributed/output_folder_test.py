"""The output folder of scripts/dtrain-mpirun, --output-filename, with Open MPI 4 and 5: a file per rank and stream on
the host of the rank. ctest runs each test_* function on its own.
"""

import contextlib
import pathlib
import shutil
import signal

from cluster import Cluster, main, wait_until
from cluster_test import MPIRUN, PROGRAM, RANKS, expect, expect_errors, living_processes, start

OUTPUT = "/run/pod/output"  # on a file system of each host
WRITER = ("bash", "-c", 'echo rank $OMPI_COMM_WORLD_RANK; echo rank $OMPI_COMM_WORLD_RANK >&2; echo "$@"', "program")


# mpirun kills the others when the first rank has ended: all ranks write before one ends.
SLOW_RANKS = ("-np", "4", "bash", "-c", PROGRAM.replace("exit 75", "sleep 3; exit 75"), "program")


def output_files(cluster):
    """Files of the workers in OUTPUT, as (worker, path): text."""
    found = {}
    for number, worker in enumerate(cluster.workers):
        folder = pathlib.Path(f"/proc/{worker.first_process()}/root{OUTPUT}")
        found |= {(number, str(path.relative_to(folder))): path.read_text()
                  for path in folder.rglob("*") if path.is_file()}
    return found


def copiers():
    found = []
    for process in living_processes():
        with contextlib.suppress(OSError):  # it has ended
            if (process / "comm").read_text() == "tee\n":
                found.append(process)
    return found


def test_is_on_the_hosts_of_the_ranks():
    options = [("-output-filename", OUTPUT), ("--output-filename", OUTPUT + ":nojobid,nocopy")]
    if shutil.which("prterun"):  # options of Open MPI 5
        options += [("--output", f"merge-stderr-to-stdout,file={OUTPUT}"), (f"--output-directory={OUTPUT}:NOCOPY",)]
    own = ["--output-filename", "own", "--output", "file=own"]  # the program's
    for option in options:
        with Cluster() as cluster:
            expect(cluster.run(MPIRUN, "--bind-to", "none", "--oversubscribe", "-mca", "btl", "tcp,self", *option,
                               "-np", "10", *WRITER, *own), 0, cluster)
            folder = "" if "nojobid" in option[-1] else "1/"
            files = output_files(cluster)
            expect(sorted({path for _, path in files}),
                   sorted(f"{folder}rank.{rank:02}/std{end}" for rank in range(10) for end in ("out", "err")), cluster)
            expect({worker for worker, _ in files}, {0, 1}, cluster)
            for (_, path), text in files.items():
                line = f"rank {int(path.split('rank.')[1][:2])}\n"
                expect(text, line if path.endswith("err") else line + " ".join(own) + "\n", cluster)
            copies = 0 if "nocopy" in option[-1].lower() else 20
            expect((cluster.launcher.output() + cluster.launcher.errors()).count("rank "), copies, cluster)


def test_ranks_are_stopped_and_killed():
    for number, code in ((signal.SIGTERM, 75), (signal.SIGKILL, 128 + signal.SIGKILL)):
        with Cluster() as cluster:
            start(cluster, MPIRUN, "--output-filename", OUTPUT, *SLOW_RANKS)
            if number == signal.SIGKILL:
                cluster.signal_rank(2, number)
            else:
                cluster.launcher.signal(number)
            expect(cluster.wait(), code, cluster)
            cluster.wait_for_ranks(0)
            text = "rank 2 runs\n" + ("" if number == signal.SIGKILL else "rank 2 stops\n")
            expect(output_files(cluster)[(1, "1/rank.2/stdout")], text, cluster)
            wait_until(lambda: not copiers(), "the end of the processes that copy the output")


def test_unwritable_folder():
    if not shutil.which("prterun"):
        return  # Open MPI 4's mpirun reports it, and hangs
    with Cluster() as cluster:
        expect(cluster.run(MPIRUN, "--output-filename", "/proc/folder", *RANKS), 6, cluster)
        expect_errors(cluster, " cannot write its output to /proc/folder/1/rank.")


if __name__ == "__main__":
    main(globals())
