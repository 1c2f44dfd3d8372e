"""Enforces NetworkPolicies with routing rules in the pods' networks: drops packets that are not admitted.

A pod that no policy selects admits all traffic. Rules are stateless, so a policy also drops responses to requests of
its pods; the node and its DNS server are admitted, as in clusters. Supports the policies in k8s/: Ingress, podSelector
with matchLabels, TCP ports by number.
"""

from harness.spaces import DNS_SERVER, NODE, run

LAST = 1000  # preference of the final rule


def selects(selector, pod):
    if set(selector) - {"matchLabels"}:
        raise ValueError(f"the harness does not support the selector {sorted(selector)}")
    labels = pod.metadata.get("labels", {})
    return all(labels.get(key) == value for key, value in selector.get("matchLabels", {}).items())


def allowed(rules, pods):
    """Admitted sources: pairs of an address or `all`, and a port or None (all ports)."""
    for rule in rules:
        ports = [entry["port"] for entry in rule.get("ports", [])] or [None]
        if "from" not in rule:
            yield from (("all", port) for port in ports)
        for peer in rule.get("from", []):
            if set(peer) != {"podSelector"}:
                raise ValueError(f"the harness does not support peers by {sorted(peer)}")
            yield from ((pod.address, port) for pod in pods if selects(peer["podSelector"], pod) for port in ports)


def rules_of(pod, policies, pods):
    """Admitted traffic, or None if no policy selects the pod."""
    chosen = [found["spec"] for found in policies if selects(found["spec"]["podSelector"], pod)
              and "Ingress" in found["spec"].get("policyTypes", ["Ingress"])]
    if not chosen:
        return None
    within = {(NODE, None), (DNS_SERVER, None), (pod.address, None), ("127.0.0.0/8", None)}
    return within.union(*(allowed(spec.get("ingress", []), pods) for spec in chosen))


def write_rules(pod, wanted):
    """Admits only the wanted packets. Adds rules before removing old ones, so that no packet is lost meanwhile; the
    order of rules with equal preference does not matter."""
    if wanted is None:
        rules = {"pref 1 lookup local"}
    else:
        rules = {f"pref {LAST} iif eth0 blackhole", f"pref {LAST + 1} lookup local"}
        for source, port in wanted:
            to_port = f"ipproto tcp dport {port} " if port is not None else ""
            rules.add(f"pref 1 from {source} {to_port}lookup local")
    lines = [*(f"rule add {rule}" for rule in sorted(rules - pod.rules)),
             *(f"rule del {rule}" for rule in sorted(pod.rules - rules))]
    pod.rules = rules
    if lines:
        run("ip", "-n", pod.space, "-batch", "-", input="\n".join(lines))


def enforce(node):
    """Updates the rules after pods have started or stopped."""
    pods = [pod for pod in node.pods.values() if not pod.closed]
    policies = [found for (kind, _), found in node.objects.items() if kind == "NetworkPolicy"]
    present = frozenset(pod.space for pod in pods)
    if not policies or getattr(node, "enforced_for", None) == present:
        return
    node.enforced_for = present
    for pod in pods:
        write_rules(pod, rules_of(pod, policies, pods))
