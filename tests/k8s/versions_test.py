"""Tests k8s/versions.txt, k8s/support.txt and k8s/check_versions.py: places that repeat an upstream version state the
pinned one, invalid files are rejected, and support and advisories are checked at any date."""

import pathlib
import re
import shutil
import sys
import tempfile

import tools
from tools import check_versions

SCRIPT = tools.K8S / "check_versions.py"
PINNING = {"versions.txt", "support.txt", "versions.md", "check_versions.py", "versions_test.py"}

# Places that repeat a version: the component, and a pattern whose group is the version without v, or its first numbers.
# A version `or later` is a requirement, no pin.
NUMBER = r"v?(\d+(?:\.\d+)+)\b(?!\.\d)(?! or later)"
PLACES = [
    ("mpi-operator", r"(?i)mpi[- ]operator[:/ ]" + NUMBER),
    ("mpi-operator", r"mpijobs\." + NUMBER),
    ("nvidia-device-plugin", r"k8s-device-plugin/" + NUMBER),
    ("efs-csi-driver", r"aws-efs-csi-driver " + NUMBER),
    ("fsx-csi-driver", r"aws-fsx-csi-driver " + NUMBER),
    ("training-operator", r"(?:commit of|operator version|CRDs of version|base of|installs version) " + NUMBER),
    ("training-operator", r"kubeflow-training " + NUMBER),
    ("kubeflow-pipelines", r"Install version " + NUMBER),
    ("cluster-autoscaler", r"https://kubernetes\.github\.io/autoscaler --version (\S+)"),
    ("jupyterhub", r"https://hub\.jupyter\.org/helm-chart/ --version (\S+)"),
    ("jupyterhub", r"JupyterHub chart " + NUMBER),
    ("karpenter", r"\nkarpenter:\n  version: (\S+)"),
    ("karpenter", r"karpenter --namespace karpenter --version (\S+)"),
    ("eks", r"\n  region: \S+\n  version: \"([^\"]+)\""),
    ("fsx-lustre", r"(?:fileSystemTypeVersion: \"|PERSISTENT_2 with Lustre )" + NUMBER),
    ("terraform-aws", r"source  = \"hashicorp/aws\"\n +version = \"([^\"]+)\""),
    ("terraform-helm", r"source  = \"hashicorp/helm\"\n +version = \"([^\"]+)\""),
    ("helm", r"\nhelm_of \S+ \S+ (4\.\d+)"),
    ("efa-installer", r"(?:EFA installer |aws-efa-installer-VERSION\.tar\.gz, )v?(\d+\.\d+)"),
]
# Patterns of any upstream version: a found version must be pinned.
IMAGE = re.compile(r"(?m)(?:\bimage|IMAGE)\"?: *\"?([a-z0-9][-a-zA-Z0-9._/]*/[-a-z0-9.]+:[^\s\",}]+)")
COMMIT = re.compile(r"https://github\.com/([\w.-]+/[\w.-]+?)(?:\.git)?//[^\s'\"]*\?ref=([\w.-]+)")
CHART = re.compile(r"--repo (\S+) +--version (\S+)")
DOWNLOAD = re.compile(r"https://raw\.githubusercontent\.com/([\w.-]+/[\w.-]+)/([^/\s]+)/")
TERRAFORM = re.compile(r"(?m)^\s*(?:version|repository)\s*=\s*\"([^\"]+)\"")


def texts(root):
    """Yields path and text of the files that may state versions."""
    for folder in ("k8s", "tests/k8s"):
        for path in sorted((root / folder).rglob("*")):
            if path.is_file() and path.name not in PINNING and path.suffix not in (".pyc", ".new"):
                yield path.relative_to(root), path.read_text(encoding="utf-8", errors="replace")


def known_places(path, text, pins):
    """Yields component, found version and whether it is the pinned one."""
    for name, pattern in PLACES:
        for match in re.finditer(pattern, text):
            pinned = pins[name].version.removeprefix("v")
            yield name, match[1], pinned == match[1] or pinned.startswith(match[1] + ".")


def any_places(path, text, pins):
    """Yields found upstream versions of any component, and whether they are pinned."""
    of_kind = {kind: [pin for pin in pins.values() if pin.kind == kind] for kind in check_versions.KINDS}
    images = {f"{pin.source}:{pin.version}" + (f"@sha256:{pin.digest}" if pin.digest != "-" else "")
              for pin in of_kind["image"]}
    sources = {(pin.source.removeprefix("https://github.com/"), value) for pin in pins.values()
               for value in (pin.version, pin.digest)}
    for match in IMAGE.finditer(text):
        if path.parts[0] == "k8s" and "/dtrain-" not in match[1]:
            yield "image", match[1], match[1] in images
    for pattern in (COMMIT, DOWNLOAD, CHART):
        for match in pattern.finditer(text):
            yield "source", " ".join(match.groups()), match.groups() in sources
    if path.suffix == ".tf" and path.name != "versions.tf":
        for match in TERRAFORM.finditer(text):
            yield "terraform", match[1], False


def places(root, pins):
    """Yields file, component, version and whether it is the pinned one, for all places of a tree."""
    for path, text in texts(root):
        for find in (known_places, any_places):
            for name, found, is_pinned in find(path, text, pins):
                yield path, name, found, is_pinned


def test_places_state_the_pinned_versions():
    pins = check_versions.read_pins()
    found = list(places(tools.ROOT, pins))
    wrong = [f"{path}: {name} {version} is not the version of k8s/versions.txt" for path, name, version, right in found
             if not right]
    assert not wrong, "\n".join(wrong)
    assert {name for name, _ in PLACES} | {"image", "source"} == {name for _, name, _, _ in found}
    stated = "\n".join(text for _, text in texts(tools.ROOT))
    for pin in pins.values():
        if pin.kind == "image":
            assert f"{pin.source}:{pin.version}" in stated, f"{pin.name} is not used: remove its row"


# Changes of copies that make a place state another version: file, old text, new text.
CHANGES = [
    ("k8s/README.md", "mpi-operator/v0", "mpi-operator/v1"),
    ("k8s/README.md", "k8s-device-plugin/v0", "k8s-device-plugin/v1"),
    ("k8s/cluster/README.md", "--version 9", "--version 8"),
    ("k8s/cluster/eksctl/cluster.yaml", 'version: "1.', 'version: "2.'),
    ("k8s/cluster/eksctl/karpenter.yaml", "version: 1.1", "version: 1.2"),
    ("k8s/cluster/terraform/versions.tf", 'version = "6.', 'version = "5.'),
    ("k8s/cluster/terraform/scaling.tf", 'local.pins["karpenter"].version', '"1.0.0"'),
    ("k8s/peers/README.md", "?ref=4", "?ref=5"),
    ("k8s/peers/tfjob-ps.yaml", "2.15.0", "2.16.0"),
    ("k8s/charts/maskrcnn-jupyter/values.yaml", "@sha256:f1", "@sha256:f2"),
    ("k8s/storage/fsx-s3/objects.yaml", '"2.15"', '"2.12"'),
    ("k8s/rendered/tensorboard.yaml", "amazon/aws-cli:2.", "amazon/aws-cli:3."),
    ("tests/k8s/tools.sh", " 4.", " 4.1"),
    ("tests/k8s/expand.py", "MPI Operator 0", "MPI Operator 1"),
]


def test_other_versions_are_found():
    pins = check_versions.read_pins()
    for name, old, new in CHANGES:
        with tempfile.TemporaryDirectory() as folder:
            copy = pathlib.Path(folder) / name
            copy.parent.mkdir(parents=True)
            shutil.copy(tools.ROOT / name, copy)
            text = copy.read_text(encoding="utf-8")
            assert old in text, (name, old)
            assert all(right for *_, right in places(pathlib.Path(folder), pins)), name
            copy.write_text(text.replace(old, new), encoding="utf-8")
            assert not all(right for *_, right in places(pathlib.Path(folder), pins)), (name, new)


def test_downloads_have_the_version():
    for pin in check_versions.read_pins().values():
        if pin.kind == "tool":
            assert pin.version in pin.source and pin.source.startswith("https://"), pin


def test_page_is_generated():
    page = tools.check_run(sys.executable, "-B", SCRIPT, "--page")
    found = (tools.K8S / "versions.md").read_text(encoding="utf-8")
    assert page == found, "run k8s/check_versions.py --page >k8s/versions.md"


def test_warnings_fail_no_build():
    """Without --as-of the exit code is 0 at any date; the table lists each pin, and each outdated pin has steps."""
    output = tools.check_run(sys.executable, "-B", SCRIPT)
    pins = check_versions.read_pins()
    support = check_versions.read_support(check_versions.SUPPORT, pins)
    for name, pin in pins.items():
        assert re.search(rf"(?m)^{name} +{re.escape(pin.version)} ", output), name
    outdated = set(re.findall(r"(?m)^warning: (\S+) \S+ is (?:outdated|in the range of)", output))
    assert outdated <= set(support.moves), outdated - set(support.moves)
    assert not re.search(r"(?m)^error", output)


PINS = """chart mesh 1.30.3 2026-01-31 https://charts.test -
service cluster v1.35 2026-01-31 https://cluster.test -
image board 1.2-alpine 2026-01-31 test/board -
"""
SUPPORT = """newest mesh 1.31.0 2026-06-01 https://mesh.test
move mesh 1.31.0 first 1.30.4
end mesh 1.30 after:1.32 https://mesh.test
advisory mesh MESH-1 1.30.0 1.30.3 1.30.4 2026-03-01 https://mesh.test/1
advisory mesh MESH-2 1.30.0 1.30.2 1.30.3 2026-03-01 https://mesh.test/2
end cluster 1.3 2020-01-01 https://cluster.test
end cluster 1.35 2027-03-27 https://cluster.test
end board 1.2 ~2028-01-01 https://board.test
"""


def check(pins, support, *options):
    """Runs the script on two files."""
    with tempfile.TemporaryDirectory() as folder:
        files = [pathlib.Path(folder) / name for name in ("pins", "support")]
        for path, text in zip(files, (pins, support)):
            path.write_text(text, encoding="utf-8")
        return tools.run(sys.executable, "-B", SCRIPT, f"--pins={files[0]}", f"--support={files[1]}", *options)


def test_date_selects_errors():
    def expect(code, date, *texts, pins=PINS, support=SUPPORT):
        result = check(pins, support, f"--as-of={date}")
        found = re.findall(r"(?m)^(?:error|warning|move).*", result.stdout)
        assert result.returncode == code and not result.stderr, result
        assert len(found) == len(texts) and all(map(str.startswith, found, texts)), found

    outdated, move = "warning: mesh 1.30.3 is outdated: 1.31.0 is the newest", "move: mesh to 1.31.0: first 1.30.4"
    advisory = "error: mesh 1.30.3 is in the range of MESH-1 (1.30.0 to 1.30.3); fixed in 1.30.4: https://mesh.test/1"
    expect(0, "2026-02-28", outdated, move)
    expect(1, "2026-03-01", advisory, outdated, move)
    fixed = PINS.replace("1.30.3", "1.30.4")
    expect(0, "2026-03-01", outdated.replace("1.30.3", "1.30.4"), move, pins=fixed)
    current, rest = fixed.replace("1.30.4", "1.31.0"), SUPPORT.replace("move mesh 1.31.0 first 1.30.4\n", "")
    expect(0, "2026-12-26", pins=current, support=rest)
    expect(0, "2027-01-01", "warning: cluster v1.35 ends soon: support of 1.35 ends on 2027-03-27", pins=current,
           support=rest)
    expect(0, "2027-03-27", "warning: cluster v1.35 ends soon", pins=current, support=rest)
    ended = "error: cluster v1.35 is out of support: 1.35 ended on 2027-03-27: https://cluster.test"
    expect(1, "2027-03-28", ended, pins=current, support=rest)
    about = "error: board 1.2-alpine is out of support: 1.2 ended about 2028-01-01"
    expect(1, "2028-01-02", ended, about, pins=current, support=rest)
    released = SUPPORT.replace("newest mesh 1.31.0 2026-06-01", "newest mesh 1.32.0 2026-09-01")
    expect(1, "2026-09-02", "error: mesh 1.30.4 is out of support: 1.30 ended on 2026-09-01",
           "warning: mesh 1.30.4 is outdated", move, pins=fixed, support=released)
    result = check(PINS, SUPPORT)
    assert result.returncode == 0 and "warning: mesh 1.30.3 is in the range of MESH-1" in result.stdout, result


def test_invalid_files_are_rejected():
    def expect(pins, support, *texts):
        result = check(pins, support, "--as-of=2026-01-01")
        assert result.returncode == 2 and not result.stdout and result.stderr.count("\n") == 1, result
        assert all(text in result.stderr for text in texts), (texts, result.stderr)

    row = "chart mesh 1.30.3 2026-01-31 https://charts.test -\n"
    for old, new, text in (
            ("https://charts.test -", "-", "expected KIND NAME VERSION DATE SOURCE DIGEST"),
            ("https://charts.test", "-", "pins:1: mesh: expected a source (https:// or oci://), found '-'"),
            ("https:", "http:", "expected a source"), ("2026-01-31 ", "", "expected KIND"),
            ("2026-01-31", "2026-02-30", "expected the date of the pin as YYYY-MM-DD, found '2026-02-30'"),
            ("chart", "charts", "with a kind of manifest"), ("1.30.3", "latest", "expected a version such as v1.2.3"),
            (" -\n", " abc\n", "hexadecimal digits or - as digest, found 'abc'"),
            ("-\n", "- x\n", "expected PATH and OBJECT"),
            ("chart", "manifest", "expected 40 hexadecimal digits as digest"),
            ("chart", "image", "expected a source (REGISTRY/NAME)"),
            ("mesh", "Mesh", "expected a name in lower-case letters"), (row, row * 2, "pins:2: mesh is pinned twice"),
            (row, "", "no pins found")):
        assert old in row
        expect(row.replace(old, new), "", text)
    for line, text in (
            ("newest other 1.31.0 2026-06-01 https://mesh.test", "expected the name of a component of versions.txt"),
            ("newest mesh 1.31.0 2026-06-01", "support:1: expected newest NAME VERSION SEEN SOURCE"),
            ("newest mesh 1.31.0 today https://mesh.test", "expected SEEN instead of 'today'"),
            ("newest mesh new 2026-06-01 https://mesh.test", "expected VERSION instead of 'new'"),
            ("end mesh 1.30 soon https://mesh.test", "expected DATE instead of 'soon'"),
            ("end mesh 1.30 2026-06-01 mesh.test", "expected SOURCE instead of 'mesh.test'"),
            ("advisory mesh ID 1.30.0 1.30.3 2026-03-01 https://mesh.test", "expected newest NAME"),
            ("move mesh 1.30.3 nothing", "mesh is pinned to 1.30.3 already: remove the line"),
            ("move mesh 1.31.0", "expected STEPS"),
            ("latest mesh 1.31.0 2026-06-01 https://mesh.test", "expected newest NAME")):
        expect(row, line + "\n", text)
    result = tools.run(sys.executable, "-B", SCRIPT, "--pins=/nowhere/pins")
    assert result.returncode == 2 and "/nowhere/pins: cannot be read" in result.stderr, result
    for option in ("--as-of=2026-13-01", "--as-of=tomorrow", "--as-of=", "--what"):
        assert tools.run(sys.executable, "-B", SCRIPT, option).returncode == 2, option


if __name__ == "__main__":
    tools.main(globals())
