"""Launching on a cluster: the harness, scripts/dtrain-mpirun and the behaviour of Open MPI that it relies on, with
shell scripts in place of a program. ctest runs each test_* function on its own.
"""

import os
import pathlib
import shutil
import signal
import subprocess
import sys

from cluster import NETWORK_SETTINGS, Cluster, living_ranks, main, wait_until

MPIRUN = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "dtrain-mpirun"

# Runs until the file named by its argument exists, or for ever without an argument; SIGUSR1 stops it with code 75.
PROGRAM = """
    trap 'echo rank $OMPI_COMM_WORLD_RANK stops; exit 75' USR1
    echo rank $OMPI_COMM_WORLD_RANK runs
    until [ -e "$1" ]; do sleep 0.1; done
    echo rank $OMPI_COMM_WORLD_RANK is done"""
RANKS = ("-np", "4", "bash", "-c", PROGRAM, "program")


def expect(found, expected, cluster):
    if found != expected:
        raise AssertionError(f"found {found!r}, expected {expected!r}; {cluster.launcher.written()}")


def expect_errors(cluster, *texts):
    for text in texts:
        if text not in cluster.launcher.errors():
            raise AssertionError(f"no error '{text}'; {cluster.launcher.written()}")


def start(cluster, *command, environment=None):
    """Starts four ranks and waits until their program runs."""
    cluster.start(*command, environment=environment)
    for rank in range(4):
        cluster.wait_for_output(f"rank {rank} runs")
    cluster.wait_for_ranks(4)


def test_ranks_are_spread_over_hosts():
    with Cluster() as cluster:
        expect(cluster.run(MPIRUN, "-np", "4", "hostname"), 0, cluster)
        expect(sorted(cluster.launcher.output().split()), sorted(2 * ["job-worker-0", "job-worker-1"]), cluster)


def test_killed_rank_ends_the_job():
    with Cluster() as cluster:
        start(cluster, MPIRUN, *RANKS)
        cluster.signal_rank(2, signal.SIGKILL)
        expect(cluster.wait(), 128 + signal.SIGKILL, cluster)
        expect_errors(cluster, "process rank 2", "on node job-worker-1", "signal 9")
        cluster.wait_for_ranks(0)


def test_unreachable_host_ends_the_job():
    with Cluster() as cluster:
        # Tests the wrapper's keepalive, not the image's.
        start(cluster, MPIRUN, *RANKS, environment={name: "" for name in NETWORK_SETTINGS if "keepalive" in name})
        cluster.workers[1].cut_off()
        expect(cluster.wait(), 205, cluster)
        expect_errors(cluster, "job-worker-1")
        # A daemon with a message in flight has no keepalive, and learns of the end when it is reconnected.
        cluster.workers[1].reconnect()
        cluster.wait_for_ranks(0)


def test_killed_host_ends_the_job():
    with Cluster() as cluster:
        start(cluster, MPIRUN, *RANKS)
        cluster.workers[0].end()
        expect(cluster.wait() != 0, True, cluster)
        expect_errors(cluster, "job-worker-0")
        cluster.wait_for_ranks(0)


def test_paused_rank_continues():
    with Cluster() as cluster:
        end = cluster.folder / "end"
        start(cluster, MPIRUN, *RANKS, end)
        cluster.signal_rank(1, signal.SIGSTOP)
        end.touch()
        for rank in (0, 2, 3):
            cluster.wait_for_output(f"rank {rank} is done")
        expect(list(cluster.wait_for_ranks(1)), [1], cluster)
        cluster.signal_rank(1, signal.SIGCONT)
        expect(cluster.wait(), 0, cluster)


def test_host_with_finished_ranks_is_awaited():
    with Cluster(slots=1) as cluster:
        expect(cluster.run(MPIRUN, "-np", "2", "bash", "-c", "sleep $((20 * OMPI_COMM_WORLD_RANK))"), 0, cluster)


def test_workers_reconnect_after_a_partition():
    # ARP retries once per second: a connection right after the partition may take that long.
    reach = "timeout 5 bash -c '< /dev/tcp/job-worker-1.job.default.svc/2222' 2>/dev/null && echo near || echo far"
    with Cluster() as cluster:
        for change, expected in ((cluster.separate_workers, "far"), (cluster.join_workers, "near")):
            change()
            expect(cluster.run(MPIRUN, "-np", "1", "bash", "-c", reach), 0, cluster)
            expect(cluster.launcher.output().strip(), expected, cluster)


def test_late_workers_are_awaited():
    with Cluster(start_workers=False) as cluster:
        cluster.start(MPIRUN, "-np", "4", "hostname")
        cluster.start_sshd(cluster.workers[0])
        # One login succeeded, the other failed, and nothing was started.
        wait_until(lambda: "Accepted publickey" in cluster.workers[0].errors(), "a login to the first worker")
        expect(cluster.launcher.output(), "", cluster)
        cluster.start_sshd(cluster.workers[1])
        expect(cluster.wait(), 0, cluster)
        expect(len(set(cluster.launcher.output().split())), 2, cluster)


def test_launcher_waits_for_its_own_address():
    with Cluster(workers=1) as cluster:
        launcher, worker = cluster.launcher, cluster.workers[0]
        cluster.hostfile.write_text(f"{launcher.host} slots=2\n{cluster.hostfile.read_text()}")
        hosts = cluster.folder / "hosts"
        complete = hosts.read_text()
        hosts.write_text(complete.replace(launcher.host, "other"))
        cluster.start(MPIRUN, "-np", "4", "hostname")
        wait_until(lambda: "Accepted publickey" in worker.errors(), "a login to the worker")
        expect(cluster.launcher.output(), "", cluster)
        hosts.write_text(complete)
        expect(cluster.wait(), 0, cluster)
        expect(set(cluster.launcher.output().split()), {launcher.name, worker.name}, cluster)


# As in a job of more than 64 hosts.
def test_daemons_start_daemons():
    with Cluster(workers=3, slots=1) as cluster:
        tree = {"PRTE_MCA_rml_base_radix": "1"}
        expect(cluster.run(MPIRUN, "-np", "3", "hostname", environment=tree), 0, cluster)
        expect(sorted(cluster.launcher.output().split()), [worker.name for worker in cluster.workers], cluster)


# Open MPI refuses sessions that stay attached on more hosts than may be started at once, by default 128.
def test_many_hosts_are_started_at_once():
    folder = pathlib.Path("/run/programs")
    folder.mkdir()
    for name, script in (("ssh", "exit 0"), ("mpirun", "echo $OMPI_MCA_plm_rsh_num_concurrent")):
        (folder / name).write_text(f"#!/bin/sh\n{script}\n")
        (folder / name).chmod(0o755)
    hostfile = folder / "hostfile"
    for hosts, expected in ((128, ""), (129, "129")):
        hostfile.write_text("".join(f"node-{i} slots=1\n" for i in range(hosts)))
        wrapper = subprocess.run([MPIRUN, "--hostfile", hostfile, "hostname"], capture_output=True, text=True, check=True,
                                 env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})
        if wrapper.stdout.strip() != expected:
            raise AssertionError(f"{hosts} hosts: found '{wrapper.stdout}', expected '{expected}'")


# Open MPI 5's daemons missed the end of every tenth such program.
def test_programs_that_end_at_once():
    with Cluster() as cluster:
        for _ in range(20):
            expect(cluster.run(MPIRUN, "-np", "4", "true", timeout=60), 0, cluster)


def test_abort_by_open_mpi_has_the_code_of_a_lost_connection():
    with Cluster(workers=1) as cluster:
        abort = ("bash", "-c", "echo '*** MPI_ERRORS_ARE_FATAL' >&2; exit 14")
        expect(cluster.run(MPIRUN, "-np", "2", *abort), 4 if shutil.which("prterun") else 14, cluster)
        expect_errors(cluster, "MPI_ERRORS_ARE_FATAL")


def test_missing_worker_is_named():
    with Cluster(start_workers=False) as cluster:
        cluster.start_sshd(cluster.workers[0])
        expect(cluster.run(MPIRUN, "-np", "4", "hostname", environment={"DTRAIN_WORKER_TIMEOUT": "15"}), 4, cluster)
        expect_errors(cluster, "1 of 2 workers accepted no ssh login within 15 s",
                      "job-worker-1.job.default.svc: ssh: connect to host", "Connection refused")
        expect("job-worker-0" in cluster.launcher.errors(), False, cluster)


def test_stop_is_forwarded_and_its_code_returned():
    with Cluster() as cluster:
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1, signal.SIGHUP):
            start(cluster, MPIRUN, *RANKS)
            cluster.launcher.signal(number)
            expect(cluster.wait(), 75, cluster)
            expect("stops" in cluster.launcher.output(), True, cluster)
            cluster.wait_for_ranks(0)


def test_stop_of_a_program_without_handler():
    with Cluster(workers=1) as cluster:
        cluster.start(MPIRUN, "-np", "2", "sleep", "1000")
        cluster.wait_for_ranks(2)
        cluster.launcher.signal(signal.SIGTERM)
        expect(cluster.wait(), 75, cluster)
        expect_errors(cluster, "nothing was saved")


def test_stop_before_there_are_ranks():
    with Cluster(start_workers=False) as cluster:
        cluster.start(MPIRUN, *RANKS)
        wait_until(lambda: "waiting for 2 workers" in cluster.launcher.errors(), "a wrapper that waits")
        cluster.launcher.signal(signal.SIGTERM)
        expect(cluster.wait(), 75, cluster)
        expect_errors(cluster, "asked to stop before the ranks were started")


def test_ranks_are_not_bound_unless_asked():
    allowed = ("-np", "1", "grep", "Cpus_allowed_list", "/proc/self/status")
    own = next(line for line in open("/proc/self/status") if line.startswith("Cpus_allowed_list"))
    with Cluster(workers=1) as cluster:
        expect(cluster.run(MPIRUN, *allowed), 0, cluster)
        expect(cluster.launcher.output(), own, cluster)
        expect(cluster.run(MPIRUN, "--bind-to", "core", *allowed), 0, cluster)
        expect(cluster.launcher.output().split()[1].isdigit(), True, cluster)


# Processes on an unreachable host remove their job's directories when they reconnect. By then the job may have been
# restarted by a launcher with the same host name and process id, which are Open MPI's identity of a job.
def test_restarted_job_has_separate_directories():
    with Cluster(slots=1) as cluster:
        directories = []
        for _ in range(2):
            show = "echo ${OMPI_MCA_orte_jobfam_session_dir:-$PMIX_SERVER_TMPDIR}"  # of Open MPI 4, of 5
            expect(cluster.run(MPIRUN, "-np", "2", "bash", "-c", show), 0, cluster)
            directories += set(cluster.launcher.output().split())
        expect(all(directory.startswith("/run/pod/") for directory in directories), True, cluster)
        expect(len(directories), len(set(directories)), cluster)


def test_invalid_arguments_are_rejected():
    with Cluster(workers=1) as cluster:
        for arguments, environment, message in (
                (("--enable-recovery", *RANKS), {}, "--enable-recovery would report success"),
                (("--hostfile", "/no/file", *RANKS), {}, "there is no hostfile /no/file"),
                (("--hostfile", "/dev/zero", *RANKS), {}, "there is no hostfile /dev/zero"),
                (RANKS, {"DTRAIN_WORKER_TIMEOUT": "1m"}, "DTRAIN_WORKER_TIMEOUT is '1m', expected seconds")):
            expect(cluster.run(MPIRUN, *arguments, environment=environment), 1, cluster)
            expect_errors(cluster, message)


# ssh of the wrapper and of mpirun would take a name that begins with a hyphen for an option.
def test_hostfile_has_only_host_names():
    with Cluster(workers=1) as cluster:
        obeyed = cluster.folder / "obeyed"
        for line, shown in ((f"-oProxyCommand=touch${{IFS}}{obeyed} slots=1", "-oProxyCommand=touch"),
                            (f"user@-oProxyCommand=touch${{IFS}}{obeyed}", "user@-oProxyCommand"),
                            ("a/b slots=1", "a/b"), ("../hosts", "../hosts"), ("$(reboot)", r"\$\(reboot\)"),
                            ("\x1b[2Jhost", r"$'\E[2Jhost'"), (300 * "a", 80 * "a")):
            cluster.hostfile.write_text(f"# workers\n{cluster.workers[0].host} slots=1\n{line}\n")
            expect(cluster.run(MPIRUN, *RANKS), 1, cluster)
            expect_errors(cluster, f"{cluster.hostfile}:3: {shown}", " is not a host name")
            expect(obeyed.exists(), False, cluster)


def test_killed_wrapper_leaves_nothing():
    hostfile = pathlib.Path("/run/hostfile")
    hostfile.write_text("192.0.2.1 slots=1\n")
    wrapper = subprocess.Popen([MPIRUN, "--hostfile", hostfile, "hostname"], stderr=subprocess.PIPE, text=True)
    wait_until(lambda: "waiting for 1 workers" in wrapper.stderr.readline(), "a wrapper that waits")
    wrapper.kill()
    wrapper.wait()
    wait_until(lambda: living_processes() == [pathlib.Path("/proc/1")], "an end of all processes but this one")


def four_ranks_for_ever():
    with Cluster() as cluster:
        cluster.run(MPIRUN, *RANKS, timeout=None)


def living_processes():
    return [process for process in pathlib.Path("/proc").glob("[0-9]*") if (process / "exe").exists()]


def test_killed_harness_leaves_nothing():
    harness = subprocess.Popen([sys.executable, "-B", __file__, four_ranks_for_ever.__name__])
    wait_until(lambda: len(living_ranks()) == 4, "four ranks")
    harness.kill()
    wait_until(lambda: living_processes() == [pathlib.Path("/proc/1")], "an end of all processes but this one")


if __name__ == "__main__":
    main(globals())
