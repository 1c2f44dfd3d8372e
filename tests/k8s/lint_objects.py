"""Lint rules for the objects of a job: NetworkPolicies, namespaces, labels, and storage that jobs must not create. lint.py
applies them."""

from lint_job import LABELS, adder, items, mapping, missing_labels

RULES = {}
rule = adder(RULES)
METRICS_PORT = 9400


def admits_only(policy, pods):
    """True if a policy admits only traffic from `pods`, and from other namespaces to the metrics."""
    for entry in items(mapping(policy.get("spec")).get("ingress")):
        ports = [port.get("port") for port in items(entry.get("ports"))]
        for source in entry.get("from") or [None]:
            own = mapping(mapping(source).get("podSelector")).get("matchLabels") == pods
            scraper = set(mapping(source)) == {"namespaceSelector"} and ports == [METRICS_PORT]
            if not (own or scraper):
                return False
    return True


@rule
def network_policy(job):
    """NetworkPolicies admit only traffic from the job's own pods, and Prometheus to the metrics."""
    labels = [mapping(pod.metadata.get("labels")) for pod in job.pods]
    for pod, found in zip(job.pods, labels):
        chosen = []
        for policy in (one for one in job.documents if one.get("kind") == "NetworkPolicy"):
            spec = mapping(policy.get("spec"))
            pods = mapping(mapping(spec.get("podSelector")).get("matchLabels"))
            if pods and pods.items() <= found.items() and "Ingress" in spec.get("policyTypes", []):
                chosen.append(admits_only(policy, pods))
        if not chosen or not all(chosen):
            yield f"{pod.role}: no NetworkPolicy blocks other pods"


@rule
def no_storage(job):
    """Jobs create no volumes and claims, which would be deleted with the job."""
    for document in job.documents:
        if document.get("kind") in ("PersistentVolume", "PersistentVolumeClaim", "StorageClass"):
            yield f"{document['kind']} {mapping(document.get('metadata')).get('name')}"


@rule
def one_namespace(job):
    """All objects of a job have the same explicit namespace."""
    own = mapping(job.document.get("metadata")).get("namespace")
    for document in job.documents:
        other = mapping(document.get("metadata")).get("namespace")
        if other != own or own is None:
            yield f"{document.get('kind')} is in namespace {other}, and {job.kind} in {own}"


@rule
def recommended_labels(job):
    """Objects and pods have Kubernetes' recommended labels."""
    for document in job.documents:
        missing = missing_labels(document.get("metadata"))
        if missing:
            yield f"{document.get('kind')} lacks app.kubernetes.io/: {missing}"
    for pod in job.pods:
        missing = missing_labels(pod.metadata, LABELS[:-1])
        if missing:
            yield f"{pod.role}: the pod lacks app.kubernetes.io/: {missing}"
