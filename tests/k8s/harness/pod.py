"""A pod: a network namespace on the node's bridge, volumes, and one container at a time, started by enter.py.

Not emulated: seccomp profiles, sidecar containers, image pulls, and the back-off between restarts of a container.
"""

import contextlib
import itertools
import json
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import time

from harness.spaces import DNS_SERVER, NODE, run
from harness.volumes import Volumes, quantity

FOLDER = pathlib.Path("/run/pods")
# Default capabilities of root in container runtimes: CHOWN, DAC_OVERRIDE, FOWNER, FSETID, KILL, SETGID, SETUID,
# SETPCAP, NET_BIND_SERVICE, NET_RAW, SYS_CHROOT, MKNOD, AUDIT_WRITE, SETFCAP.
DEFAULT_CAPABILITIES = (0, 1, 3, 4, 5, 6, 7, 8, 10, 13, 18, 27, 29, 31)
CAPABILITIES = {"NET_BIND_SERVICE": 10, "NET_RAW": 13, "IPC_LOCK": 14, "SYS_CHROOT": 18, "SYS_PTRACE": 19}
ADDRESSES = itertools.count(2)


def value_of(entry, pod):
    """Value of a container's environment variable."""
    source = entry.get("valueFrom")
    if not source:
        return entry.get("value", "")
    if "fieldRef" in source:
        fields = {"metadata.name": pod.name, "metadata.namespace": pod.namespace, "status.podIP": pod.address,
                  "status.hostIP": NODE, "spec.nodeName": "node"}
        path = source["fieldRef"]["fieldPath"]
        label = re.fullmatch(r"metadata\.(labels|annotations)\['(.*)'\]", path)
        return pod.metadata.get(label[1], {})[label[2]] if label else fields[path]
    kind, key = ("Secret", "secretKeyRef") if "secretKeyRef" in source else ("ConfigMap", "configMapKeyRef")
    reference = source[key]
    return pod.node.text_of(kind, reference["name"], reference["key"])


def expanded(text, variables):
    """Text with $(NAME) replaced by a variable's value and $$(NAME) by $(NAME); unknown names are kept."""
    def replace(match):
        return match[0][1:] if match[0].startswith("$$") else variables.get(match[1], match[0])

    return re.sub(r"\$?\$\(([A-Za-z_][A-Za-z0-9_.-]*)\)", replace, text)


class Pod:
    def __init__(self, node, manifest):
        self.node, self.metadata, self.spec = node, manifest["metadata"], manifest["spec"]
        self.name, self.namespace = self.metadata["name"], self.metadata.get("namespace", "default")
        self.owner = manifest.get("owner")
        self.number = next(ADDRESSES)
        self.space = f"{self.name}.{self.number}"
        self.port = f"pod{self.number}"  # the bridge's end of the veth pair
        self.folder = FOLDER / self.space
        (self.folder / "etc").mkdir(parents=True)
        self.address = f"10.244.{self.number // 256}.{self.number % 256}"
        self.restarts = 0
        self.codes = []  # exit codes of the main container, one per start
        self.ready, self.deadline, self.closed = False, None, False
        self.rules = {"pref 0 lookup local"}  # routing rules except the last ones: see policy.py
        self.process = None
        self.add_network()
        self.volumes = Volumes(self.spec, self.folder / "volumes", node.objects, node.shares)
        limits = self.spec["containers"][0].get("resources", {}).get("limits", {})
        memory, cores = (quantity(limits[key]) if key in limits else None for key in ("memory", "cpu"))
        self.groups = node.control_groups.make(self.space, memory and int(memory), cores)
        self.write_system_files()
        self.waiting = [*self.spec.get("initContainers", []), self.spec["containers"][0]]
        self.start_next()

    def add_network(self):
        run("ip", "netns", "add", self.space)
        run("ip", "link", "add", self.port, "type", "veth", "peer", "name", "eth0", "netns", self.space)
        run("ip", "link", "set", self.port, "master", "pods", "up")
        for command in (("address", "add", f"{self.address}/16", "dev", "eth0"), ("link", "set", "eth0", "up"),
                        ("link", "set", "lo", "up"), ("route", "add", "default", "via", NODE)):
            run("ip", "-n", self.space, *command)

    @property
    def hostname(self):
        return self.spec.get("hostname", self.name)

    @property
    def full_name(self):
        """The pod's name in DNS; None for one without a Service."""
        subdomain = self.spec.get("subdomain")
        return f"{self.hostname}.{subdomain}.{self.namespace}.svc.cluster.local" if subdomain else None

    def write_system_files(self):
        folder = self.folder / "etc"
        own = f"{self.full_name or ''} {self.hostname}".strip()
        (folder / "hosts").write_text(f"127.0.0.1 localhost\n::1 localhost\n{self.address} {own}\n")
        (folder / "hostname").write_text(f"{self.hostname}\n")
        domains = [f"{self.namespace}.svc.cluster.local", "svc.cluster.local", "cluster.local",
                   *self.spec.get("dnsConfig", {}).get("searches", [])]
        (folder / "resolv.conf").write_text(f"search {' '.join(domains)}\nnameserver {DNS_SERVER}\noptions ndots:5\n")
        for path in folder.iterdir():
            path.chmod(0o644)

    def user_of(self, container):
        settings = {**self.spec.get("securityContext", {}), **container.get("securityContext", {})}
        user = settings.get("runAsUser", self.node.image.user)
        if settings.get("runAsNonRoot") and user == 0:
            raise ValueError(f"{self.name}: runAsNonRoot, and the image's user is root")
        groups = [*settings.get("supplementalGroups", []), *([settings["fsGroup"]] if "fsGroup" in settings else [])]
        return user, settings.get("runAsGroup", self.node.image.group), groups

    def capabilities_of(self, container):
        wanted = container.get("securityContext", {}).get("capabilities", {})
        kept = set() if "ALL" in wanted.get("drop", []) else set(DEFAULT_CAPABILITIES)
        return sorted(kept - {CAPABILITIES.get(name) for name in wanted.get("drop", [])}
                      | {CAPABILITIES[name] for name in wanted.get("add", [])})

    def environment_of(self, container):
        image = self.node.image
        variables = {**image.environment, "HOSTNAME": self.hostname}
        for entry in container.get("env", []):
            variables[entry["name"]] = expanded(str(value_of(entry, self)), variables)
        return variables

    def describe(self, container):
        """Description of a container for enter.py."""
        variables = self.environment_of(container)
        image, settings = self.node.image, container.get("securityContext", {})
        command = container.get("command") or image.entry_point
        arguments = container.get("args") or ([] if container.get("command") else image.arguments)
        user, group, groups = self.user_of(container)
        system = [{"source": str(self.folder / "etc" / name), "target": f"/etc/{name}", "read_only": False}
                  for name in ("hosts", "hostname", "resolv.conf")]
        return {"layers": [str(layer) for layer in image.layers], "scratch": str(self.folder / "scratch"),
                "control_groups": {kind: str(folder) for kind, folder in self.groups.items()},
                "mounts": [*system, *self.volumes.mounts(container)], "capabilities": self.capabilities_of(container),
                "read_only": settings.get("readOnlyRootFilesystem", False), "uid": user, "gid": group, "groups": groups,
                "no_new_privileges": not settings.get("allowPrivilegeEscalation", True),
                "folder": container.get("workingDir", image.folder), "environment": variables,
                "command": [expanded(str(word), variables) for word in (*command, *arguments)]}

    def start_next(self):
        """Starts the next init container, or the main one."""
        container = self.waiting.pop(0)
        (self.folder / "scratch").mkdir(exist_ok=True)
        if self.process is None:
            run("mount", "-t", "tmpfs", "tmpfs", self.folder / "scratch")
        else:  # a restarted container has a new layer
            run("umount", "--lazy", self.folder / "scratch")
            run("mount", "-t", "tmpfs", "tmpfs", self.folder / "scratch")
        description = self.folder / "container.json"
        description.write_text(json.dumps(self.describe(container)))
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                ["nsenter", f"--net=/run/netns/{self.space}", "unshare", "--mount", "--pid", "--uts", "--ipc", "--fork",
                 "--kill-child", "sh", "-c", 'hostname "$1" && exec "$2" -I -B "$3" "$4"', "pod", self.hostname,
                 sys.executable, pathlib.Path(__file__).with_name("enter.py"), description],
                stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)
        self.started = time.monotonic()

    def log(self):
        """Output of the pod's containers so far, including stderr."""
        return (self.folder / "log").read_text(errors="replace")

    def first_process(self):
        """Process id, in this namespace, of the container's process 1; None if it is not running."""
        with contextlib.suppress(OSError, ValueError):
            return int(pathlib.Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text())
        return None

    def signal(self, number):
        with contextlib.suppress(ProcessLookupError):
            if process := self.first_process():
                os.kill(process, number)

    def delete(self, grace=None):
        """Terminates the pod like API server and kubelet; kills it after the grace period."""
        if self.deadline is None:
            seconds = self.spec.get("terminationGracePeriodSeconds", 30) if grace is None else grace
            self.deadline = time.monotonic() + seconds
            self.signal(signal.SIGTERM if seconds else signal.SIGKILL)

    @property
    def terminating(self):
        return self.deadline is not None

    @property
    def phase(self):
        if self.process.poll() is None:
            return "Running"
        return "Succeeded" if self.code == 0 else "Failed"

    @property
    def code(self):
        """Exit code of the container, 128 + signal if killed; None while it runs."""
        code = self.process.poll()
        return code if code is None or code >= 0 else 128 - code

    def probe(self):
        """True if the readiness probe succeeds."""
        container = self.spec["containers"][0]
        if self.process.poll() is not None or self.waiting or self.terminating:
            return False
        probe = container.get("readinessProbe")
        if not probe:
            return True
        if "tcpSocket" not in probe:
            raise ValueError(f"{self.name}: the harness supports only socket probes, not {sorted(probe)}")
        if time.monotonic() < self.started + probe.get("initialDelaySeconds", 0):
            return False
        port = probe["tcpSocket"]["port"]
        ports = {entry.get("name"): entry["containerPort"] for entry in container.get("ports", [])}
        try:
            socket.create_connection((self.address, ports.get(port, port)), 1).close()
        except OSError:
            return False
        return True

    def step(self):
        """Periodic work of a kubelet. Probes until the pod is ready."""
        if self.terminating and self.process.poll() is None and time.monotonic() > self.deadline:
            self.signal(signal.SIGKILL)
        if self.process.poll() is None or self.closed:
            self.ready = (self.ready and not self.terminating) or self.probe()
            return
        self.ready = False
        if self.waiting and self.code == 0 and not self.terminating:
            self.start_next()
            return
        if len(self.codes) == self.restarts:
            self.codes.append(self.code)
        policy = self.spec.get("restartPolicy", "Always")
        wanted = policy == "Always" or policy == "OnFailure" and self.code
        if wanted and not self.terminating and self.node.may_restart(self):
            self.restarts += 1
            self.waiting = [self.spec["containers"][0]]
            self.start_next()

    def cut_off(self):
        """Takes its link down: packets are dropped silently."""
        run("ip", "link", "set", self.port, "down")

    def close(self):
        """Kills the processes, and removes network and volumes."""
        self.closed = True
        self.signal(signal.SIGKILL)  # a process that has changed its user is not killed with its parent
        self.process.kill()
        self.process.wait()
        run("ip", "netns", "del", self.space)
        subprocess.run(["ip", "link", "del", self.port], capture_output=True)
        self.volumes.close()
        run("umount", "--lazy", self.folder / "scratch")
        for folder in self.groups.values():
            with contextlib.suppress(OSError):
                folder.rmdir()
