"""A preloaded AWS CLI: a process that has imported the CLI of tools.sh forks for each call, because imports and service
models take most of the second of a call.

    with warm_aws.Warm(folder):    # FOLDER/aws forwards its calls to that process; put FOLDER in PATH

A killed call continues in the forked process; tests that kill calls use the CLI itself.
"""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import traceback

import mock

CALLER = """\
#!/usr/bin/python3 -SE
import json, os, socket, sys
with socket.socket(socket.AF_UNIX) as one:
    one.connect({address!r})
    call = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(one, [b"x"], [0, 1, 2])
    one.sendall(call)
    one.shutdown(socket.SHUT_WR)
    sys.exit(int(one.recv(4) or 1))
"""


class Warm:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)

    def __enter__(self):
        self.folder.mkdir(exist_ok=True)
        address = str(self.folder / "socket")
        self.process = subprocess.Popen([mock.TOOLS / "bin/python3", "-B", __file__, address], stdout=subprocess.PIPE)
        assert self.process.stdout.read(1), "the AWS CLI could not be imported"
        caller = self.folder / "aws"
        caller.write_text(CALLER.format(address=address))
        caller.chmod(0o755)
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()


def answer(one, driver):
    """In a forked process: runs the call whose streams, arguments, folder and environment come through the socket."""
    _, streams, _, _ = socket.recv_fds(one, 1, 3)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    parts = []
    while part := one.recv(1 << 16):
        parts.append(part)
    words, folder, environment = json.loads(b"".join(parts))
    os.chdir(folder)
    environment["AWS_DATA_PATH"] = os.environ["AWS_DATA_PATH"]  # set by the import
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["aws", *words]
    code = 1
    try:
        code = driver.main()
    except SystemExit as end:
        code = end.code
    except Exception:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        one.sendall(str(code or 0).encode())
        os._exit(0)


def serve(address):
    driver = clidriver.create_clidriver()
    loader = driver.session.get_component("data_loader")
    for name in ("cli", "endpoints", "partitions", "_retry", "sdk-default-configuration"):
        loader.load_data(name)
    for name in ("service-2", "endpoint-rule-set-1", "paginators-1", "waiters-2"):
        loader.load_service_model("s3", name)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(address)
        listening.listen(64)
        os.write(1, b"x")
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        while True:
            one, _ = listening.accept()
            if os.fork() == 0:
                answer(one, driver)
            one.close()


if __name__ == "__main__":
    from awscli import clidriver
    serve(sys.argv[1])
