#!/usr/bin/env python3
"""Rules for manifests of jobs that no schema holds: those of the operators' own validation, which schemas do not know,
and those that keep a job alive, safe and findable. Those of storage are in lint_storage.py.

    lint.py FILE...        a line for each fault: FILE: KIND/NAME: RULE: what is wrong
    lint.py --rules        the names of the rules, and what each asks for

A file is what one `kubectl apply` sends. Exit codes: 0 all is well, 1 there are faults.
"""

import argparse
import pathlib
import re
import sys

import yaml

import lint_storage

RULES = {}
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Programs that train, and those of them that take the flags of another program, whose own follow `--`.
FRONT_ENDS = ("dtrain-train-imagenet", "dtrain-imagenet-main")
TRAINERS = ("dtrain-cnn-benchmarks", "dtrain-mask-rcnn", "dtrain-launch-benchmark", *FRONT_ENDS)
SSH_PATH = "/etc/dtrain/ssh"
SSH_PORT = 2222
WORKER_TIMEOUT = "1800"
# EFA devices of an instance type, by AWS's tables; types that are not here are not checked.
EFA_DEVICES = {"p3.16xlarge": 0, "p3dn.24xlarge": 1, "p4d.24xlarge": 4, "p4de.24xlarge": 4, "p5.48xlarge": 32,
               "p5e.48xlarge": 32, "p5en.48xlarge": 16, "p6-b200.48xlarge": 8}


def rule(function):
    """Makes a rule of a function that yields messages; its name has hyphens."""
    RULES[function.__name__.replace("_", "-")] = function
    return function


def mapping(value):
    return value if isinstance(value, dict) else {}


def items(value):
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def number(value):
    return isinstance(value, int) and not isinstance(value, bool)


# Jobs of Training Operator, which run programs of others: where their replicas are, their types, and the name of the
# container that the operator looks for.
PEERS = {"PyTorchJob": ("pytorchReplicaSpecs", ("Master", "Worker"), "pytorch"),
         "TFJob": ("tfReplicaSpecs", ("Chief", "Master", "PS", "Worker", "Evaluator"), "tensorflow")}


class Pod:
    """A pod template of an object: `role` is launcher, worker, server or training."""

    def __init__(self, owner, role, template, replicas=1):
        self.owner = owner
        self.role = role
        self.replicas = replicas
        self.metadata = mapping(mapping(template).get("metadata"))
        self.spec = mapping(mapping(template).get("spec"))

    @property
    def containers(self):
        return items(self.spec.get("initContainers")) + items(self.spec.get("containers"))

    @property
    def main(self):
        return (items(self.spec.get("containers")) or [{}])[0]

    @property
    def environment(self):
        return {one.get("name"): one.get("value", "") for one in items(self.main.get("env"))}

    @property
    def args(self):
        return [str(argument) for argument in self.main.get("args") or []]

    def expanded(self, text):
        """A text with the variables of the container in place of $(NAME), as Kubernetes puts them."""
        return re.sub(r"\$\(([A-Za-z_]\w*)\)", lambda found: self.environment.get(found[1], found[0]), text)

    def volume(self, name):
        return next((volume for volume in items(self.spec.get("volumes")) if volume.get("name") == name), {})

    @property
    def mounts(self):
        return items(self.main.get("volumeMounts"))

    def mount_of(self, path):
        """The mount below which a path lies, the deepest one."""
        above = [mount for mount in self.mounts if (path + "/").startswith(f"{mount.get('mountPath')}/")]
        return max(above, key=lambda mount: len(mount["mountPath"]), default=None)

    @property
    def limits(self):
        return mapping(mapping(self.main.get("resources")).get("limits"))

    @property
    def gpus(self):
        return self.limits.get("nvidia.com/gpu", 0)

    @property
    def program(self):
        """The program of ours that the pod runs, and its arguments."""
        for at, argument in enumerate(self.args):
            if re.fullmatch(r"dtrain-[a-z-]+", argument) and argument != "dtrain-mpirun":
                return argument, self.args[at + 1:]
        return None, []

    @property
    def is_launcher(self):
        return self.role == "launcher"


class Job:
    """An object that runs pods."""

    def __init__(self, document, documents):
        self.document = document
        self.documents = documents
        self.kind = document.get("kind")
        self.name = str(mapping(document.get("metadata")).get("name"))
        self.spec = mapping(document.get("spec"))
        self.pods = list(self.find_pods())

    def find_pods(self):
        if self.kind == "MPIJob":
            for role, replica in self.replicas.items():
                yield Pod(self, role.lower(), replica.get("template"), replica.get("replicas"))
        elif self.kind in PEERS:
            for role, replica in self.replicas.items():
                yield Pod(self, {"PS": "server"}.get(role, "training"), replica.get("template"), replica.get("replicas"))
        elif self.kind == "TrainingRuntime":
            template = mapping(mapping(self.spec.get("template")).get("spec"))
            for replica in items(template.get("replicatedJobs")):
                role = {"node": "worker"}.get(replica.get("name"), replica.get("name"))
                inner = mapping(mapping(mapping(replica.get("template")).get("spec")).get("template"))
                yield self.with_trainer(Pod(self, role, inner, self.workers if role == "worker" else 1))
        elif self.kind == "StatefulSet":
            yield Pod(self, "worker", self.spec.get("template"), self.spec.get("replicas"))
        elif self.kind in ("Job", "Deployment"):
            labels = mapping(mapping(self.document.get("metadata")).get("labels"))
            yield Pod(self, labels.get("app.kubernetes.io/component", "training"), self.spec.get("template"))

    def with_trainer(self, pod):
        """The launcher of a TrainingRuntime with what its TrainJob puts in."""
        for other in self.documents:
            if other.get("kind") == "TrainJob" and pod.is_launcher:
                trainer = mapping(mapping(other.get("spec")).get("trainer"))
                pod.main.update({key: trainer[key] for key in ("image", "args") if key in trainer})
        return pod

    @property
    def workers(self):
        if self.kind == "MPIJob":
            return mapping(mapping(self.spec.get("mpiReplicaSpecs")).get("Worker")).get("replicas")
        if self.kind == "TrainingRuntime":
            return mapping(self.spec.get("mlPolicy")).get("numNodes")
        if self.kind == "StatefulSet":
            return self.spec.get("replicas")
        sets = [Job(one, []) for one in self.documents if one.get("kind") == "StatefulSet"]
        return sets[0].workers if sets else None

    @property
    def slots(self):
        if self.kind == "MPIJob":
            return self.spec.get("slotsPerWorker", 1)
        if self.kind == "TrainingRuntime":
            return mapping(mapping(self.spec.get("mlPolicy")).get("mpi")).get("numProcPerNode")
        launchers = [pod for pod in self.pods if pod.is_launcher]
        slots = launchers[0].environment.get("SLOTS", "") if launchers else ""
        return int(slots) if slots.isdigit() else None

    @property
    def is_elastic(self):
        return any("elastic.sh" in argument for pod in self.pods for argument in pod.args)

    @property
    def ranks(self):
        if not (number(self.workers) and number(self.slots)) or self.workers < 1:
            return None
        return (self.workers + bool(self.spec.get("runLauncherAsWorker"))) * self.slots

    @property
    def launcher(self):
        return next((pod for pod in self.pods if pod.is_launcher), None)

    @property
    def replicas(self):
        """The replicas of a job of an operator, by their type."""
        place = PEERS[self.kind][0] if self.kind in PEERS else "mpiReplicaSpecs"
        return {role: mapping(replica) for role, replica in mapping(self.spec.get(place)).items()}

    @property
    def run_policy(self):
        return mapping(self.spec.get("runPolicy"))


# What the operators' own validation asks for.


@rule
def name_of_pods(job):
    """A job's name makes host names of 63 letters at most, begins with a letter and holds no dots."""
    if job.kind not in ("MPIJob", "StatefulSet"):
        return
    workers = job.workers if number(job.workers) and job.workers > 0 else 1
    last = f"{job.name}{'-worker' if job.kind == 'MPIJob' else ''}-{workers - 1}"
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", job.name) or len(last) > 63:
        yield f"{last} is no host name of 63 letters at most that begins with a letter and holds no dots"


@rule
def launcher_replicas(job):
    """There is one launcher."""
    if job.kind == "MPIJob" and job.launcher and job.launcher.replicas not in (None, 1):
        yield f"{job.launcher.replicas} launchers, expected 1"


@rule
def worker_replicas(job):
    """The number of workers is given, and 1 at least."""
    if job.kind == "MPIJob" and any(pod.role == "worker" for pod in job.pods) \
            and not (number(job.workers) and job.workers >= 1):
        yield f"replicas of Worker is {job.workers}, expected 1 or more"


@rule
def replica_types(job):
    """Replicas are of the types Launcher and Worker, and a launcher is there."""
    if job.kind != "MPIJob":
        return
    types = set(mapping(job.spec.get("mpiReplicaSpecs")))
    for name in sorted(types - {"Launcher", "Worker"}):
        yield f"mpiReplicaSpecs.{name}: expected Launcher or Worker"
    if "Launcher" not in types:
        yield "there is no Launcher"


@rule
def restart_policy(job):
    """Restart policies are Never or OnFailure."""
    for role, replica in job.replicas.items():
        if replica.get("restartPolicy") not in ("Never", "OnFailure"):
            yield f"{role}: restartPolicy is {replica.get('restartPolicy')}, expected Never or OnFailure"


@rule
def clean_pod_policy(job):
    """What becomes of the pods is said under runPolicy."""
    if job.replicas and job.run_policy.get("cleanPodPolicy") not in ("None", "Running", "All"):
        yield f"runPolicy.cleanPodPolicy is {job.run_policy.get('cleanPodPolicy')}, expected None, Running or All"


@rule
def launcher_creation(job):
    """The launcher is created once the workers, whose nodes may have to be made, are ready; that of elastic jobs at once."""
    if job.kind == "MPIJob":
        wanted = "AtStartup" if job.is_elastic else "WaitForWorkersReady"
        found = job.spec.get("launcherCreationPolicy")
        if found != wanted:
            yield f"launcherCreationPolicy is {found}, expected {wanted}"


@rule
def run_limits(job):
    """A job has an end: a limit on its time and on its restarts, and a time after which it is cleared away."""
    where = job.spec if job.kind == "Job" else job.run_policy
    if job.kind != "Job" and not job.replicas:
        return
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        if not (number(where.get(name)) and where[name] >= 0):
            yield f"{name} is {where.get(name)}, expected a number"


@rule
def managed_by(job):
    """Who manages the job is its operator, or Kueue's MultiKueue."""
    operator = "training-operator" if job.kind in PEERS else "mpi-operator"
    if job.run_policy.get("managedBy") not in (None, f"kubeflow.org/{operator}", "kueue.x-k8s.io/multikueue"):
        yield f"runPolicy.managedBy is {job.run_policy['managedBy']}"


@rule
def implementation(job):
    """The MPI is one that the operator knows."""
    if job.kind == "MPIJob" and job.spec.get("mpiImplementation", "OpenMPI") not in ("OpenMPI", "Intel", "MPICH"):
        yield f"mpiImplementation is {job.spec['mpiImplementation']}"


@rule
def operator_container(job):
    """Training Operator finds the container of a pod by its name: pytorch, or tensorflow."""
    for role, replica in job.replicas.items():
        if job.kind in PEERS:
            name = PEERS[job.kind][2]
            containers = items(mapping(mapping(replica.get("template")).get("spec")).get("containers"))
            if name not in [one.get("name") for one in containers]:
                yield f"{role}: no container is called {name}"


@rule
def operator_replicas(job):
    """Training Operator knows the types of replicas; there is one master, and an elastic job has workers in its limits."""
    if job.kind not in PEERS:
        return
    for role in sorted(set(job.replicas) - set(PEERS[job.kind][1])):
        yield f"{role}: expected one of {', '.join(PEERS[job.kind][1])}"
    if job.replicas.get("Master", {}).get("replicas", 1) != 1 or {"Chief", "Master"} <= set(job.replicas):
        yield "expected one master"
    limits = mapping(job.spec.get("elasticPolicy"))
    if limits:
        count = job.replicas.get("Worker", {}).get("replicas", 0)
        if not limits.get("minReplicas", count) <= count <= limits.get("maxReplicas", count) or not count:
            yield f"{count} workers, expected {limits.get('minReplicas')} to {limits.get('maxReplicas')}"


@rule
def gang_size(job):
    """A gang does not count the launcher, which comes after the workers."""
    policy = mapping(job.run_policy.get("schedulingPolicy"))
    if policy and number(job.workers) and policy.get("minAvailable") != job.workers:
        yield f"schedulingPolicy.minAvailable is {policy.get('minAvailable')}, expected {job.workers}"


# The command.


@rule
def number_of_ranks(job):
    """mpirun starts as many ranks as the workers have slots."""
    pod = job.launcher
    if not pod or job.is_elastic or job.ranks is None:
        return
    for at, argument in enumerate(pod.args[:-1]):
        if argument in ("-np", "--np", "-n"):
            value = pod.expanded(pod.args[at + 1])
            if value != str(job.ranks):
                yield f"{argument} {value}, but workers x slots are {job.ranks}"
            return
    yield "mpirun is not told how many ranks to start"


@rule
def expect_ranks(job):
    """The program is told how many ranks to expect, so that none trains alone."""
    pod = job.launcher
    if not pod or job.ranks is None:
        return
    program, flags = pod.program
    if program in FRONT_ENDS:
        flags = flags[flags.index("--") + 1:] if "--" in flags else []
    wanted = "--expect_ranks=" + ("{ranks}" if job.is_elastic else str(job.ranks))
    if wanted not in [pod.expanded(flag) for flag in flags]:
        yield f"the command of {program} has no {wanted}"


@rule
def launcher_program(job):
    """Launchers start mpirun by dtrain-mpirun, which awaits the workers and turns SIGTERM into 75."""
    pod = job.launcher
    if pod and "dtrain-mpirun" not in pod.args and not job.is_elastic:
        yield "the launcher runs no dtrain-mpirun"


@rule
def entry_point(job):
    """Containers run through the image's entry point, which makes the entry of the user and the keys. Images of others
    have none like it."""
    for pod in job.pods if job.kind not in PEERS else []:
        if "command" in pod.main:
            yield f"{pod.role}: command replaces the entry point; give args"


@rule
def no_root_flag(job):
    """mpirun does not run as root."""
    for pod in job.pods:
        if any("allow-run-as-root" in argument for argument in pod.args):
            yield f"{pod.role}: --allow-run-as-root"


@rule
def variables(job):
    """$(NAME) in arguments and variables is defined before it; else it stays as it is."""
    for pod in job.pods:
        seen = set()
        texts = []
        for one in items(pod.main.get("env")):
            texts.append((str(one.get("value", "")), set(seen)))
            seen.add(one.get("name"))
        texts += [(argument, seen) for argument in pod.args]
        for text, known in texts:
            for name in re.findall(r"(?<!\$)\$\(([A-Za-z_]\w*)\)", text):
                if name not in known:
                    yield f"{pod.role}: $({name}) is not defined"


@rule
def one_variable_each(job):
    """No variable is set twice."""
    for pod in job.pods:
        names = [one.get("name") for one in items(pod.main.get("env"))]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{pod.role}: {name} is set {names.count(name)} times"


# The network between the pods.


@rule
def worker_timeout(job):
    """Launchers await workers for 30 minutes, as long as nodes may take that have to be made."""
    if job.launcher:
        value = job.launcher.environment.get("DTRAIN_WORKER_TIMEOUT")
        if value != WORKER_TIMEOUT:
            yield f"DTRAIN_WORKER_TIMEOUT is {value}, expected {WORKER_TIMEOUT}"


@rule
def keepalive(job):
    """Open MPI notices a host that is cut off after seconds."""
    if job.launcher:
        for name, most in (("time", 10), ("intvl", 5), ("probes", 5)):
            value = job.launcher.environment.get("OMPI_MCA_oob_tcp_keepalive_" + name, "")
            if not (value.isdigit() and 1 <= int(value) <= most):
                yield f"OMPI_MCA_oob_tcp_keepalive_{name} is '{value}', expected 1 to {most}"


@rule
def tagged_output(job):
    """Lines of the log have rank and time."""
    if job.launcher:
        for name in ("OMPI_MCA_orte_tag_output", "OMPI_MCA_orte_timestamp_output"):
            if job.launcher.environment.get(name) != "true":
                yield f"{name} is {job.launcher.environment.get(name)}, expected true"


@rule
def ssh_path(job):
    """The key is mounted where the image looks for it."""
    where = {"MPIJob": job.spec, "TrainingRuntime": mapping(mapping(job.spec.get("mlPolicy")).get("mpi"))}.get(job.kind)
    if where is not None and where.get("sshAuthMountPath") != SSH_PATH:
        yield f"sshAuthMountPath is {where.get('sshAuthMountPath')}, expected {SSH_PATH}"


@rule
def readiness(job):
    """Workers are ready once sshd answers."""
    for pod in job.pods:
        if pod.role == "worker":
            ports = {port.get("name"): port.get("containerPort") for port in items(pod.main.get("ports"))}
            port = mapping(mapping(pod.main.get("readinessProbe")).get("tcpSocket")).get("port")
            if ports.get(port, port) != SSH_PORT:
                yield f"the readiness probe of workers asks port {port}, expected {SSH_PORT}"


@rule
def network_policy(job):
    """A policy keeps everybody but the job's own pods from its pods."""
    labels = [mapping(pod.metadata.get("labels")) for pod in job.pods]
    for pod, found in zip(job.pods, labels):
        for policy in (one for one in job.documents if one.get("kind") == "NetworkPolicy"):
            spec = mapping(policy.get("spec"))
            chosen = mapping(mapping(spec.get("podSelector")).get("matchLabels"))
            if chosen and chosen.items() <= found.items() and "Ingress" in spec.get("policyTypes", []):
                sources = [source for entry in items(spec.get("ingress")) for source in entry.get("from") or [None]]
                if all(mapping(mapping(source).get("podSelector")).get("matchLabels") == chosen for source in sources):
                    break
        else:
            yield f"{pod.role}: no NetworkPolicy keeps others away"


# The machines.


@rule
def gpus_of_workers(job):
    """A worker has a GPU for each slot, where it has any."""
    for pod in job.pods:
        if pod.role == "worker" and pod.gpus and job.slots is not None and pod.gpus != job.slots:
            yield f"{pod.gpus} GPUs for {job.slots} slots"


@rule
def no_gpu_of_launchers(job):
    """A launcher that has no ranks asks for no GPU."""
    if job.launcher and job.launcher.gpus and not job.spec.get("runLauncherAsWorker"):
        yield f"the launcher asks for {job.launcher.gpus} GPUs"


@rule
def gpu_toleration(job):
    """Pods with GPUs tolerate the taint of GPU nodes."""
    for pod in job.pods:
        if pod.gpus and not any(one.get("key") == "nvidia.com/gpu" for one in items(pod.spec.get("tolerations"))):
            yield f"{pod.role}: no toleration of nvidia.com/gpu"


@rule
def efa_devices(job):
    """EFA devices are as many as the instance type has."""
    for pod in job.pods:
        devices = pod.limits.get("vpc.amazonaws.com/efa", 0)
        instance = mapping(pod.spec.get("nodeSelector")).get("node.kubernetes.io/instance-type")
        if instance in EFA_DEVICES and devices not in (0, EFA_DEVICES[instance]):
            yield f"{devices} EFA devices on {instance}, which has {EFA_DEVICES[instance]}"
        elif devices and instance not in EFA_DEVICES:
            yield f"{devices} EFA devices, and no instance type that is known to have them"


@rule
def resources(job):
    """Containers say what they need of processors and memory, and get just that: Guaranteed quality of service."""
    for pod in job.pods:
        for container in pod.containers:
            given = mapping(container.get("resources"))
            for name in ("cpu", "memory"):
                asked, limit = (mapping(given.get(kind)).get(name) for kind in ("requests", "limits"))
                if asked is None or str(asked) != str(limit):
                    yield f"{container.get('name')}: the request of {name} is {asked}, the limit {limit}; expected one value"


@rule
def shared_memory(job):
    """Ranks of one host have more shared memory than the 64 MiB of containers."""
    for pod in job.pods:
        if pod.role in ("worker", "training"):
            memory = mapping(pod.volume(mapping(pod.mount_of("/dev/shm")).get("name")).get("emptyDir"))
            if memory.get("medium") != "Memory" or "sizeLimit" not in memory:
                yield f"{pod.role}: /dev/shm is no volume in memory with a limit"


@rule
def grace(job):
    """Pods that train have time to save a checkpoint: a minute at least."""
    for pod in job.pods:
        if pod.role in ("launcher", "worker") or pod.program[0] in TRAINERS and pod.role == "training":
            if not pod.spec.get("terminationGracePeriodSeconds", 0) >= 60:
                yield f"{pod.role}: terminationGracePeriodSeconds is {pod.spec.get('terminationGracePeriodSeconds')}"


@rule
def not_disturbed(job):
    """Proxies are not put into pods, and autoscalers leave those that train alone."""
    for pod in job.pods:
        wanted = {"sidecar.istio.io/inject": "false"}
        if pod.role != "server":
            wanted |= {"karpenter.sh/do-not-disrupt": "true", "cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
        annotations = mapping(pod.metadata.get("annotations"))
        for name, value in wanted.items():
            if annotations.get(name) != value:
                yield f"{pod.role}: {name} is {annotations.get(name)}, expected {value}"


# Data and results.


@rule
def data_read_only(job):
    """The data set is mounted read-only, in each pod that trains."""
    directory = next((pod.environment["DATASET_DIR"] for pod in job.pods if pod.environment.get("DATASET_DIR")), None)
    for pod in job.pods:
        if directory and pod.role in ("worker", "training"):
            mount = pod.mount_of(directory)
            if not mount or mount.get("readOnly") is not True:
                yield f"{pod.role}: {directory} is not mounted read-only"


@rule
def results_are_shared(job):
    """Where there is a shared volume, checkpoints and the logs of the ranks lie on it."""
    runner = job.launcher or next((pod for pod in job.pods if pod.role == "training"), None)
    output = runner and runner.environment.get("OUTPUT_DIR")
    if not output:
        return
    for pod in job.pods:
        mount = pod.mount_of(output) if pod.role in ("worker", "training") else {}
        if mount is None or mount.get("readOnly"):
            yield f"{pod.role}: {output} is no volume that can be written"
    program, flags = runner.program
    below = re.escape(output) + "/"
    checkpoints = re.compile("--(train_dir|model_dir|log_dir|checkpoint)[= ]" + below)
    if program in TRAINERS and not checkpoints.search(runner.expanded(" ".join(flags))):
        yield f"{program} keeps no checkpoints below {output}"
    if runner.is_launcher and not re.search("-output-filename " + below, runner.expanded(" ".join(runner.args))):
        yield f"mpirun keeps no logs of the ranks below {output}"


@rule
def host_paths(job):
    """Directories of nodes are read alone."""
    for pod in job.pods:
        for mount in pod.mounts:
            if "hostPath" in pod.volume(mount.get("name")) and mount.get("readOnly") is not True:
                yield f"{pod.role}: {mount.get('mountPath')} is a directory of the node that can be written"


@rule
def volumes(job):
    """Each mount has its volume, each volume its mount, and no claim is mounted by two volumes."""
    for pod in job.pods:
        mounted = {mount.get("name") for container in pod.containers for mount in items(container.get("volumeMounts"))}
        own = items(pod.spec.get("volumes"))
        given = [volume.get("name") for volume in own]
        for name in sorted(mounted ^ set(given)):
            yield f"{pod.role}: {name} is {'not mounted' if name in given else 'no volume'}"
        claims = [mapping(volume.get("persistentVolumeClaim")).get("claimName") for volume in own]
        for claim in sorted({claim for claim in claims if claim and claims.count(claim) > 1}):
            yield f"{pod.role}: two volumes are of the claim {claim}"


@rule
def no_storage(job):
    """Jobs make no volumes and claims: what is deleted with a job cannot be kept."""
    for document in job.documents:
        if document.get("kind") in ("PersistentVolume", "PersistentVolumeClaim", "StorageClass"):
            yield f"{document['kind']} {mapping(document.get('metadata')).get('name')}"


# Images, users and names.


@rule
def image_version(job):
    """Images have a version or a digest, and none is `latest`."""
    for pod in job.pods:
        for container in pod.containers:
            image = str(container.get("image"))
            tag = image.rpartition("/")[2].partition(":")[2]
            if "@sha256:" not in image and (not tag or tag == "latest"):
                yield f"{container.get('name')}: the image {image} has no version"


@rule
def security_of_pods(job):
    """Pods do not run as root, have ids of their own, and a seccomp profile."""
    for pod in job.pods:
        context = mapping(pod.spec.get("securityContext"))
        if context.get("runAsNonRoot") is not True or context.get("runAsUser") in (None, 0):
            yield f"{pod.role}: runs as root"
        if not all(number(context.get(name)) for name in ("runAsGroup", "fsGroup")):
            yield f"{pod.role}: runAsGroup or fsGroup is missing"
        if mapping(context.get("seccompProfile")).get("type") not in ("RuntimeDefault", "Localhost"):
            yield f"{pod.role}: no seccomp profile"
        for name in ("hostNetwork", "hostPID", "hostIPC"):
            if pod.spec.get(name):
                yield f"{pod.role}: {name}"


@rule
def security_of_containers(job):
    """Containers gain no privileges, have no capabilities and a root that is read-only."""
    for pod in job.pods:
        for container in pod.containers:
            context = mapping(container.get("securityContext"))
            capabilities = mapping(context.get("capabilities"))
            for name, value in (("allowPrivilegeEscalation", False), ("readOnlyRootFilesystem", True)):
                if context.get(name) is not value:
                    yield f"{container.get('name')}: {name} is {context.get(name)}"
            if context.get("privileged") or capabilities.get("drop") != ["ALL"] or capabilities.get("add"):
                yield f"{container.get('name')}: has capabilities"


@rule
def no_token(job):
    """Pods get no token of the API server, nor the variables of all services."""
    for pod in job.pods:
        for name in ("automountServiceAccountToken", "enableServiceLinks"):
            if pod.spec.get(name) is not False:
                yield f"{pod.role}: {name} is {pod.spec.get(name)}, expected false"


@rule
def no_secrets_in_variables(job):
    """Secrets are no values of variables, which everybody reads who may look at pods."""
    for pod in job.pods:
        for name, value in pod.environment.items():
            if re.search(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY", str(name)) and value:
                yield f"{pod.role}: {name} is given as text"


@rule
def names_of_pods(job):
    """Pods are found by their names: those that train alone have `training` in theirs, and launchers `launcher`."""
    for pod in job.pods:
        if job.kind == "Job" and pod.is_launcher and not job.name.endswith("-launcher"):
            yield f"the name of a launcher ends with -launcher, {job.name} does not"
        if job.kind == "Job" and pod.role == "training" and pod.program[0] in TRAINERS and "training" not in job.name:
            yield f"{job.name} trains, and has no `training` in its name"


@rule
def one_namespace(job):
    """All objects of a job say their namespace, and it is the same."""
    own = mapping(job.document.get("metadata")).get("namespace")
    for document in job.documents:
        other = mapping(document.get("metadata")).get("namespace")
        if other != own or own is None:
            yield f"{document.get('kind')} is in namespace {other}, and {job.kind} in {own}"


def faults(documents):
    """All that is wrong with the objects of a file, as (object, rule, message)."""
    for document in documents:
        job = Job(document, documents)
        if job.pods:
            for name, check in RULES.items():
                for message in check(job):
                    yield f"{job.kind}/{job.name}", name, message
    yield from lint_storage.faults(documents)


def read(path):
    with path.open(encoding="utf-8") as file:
        return [document for document in yaml.load_all(file, Loader) if isinstance(document, dict)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rules", action="store_true", help="print the rules")
    parser.add_argument("files", nargs="*", type=pathlib.Path)
    arguments = parser.parse_args()
    if arguments.rules:
        for name, check in (RULES | lint_storage.RULES).items():
            print(f"{name}: {check.__doc__}")
        return 0
    found = 0
    for path in arguments.files:
        for where, name, message in faults(read(path)):
            print(f"{path}: {where}: {name}: {message}")
            found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
