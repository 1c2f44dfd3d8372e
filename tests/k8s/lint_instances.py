"""Lint rules for resources of pods, in particular on nodes of an instance type of k8s/instance-types.csv. lint.py applies
them."""

import re

from autoscalers import quantity
from instance_types import TYPES
from lint_job import adder, items, mapping

RULES = {}
rule = adder(RULES)
UNITS = {"Mi": 1 / 1024, "Gi": 1, "Ti": 1024}


def placed(job):
    """Yields each pod with its EFA devices, the instance type that it selects, if any, and the type's row, if known."""
    for pod in job.pods:
        name = mapping(pod.spec.get("nodeSelector")).get("node.kubernetes.io/instance-type")
        yield pod, pod.limits.get("vpc.amazonaws.com/efa", 0), name, TYPES.get(name)


@rule
def efa_devices(job):
    """The number of EFA devices is the instance type's, and pods with EFA have huge pages."""
    for pod, devices, name, row in placed(job):
        if row and devices not in (0, row["efa"]):
            yield f"{devices} EFA devices on {name}, of which jobs use {row['efa']}"
        elif devices and not row:
            yield f"{devices} EFA devices without a known instance type"
        elif bool(devices) != ("hugepages-2Mi" in pod.limits):
            yield f"{devices} EFA devices, and huge pages of {pod.limits.get('hugepages-2Mi')}"


@rule
def instance_type(job):
    """The image has code for the GPUs of the instance type, and one node satisfies the requests of a worker."""
    for pod, devices, name, row in placed(job):
        if not row or not pod.gpus:
            continue
        image = re.search(r"(?:^|/)dtrain-(\w+)[:@]", pod.main.get("image", ""))
        wanted = row["image"] if row["image"] == "cuda12" else "efa" if devices else "cuda"
        if image and image[1] != wanted:
            yield f"{pod.role}: the image {image[0]} on {name} with {devices} EFA devices, expected dtrain-{wanted}"
        if pod.gpus > row["gpus"]:
            yield f"{pod.role}: {pod.gpus} GPUs on {name}, which has {row['gpus']}"
        cpu = str(pod.limits.get("cpu", 0))
        if not cpu.endswith("m") and int(cpu) > row["cpu"]:
            yield f"{pod.role}: {cpu} CPUs on {name}, where {row['cpu']} of {row['vcpus']} are for a worker"
        size = re.fullmatch(r"([0-9]+)([MGT]i)", str(pod.limits.get("memory", "0Gi")))
        if size and int(size[1]) * UNITS[size[2]] > int(row["memory"].removesuffix("Gi")):
            yield f"{pod.role}: {size[0]} on {name}, where {row['memory']} of {row['memory_gib']} GiB are for a worker"


@rule
def volumes_in_memory(job):
    """Volumes in memory, which count towards the memory of a pod, are smaller than its limit."""
    for pod in job.pods:
        volumes = [mapping(volume.get("emptyDir")) for volume in items(pod.spec.get("volumes"))]
        used = sum(quantity(one["sizeLimit"]) for one in volumes if one.get("medium") == "Memory" and "sizeLimit" in one)
        if "memory" in pod.limits and used >= quantity(pod.limits["memory"]):
            yield f"{pod.role}: volumes in memory of {used / 2**20:g} MiB, with {pod.limits['memory']} of memory"
