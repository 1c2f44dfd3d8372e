"""Lint rules for StorageClasses, PersistentVolumes and claims, beyond schemas: conditions of volume binding, of the CSI
drivers of EFS and FSx, and of file systems. lint.py applies them."""

import re

from lint_job import adder, missing_labels

RULES = {}
rule = adder(RULES)  # arguments of a rule: an object, and all objects of its file
UNITS = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "": 1}
FSX, EFS = "fsx.csi.aws.com", "efs.csi.aws.com"
# StorageClass parameters of the drivers (aws-fsx-csi-driver 1.9, aws-efs-csi-driver 3.4), and the required ones.
PARAMETERS = {
    FSX: ({"subnetId", "securityGroupIds", "autoImportPolicy", "s3ImportPath", "s3ExportPath", "deploymentType", "kmsKeyId",
           "perUnitStorageThroughput", "storageType", "driveCacheType", "automaticBackupRetentionDays",
           "dailyAutomaticBackupStartTime", "copyTagsToBackups", "dataCompressionType", "weeklyMaintenanceStartTime",
           "fileSystemTypeVersion", "extraTags", "efaEnabled", "metadataConfigurationMode", "metadataIops"},
          {"subnetId", "securityGroupIds", "deploymentType"}),
    EFS: ({"provisioningMode", "fileSystemId", "directoryPerms", "uid", "gid", "gidRangeStart", "gidRangeEnd", "basePath",
           "subPathPattern", "ensureUniqueDirectory", "az", "reuseAccessPoint", "enforceZoneAffinity", "enableTagging"},
          {"provisioningMode", "fileSystemId", "directoryPerms"})}
# Throughput of FSx on SSDs in MB/s per TiB, by deployment type.
THROUGHPUT = {"SCRATCH_1": {None}, "SCRATCH_2": {None}, "PERSISTENT_1": {"50", "100", "200"},
              "PERSISTENT_2": {"125", "250", "500", "1000"}}
IMPORT_POLICIES = (None, "NONE", "NEW", "NEW_CHANGED", "NEW_CHANGED_DELETED")


def of_kind(documents, *kinds):
    return [document for document in documents if document.get("kind") in kinds]


def amount(text):
    """Bytes of a Kubernetes quantity such as 60Gi."""
    found = re.fullmatch(r"([0-9]+)([KMGT]i)?", str(text))
    return int(found[1]) * UNITS[found[2] or ""] if found else 0


def spec_of(document):
    return document.get("spec") or {}


def options_of(document):
    return document.get("mountOptions") or spec_of(document).get("mountOptions") or []


@rule
def access_modes(document, _):
    """Volumes and claims have the access mode ReadWriteMany."""
    if document["kind"] in ("PersistentVolume", "PersistentVolumeClaim"):
        modes = spec_of(document).get("accessModes")
        if "ReadWriteMany" not in (modes or []):
            yield f"accessModes is {modes}, expected ReadWriteMany"


def unbindable(claim, volume):
    """Yields reasons why Kubernetes' volume binder would not bind the claim to the volume."""
    wanted, offered = spec_of(claim), spec_of(volume)
    meta, reference = claim["metadata"], offered.get("claimRef")
    if wanted.get("storageClassName") != offered.get("storageClassName"):
        yield f"class {wanted.get('storageClassName')}, but the volume has {offered.get('storageClassName')}"
    if not set(wanted.get("accessModes", [])) <= set(offered.get("accessModes", [])):
        yield f"modes {wanted.get('accessModes')}, but the volume has {offered.get('accessModes')}"
    if wanted.get("volumeMode", "Filesystem") != offered.get("volumeMode", "Filesystem"):
        yield "volumeMode differs from the volume's"
    size = offered.get("capacity", {}).get("storage")
    asked = wanted.get("resources", {}).get("requests", {}).get("storage")
    if not 0 < amount(asked) <= amount(size):
        yield f"requests {asked}, but the volume has {size}"
    if reference and (reference.get("namespace"), reference.get("name")) != (meta.get("namespace"), meta["name"]):
        yield f"the volume is reserved for the claim {reference.get('namespace')}/{reference.get('name')}"


@rule
def binding(document, documents):
    """A claim names a matching volume, or a class with parameters for dynamic provisioning."""
    if document["kind"] != "PersistentVolumeClaim":
        return
    named = spec_of(document).get("volumeName")
    if named:
        volumes = [one for one in of_kind(documents, "PersistentVolume") if one["metadata"]["name"] == named]
        if not volumes:
            yield f"there is no volume {named}"
        for volume in volumes:
            yield from unbindable(document, volume)
        return
    wanted = spec_of(document).get("storageClassName")
    declared = [one for one in of_kind(documents, "StorageClass") if one["metadata"]["name"] == wanted]
    if declared and not declared[0].get("parameters"):
        yield f"no volume is named, and the class {wanted} does not provision any"
    if not declared and of_kind(documents, "StorageClass", "PersistentVolume"):
        yield f"no volume is named, and the class {wanted} is not declared"


@rule
def volume_owner(document, documents):
    """A volume has a claimRef, so that no other claim of its class binds to it."""
    if document["kind"] == "PersistentVolume" and of_kind(documents, "PersistentVolumeClaim") \
            and not spec_of(document).get("claimRef"):
        yield "claimRef is missing"


@rule
def reclaim_policy(document, _):
    """Existing file systems are kept: no Delete (removes the file system), no Recycle for NFS (removes all files)."""
    if document["kind"] == "PersistentVolume":
        policy = spec_of(document).get("persistentVolumeReclaimPolicy")
        allowed = ("Retain",) if "nfs" in spec_of(document) else ("Retain", "Recycle")
        if policy not in allowed:
            yield f"persistentVolumeReclaimPolicy is {policy}, expected {' or '.join(allowed)}"
    elif document["kind"] == "StorageClass" and document.get("parameters"):
        if document.get("reclaimPolicy") not in ("Retain", "Delete"):
            yield f"reclaimPolicy is {document.get('reclaimPolicy')}, expected Retain or Delete"


@rule
def mount_options(document, _):
    """Lustre needs flock for file locks; NFS needs hard and version 4.1, which needs no lock daemon."""
    options = options_of(document)
    if FSX in (document.get("provisioner") if document.get("parameters") else None,
               spec_of(document).get("csi", {}).get("driver")) and "flock" not in options:
        yield f"mountOptions is {options}: flock is missing"
    if "nfs" in spec_of(document):
        for option in ("hard", "nfsvers=4.1"):
            if option not in options:
                yield f"mountOptions is {options}: {option} is missing"


@rule
def class_parameters(document, _):
    """StorageClass parameters are strings that the driver supports, and required ones are set."""
    if document["kind"] != "StorageClass" or not document.get("parameters"):
        return
    parameters = document["parameters"]
    known, needed = PARAMETERS.get(document.get("provisioner"), (set(parameters), set()))
    for name, value in parameters.items():
        if name not in known:
            yield f"{document['provisioner']} has no parameter {name}"
        elif not isinstance(value, str) or not value:
            yield f"{name} is {value!r}, expected a text"
    for name in sorted(needed - set(parameters)):
        yield f"{name} is missing"


def fsx_parameters(document):
    if document["kind"] == "StorageClass" and document.get("provisioner") == FSX:
        return document.get("parameters") or {}
    return {}


@rule
def fsx_throughput(document, _):
    """A persistent FSx file system has a throughput of its type, a scratch one has none."""
    parameters = fsx_parameters(document)
    if parameters and parameters.get("storageType") != "HDD":
        kind, value = parameters.get("deploymentType"), parameters.get("perUnitStorageThroughput")
        if value not in THROUGHPUT.get(kind, {value}):
            yield f"perUnitStorageThroughput of {kind} is {value}, expected one of {sorted(map(str, THROUGHPUT[kind]))}"


@rule
def fsx_repository(document, _):
    """S3 import and export paths have the same bucket, and the type is not PERSISTENT_2."""
    parameters = fsx_parameters(document)
    source, target, policy = (parameters.get(name) for name in ("s3ImportPath", "s3ExportPath", "autoImportPolicy"))
    if (target or policy) and not source:
        yield "s3ImportPath is missing"
    if source and parameters.get("deploymentType") == "PERSISTENT_2":
        yield "PERSISTENT_2 takes no s3ImportPath"
    if source and target and source.split("/")[2:3] != target.split("/")[2:3]:
        yield f"s3ExportPath {target} is in another bucket than {source}"
    if policy not in IMPORT_POLICIES:
        yield f"autoImportPolicy is {policy}"


@rule
def fsx_volume(document, _):
    """An FSx volume has its file system's mount name and DNS name, which begins with its id."""
    csi = spec_of(document).get("csi", {}) if document["kind"] == "PersistentVolume" else {}
    if csi.get("driver") == FSX:
        attributes = csi.get("volumeAttributes") or {}
        if set(attributes) != {"dnsname", "mountname"}:
            yield f"volumeAttributes has {sorted(attributes)}, expected dnsname and mountname"
        elif not attributes["dnsname"].startswith(csi.get("volumeHandle", "") + ".fsx."):
            yield f"dnsname {attributes['dnsname']} does not belong to {csi.get('volumeHandle')}"


@rule
def labels_of_storage(document, _):
    """Storage has Kubernetes' recommended labels."""
    missing = missing_labels(document.get("metadata"))
    if missing:
        yield f"lacks app.kubernetes.io/: {missing}"


def faults(documents):
    """All storage violations of a file as (object, rule, message)."""
    for document in of_kind(documents, "StorageClass", "PersistentVolume", "PersistentVolumeClaim"):
        for name, check in RULES.items():
            for message in check(document, documents):
                yield f"{document['kind']}/{document['metadata']['name']}", name, message
