#!/usr/bin/env python3
"""Validates manifests strictly against the schemas of their kinds: unknown fields are errors.

    validate.py --schemas DIR FILE...

DIR holds published CRDs (MPIJob, Trainer, Kueue, Karpenter); a kind without a CRD is an error. PyTorchJob and TFJob
without a CRD in DIR are validated with the types of Training Operator's client, kubeflow-training, which
tests/k8s/tools.sh downloads. Core kinds are validated with kubernetes-validate. Without it, which is printed, pods are
validated with the pod schema in MPIJob's CRD, and other fields with the tables below. lint.py checks relations between
objects and values that schemas leave open.
Exit codes: 0 all are valid, 1 some are not, 2 there are no schemas.
"""

import argparse
import ast
import pathlib
import re
import sys

import tools

if (tools.TOOLS / "python").is_dir():
    sys.path.insert(0, str(tools.TOOLS / "python"))

import jsonschema
import yaml

try:
    import kubernetes_validate
except ImportError:
    kubernetes_validate = None

KUBERNETES = tools.pinned_version("eks")  # version of the schemas
MPIJOB = ("kubeflow.org/v2beta1", "MPIJob")
# Kinds of Training Operator and their class names in its client.
CLIENT_TYPES = {("kubeflow.org/v1", "PyTorchJob"): "KubeflowOrgV1PyTorchJob",
                ("kubeflow.org/v1", "TFJob"): "KubeflowOrgV1TFJob"}
# Kinds whose definition is in none of these sources.
DESCRIBED = {
    ("karpenter.sh/v1alpha1", "NodeOverlay"): {
        "type": "object", "required": ["spec"], "properties": {"spec": {
            "type": "object", "required": ["requirements"], "additionalProperties": False, "properties": {
                "weight": {"type": "integer", "minimum": 1, "maximum": 10000},
                "requirements": {"type": "array", "maxItems": 100, "items": {
                    "type": "object", "required": ["key", "operator"], "additionalProperties": False, "properties": {
                        "key": {"type": "string"}, "values": {"type": "array", "items": {"type": "string"}},
                        "operator": {"enum": ["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gte", "Lte"]}}}},
                "capacity": {  # no resource that Karpenter knows itself
                    "type": "object", "additionalProperties": {"type": ["string", "integer"]},
                    "propertyNames": {"not": {"enum": ["cpu", "memory", "ephemeral-storage", "pods"]}}}}}}},
}
Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

# Fallback without kubernetes-validate: allowed fields of core objects.
SELECTOR = {"matchLabels": dict, "matchExpressions": list}
CORE_FIELDS = {
    ("batch/v1", "Job"): {
        "ttlSecondsAfterFinished": int, "activeDeadlineSeconds": int, "backoffLimit": int, "suspend": bool,
        "completions": int, "parallelism": int, "completionMode": str, "template": dict},
    ("apps/v1", "StatefulSet"): {
        "serviceName": str, "replicas": int, "podManagementPolicy": str, "selector": SELECTOR, "template": dict},
    ("apps/v1", "Deployment"): {"replicas": int, "selector": SELECTOR, "strategy": dict, "template": dict},
    ("v1", "Service"): {
        "clusterIP": str, "publishNotReadyAddresses": bool, "selector": dict, "ports": list, "type": str,
        "loadBalancerSourceRanges": list},
    ("networking.k8s.io/v1", "NetworkPolicy"): {
        "podSelector": SELECTOR, "policyTypes": list, "ingress": list, "egress": list},
    ("v1", "PersistentVolumeClaim"): {
        "accessModes": list, "resources": dict, "storageClassName": str, "volumeName": str},
    ("v1", "PersistentVolume"): {
        "accessModes": list, "capacity": dict, "csi": dict, "mountOptions": list, "storageClassName": str,
        "persistentVolumeReclaimPolicy": str, "volumeMode": str, "claimRef": dict, "nfs": dict},
    ("v1", "Pod"): None,
    ("policy/v1", "PodDisruptionBudget"): {"minAvailable": int, "selector": SELECTOR},
}
# Kinds whose CRD is not in the folder of schemas: allowed fields (Prometheus Operator 0.93, Kueue 0.19).
OPERATOR_FIELDS = {
    ("monitoring.coreos.com/v1", "PodMonitor"): {
        "jobLabel": str, "selector": SELECTOR, "namespaceSelector": dict, "podMetricsEndpoints": list},
    ("monitoring.coreos.com/v1", "PrometheusRule"): {"groups": list},
    ("kueue.x-k8s.io/v1beta2", "Topology"): {"levels": list},
}
LIST_FIELDS = {
    "podMetricsEndpoints": {"port": str, "path": str, "interval": str, "scrapeTimeout": str, "relabelings": list},
    "relabelings": {"action": str, "sourceLabels": list, "separator": str, "regex": str, "targetLabel": str,
                    "replacement": str},
    "levels": {"nodeLabel": str},
    "groups": {"name": str, "interval": str, "rules": list},
    "rules": {"alert": str, "record": str, "expr": str, "for": str, "labels": dict, "annotations": dict},
}
# Fields of custom resources whose CRD is not in DIR, as in the CRDs of cert-manager 1.21 and Argo CD 3.
CUSTOM_FIELDS = {
    ("cert-manager.io/v1", "Certificate"): {
        "secretName": str, "dnsNames": list, "issuerRef": {"group": str, "kind": str, "name": str}},
    ("argoproj.io/v1alpha1", "Application"): {
        "project": str, "destination": {"server": str, "namespace": str}, "ignoreDifferences": list,
        "source": {"repoURL": str, "targetRevision": str, "path": str, "chart": str,
                   "helm": {"releaseName": str, "valuesObject": dict}},
        "syncPolicy": {"automated": {"prune": bool, "selfHeal": bool}, "syncOptions": list,
                       "retry": {"limit": int, "backoff": {"duration": str, "factor": int, "maxDuration": str}}}},
}
METADATA = {"name": str, "namespace": str, "labels": dict, "annotations": dict}


def strict(schema):
    """A JSON schema from a CRD's schema that rejects unknown fields."""
    if not isinstance(schema, dict):
        return schema
    if schema.get("x-kubernetes-int-or-string"):
        return {"anyOf": [{"type": "integer"}, {"type": "string"}]}
    kept = {key: value for key, value in schema.items()
            if key in ("type", "required", "enum", "pattern", "minimum", "maximum", "minItems", "maxItems", "minLength",
                       "maxLength")}
    if "properties" in schema:
        kept["properties"] = {name: strict(field) for name, field in schema["properties"].items()}
        kept["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    elif isinstance(schema.get("additionalProperties"), dict):
        kept["additionalProperties"] = strict(schema["additionalProperties"])
    if "items" in schema:
        kept["items"] = strict(schema["items"])
    if schema.get("nullable") and "type" in kept:
        kept["type"] = [kept["type"], "null"]
    return kept


class Models:
    """JSON schemas from a client that was generated from an operator's CRDs: each class lists attributes, types, and
    attributes that may not be None."""

    SIMPLE = {"str": {"type": "string"}, "int": {"type": "integer"}, "bool": {"type": "boolean"}}

    def __init__(self, folder, pod_template):
        self.pod_template = pod_template
        self.files = {}
        for path in folder.glob("kubeflow_org_v1_*.py"):
            self.files[re.search(r"^class (\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)[1]] = path

    def of(self, name):
        """Schema of a type, by its name in the client."""
        inner = re.fullmatch(r"(list\[|dict\(str, )(.+)[\])]", name)
        if inner:
            schema = self.of(inner[2])
            return {"type": "array", "items": schema} if name.startswith("list") else {
                "type": "object", "additionalProperties": schema}
        if name == "V1PodTemplateSpec":
            return self.pod_template
        if name not in self.files:
            return self.SIMPLE.get(name, {})
        text = self.files[name].read_text(encoding="utf-8")
        types, names = (ast.literal_eval(re.search(rf"{table} = (\{{.*?\}})", text, re.DOTALL)[1])
                        for table in ("openapi_types", "attribute_map"))
        required = re.findall(r"Invalid value for `(\w+)`, must not be `None`", text)
        return {"type": "object", "additionalProperties": False, "required": [names[one] for one in required],
                "properties": {names[one]: self.of(kind) for one, kind in types.items()}}


class Schemas:
    """Validators of the CRDs in a folder, loaded on demand."""

    def __init__(self, folder):
        self.files = {}
        self.validators = {}
        for path in sorted(pathlib.Path(folder).glob("*.yaml")):
            self.files[path.name.rpartition(".yaml")[0].lower()] = path

    def of(self, version, kind):
        """Validator of a kind, or None."""
        if (version, kind) not in self.validators:
            self.validators[version, kind] = self.read(version, kind)
        return self.validators[version, kind]

    def read(self, version, kind):
        group, _, number = version.partition("/")
        plural = f"{group}_{kind.lower()}"
        for name, path in self.files.items():
            if not name.startswith(plural):
                continue
            with path.open(encoding="utf-8") as file:
                definition = yaml.load(file, Loader)
            for one in definition["spec"]["versions"]:
                if definition["spec"]["names"]["kind"] == kind and one["name"] == number:
                    schema = strict(one["schema"]["openAPIV3Schema"])
                    # The API server validates metadata.
                    schema["properties"]["metadata"] = {"type": "object"}
                    return jsonschema.Draft7Validator(schema)
        if (version, kind) in CLIENT_TYPES and tools.TRAINING_MODELS.is_dir():
            schema = Models(tools.TRAINING_MODELS, self.of_pods().schema).of(CLIENT_TYPES[version, kind])
            return jsonschema.Draft7Validator(schema)
        if (version, kind) in DESCRIBED:
            return jsonschema.Draft7Validator(DESCRIBED[version, kind])
        return None

    def of_pods(self):
        """Validator of pod templates."""
        if "pods" not in self.validators:
            spec = self.of(*MPIJOB).schema["properties"]["spec"]["properties"]
            self.validators["pods"] = jsonschema.Draft7Validator(
                spec["mpiReplicaSpecs"]["additionalProperties"]["properties"]["template"])
        return self.validators["pods"]


def errors_of(validator, value, prefix=""):
    for error in validator.iter_errors(value):
        where = prefix + "".join(f".{part}" for part in error.absolute_path)
        yield f"{where or '.'}: {error.message[:300]}"


def fields_outside(value, fields, where):
    """Violations of a table of names and types in a mapping."""
    if not isinstance(value, dict):
        yield f"{where}: expected a mapping"
        return
    for name, field in value.items():
        if name not in fields:
            yield f"{where}.{name}: no such field"
        elif isinstance(fields[name], dict):
            yield from fields_outside(field, fields[name], f"{where}.{name}")
        elif not isinstance(field, fields[name]) or (fields[name] is int and isinstance(field, bool)):
            yield f"{where}.{name}: expected {fields[name].__name__}, found {field!r}"


def by_operator_fields(document, fields):
    """Errors of an operator's object without a CRD, by the tables."""
    yield from fields_outside(document.get("spec"), fields, ".spec")
    lists = [(".spec", document.get("spec") or {})]
    while lists:
        where, value = lists.pop()
        for name in LIST_FIELDS.keys() & value.keys():
            for at, one in enumerate(value[name]):
                yield from fields_outside(one, LIST_FIELDS[name], f"{where}.{name}.{at}")
                lists.append((f"{where}.{name}.{at}", one if isinstance(one, dict) else {}))


def by_fields(document, schemas):
    """Errors of a core object, by the tables."""
    kind = (document["apiVersion"], document["kind"])
    data = ("data", "stringData", "binaryData", "type", "immutable")
    simple = {("v1", "ConfigMap"): data, ("v1", "Secret"): data, ("v1", "Namespace"): (),
              ("v1", "ServiceAccount"): ("automountServiceAccountToken",),
              ("storage.k8s.io/v1", "StorageClass"): ("provisioner", "parameters", "mountOptions", "reclaimPolicy",
                                                      "volumeBindingMode", "allowVolumeExpansion")}
    yield from fields_outside(document.get("metadata"), METADATA, ".metadata")
    allowed = simple[kind] if kind in simple else ("spec",)
    for name in document:
        if name not in ("apiVersion", "kind", "metadata", *allowed):
            yield f".{name}: no such field"
    if kind in simple:
        return
    if kind not in CORE_FIELDS:
        yield f"no schema for {kind[0]} {kind[1]}"
        return
    spec = document.get("spec")
    if CORE_FIELDS[kind] is None:
        yield from errors_of(schemas.of_pods(), {"spec": spec})
        return
    yield from fields_outside(spec, CORE_FIELDS[kind], ".spec")
    if isinstance(spec, dict) and "template" in spec:
        yield from errors_of(schemas.of_pods(), spec["template"], ".spec.template")


def by_kubernetes_validate(document):
    """Errors of a core object, by kubernetes-validate."""
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f".{'.'.join(str(part) for part in error.path)}: {error.message[:300]}"
    except kubernetes_validate.SchemaNotFoundError:
        yield f"no schema for {document['apiVersion']} {document['kind']}"


def errors(document, schemas):
    """Errors of one object."""
    if not isinstance(document, dict) or not all(isinstance(document.get(key), str) for key in ("apiVersion", "kind")):
        yield "not an object: apiVersion and kind are missing"
        return
    version, kind = document["apiVersion"], document["kind"]
    if (version, kind) == ("trainer.kubeflow.org/v1alpha1", "ClusterTrainingRuntime"):  # has the same specification
        document, kind = {**document, "kind": "TrainingRuntime"}, "TrainingRuntime"
    name = (document.get("metadata") or {}).get("name")
    if not isinstance(name, str) or not name:
        yield ".metadata.name: missing"
    group = version.partition("/")[0]
    if "." in group and (group.endswith(".x-k8s.io") or not group.endswith(".k8s.io")):
        validator = schemas.of(version, kind)
        if validator is None and (version, kind) in OPERATOR_FIELDS:
            yield from by_operator_fields(document, OPERATOR_FIELDS[version, kind])
        elif (version, kind) in CUSTOM_FIELDS:
            yield from fields_outside(document.get("spec"), CUSTOM_FIELDS[version, kind], ".spec")
        elif validator is None:
            yield f"no schema for {version} {kind}"
        else:
            yield from errors_of(validator, document)
    elif kubernetes_validate:
        yield from by_kubernetes_validate(document)
    else:
        yield from by_fields(document, schemas)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--schemas", required=True, help="folder of the published definitions")
    parser.add_argument("files", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    schemas = Schemas(arguments.schemas)
    if not schemas.files:
        print(f"there are no schemas in {arguments.schemas}", file=sys.stderr)
        return 2
    if not kubernetes_validate:
        print("SKIPPED: kubernetes-validate is not installed; tables of fields are used instead", file=sys.stderr)
    wrong = 0
    for path in arguments.files:
        with path.open(encoding="utf-8") as file:
            documents = [document for document in yaml.load_all(file, Loader) if document is not None]
        for document in documents:
            for error in errors(document, schemas):
                name = (document.get("metadata") or {}).get("name") if isinstance(document, dict) else None
                print(f"{path}: {document.get('kind')}/{name}: {error}")
                wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
