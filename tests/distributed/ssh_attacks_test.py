"""Malicious hostfiles and hosts against scripts/dtrain-mpirun and related scripts: names that are options, commands or
escapes, endless files, changed host keys, logins that print garbage or never end. None executes a command; each ends
with its error in bounded memory and leaves no session behind. ctest runs each test_* function on its own.
"""

import concurrent.futures
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from cluster import PORT, SSHD_CONFIG, Cluster, main, wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
MPIRUN = ROOT / "scripts" / "dtrain-mpirun"
EC2 = ROOT / "k8s" / "ec2"
ELASTIC = ROOT / "k8s" / "overlays" / "elastic" / "elastic.sh"
LIMIT = 60
CANARY = "touch${IFS}canary"

# Content of the hostfile as bytes, and pattern of the message.
LINES = [
    (f"-oProxyCommand={CANARY} slots=1", r"1: -oProxyCommand=.* is not a host name"),
    (f"user@-oProxyCommand={CANARY}", r"1: user@-oProxyCommand.* is not a host name"),
    (f"$({CANARY})", r"1: .* is not a host name"),
    (f"`{CANARY}`", r"1: .* is not a host name"),
    (f";{CANARY}", r"1: .* is not a host name"),
    (f"host;{CANARY}", r"1: .* is not a host name"),
    (f"host ;{CANARY}", r"1: .* after the host name: expected settings such as slots=NUMBER"),
    (f"host slots=1 -oProxyCommand={CANARY}", r"1: slots=1.* expected settings such as slots=NUMBER"),
    ("a b", r"1: b after the host name"),
    ("'host'", r"1: .* is not a host name"),
    ("%h", r"1: .* is not a host name"),
    ("*", r"1: .* is not a host name"),
    ("host[0-9]", r"1: .* is not a host name"),
    ("/dev/null", r"1: .* is not a host name"),
    ("caf\u00e9", r"1: .* is not a host name"),
    ("\x1b]0;title\x07host", r"1: \$'\\E\]0;title\\ahost' is not a host name"),
    ("\ufeffhost", r"1: .* is not a host name"),
    ("host\r\nother\r", r"1: \$'host\\r' is not a host name"),
    ("host slots=2\r", r"1: \$'slots=2\\r' after the host name"),
    ("ho\0st slots=2", r"is not a hostfile: expected text of at most 1 MiB"),
    ("a" * 300, r"1: a{80} is not a host name"),
    ("# workers\n\n  \nhost slots=-1", r"4: slots=-1 after the host name"),
    ("host slots=99999999999", r"1: slots=99999999999 after the host name"),
    ("host slots=NaN", r"1: slots=NaN after the host name"),
    ("".join(f"host{i}\n" for i in range(5000)), r"list 5000 hosts, expected at most 4096"),
]


def run(*command, folder, **environment):
    """Exit code, errors and seconds of a command, in a new folder and as leader of a process group."""
    began = time.monotonic()
    process = subprocess.Popen([str(word) for word in command], cwd=folder, stdin=subprocess.DEVNULL, text=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, errors="replace",
                               start_new_session=True, env={
                                   **os.environ, "DTRAIN_WORKER_TIMEOUT": "2", "OMPI_ALLOW_RUN_AS_ROOT": "1",
                                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", **environment})
    try:
        _, errors = process.communicate(timeout=LIMIT)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return "none", process.communicate()[1], LIMIT
    return process.returncode, errors, time.monotonic() - began


def judge(name, code, errors, expected, pattern, folder):
    """Description of a failure; empty if the attack was handled. `expected` is an exit code or a tuple of them."""
    errors = errors.removesuffix("\0")  # Open MPI 5 ends its message with a null character
    lines = errors.splitlines()
    if code not in (expected if isinstance(expected, tuple) else (expected,)):
        return f"{name}: exit code {code}, expected {expected}: {errors}"
    if not any(re.search(pattern, line) for line in lines):
        return f"{name}: no line matches {pattern!r}: {errors!r}"
    if re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", errors) or any(line.startswith("forged") for line in lines):
        return f"{name}: a line was forged: {errors!r}"
    return f"{name}: it ran a command" if (pathlib.Path(folder) / "canary").exists() else ""


def report(attacks):
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        problems = [problem for problem in pool.map(lambda one: one(), attacks) if problem]
    for problem in problems:
        print("FAILED", problem)
    print(f"{len(attacks) - len(problems)} of {len(attacks)} attacks were handled")
    assert not problems and attacks


def line_attack(text, pattern):
    def attack():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "hostfile"
            path.write_bytes(text.encode())
            code, errors, _ = run(MPIRUN, "--hostfile", path, "-np", "1", "true", folder=folder)
            return judge(repr(text[:40]), code, errors, 1, pattern, folder)
    return attack


def file_attack(name, make, code, pattern, script=MPIRUN, flag=("--hostfile",), **environment):
    """`make` creates the hostfile and returns its path, the argument of `flag`."""
    def attack():
        with tempfile.TemporaryDirectory() as folder:
            path = make(pathlib.Path(folder))
            command = (script, *flag, path, "-np", "1", "true") if script == MPIRUN else (script,)
            found, errors, seconds = run(*command, folder=folder, HOSTFILE=str(path), FS=folder, **environment)
            late = f"{name}: it took {seconds:.0f} s" if seconds > 20 else ""
            return judge(name, found, errors, code, pattern, folder) or late
    return attack


def elastic_attack(name, discover, code, pattern, mpirun=None):
    """`discover` acts as the operator's script for k8s/overlays/elastic; `mpirun` replaces the wrapper."""
    def attack():
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "discover.sh"
            path.write_text(discover)
            if mpirun:
                (pathlib.Path(folder) / "dtrain-mpirun").write_text(f"#!/bin/sh\n{mpirun}\n")
                (pathlib.Path(folder) / "dtrain-mpirun").chmod(0o755)
            found, errors, _ = run(ELASTIC, 1, 1, 1, "true", folder=folder, DTRAIN_DISCOVER_HOSTS=str(path),
                                   PATH=f"{folder}:{MPIRUN.parent}:{os.environ['PATH']}")
            return judge(name, found, errors, code, pattern, folder)
    return attack


def made(name, text=None, size=None):
    def make(folder):
        path = folder / name
        path.write_bytes((text or "").encode())
        if size:
            os.truncate(path, size)
        return path
    return make


def fifo(folder):
    os.mkfifo(folder / "fifo")
    return folder / "fifo"


def link(target):
    def make(folder):
        (folder / "link").symlink_to(target)
        return folder / "link"
    return make


def test_files():
    attacks = [line_attack(text, pattern) for text, pattern in LINES]
    none = "there is no hostfile"
    attacks += [
        file_attack("a FIFO", fifo, 1, none),
        file_attack("a device without an end", lambda _: "/dev/zero", 1, none),
        file_attack("a folder", lambda folder: folder, 1, none),
        file_attack("a link that leads nowhere", link("nowhere"), 1, none),
        file_attack("a link to itself", link("link"), 1, none),
        file_attack("a sparse file of 100 GB", made("h", size=100 << 30), 1, "is not a hostfile"),
        file_attack("a name with a forged line", lambda folder: folder / "x\nforged\x1b[2J", 1, f"{none} .*xforged"),
        file_attack("a name that is an option", lambda _: "-x", 1, none),
        # Passed to mpirun by an MCA parameter.
        file_attack("a hostfile by a parameter", made("h", f"-oProxyCommand={CANARY}"), 1, "is not a host name",
                    flag=("-mca", "orte_default_hostfile")),
        file_attack("a time of letters", made("h", "host"), 1, "DTRAIN_WORKER_TIMEOUT is '1forged'",
                    DTRAIN_WORKER_TIMEOUT="1\x1b\nforged"),
        # The codes of Open MPI 4 and 5.
        file_attack("no hosts", made("h", "# none\n"), (1, 213), "No nodes are available|allocate nodes"),
    ]
    for script in (EC2 / "run.sh", EC2 / "cluster-health-check.sh"):
        attacks += [
            file_attack(f"{script.name}: a FIFO", fifo, 1, none, script),
            file_attack(f"{script.name}: a device", lambda _: "/dev/zero", 1, none, script),
            file_attack(f"{script.name}: a large file", made("h", size=100 << 30), 1, none, script),
            file_attack(f"{script.name}: no hosts", made("h", "#"), 1, "names no host", script),
        ]
    attacks.append(file_attack("run.sh: slots without end", made("h", "host slots=99999999999999999999\n"), 1,
                               "slots: expected at most 999999", EC2 / "run.sh"))
    attacks += [
        elastic_attack("a worker that is an option", f"echo '-oProxyCommand={CANARY}'", 1, "is not a host name"),
        elastic_attack("a worker with settings", f"echo 'host slots=9 ;{CANARY}'", 1, "^host slots=1$",
                       mpirun='cat "$2" >&2; exit 1'),
        elastic_attack("workers without end", "seq 1000000000", 4, "fewer than 1 ranks can run"),
        elastic_attack("no workers", "exit 1", 4, "fewer than 1 ranks can run"),
    ]
    report(attacks)


# Ports of a worker, and the behaviour of a login. A Banner is printed before the login.
LOGINS = {
    "escapes": 'Banner {folder}/banner\nAuthorizedKeysFile none',
    "garbage": "ForceCommand while printf '\\033[2Jforged' && head -c 4000000 /dev/zero | tr '\\0' x; do "
               "sleep 0.05; done",
    "nothing": "ForceCommand sleep 1000",
    "exits": "ForceCommand exit 3",
    "greets": "Banner {folder}/banner\nForceCommand printf '\\033[2Jwelcome\\n'; "
              "printf 'and more\\n' >&2; eval \"$SSH_ORIGINAL_COMMAND\"",
}
# Host, exit code, pattern. Hosts that are not in LOGINS are plain workers.
HOSTS = [
    ("garbage", 4, r"garbage: no answer yet"),
    ("escapes", 4, r"escapes: .*Permission denied"),
    ("nothing", 4, r"nothing: no answer yet"),
    ("exits", 4, r"exits: .*ssh exited with 3 and no message"),
    ("changed", 4, r"changed: .*Host key verification failed"),
    ("stranger", 4, r"stranger: .*(Host key verification failed|known)"),
    ("silent", 4, r"silent: .*(timed out|no answer yet)"),
    ("closes", 4, r"closes: .*(closed|reset|kex_exchange)"),
    ("speaks.http", 4, r"speaks\.http: .*"),
    ("no.such.host.invalid", 4, r"no\.such\.host\.invalid: .*Could not resolve"),
    ("plain:2222", 4, r"plain:2222: .*Could not resolve"),
    ("fe80::1%nowhere", 4, r"fe80::1%nowhere: .*(Could not resolve|Invalid|No such)"),
    ("a%h", 4, r"a%h: .*(Could not resolve|hostname contains invalid)"),
    ("nobody@plain", 4, r"nobody@plain: ."),
    ("plain", 0, ""),
    ("PLAIN", 0, ""),
    ("root@plain", 0, ""),
    ("greets", 0, ""),
]
# Servers that are not sshd.
PEERS = """
import socket, threading
def serve(port, text, close):
    server = socket.create_server(("0.0.0.0", port))
    kept = []
    while True:
        peer = server.accept()[0]
        peer.sendall(text)
        if close: peer.close()
        else: kept.append(peer)
for port, text, close in ((3001, b"", False), (3002, b"", True), (3003, b"HTTP/1.1 400 \\x1b[2J\\r\\n" * 2000, True)):
    threading.Thread(target=serve, args=(port, text, close)).start()
"""
PEER_PORTS = {"silent": 3001, "closes": 3002, "speaks.http": 3003}


def prepare(cluster):
    """Starts a worker that listens on one port per kind of login."""
    folder, [worker] = cluster.folder, cluster.workers
    ports = {name: PORT + 1 + number for number, name in enumerate(LOGINS)}
    config = SSHD_CONFIG.format(port=PORT, folder=folder) + "".join(f"Port {port}\n" for port in ports.values())
    config += "MaxStartups 256\n"
    config += "".join(f"Match LocalPort {ports[name]}\n{rule.format(folder=folder)}\n" for name, rule in LOGINS.items())
    (folder / "sshd_config").write_text(config)
    (folder / "banner").write_bytes(b"\x1b[2J\x9b31m\xc2\x9b2Jforged line\r\nforged: done\x07\r" + b"x" * 5000)
    names = ["plain", "changed", "stranger", *ports, *PEER_PORTS]
    with (folder / "hosts").open("a") as hosts:
        hosts.writelines(f"{worker.address} {name}\n" for name in names)
    key, other = (folder / "host_key.pub").read_text(), (folder / "user_key.pub").read_text()
    with (folder / "known_hosts").open("a") as known:
        known.writelines(f"[{name}]:{ports.get(name, PORT)} {other if name == 'changed' else key}"
                         for name in names if name not in ("stranger", *PEER_PORTS))
    special = "".join(f"Host {name}\n  Port {port}\n" for name, port in {**ports, **PEER_PORTS}.items())
    (folder / "ssh_config").write_text(special + (folder / "ssh_config").read_text())
    script = f"python3 -c '{PEERS}' & exec /usr/sbin/sshd -De -f {folder}/sshd_config"
    worker.start(["bash", "-c", script], {**os.environ, "K_MPI_JOB_ROLE": "worker"})
    wait_until(lambda: worker.errors().count("listening on 0.0.0.0") == 1 + len(ports), "sshd")


def largest_wrapper():
    """Largest memory of a wrapper process in MB."""
    found = [0]
    for process in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if b"/dtrain-mpirun\0" in (process / "cmdline").read_bytes():
                found.append(int(re.search(r"VmRSS:\s+(\d+)", (process / "status").read_text())[1]) / 1024)
        except (OSError, TypeError):
            pass
    return max(found)


def test_hosts():
    """All hosts at once: a shell in the launcher starts a wrapper per host and records its end."""
    with Cluster(workers=1, start_workers=False) as cluster:
        prepare(cluster)
        work = cluster.folder / "work"
        work.mkdir()
        script = [f"cd {work}; unset OMPI_MCA_orte_default_hostfile"]
        for number, (host, code, _) in enumerate(HOSTS):
            (work / f"hosts{number}").write_text(f"{host}\n{host}\n")
            script.append(f"(DTRAIN_WORKER_TIMEOUT={8 if code else 60} {MPIRUN} --hostfile hosts{number} -np 2 echo rank runs >out{number} 2>err{number}; "
                          f"echo $? >code{number}) &")
        script += ["wait", "for look in {1..100}; do left=$(grep -lx ssh /proc/[0-9]*/comm) || break; sleep 0.1; done",
                   'echo -n "$left" >left']
        cluster.start("bash", "-c", "\n".join(script), environment={"OMPI_MCA_plm_rsh_args": ""})
        largest = 0
        deadline = time.monotonic() + 2 * LIMIT
        while cluster.launcher.process.poll() is None and time.monotonic() < deadline:
            largest = max(largest, largest_wrapper())
            time.sleep(0.1)
        problems = []
        for number, (host, code, pattern) in enumerate(HOSTS):
            ended, errors = work / f"code{number}", (work / f"err{number}").read_bytes()
            found = ended.read_text().strip() if ended.exists() else "-1"
            output = (work / f"out{number}").read_text(errors="replace")
            if code:
                problems.append(judge(host, int(found), errors.decode(errors="replace"), code, pattern, work))
            elif int(found) or output.count("rank runs") != 2:
                problems.append(f"{host}: exit code {found}: {output[-300:]!r} {errors[:600]!r}")
        problems += [f"a wrapper grew to {largest:.0f} MB"] if largest > 20 else []
        left = (work / "left").read_text()
        problems += [f"sessions were left: {left}"] if left else []
        problems = [problem for problem in problems if problem]
        for problem in problems:
            print("FAILED", problem)
        count = len(HOSTS) + 2
        print(f"{count - len(problems)} of {count} attacks were handled")
        assert not problems


if __name__ == "__main__":
    main(globals())
