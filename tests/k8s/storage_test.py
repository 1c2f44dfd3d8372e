"""Tests k8s/storage: every claim that a job mounts is defined, claims and volumes bind, values equal the README's,
charts create the same objects, and k8s/set.sh sets each parameter or rejects it with a reason."""

import contextlib
import copy
import pathlib
import re
import shlex
import shutil
import tempfile

import lint
import lint_job
import lint_storage
import tools
import yaml

README = tools.K8S / "storage" / "README.md"
STORAGES = sorted(path.parent.name for path in tools.K8S.glob("storage/*/kustomization.yaml"))
# A new value for each parameter, and the paths that may receive it.
NEW = {
    "NAMESPACE": ("team-a", r"metadata\.namespace|claimRef\.namespace"),
    "PVC_NAME": ("other-claim", r"PersistentVolumeClaim\.metadata\.name|claimRef\.name|"
                 r"labels\.app\.kubernetes\.io/instance"),
    "PV_NAME": ("other-volume", r"PersistentVolume\.metadata\.name|volumeName|volumeHandle"),
    "BUCKET": ("other-bucket", r"bucketName"),
    "PREFIX": ("other/sets/", r"mountOptions"),
    "CLASS": ("other-class", r"StorageClass\.metadata\.name|storageClassName"),
    "STORAGE": ("9000Gi", r"capacity\.storage"),
    "CLAIM_STORAGE": ("7Gi", r"requests\.storage"),
    "RECLAIM_POLICY": ("Retain", r"persistentVolumeReclaimPolicy|reclaimPolicy"),
    "FILE_SYSTEM_ID": ("fs-00000000000000abc", r"volumeHandle|fileSystemId"),
    "DNS_NAME": ("fs-0123456789abcdef0.fsx.eu-west-1.amazonaws.com", r"dnsname"),
    "MOUNT_NAME": ("other", r"mountname"),
    "SUBNET_ID": ("subnet-00000abc", r"subnetId"),
    "SECURITY_GROUP_IDS": ("sg-00000abc,sg-00000abd", r"securityGroupIds"),
    "S3_IMPORT_PATH": ("s3://my-bucket/other", r"s3ImportPath"),
    "S3_EXPORT_PATH": ("s3://my-bucket/export", r"s3ExportPath"),
    "AUTO_IMPORT_POLICY": ("NEW", r"autoImportPolicy"),
    "THROUGHPUT": ("1000", r"perUnitStorageThroughput"),
    "USER_ID": ("54321", r"parameters\.uid"),
    "GROUP_ID": ("54322", r"parameters\.gid"),
    "NFS_SERVER": ("10.0.0.5", r"nfs\.server"),
    "NFS_EXPORT": ("/exports/training", r"nfs\.path"),
}
REFUSED = (  # storage, change, and a part of the message
    ("efs", "FILE_SYSTEM_ID=efs", "fs-0123456789abcdef0"), ("efs", "RECLAIM_POLICY=Delete", "would be deleted"),
    ("efs", "RECLAIM_POLICY=Keep", "Retain, Recycle or Delete"), ("efs", "CLAIM_STORAGE=61Gi", "a smaller volume"),
    ("efs", "CLAIM_STORAGE=1Ti", "a smaller volume"), ("efs", "STORAGE=59Gi", "a smaller volume"),
    ("efs", "STORAGE=60GB", "a size"), ("efs", "NFS_SERVER=a", "has no parameter"),
    ("efs", "--flag=1", "no dtrain program"), ("efs", "--", "no program"), ("efs", "CLASS=A", "StorageClass"),
    ("nfs", "RECLAIM_POLICY=Recycle", "empties"),
    ("nfs", "NFS_EXPORT=exports", "absolute path"), ("nfs", "PV_NAME=a_b", "PersistentVolume name"),
    ("fsx-static", "DNS_NAME=fs-0000000000000000a.fsx.us-west-2.amazonaws.com", "does not begin with"),
    ("fsx-static", "MOUNT_NAME=much-too-long", "MountName"), ("fsx-s3", "SUBNET_ID=net-1", "subnet-0123456789abcdef0"),
    ("fsx-s3", "SECURITY_GROUP_IDS=sg-00000abc;", "comma-separated"), ("fsx-s3", "S3_IMPORT_PATH=bucket", "s3://BUCKET"),
    ("fsx-s3", "S3_EXPORT_PATH=s3://other/x", "different buckets"), ("fsx-s3", "AUTO_IMPORT_POLICY=ALL", "NEW_CHANGED"),
    ("s3-mountpoint", "BUCKET=s3://bucket", "name of a bucket"), ("s3-mountpoint", "PREFIX=sets", "with a final /"),
    ("fsx-dynamic", "THROUGHPUT=200", "1000"), ("none", "CLASS=a", "there is no overlay storage/none"))


def rendered(name):
    return lint.read(tools.K8S / "rendered" / "storage" / f"{name}.yaml")


def one(documents, kind):
    return next((document for document in documents if document["kind"] == kind), None)


def claim_of(documents):
    return one(documents, "PersistentVolumeClaim")


def chart(name, *values):
    text = tools.check_run(tools.helms()[0], "template", name, tools.K8S / "charts" / name, "--namespace", "default",
                           *(f"--set={value}" for value in values))
    return [document for document in yaml.safe_load_all(text) if document]


def charts():
    """In the namespace of the overlays' defaults."""
    fsx = ("namespace=default", "fs_id=fs-0123456789abcdef0", "mount_name=abcdefgh", "region=us-west-2")
    return {"pv-fsx": chart("pv-fsx", *fsx), "pv-efs": chart("pv-efs", *fsx[:2])}


@contextlib.contextmanager
def tree():
    """Root of a copy of k8s/."""
    if not shutil.which("kubectl"):
        tools.skip("there is no kubectl")
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "k8s"
        shutil.copytree(tools.K8S, root, symlinks=True)
        yield root


def parameters_of(root, name):
    return root / "storage" / name / "parameters.yaml"


def with_examples(root, name):
    """Sets required parameters to their examples with k8s/set.sh."""
    examples = re.findall(r"^  # ([A-Z0-9_]+): (.*)$", parameters_of(root, name).read_text(), re.MULTILINE)
    tools.check_run(root / "set.sh", f"storage/{name}", *(f"{key}={value}" for key, value in examples))


def render(root, name):
    return list(yaml.safe_load_all(tools.check_run("kubectl", "kustomize", root / "storage" / name)))


def leaves(value, path):
    if isinstance(value, dict):
        for key, item in value.items():
            yield from leaves(item, f"{path}.{key}")
    else:
        yield path, value


def flat(documents):
    return {path: value for document in documents for path, value in leaves(document, document["kind"])}


def test_every_claim_is_defined():
    """Each claim that an overlay mounts is defined by a storage or chart in its namespace, for ReadWriteMany."""
    made = {}
    for documents in [*(rendered(name) for name in STORAGES), *charts().values()]:
        made.setdefault(claim_of(documents)["metadata"]["name"], []).append(claim_of(documents))
    mounted = 0
    for path in sorted((tools.K8S / "rendered").glob("*.yaml")):
        documents = lint.read(path)
        for document in documents:
            for pod in lint.Job(document, documents).pods:
                for volume in lint_job.items(pod.spec.get("volumes")):
                    name = lint_job.mapping(volume.get("persistentVolumeClaim")).get("claimName")
                    if name is None:
                        continue
                    assert name in made, f"{path.name} mounts {name}, which no storage defines"
                    for claim in made[name]:
                        assert claim["metadata"]["namespace"] == document["metadata"]["namespace"], path.name
                        assert claim["spec"]["accessModes"] == ["ReadWriteMany"], path.name
                    mounted += 1
    assert mounted > 15, mounted


def test_claims_and_volumes_bind():
    """Each claim binds, and no claim binds after a change that Kubernetes would not accept."""
    changes = {"class": ("storageClassName", "other"), "modes": ("accessModes", ["ReadWriteOnce"]),
               "volumeMode": ("volumeMode", "Block"), "requests": ("capacity", {"storage": "59Gi"}),
               "reserved for": ("claimRef", {"namespace": "other", "name": "efs-claim"})}
    bound = 0
    for documents in [*(rendered(name) for name in STORAGES), *charts().values()]:
        assert not list(lint_storage.faults(documents)), list(lint_storage.faults(documents))
        claim, volume = claim_of(documents), one(documents, "PersistentVolume")
        if volume is None:
            assert one(documents, "StorageClass").get("parameters"), claim
            continue
        for words, (field, value) in changes.items():
            other = copy.deepcopy(volume)
            other["spec"][field] = value
            [reason] = lint_storage.unbindable(claim, other)
            assert words in reason, (words, reason)
        bound += 1
    assert bound == 6, bound


def test_values_match_readme():
    table = re.search(r"\n\| storage \| claim.*?\n\n", README.read_text(), re.DOTALL)[0]
    rows = {cells[0]: cells[1:] for cells in ([cell.strip(" `") for cell in line.strip("|").split("|")]
                                              for line in table.split("\n")[3:] if line)}
    assert sorted(rows) == STORAGES, rows
    for name, (claim_name, volume_name, class_name, size, mode, policy, options) in rows.items():
        documents = rendered(name)
        claim, volume = claim_of(documents), one(documents, "PersistentVolume")
        asked = claim["spec"]["resources"]["requests"]["storage"]
        holder = one(documents, "StorageClass") or {}
        found = [claim["metadata"]["name"], "made for it", claim["spec"]["storageClassName"], asked,
                 ", ".join(claim["spec"]["accessModes"]), holder.get("reclaimPolicy"), holder.get("mountOptions")]
        if volume:
            spec = volume["spec"]
            found = [found[0], volume["metadata"]["name"], spec["storageClassName"],
                     f"{spec['capacity']['storage']}, {asked}", ", ".join(spec["accessModes"]),
                     spec["persistentVolumeReclaimPolicy"], spec.get("mountOptions")]
        found[-1] = ", ".join(found[-1] or ["none"])
        assert found == [claim_name, volume_name, class_name, size, mode, policy, options], (name, found)


def test_charts_match_storages():
    """The storages with the values in the README create the same objects as the charts."""
    with tree() as root:
        for name, documents in charts().items():
            [line] = re.findall(rf"\n    (k8s/set\.sh storage/\S+ PVC_NAME={name} .*)", README.read_text())
            words = shlex.split(line)
            storage = words[1].partition("/")[2]
            with_examples(root, storage)
            tools.check_run(root / "set.sh", *words[1:])
            rendered = render(root, storage)
            for document in documents + rendered:  # those of the tool
                document["metadata"].pop("annotations", None)
                del document["metadata"]["labels"]
            assert flat(rendered) == flat(documents), name


def test_parameters_arrive():
    with tree() as root:
        for name in STORAGES:
            with_examples(root, name)
            text, before = parameters_of(root, name).read_text(), flat(render(root, name))
            for parameter in yaml.safe_load(text)["data"]:
                value, places = NEW[parameter]
                if parameter == "RECLAIM_POLICY":
                    assert f"{parameter}: Retain\n" in text, f"{name}: files are not kept by default"
                    value = "Delete" if "PV_NAME" not in text else "Retain" if name == "nfs" else "Recycle"
                changes = [f"{parameter}={value}"]
                if parameter == "FILE_SYSTEM_ID" and "DNS_NAME" in text:
                    changes.append(f"DNS_NAME={value}.fsx.us-west-2.amazonaws.com")
                    places += "|dnsname"
                tools.check_run(root / "set.sh", f"storage/{name}", *changes)
                after = flat(render(root, name))
                changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
                assert changed or value in text, f"{name}: {parameter} arrives nowhere"
                for path in changed:
                    assert re.search(rf"(^|\.)({places})$", path), f"{name}: {parameter} changes {path}"
                    assert value in str(after[path]), f"{name}: {path} is {after[path]}"
                parameters_of(root, name).write_text(text)


def test_missing_parameters_are_named():
    """Without a required parameter kubectl applies nothing and prints one line with its name."""
    with tree() as root:
        for name in STORAGES:
            text = parameters_of(root, name).read_text()
            needed = re.findall(r"^  # ([A-Z0-9_]+): ", text, re.MULTILINE)
            assert needed, name
            listed = tools.check_run(root / "set.sh", f"storage/{name}")
            with_examples(root, name)
            complete = parameters_of(root, name).read_text()
            for parameter in needed:
                assert f"{parameter}=   (required, such as " in listed, listed
                line = re.search(rf"^  # {parameter}: .*$", text, re.MULTILINE)[0]
                parameters_of(root, name).write_text(re.sub(rf"  {parameter}: .*", line, complete))
                result = tools.run("kubectl", "kustomize", root / "storage" / name)
                assert result.returncode != 0 and not result.stdout, (name, parameter, result.stdout)
                assert f"data.{parameter}` is missing" in result.stderr and result.stderr.count("\n") <= 1, result.stderr


def test_rejects_invalid_values():
    with tree() as root:
        for name in STORAGES:
            with_examples(root, name)
        for name, change, words in REFUSED:
            path = parameters_of(root, name)
            before = path.read_text() if path.exists() else None
            result = tools.run(root / "set.sh", f"storage/{name}", change)
            assert result.returncode == 1 and words in result.stderr, (name, change, result.returncode, result.stderr)
            assert result.stderr.startswith("set.sh: ") and result.stderr.count("\n") == 1, result.stderr
            assert before is None or path.read_text() == before, (name, change)


def test_document():
    """The document's commands succeed and all storages then render; it names all storages, and existing files."""
    text = README.read_text()
    for name in re.findall(r"\]\(([^)#]+)", text):
        assert (README.parent / name).exists(), name
    with tree() as root:
        for name in STORAGES:
            with_examples(root, name)
        commands = re.findall(r"\n    k8s/set\.sh (.*)", text)
        for command in commands:
            tools.check_run(root / "set.sh", *shlex.split(command))
        assert len(commands) >= 9, commands
        for name in STORAGES:
            assert not list(lint_storage.faults(render(root, name))), name
        for path in set(re.findall(r"apply -k (k8s/\S+)", text)):
            tools.check_run("kubectl", "kustomize", root.parent / path)


if __name__ == "__main__":
    tools.main(globals())
