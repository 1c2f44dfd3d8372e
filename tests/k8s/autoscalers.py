"""Rules by which the cluster autoscaler, Karpenter and Kueue decide about pods for which no node exists yet.
k8s/cluster/README.md cites their documentation."""

import re

from instance_types import TYPES

TAG = "k8s.io/cluster-autoscaler/node-template/resources/"
UNITS = {"": 1, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}


def quantity(text):
    """Value of a Kubernetes quantity."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return float(number) * UNITS[unit]


def requests_of(pod):
    """Requests of a pod's containers by resource; a limit without a request is a request."""
    total = {}
    for container in pod["containers"]:
        resources = container.get("resources", {})
        for name, amount in {**resources.get("limits", {}), **resources.get("requests", {})}.items():
            total[name] = total.get(name, 0) + quantity(amount)
    return total


def cluster_autoscaler_node(instance_type, tags):
    """Resources of a node of an empty Auto Scaling group: those of the instance type, and those in tags."""
    row = TYPES[instance_type]
    node = {"cpu": row["vcpus"], "memory": row["memory_gib"] * 2**30, "nvidia.com/gpu": row["gpus"], "pods": 110}
    for key, value in tags.items():
        if key.startswith(TAG):
            node[key.removeprefix(TAG)] = quantity(value)
    return node


def karpenter_node(instance_type, overlays, gates):
    """Resources of a node that Karpenter would create: EC2's description, and matching NodeOverlays if the feature gate
    is on. Requirements other than instance types are not needed here."""
    row = TYPES[instance_type]
    node = {"cpu": row["vcpus"], "memory": row["memory_gib"] * 2**30, "nvidia.com/gpu": row["gpus"],
            "vpc.amazonaws.com/efa": row["efa_interfaces"]}
    for overlay in overlays if gates.get("nodeOverlay") else ():
        [requirement] = overlay["spec"]["requirements"]
        assert (requirement["key"], requirement["operator"]) == ("node.kubernetes.io/instance-type", "In"), requirement
        if instance_type in requirement["values"]:
            node |= {name: quantity(amount) for name, amount in overlay["spec"]["capacity"].items()}
    return node


def unmet(requests, node):
    """Resources that a node lacks for a pod."""
    return sorted(name for name, amount in requests.items() if node.get(name, 0) < amount)


def kueue_unmet(pod_sets, queue):
    """Resources for which a ClusterQueue without a cohort has no or too little quota. `pod_sets` are pairs of a number of
    pods and the requests of each."""
    total = {}
    for count, requests in pod_sets:
        for name, amount in requests.items():
            total[name] = total.get(name, 0) + count * amount
    quotas = {}
    for group in queue["spec"]["resourceGroups"]:
        for flavor in group["flavors"]:
            for one in flavor["resources"]:
                if one["name"] in group["coveredResources"]:
                    quotas[one["name"]] = max(quotas.get(one["name"], 0), quantity(one["nominalQuota"]))
    return unmet(total, quotas)
