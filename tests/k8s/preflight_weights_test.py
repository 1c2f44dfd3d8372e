"""Tests k8s/lib/preflight-weights.sh, the part of preflight.sh that looks for a job's weights on its claim."""

import pathlib
import tempfile

import tools
import validate
import yaml
from charts import render

LIBRARY = tools.K8S / "lib/preflight-weights.sh"
RESNET50 = "data/coco2017/pretrained-models/ImageNet-R50-AlignPadding.npz"


def bash(script, *arguments):
    """Runs a script with the library and the facts of the manifest $1."""
    start = f'set -u; here={tools.K8S}; namespace=training; . {LIBRARY}; facts=$(weights_facts "$1"); shift; '
    return tools.check_run("bash", "-c", start + script, "-", *arguments)


def located(manifest):
    """Lines PATH, MOUNT, CLAIM of the weights of a manifest."""
    script = 'facts_of weights | sort -u | while read -r path; do path=$(expanded "$path"); echo "$path $(mount_of "$path")"; done'
    return [line.split() for line in bash(script, manifest).splitlines()]


def test_finds_weights():
    for overlay in ("mask-rcnn", "mask-rcnn-optimized"):
        found = located(tools.K8S / f"rendered/{overlay}.yaml")
        assert found == [[f"/data/{RESNET50}", "/data", "pv-fsx"]], found
    assert not located(tools.K8S / "rendered/resnet50-fsx.yaml")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.yaml"
        for chart in ("maskrcnn", "maskrcnn-optimized"):
            path.write_text(render(tools.helms()[0], chart, ["maskrcnn.data_pvc=other", "global.registry=me"])[0])
            found = located(path)
            assert found == [[f"/data/{RESNET50}", "/data", "other"]], found
        # Flags in two forms, nested mounts, a variable without a value.
        path.write_text("""\
apiVersion: batch/v1
kind: Job
metadata: {name: job}
spec:
  template:
    spec:
      containers:
        - {name: a, image: "b:1", args: [x, --load, /pvc/run, --weights=/pvc/sets/a.npz, "--load=$(NONE)/b"],
           volumeMounts: [{name: one, mountPath: /pvc}, {name: two, mountPath: /pvc/sets}]}
      volumes:
        - {name: one, persistentVolumeClaim: {claimName: first}}
        - {name: two, persistentVolumeClaim: {claimName: second}}
""")
        found = located(path)
        assert found == [["$(NONE)/b"], ["/pvc/run", "/pvc", "first"], ["/pvc/sets/a.npz", "/pvc/sets", "second"]], found


def test_says_what_it_did_not_check():
    """A manifest that Kustomize refuses, here with an object twice, gets a note."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "job.yaml"
        text = (tools.K8S / "rendered/mask-rcnn.yaml").read_text()
        path.write_text(f"{text}---\n{text}")
        script = f'here={tools.K8S}; . {LIBRARY}; note() {{ echo "note: $*"; }}; check_weights "$1" 2>/dev/null'
        assert tools.check_run("bash", "-c", script, "-", path) == "note: whether the job needs weights was not checked\n"


def test_pod_is_valid():
    """The pod satisfies Kubernetes' schema and the Pod Security Standard restricted, and only reads."""
    schemas = validate.Schemas(tools.SCHEMAS)
    if not schemas.files:
        tools.skip(f"there are no schemas in {tools.SCHEMAS}")
    text = bash(r'''facts+=$'\nsecret\tregistry'; printf '/data\tpv-fsx\n' | weights_pod "$@"''',
                tools.K8S / "rendered/mask-rcnn.yaml", f"/data/{RESNET50}")
    pod = yaml.safe_load(text)
    assert pod["metadata"].pop("generateName") == "preflight-"
    pod["metadata"]["name"] = "preflight-x"
    assert not list(validate.errors(pod, schemas))
    spec = pod["spec"]
    [container] = spec["containers"]
    assert spec["securityContext"] == {"runAsNonRoot": True, "runAsUser": 1000, "runAsGroup": 1000,
                                       "supplementalGroups": [1000], "seccompProfile": {"type": "RuntimeDefault"}}
    assert container["securityContext"] == {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True,
                                            "capabilities": {"drop": ["ALL"]}}
    assert container["image"] == "dtrain-cuda:0.2.0" and spec["imagePullSecrets"] == [{"name": "registry"}]
    assert container["command"][-2:] == ["sh", f"/data/{RESNET50}"] and "$(" not in container["command"][2]
    assert [mount["readOnly"] for mount in container["volumeMounts"]] == [True]
    assert spec["volumes"] == [{"name": "data-1", "persistentVolumeClaim": {"claimName": "pv-fsx", "readOnly": True}}]


if __name__ == "__main__":
    tools.main(globals())
