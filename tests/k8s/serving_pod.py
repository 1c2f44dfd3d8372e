"""Runs the pod of the chart maskrcnn-jupyter without a cluster: nginx with the rendered configuration, and the other
containers with their rendered commands, in a private network namespace with free ports."""

import base64
import contextlib
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import time

import tools
import yaml

CHART = tools.K8S / "charts" / "maskrcnn-jupyter"
INSIDE = "DTRAIN_INSIDE"
USER, PASSWORD = "tensorboard", "right password"
PAGE, BOARD = "https://localhost:8443", "https://localhost:9443"


def enter(*programs):
    """Restarts the test in new namespaces as a non-root user, like the pod's."""
    if os.environ.get(INSIDE):
        return
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    for program in ("ip", "unshare", *programs):
        if not shutil.which(program):
            tools.skip(f"there is no {program}")
    if not (tools.PROGRAMS / "dtrain-serve").exists():
        tools.skip(f"there is no dtrain-serve in {tools.PROGRAMS}")
    tools.helms()
    outer = ["unshare", "--user", "--map-root-user", "--net", "--mount", "--pid", "--fork", "--kill-child",
             "--mount-proc"]
    probe = tools.run(*outer, "ip", "link", "set", "lo", "up")
    if probe.returncode:
        tools.skip(f"there is no network namespace: {probe.stderr.strip()}")
    os.environ[INSIDE] = "1"
    script = 'ip link set lo up && exec unshare --user --map-user=1000 --map-group=1000 "$@"'
    os.execvp(outer[0], [*outer, "sh", "-c", script, "sh", sys.executable, "-B", *sys.argv])


def wait_for(what, attempt, seconds=100):
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError, http.client.HTTPException):
            if attempt():
                return
        time.sleep(0.05)
    raise AssertionError(f"no {what} within {seconds} s")


def listens(port):
    with socket.create_connection(("127.0.0.1", port), 1):
        return True


def hash_of(password, scheme):
    """A password hash as htpasswd prints it after the colon."""
    return tools.check_run("htpasswd", "-nb" + scheme, USER, password).strip().partition(":")[2]


# A kubectl whose cluster is the folder $CLUSTER with Secrets as NAME.json, which `create` writes.
KUBECTL = """#!/bin/sh
file=$CLUSTER/$3.json
case "$1 $*" in
  get*jsonpath*) [ ! -f "$file" ] || exec python3 -c 'import json, re, sys
key = re.search(r"[.]data[.](.*)}", sys.argv[2].replace("\\\\", ""))[1]
print(json.load(open(sys.argv[1]))["data"].get(key, ""), end="")' "$file" "$*" ;;
  get*) [ ! -f "$file" ] || echo "secret/$3" ;;
  delete*) rm "$file" ;;
  create*) "$REAL_KUBECTL" "$@" --dry-run=client -o json >"$CLUSTER/$4.json" && echo "secret/$4 created" ;;
esac
"""


def serving_secret(folder, *words):
    """Runs k8s/serving-secret.sh against a cluster of Secrets in a folder; returns its result."""
    program = pathlib.Path(folder) / "bin" / "kubectl"
    program.parent.mkdir(exist_ok=True)
    program.write_text(KUBECTL)
    program.chmod(0o755)
    real = shutil.which("kubectl") or tools.skip("there is no kubectl")
    environment = {"CLUSTER": str(folder), "REAL_KUBECTL": real, "PATH": f"{program.parent}:{os.environ['PATH']}"}
    return tools.run(tools.K8S / "serving-secret.sh", *words, env={**os.environ, **environment})


def created_secrets(folder, *words):
    """Data of the Secrets that k8s/serving-secret.sh creates, by name."""
    folder = pathlib.Path(folder) / "secrets"
    folder.mkdir(exist_ok=True)
    result = serving_secret(folder, *words)
    assert result.returncode == 0, result
    return {path.stem: json.loads(path.read_text())["data"] for path in folder.glob("*.json")}


class Pod:
    """Containers of the rendered chart as processes; volumes are subfolders of a temporary folder."""

    def __init__(self, folder, *values):
        self.folder, self.at = pathlib.Path(folder), {}  # processes by their ports
        settings = ["global.source_cidr=203.0.113.7/32", "global.log_dir=first",
                    "nginx.htpasswd=" + hash_of(PASSWORD, "m"), *values]
        words = [word for value in settings for word in ("--set", value)]
        text = tools.check_run(tools.helms()[-1], "template", "served", CHART, *words)
        self.objects = {one["kind"]: one for one in yaml.safe_load_all(text) if one}
        self.secrets = {"served": self.objects["Secret"]["data"], **created_secrets(self.folder, "served")}
        self.spec = self.objects["Deployment"]["spec"]["template"]["spec"]
        self.environment = dict(os.environ, HOME=str(self.folder / "home"), OMP_WAIT_POLICY="passive")

    def content(self, source):
        """Files of a volume source."""
        if "configMap" in source:
            data, decode, items = self.objects["ConfigMap"]["data"], str.encode, source["configMap"]["items"]
        else:
            reference = source["secret"]
            data = self.secrets[reference.get("name") or reference["secretName"]]
            decode, items = base64.b64decode, reference["items"]
        return {item["path"]: decode(data[item["key"]]) for item in items}

    def container(self, name):
        [found] = [one for one in self.spec["containers"] if one["name"] == name]
        return found

    def start(self, name, port, programs=None, environment=None):
        """Runs a container's command, from the folder `programs`, with its volumes; waits for its port."""
        container = self.container(name)
        volumes = {one["name"]: one for one in self.spec["volumes"]}
        places = {}
        for mount in sorted(container["volumeMounts"], key=lambda one: len(one["mountPath"])):
            volume, path = volumes[mount["name"]], pathlib.PurePath(mount["mountPath"])
            above = next((one for one in path.parents if str(one) in places), None)
            place = self.folder / ("results" if mount["name"] == "results" else f"{name}-{mount['name']}")
            if above:
                place = pathlib.Path(places[str(above)], path.relative_to(above))
            place.mkdir(exist_ok=True)
            for source in volume.get("projected", {}).get("sources", [volume]):
                if "configMap" in source or "secret" in source:
                    for file, data in self.content(source).items():
                        (place / file).write_bytes(data)
            places[mount["mountPath"]] = str(place)

        paths = "|".join(sorted(places, key=len, reverse=True))

        def placed(word):
            return re.sub(rf"(^|=)({paths})(?=/|$)", lambda found: found[1] + places[found[2]], word)

        variables = {one["name"]: placed(one["value"]) for one in container.get("env", [])}
        words = [placed(word) for word in [*container.get("command", []), *container.get("args", [])]]
        words[0] = str(pathlib.Path(programs or "", words[0]))
        self.run(name, port, words, {**self.environment, **variables, **(environment or {})})

    def run(self, name, port, words, environment):
        """Starts a process and waits for its port."""
        with (self.folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(words, env=environment, stdout=log, stderr=subprocess.STDOUT,
                                       stdin=subprocess.DEVNULL)
        self.at[port] = process

        def ready():
            assert process.poll() is None, f"{name} ended: {(self.folder / f'{name}.log').read_text()}"
            return listens(port)

        wait_for(name, ready)

    def start_serving(self):
        """dtrain-serve with a checkpoint of a small network, behind nginx."""
        trained = self.folder / "results" / "first" / "train_log" / "maskrcnn"
        trained.mkdir(parents=True)
        (self.folder / "home").mkdir()
        tools.check_run(tools.PROGRAMS / "dtrain-cnn-benchmarks", "--model=resnet20", "--data_name=cifar10",
                        "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0", "--num_intra_threads=1",
                        "--save_summaries_steps=1", "--summary_verbosity=1", f"--train_dir={trained}")
        self.start("serve", 8501, tools.PROGRAMS, {"OMP_NUM_THREADS": "1"})
        self.start("nginx", 8443)
        self.authority = self.folder / "ca.crt"
        self.authority.write_bytes(base64.b64decode(self.secrets["served-tls"]["ca.crt"]))
        wait_for("model", lambda: self.curl(PAGE + "/readyz")[0] == 200)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.at.values():
            process.terminate()
        for process in self.at.values():
            process.wait()

    def curl(self, url, *options, user=f"{USER}:{PASSWORD}"):
        """Status and body of a request with the CA and a password."""
        words = ["curl", "-sS", "--cacert", self.authority, "-w", "\n%{http_code}", *options, url]
        words += ["-u", user] if user else []
        body, _, status = tools.check_run(*words).rpartition("\n")
        return int(status), body
