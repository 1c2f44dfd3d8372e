"""Lint rules for reliability and security of jobs: command, connections, nodes, data and users of pods. lint.py applies
them."""

import re

from lint_job import (
    FRONT_ENDS, PEERS, RUNTIMES, SSH_PATH, SSH_PORT, TRAINERS, WORKER_TIMEOUT, adder, items, mapping, number)

RULES = {}
rule = adder(RULES)
ADMITTED_VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected",
                    "secret", "nfs"}


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
    yield "mpirun has no number of ranks"


@rule
def expect_ranks(job):
    """The program gets the expected number of ranks, so that no rank trains alone."""
    pod = job.launcher
    if not pod or job.ranks is None:
        return
    program, flags = pod.program
    if program in FRONT_ENDS:
        flags = flags[flags.index("--") + 1:] if "--" in flags else []
    wanted = "--expect_ranks=" + ("{ranks}" if job.is_elastic else str(job.ranks))
    if wanted not in [pod.expanded(flag) for flag in flags]:
        yield f"the command of {program} lacks {wanted}"


@rule
def launcher_program(job):
    """Launchers run dtrain-mpirun, which waits for the workers and converts SIGTERM to exit code 75."""
    pod = job.launcher
    if pod and "dtrain-mpirun" not in pod.args and not job.is_elastic:
        yield "the launcher does not run dtrain-mpirun"


@rule
def entry_point(job):
    """Containers run through the image's entry point, which sets up user and keys. Other images
    have no such entry point."""
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
    """$(NAME) in arguments and variables refers to an earlier variable; Kubernetes does not expand others."""
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
    """No environment variable is set twice."""
    for pod in job.pods:
        names = [one.get("name") for one in items(pod.main.get("env"))]
        for name in sorted({name for name in names if names.count(name) > 1}):
            yield f"{pod.role}: {name} is set {names.count(name)} times"


# The network between the pods.


@rule
def worker_timeout(job):
    """Launchers wait 30 minutes for workers, since new nodes may take that long."""
    if job.launcher:
        value = job.launcher.environment.get("DTRAIN_WORKER_TIMEOUT")
        if value != WORKER_TIMEOUT:
            yield f"DTRAIN_WORKER_TIMEOUT is {value}, expected {WORKER_TIMEOUT}"


@rule
def keepalive(job):
    """Open MPI's keepalive detects an unreachable host within seconds."""
    if job.launcher:
        for name, most in (("time", 10), ("intvl", 5), ("probes", 5)):
            value = job.launcher.environment.get("OMPI_MCA_oob_tcp_keepalive_" + name, "")
            if not (value.isdigit() and 1 <= int(value) <= most):
                yield f"OMPI_MCA_oob_tcp_keepalive_{name} is '{value}', expected 1 to {most}"


@rule
def tagged_output(job):
    """Log lines have rank and time (Open MPI's tag and timestamp output)."""
    if job.launcher:
        for name in ("OMPI_MCA_orte_tag_output", "OMPI_MCA_orte_timestamp_output"):
            if job.launcher.environment.get(name) != "true":
                yield f"{name} is {job.launcher.environment.get(name)}, expected true"


@rule
def ssh_path(job):
    """The SSH key is mounted at the image's path."""
    mpi = mapping(mapping(job.spec.get("mlPolicy")).get("mpi"))
    where = {"MPIJob": job.spec, **dict.fromkeys(RUNTIMES, mpi)}.get(job.kind)
    if where is not None and where.get("sshAuthMountPath") != SSH_PATH:
        yield f"sshAuthMountPath is {where.get('sshAuthMountPath')}, expected {SSH_PATH}"


@rule
def readiness(job):
    """Workers have a readiness probe of sshd."""
    for pod in job.pods:
        if pod.role == "worker":
            ports = {port.get("name"): port.get("containerPort") for port in items(pod.main.get("ports"))}
            port = mapping(mapping(pod.main.get("readinessProbe")).get("tcpSocket")).get("port")
            if ports.get(port, port) != SSH_PORT:
                yield f"the readiness probe of workers uses port {port}, expected {SSH_PORT}"


# Nodes.


@rule
def gpus_of_workers(job):
    """A worker with GPUs has one GPU per slot."""
    for pod in job.pods:
        if pod.role == "worker" and pod.gpus and job.slots is not None and pod.gpus != job.slots:
            yield f"{pod.gpus} GPUs for {job.slots} slots"


@rule
def no_gpu_of_launchers(job):
    """A launcher without ranks requests no GPU."""
    if job.launcher and job.launcher.gpus and not job.spec.get("runLauncherAsWorker"):
        yield f"the launcher requests {job.launcher.gpus} GPUs"


@rule
def gpu_toleration(job):
    """Pods with GPUs tolerate the taint of GPU nodes."""
    for pod in job.pods:
        if pod.gpus and not any(one.get("key") == "nvidia.com/gpu" for one in items(pod.spec.get("tolerations"))):
            yield f"{pod.role}: no toleration of nvidia.com/gpu"


@rule
def resources(job):
    """Containers have equal requests and limits of CPU and memory (QoS class Guaranteed)."""
    for pod in job.pods:
        for container in pod.containers:
            given = mapping(container.get("resources"))
            for name in ("cpu", "memory"):
                asked, limit = (mapping(given.get(kind)).get(name) for kind in ("requests", "limits"))
                if asked is None or str(asked) != str(limit):
                    yield f"{container.get('name')}: the request of {name} is {asked}, the limit {limit}; expected equal values"


@rule
def shared_memory(job):
    """Ranks on one host have more shared memory than the default of 64 MiB."""
    for pod in job.pods:
        if pod.role in ("worker", "training"):
            memory = mapping(pod.volume(mapping(pod.mount_of("/dev/shm")).get("name")).get("emptyDir"))
            if memory.get("medium") != "Memory" or "sizeLimit" not in memory:
                yield f"{pod.role}: /dev/shm is not an in-memory volume with a size limit"


@rule
def grace(job):
    """terminationGracePeriodSeconds of training pods is at least a minute, to save a checkpoint."""
    for pod in job.pods:
        if pod.role in ("launcher", "worker") or pod.program[0] in TRAINERS and pod.role == "training":
            if not pod.spec.get("terminationGracePeriodSeconds", 0) >= 60:
                yield f"{pod.role}: terminationGracePeriodSeconds is {pod.spec.get('terminationGracePeriodSeconds')}"


@rule
def not_disturbed(job):
    """Pods have no sidecar proxies, and autoscalers do not evict training pods, except from ending spot instances."""
    for pod in job.pods:
        wanted = {"sidecar.istio.io/inject": "false"}
        if pod.role != "server":
            wanted["cluster-autoscaler.kubernetes.io/safe-to-evict"] = "false"
            # Karpenter would not evict the pod when its spot instance ends.
            wanted["karpenter.sh/do-not-disrupt"] = None if pod.on_spot else "true"
        annotations = mapping(pod.metadata.get("annotations"))
        for name, value in wanted.items():
            if annotations.get(name) != value:
                yield f"{pod.role}: {name} is {annotations.get(name)}, expected {value}"


# Data and results.


@rule
def data_read_only(job):
    """Each training pod mounts the data set read-only."""
    directory = next((pod.environment["DATASET_DIR"] for pod in job.pods if pod.environment.get("DATASET_DIR")), None)
    for pod in job.pods:
        if directory and pod.role in ("worker", "training"):
            mount = pod.mount_of(directory)
            if not mount or mount.get("readOnly") is not True:
                yield f"{pod.role}: {directory} is not mounted read-only"


@rule
def results_are_shared(job):
    """Checkpoints and logs are on the shared volume, if there is one."""
    runner = job.launcher or next((pod for pod in job.pods if pod.role == "training"), None)
    output = runner and runner.environment.get("OUTPUT_DIR")
    if not output:
        return
    for pod in job.pods:
        mount = pod.mount_of(output) if pod.role in ("worker", "training") else {}
        if mount is None or mount.get("readOnly"):
            yield f"{pod.role}: {output} is not a writable volume"
    program, flags = runner.program
    below = re.escape(output) + "/"
    checkpoints = re.compile("--(train_dir|model_dir|log_dir|checkpoint)[= ]" + below)
    if program in TRAINERS and not checkpoints.search(runner.expanded(" ".join(flags))):
        yield f"{program} writes no checkpoints below {output}"
    if runner.is_launcher and not re.search("-output-filename " + below, runner.expanded(" ".join(runner.args))):
        yield f"mpirun writes no logs of the ranks below {output}"


@rule
def volume_types(job):
    """Volumes have types that the Pod Security Standard `restricted` admits, or are NFS exports, which `baseline`
    admits."""
    for pod in job.pods:
        for volume in items(pod.spec.get("volumes")):
            for kind in sorted(set(volume) - {"name"} - ADMITTED_VOLUMES):
                yield f"{pod.role}: the volume {volume.get('name')} is a {kind}"


@rule
def volumes(job):
    """Each mount has its volume, each volume its mount, and no claim is mounted by two volumes."""
    for pod in job.pods:
        mounted = {mount.get("name") for container in pod.containers for mount in items(container.get("volumeMounts"))}
        own = items(pod.spec.get("volumes"))
        given = [volume.get("name") for volume in own]
        for name in sorted(mounted ^ set(given)):
            yield f"{pod.role}: {name} is {'not mounted' if name in given else 'not a volume'}"
        claims = [mapping(volume.get("persistentVolumeClaim")).get("claimName") for volume in own]
        for claim in sorted({claim for claim in claims if claim and claims.count(claim) > 1}):
            yield f"{pod.role}: two volumes use the claim {claim}"


# Images, users and names.


@rule
def image_version(job):
    """Images have a tag other than `latest`, or a digest."""
    for pod in job.pods:
        for container in pod.containers:
            image = str(container.get("image"))
            tag = image.rpartition("/")[2].partition(":")[2]
            if "@sha256:" not in image and (not tag or tag == "latest"):
                yield f"{container.get('name')}: the image {image} has no version"


@rule
def security_of_pods(job):
    """Pods run as non-root with explicit ids and a seccomp profile."""
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
    """Containers have no privilege escalation, no capabilities and a read-only root file system."""
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
    """Pods get no service account token and no service environment variables."""
    for pod in job.pods:
        for name in ("automountServiceAccountToken", "enableServiceLinks"):
            if pod.spec.get(name) is not False:
                yield f"{pod.role}: {name} is {pod.spec.get(name)}, expected false"


@rule
def no_secrets_in_variables(job):
    """Environment variables contain no secrets, since they are visible in the pod's specification."""
    for pod in job.pods:
        for name, value in pod.environment.items():
            if re.search(r"PASSWORD|SECRET|TOKEN|ACCESS_KEY", str(name)) and value:
                yield f"{pod.role}: {name} is plain text"


@rule
def names_of_pods(job):
    """Names of single training pods contain `training`, names of launchers `launcher`."""
    for pod in job.pods:
        if job.kind == "Job" and pod.is_launcher and not job.name.endswith("-launcher"):
            yield f"the name of a launcher ends with -launcher, {job.name} does not"
        if job.kind == "Job" and pod.role == "training" and pod.program[0] in TRAINERS and "training" not in job.name:
            yield f"{job.name} trains, but its name lacks `training`"
