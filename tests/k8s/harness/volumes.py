"""Volumes of pods: one folder on this machine per volume."""

import base64
import os
import pathlib
import re
import uuid

from harness.spaces import run

UNITS = {"": 1, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
         "m": 1e-3}


def quantity(text):
    """Number of a Kubernetes quantity such as 500m or 2Gi."""
    number, unit = re.fullmatch(r"([0-9.]+)([A-Za-z]*)", str(text)).groups()
    return float(number) * UNITS[unit]


def write_atomically(folder, files):
    """Writes files like the kubelet's ConfigMap and Secret volumes: links into an atomically replaced directory."""
    version = f"..{uuid.uuid4().hex[:12]}"
    (folder / version).mkdir()
    for name, (content, mode, group) in files.items():
        path = folder / version / name
        path.write_bytes(content)
        os.chown(path, 0, group)
        path.chmod(mode)
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"..data/{name}")
    (folder / "..tmp").symlink_to(version)
    (folder / "..tmp").rename(folder / "..data")


class Volumes:
    """Volumes of a pod below `folder`. `objects`: cluster objects by kind and name. `shares`: folders of the test that
    act as claims, NFS exports and host paths."""

    def __init__(self, pod, folder, objects, shares):
        self.volumes = {volume["name"]: volume for volume in pod.get("volumes", [])}
        self.group = pod.get("securityContext", {}).get("fsGroup")
        self.folder, self.objects, self.shares = folder, objects, shares
        self.sources = {name: str(self.make(name)) for name in self.volumes}

    def kind(self, name):
        [kind] = set(self.volumes[name]) - {"name"}
        return kind, self.volumes[name][kind]

    def make(self, name):
        kind, settings = self.kind(name)
        if kind in ("persistentVolumeClaim", "nfs", "hostPath"):
            return self.shared(kind, settings)
        folder = pathlib.Path(self.folder) / name
        folder.mkdir(parents=True)
        if kind == "emptyDir":
            self.make_empty(folder, settings)
        elif kind in ("secret", "configMap"):
            os.chown(folder, 0, self.group or 0)
            self.write(folder, kind, settings)
        else:
            raise ValueError(f"volume {name}: the harness does not support {kind}")
        return folder

    def shared(self, kind, settings):
        name = settings.get("claimName") or f"{settings.get('server', '')}{settings['path']}"
        if name not in self.shares:
            raise ValueError(f"the test provides no {kind} {name}: it has {sorted(self.shares)}")
        return self.shares[name]

    def make_empty(self, folder, settings):
        size = int(quantity(settings.get("sizeLimit", "1Gi")))
        run("mount", "-t", "tmpfs", "-o", f"size={size},mode=0777", "tmpfs", folder)
        if self.group is not None:
            os.chown(folder, 0, self.group)
            folder.chmod(0o2777)

    def write(self, folder, kind, settings):
        """Writes the files of a Secret or ConfigMap; readable by the pod's fsGroup, as the kubelet does."""
        kind, name = ("Secret", settings["secretName"]) if kind == "secret" else ("ConfigMap", settings["name"])
        found = self.objects[kind, name]
        data = {key: base64.b64decode(value) if kind == "Secret" else value.encode()
                for key, value in found.get("data", {}).items()}
        data.update({key: value.encode() for key, value in found.get("stringData", {}).items()})
        items = settings.get("items") or [{"key": key, "path": key} for key in data]
        default = settings.get("defaultMode", 0o644)
        readable = 0o440 if self.group is not None else 0
        write_atomically(folder, {item["path"]: (data[item["key"]], item.get("mode", default) | readable,
                                                 self.group or 0) for item in items})

    def update(self):
        """Rewrites files of changed objects."""
        for name in self.volumes:
            kind, settings = self.kind(name)
            if kind == "configMap":
                self.write(pathlib.Path(self.sources[name]), kind, settings)

    def close(self):
        for name in self.volumes:
            if self.kind(name)[0] == "emptyDir":
                run("umount", "--lazy", self.sources[name])

    def mounts(self, container):
        """Mounts of a container, outer folders before inner ones."""
        found = []
        for entry in container.get("volumeMounts", []):
            source = os.path.join(self.sources[entry["name"]], entry.get("subPath", "")).rstrip("/")
            kind, settings = self.kind(entry["name"])
            never = kind in ("secret", "configMap") or settings.get("readOnly", False)
            read_only = never or entry.get("readOnly", False)
            found.append({"source": source, "target": entry["mountPath"], "read_only": read_only})
        return sorted(found, key=lambda mount: mount["target"])
