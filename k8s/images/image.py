#!/usr/bin/env python3
"""Writes an image as a reproducible OCI archive with SBOM and provenance; build.sh calls this script.

The archive is an OCI image layout, with a manifest.json for versions of Docker that do not read the layout. As from
BuildKit, its index lists the image and an attestation manifest with in-toto statements about the image: the SBOM (SPDX)
and the provenance (SLSA 1). They are not signed. The provenance is also written beside the archive: to
NAME.provenance.json for NAME.tar.
"""

import argparse
import datetime
import gzip
import hashlib
import json
import pathlib
import tarfile
import tempfile

OCI = "application/vnd.oci.image."
MANIFEST, INDEX, CONFIG = (f"{OCI}{name}.v1+json" for name in ("manifest", "index", "config"))
LINUX = {"architecture": "amd64", "os": "linux"}
UNKNOWN = {"architecture": "unknown", "os": "unknown"}
PATH = ["PATH=/usr/bin:/usr/sbin", "LANG=C.UTF-8", "HOME=/run/dtrain/home"]
NVIDIA = ["NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility,video"]
# NCCL_NET makes a missing plug-in an error; by default NCCL would fall back to TCP.
EFA = ["LD_LIBRARY_PATH=/opt/amazon/ofi-nccl/lib:/opt/amazon/efa/lib", "NCCL_NET=AWS Libfabric",
       "NCCL_SOCKET_IFNAME=^docker,lo,veth"]
IMAGES = {  # description, environment
    "cpu": ("Training of image models on CPUs", PATH),
    "cuda": ("Training of image models on GPUs from compute capability 8.0, with CUDA 13", PATH + NVIDIA),
    "cuda12": ("Training of image models on GPUs from compute capability 7.0, with CUDA 12", PATH + NVIDIA),
    "efa": ("Training of image models on GPUs of several instances with Elastic Fabric Adapters", PATH + NVIDIA + EFA),
}


def text_of(value):
    return json.dumps(value, separators=(",", ":")).encode()


class Layout:
    """An OCI image layout in a folder."""

    def __init__(self, folder):
        self.folder = folder
        (folder / "blobs/sha256").mkdir(parents=True)

    def path(self, descriptor):
        return f"blobs/sha256/{descriptor['digest'].split(':')[1]}"

    def add(self, value, media_type, **fields):
        text = text_of(value)
        descriptor = {"mediaType": media_type, "digest": f"sha256:{hashlib.sha256(text).hexdigest()}", "size": len(text)}
        (self.folder / self.path(descriptor)).write_bytes(text)
        return {**descriptor, **fields}

    def add_manifest(self, config, layers, **fields):
        return self.add({"schemaVersion": 2, "mediaType": MANIFEST, "config": config, "layers": layers}, MANIFEST, **fields)

    def add_layer(self, tar):
        """Returns the descriptor of the compressed layer, and the digest of its content."""
        compressed = self.folder / "layer"
        content, digest = hashlib.sha256(), hashlib.sha256()
        with tar.open("rb") as source, compressed.open("wb") as target, \
                gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=target, mtime=0) as stream:
            while chunk := source.read(1 << 20):
                content.update(chunk)
                stream.write(chunk)
        with compressed.open("rb") as source:
            while chunk := source.read(1 << 20):
                digest.update(chunk)
        descriptor = {"mediaType": OCI + "layer.v1.tar+gzip", "digest": f"sha256:{digest.hexdigest()}",
                      "size": compressed.stat().st_size}
        compressed.rename(self.folder / self.path(descriptor))
        return descriptor, f"sha256:{content.hexdigest()}"


def configuration(options, contents):
    description, environment = IMAGES[options.image]
    created = datetime.datetime.fromtimestamp(options.epoch, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    labels = {"title": f"dtrain-{options.image}", "description": description, "vendor": "dtrain", "licenses": "Apache-2.0",
              "version": options.version, "revision": options.revision, "created": created}
    return {
        **LINUX, "created": created,
        "config": {
            "User": "1000:1000", "WorkingDir": "/run/dtrain", "Env": environment,
            "Entrypoint": ["/usr/bin/dtrain-pod"], "Cmd": ["dtrain-info"],
            "ExposedPorts": {"2222/tcp": {}}, "Volumes": {"/run/dtrain": {}, "/tmp": {}},
            # Docker's extension of the configuration.
            "Healthcheck": {"Test": ["CMD", "/usr/bin/dtrain-info"], "Interval": 30 * 10**9, "Timeout": 20 * 10**9},
            "Labels": {f"org.opencontainers.image.{key}": value for key, value in labels.items()},
        },
        "rootfs": {"type": "layers", "diff_ids": contents},
        "history": [{"created": created, "created_by": "k8s/images/build.sh", "comment": tar.stem} for tar in options.layers],
    }


def provenance(options, bills):
    source = {"digest": {"gitCommit": options.revision}} if options.revision else {}
    dependencies = [{"name": "dtrain", "uri": f"pkg:generic/dtrain@{options.version}", **source}]
    for line in options.base.read_text().splitlines() if options.base else ():
        digest, name = line.split()
        dependencies.append({"name": name, "digest": {"sha256": digest}})
    for package in (package for bill in bills for package in bill["packages"]):
        for reference in package.get("externalRefs", ()):
            sums = [{"digest": {"sha256": item["checksumValue"]}} for item in package.get("checksums", ())]
            dependencies.append({"name": package["name"], "uri": reference["referenceLocator"], **(sums[0] if sums else {})})
    return {
        "buildDefinition": {
            "buildType": "urn:dtrain:k8s/images/build.sh:1",
            "externalParameters": {"image": options.image, "version": options.version},
            "internalParameters": {"SOURCE_DATE_EPOCH": options.epoch},
            "resolvedDependencies": dependencies,
        },
        "runDetails": {"builder": {"id": "urn:dtrain:k8s/images/build.sh"}},
    }


def statements(options, image):
    """The in-toto statements about the image; the last is the provenance."""
    bills = [json.loads(path.read_text()) for path in options.sbom]
    predicates = [("https://spdx.dev/Document", bill) for bill in bills]
    predicates.append(("https://slsa.dev/provenance/v1", provenance(options, bills)))
    subject = {"name": f"pkg:oci/dtrain-{options.image}?tag={options.version}",
               "digest": {"sha256": image["digest"].split(":")[1]}}
    return [{"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": kind, "predicate": value}
            for kind, value in predicates]


def write_layout(layout, options):
    """Returns the statements about the image."""
    layers, contents = zip(*map(layout.add_layer, options.layers))
    config = layout.add(configuration(options, list(contents)), CONFIG)
    image = layout.add_manifest(config, list(layers), platform=LINUX)

    about = statements(options, image)
    blobs = [layout.add(value, "application/vnd.in-toto+json",
                        annotations={"in-toto.io/predicate-type": value["predicateType"]}) for value in about]
    nothing = layout.add(
        {**UNKNOWN, "rootfs": {"type": "layers", "diff_ids": [blob["digest"] for blob in blobs]}}, CONFIG)
    attestation = layout.add_manifest(nothing, blobs, platform=UNKNOWN, annotations={
        "vnd.docker.reference.type": "attestation-manifest", "vnd.docker.reference.digest": image["digest"]})

    name = f"dtrain-{options.image}:{options.version}"
    index = layout.add({"schemaVersion": 2, "mediaType": INDEX, "manifests": [image, attestation]}, INDEX, annotations={
        "io.containerd.image.name": f"docker.io/library/{name}", "org.opencontainers.image.ref.name": options.version})
    top = {"schemaVersion": 2, "mediaType": INDEX, "manifests": [index]}
    docker = [{"Config": layout.path(config), "RepoTags": [name], "Layers": [layout.path(layer) for layer in layers]}]
    for file, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", top), ("manifest.json", docker)):
        (layout.folder / file).write_bytes(text_of(value))
    return about


def anonymous(member):
    member.uid = member.gid = member.mtime = 0
    member.uname = member.gname = ""
    member.mode = 0o755 if member.isdir() else 0o644
    return member


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", choices=IMAGES)
    parser.add_argument("layers", nargs="+", type=pathlib.Path, help="uncompressed tar files, the lowest layer first")
    parser.add_argument("--version", required=True)
    parser.add_argument("--revision", required=True, help="commit of the source; empty if it is unknown")
    parser.add_argument("--epoch", required=True, type=int, help="time of the image: SOURCE_DATE_EPOCH")
    parser.add_argument("--sbom", required=True, type=pathlib.Path, action="append")
    parser.add_argument("--base", type=pathlib.Path, help="other files that the image is made from, as sha256sum's lines")
    parser.add_argument("--output", required=True, type=pathlib.Path, help="NAME.tar")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.output.parent) as folder:
        layout = Layout(pathlib.Path(folder))
        about = write_layout(layout, options)
        with tarfile.open(options.output, "w", format=tarfile.GNU_FORMAT) as archive:
            for path in sorted(layout.folder.rglob("*")):
                archive.add(path, str(path.relative_to(layout.folder)), recursive=False, filter=anonymous)
    options.output.with_suffix(".provenance.json").write_text(json.dumps(about[-1], indent=1) + "\n")


if __name__ == "__main__":
    main()
