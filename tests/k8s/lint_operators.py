"""Lint rules for jobs from the operators' validation, beyond schemas. lint.py applies them."""

import re

from lint_job import PEERS, RUNTIMES, adder, items, mapping, number

RULES = {}
rule = adder(RULES)


@rule
def name_of_pods(job):
    """The job's name begins with a letter, has no dots, and yields host names of at most 63 characters."""
    if job.kind not in ("MPIJob", "StatefulSet"):
        return
    workers = job.workers if number(job.workers) and job.workers > 0 else 1
    last = f"{job.name}{'-worker' if job.kind == 'MPIJob' else ''}-{workers - 1}"
    if not re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", job.name) or len(last) > 63:
        yield f"{last}: expected a host name of at most 63 characters that begins with a letter and has no dots"


@rule
def launcher_replicas(job):
    """A job has one launcher."""
    if job.kind == "MPIJob" and job.launcher and job.launcher.replicas not in (None, 1):
        yield f"{job.launcher.replicas} launchers, expected 1"


@rule
def worker_replicas(job):
    """The number of workers is set and at least 1."""
    if job.kind == "MPIJob" and any(pod.role == "worker" for pod in job.pods) \
            and not (number(job.workers) and job.workers >= 1):
        yield f"replicas of Worker is {job.workers}, expected 1 or more"


@rule
def replica_types(job):
    """Replica types are Launcher and Worker, and there is a Launcher."""
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
    """cleanPodPolicy is set in runPolicy."""
    if job.replicas and job.run_policy.get("cleanPodPolicy") not in ("None", "Running", "All"):
        yield f"runPolicy.cleanPodPolicy is {job.run_policy.get('cleanPodPolicy')}, expected None, Running or All"


@rule
def launcher_creation(job):
    """launcherCreationPolicy is WaitForWorkersReady, since nodes may have to be created; AtStartup for elastic jobs."""
    if job.kind == "MPIJob":
        wanted = "AtStartup" if job.is_elastic else "WaitForWorkersReady"
        found = job.spec.get("launcherCreationPolicy")
        if found != wanted:
            yield f"launcherCreationPolicy is {found}, expected {wanted}"


@rule
def run_limits(job):
    """A job has limits: activeDeadlineSeconds, backoffLimit and ttlSecondsAfterFinished."""
    where = job.spec if job.kind == "Job" else job.run_policy
    if job.kind != "Job" and not job.replicas:
        return
    for name in ("ttlSecondsAfterFinished", "activeDeadlineSeconds", "backoffLimit"):
        if not (number(where.get(name)) and where[name] >= 0):
            yield f"{name} is {where.get(name)}, expected a number"


@rule
def managed_by(job):
    """managedBy is the operator or Kueue's MultiKueue."""
    operator = "training-operator" if job.kind in PEERS else "mpi-operator"
    if job.run_policy.get("managedBy") not in (None, f"kubeflow.org/{operator}", "kueue.x-k8s.io/multikueue"):
        yield f"runPolicy.managedBy is {job.run_policy['managedBy']}"


@rule
def implementation(job):
    """The operator supports mpiImplementation."""
    if job.kind == "MPIJob" and job.spec.get("mpiImplementation", "OpenMPI") not in ("OpenMPI", "Intel", "MPICH"):
        yield f"mpiImplementation is {job.spec['mpiImplementation']}"


@rule
def operator_container(job):
    """Training Operator requires the container name pytorch or tensorflow."""
    for role, replica in job.replicas.items():
        if job.kind in PEERS:
            name = PEERS[job.kind][2]
            containers = items(mapping(mapping(replica.get("template")).get("spec")).get("containers"))
            if name not in [one.get("name") for one in containers]:
                yield f"{role}: no container is named {name}"


@rule
def operator_replicas(job):
    """Training Operator supports the replica types; there is one master; an elastic job's workers are in its limits."""
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
    """A gang excludes the launcher, which starts after the workers."""
    policy = mapping(job.run_policy.get("schedulingPolicy"))
    if policy and number(job.workers) and policy.get("minAvailable") != job.workers:
        yield f"schedulingPolicy.minAvailable is {policy.get('minAvailable')}, expected {job.workers}"


@rule
def trainer_launchers(job):
    """A runtime's mlPolicy.numNodes is 1: Kubeflow Trainer starts this number of launchers, and takes the number of nodes
    from the TrainJob."""
    found = mapping(job.spec.get("mlPolicy")).get("numNodes")
    if job.kind in RUNTIMES and found != 1:
        yield f"mlPolicy.numNodes is {found}, expected 1"
