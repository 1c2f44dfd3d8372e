"""Runs the commands and scripts of the Helm charts of k8s/charts."""

import contextlib
import functools
import hashlib
import http.server
import os
import pathlib
import shutil
import signal
import socketserver
import subprocess
import tempfile
import threading
import zipfile

import tools
from charts import arguments, of_kind, pods, render, script_of


def test_commands_are_accepted():
    """The programs accept flags and keys of the charts, and fail only for missing data."""
    if not (tools.PROGRAMS / "dtrain-mask-rcnn").exists():
        tools.skip(f"there are no programs in {tools.PROGRAMS}")
    for chart in ("maskrcnn", "maskrcnn-optimized", "resnet50"):
        values = ["maskrcnn.gpus_per_node=0", "maskrcnn.tf_enable_auto_mixed_precision=0"]
        values = ["resnet50.gpus_per_node=0"] if chart == "resnet50" else values
        words = arguments(of_kind(render(tools.helms()[0], chart, values)[1], "MPIJob"))
        at = max(number for number, word in enumerate(words) if word.startswith("dtrain-"))
        with tempfile.TemporaryDirectory() as folder:
            flags = [word.replace("/fsx/", f"{folder}/out/").replace("/data/", f"{folder}/none/")
                     for word in words[at + 1:] if not word.startswith("--expect_ranks")]
            result = tools.run(tools.PROGRAMS / words[at], *flags, cwd=folder)
        assert result.returncode == 2, (chart, result.returncode, result.stderr)


def test_scripts_are_immutable():
    for helm in tools.helms():
        assert of_kind(render(helm, "mpijob")[1], "ConfigMap")["immutable"] is True


def test_rank_script():
    """pre_script and post_script run around the command, whose exit code is returned; signals reach the command."""
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        values = ["pre_script={cd " + folder + ",echo before >log}", "train.command={sh}",
                  "train.args={-c,'echo \"$WORD\" >>log; exit 75'}", "post_script={echo after >>log}"]
        text = script_of(render(helm, "mpijob", values)[1], "train.sh")
        of_job = dict(os.environ, WORD="within", OMPI_COMM_WORLD_SIZE="16", RANKS="16")
        assert tools.run("bash", "-c", text, env=of_job).returncode == 75, text
        assert (pathlib.Path(folder) / "log").read_text() == "before\nwithin\nafter\n"

        loop = "while :; do sleep 0.05; done"
        values = ["train.command={sh}", f"train.args={{-c,'trap \"exit 75\" USR1; echo ready; {loop}'}}",
                  "post_script={echo after}"]
        text = script_of(render(helm, "mpijob", values)[1], "train.sh")
        options = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "env": of_job}
        with subprocess.Popen(["bash", "-c", text], text=True, start_new_session=True, **options) as ranks:
            assert ranks.stdout.readline() == "ready\n"
            os.killpg(ranks.pid, signal.SIGUSR1)  # like mpirun
            assert ranks.stdout.readline() == "after\n"
        assert ranks.returncode == 75

        alone = tools.run("bash", "-c", text, env=dict(of_job, OMPI_COMM_WORLD_SIZE="1"))
        assert alone.returncode == 1 and "expected 16 ranks, found 1" in alone.stderr, alone


def node_of(objects, role="Master"):
    [container] = of_kind(objects, "PyTorchJob")["spec"]["pytorchReplicaSpecs"][role]["template"]["spec"]["containers"]
    return container


def test_node_script():
    """Like the rank script. Only the script gets SIGTERM: it forwards the signal and waits for the program. A signal
    before the program's start is not lost."""
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        loop = "trap \"exit 75\" TERM; echo ready; while :; do sleep 0.05; done"
        for before, command, stop, code in (("echo before", "echo \"$WORD\"; exit 75", False, 75),
                                            ("echo before", loop, True, 75),
                                            ("kill -TERM $$,echo before,echo ready", "exec sleep 100", False, 143)):
            values = [f"pre_script={{{before}}}", "train.command={sh}", f"train.args={{-c,'{command}'}}",
                      "post_script={echo after}", "pvc[0].name=a", f"pvc[0].mount_path={folder}"]
            objects = render(helm, "pytorchjob", values)[1]
            environment = {one["name"]: one["value"] for one in node_of(objects)["env"]}
            assert environment["OUTPUT_DIR"] == f"{folder}/training"
            text = script_of(objects, "train.sh")
            # Unbuffered: communicate() would not return bytes that readline() has buffered.
            with subprocess.Popen(["bash", "-c", text], bufsize=0, stdout=subprocess.PIPE, start_new_session=True,
                                  env=dict(os.environ, WORD="ready", **environment)) as node:
                try:
                    assert [node.stdout.readline() for _ in range(2)] == [b"before\n", b"ready\n"], text
                    if stop:
                        node.send_signal(signal.SIGTERM)  # like a kubelet
                    assert node.communicate(timeout=60)[0] == b"after\n"
                finally:
                    with contextlib.suppress(ProcessLookupError):
                        os.killpg(node.pid, signal.SIGKILL)
            assert node.returncode == code and pathlib.Path(environment["OUTPUT_DIR"]).is_dir()


def test_clones_a_repository():
    helm = tools.helms()[0]
    with tempfile.TemporaryDirectory() as folder:
        git = functools.partial(tools.check_run, "git", "-c", "user.name=a", "-c", "user.email=a@b", "-C")
        origin = pathlib.Path(folder) / "origin"
        tools.check_run("git", "init", "--quiet", "-b", "main", origin)
        commits = []
        for word in ("first", "second"):
            (origin / "word").write_text(word)
            git(origin, "add", "word")
            git(origin, "commit", "--quiet", "-m", word)
            commits.append(git(origin, "rev-parse", "HEAD").strip())
        for commit, expected in (("", "second"), (commits[0], "first")):
            values = [f"git.repo_url=file://{origin}", "git.branch=main", f"git.commit={commit}", "git.image=git:2.0"]
            worker = pods(of_kind(render(helm, "mpijob", values)[1], "MPIJob"))["Worker"]["spec"]
            [clone] = worker["initContainers"]
            environment = {one["name"]: one["value"] for one in clone["env"]}
            script = clone["args"][0].replace("/source/", f"{folder}/source{expected}/")
            tools.check_run(*clone["command"], script, env=dict(os.environ, **environment))
            assert (pathlib.Path(folder) / f"source{expected}" / "repository" / "word").read_text() == expected


class Server(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, counts requests, and truncates the first response."""

    asked = []

    def do_GET(self):
        self.asked.append(self.path)
        if len(self.asked) == 1:
            content = (pathlib.Path(self.directory) / self.path[1:]).read_bytes()
            self.send_response(200)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            return
        super().do_GET()

    def log_message(self, *_):
        pass


WEIGHTS = ("ImageNet-R50-AlignPadding.npz", "ImageNet-R101-AlignPadding.npz", "COCO-R50FPN-MaskRCNN-Standard.npz")


@contextlib.contextmanager
def coco_server(folder):
    """Serves archives and weights; yields its folder and a function that runs coco-data's script."""
    for tool in ("curl", "unzip"):
        if not shutil.which(tool):
            tools.skip(f"there is no {tool}")
    origin, target = folder / "origin", folder / "fsx"
    for name in ("zips/train2017.zip", "zips/val2017.zip", "annotations/annotations_trainval2017.zip"):
        (origin / name).parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(origin / name, "w") as archive:
            archive.writestr(f"{pathlib.Path(name).stem}/a.jpg", b"pixels" * 1000)
    for name in WEIGHTS:
        write_weights(origin / name, name.encode())
    Server.asked.clear()
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), functools.partial(Server, directory=str(origin))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}"
        values = [f"coco_url={url}", f"weights_url={url}", f"pvc.mount_path={target}"]
        objects = render(tools.helms()[0], "coco-data", values)[1]
        [container] = of_kind(objects, "Job")["spec"]["template"]["spec"]["containers"]
        environment = dict(os.environ, **{one["name"]: one["value"] for one in container["env"]})
        script = script_of(objects, "coco-data.sh")
        yield origin, lambda **variables: tools.run("sh", "-c", script, env={**environment, **variables})
        server.shutdown()


def write_weights(path, content):
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(zipfile.ZipInfo("conv0/W.npy"), content)  # the same bytes at any time


def test_fetches_coco():
    """coco-data's script with a server that truncates one response, and a second run with complete files."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with coco_server(folder) as (origin, run):
            codes = [run().returncode for _ in range(3)]
            count = len(Server.asked)
            # A name with characters of curl's globbing, in URL and file.
            (origin / "other").mkdir()
            assert run(ARCHIVES="{../../../other}/#1.zip").returncode != 0
            assert not list(folder.rglob("other.zip*"))
        assert codes[-2:] == [0, 0], codes
        assert count <= 8, "complete files were downloaded again"
        data = folder / "fsx/data/coco2017"
        assert (data / "train2017" / "a.jpg").read_bytes() == b"pixels" * 1000
        lines = [line.split() for line in (data / "pretrained-models/weights.lock").read_text().splitlines()]
        assert [line[0] for line in lines] == list(WEIGHTS)
        for name, size, digest in lines:
            content = (data / "pretrained-models" / name).read_bytes()
            assert content == (origin / name).read_bytes()
            assert (int(size), digest) == (len(content), hashlib.sha256(content).hexdigest())


def test_rejects_other_weights():
    """coco-data's script refuses weights that differ from the first download, and files that are no .npz."""
    with tempfile.TemporaryDirectory() as name, coco_server(pathlib.Path(name)) as (origin, run):
        weights, name = pathlib.Path(name) / "fsx/data/coco2017/pretrained-models", WEIGHTS[0]
        Server.asked.append("/")  # no truncated response
        (origin / name).write_text("<html>not found</html>")
        only = {"ARCHIVES": "", "WEIGHTS": name}
        refused = run(**only)
        assert refused.returncode == 2 and "expected an .npz file" in refused.stderr, refused
        assert not list(weights.glob("*.npz*")) and not (weights / "weights.lock").exists()
        write_weights(origin / name, b"first")
        assert run(**only).returncode == 0
        recorded = (weights / "weights.lock").read_text()
        write_weights(origin / name, b"other")
        (weights / name).unlink()
        for _ in range(2):  # the second run does not download it again
            count = len(Server.asked)
            refused = run(**only)
            assert refused.returncode == 2 and name in refused.stderr and not (weights / name).exists(), refused
        assert len(Server.asked) == count and (weights / "weights.lock").read_text() == recorded
        (weights / f"{name}.rejected").unlink()
        write_weights(origin / name, b"first")
        assert run(**only).returncode == 0
        (weights / name).write_bytes(b"damaged")
        refused = run(**only)
        assert refused.returncode == 2 and "was altered or damaged" in refused.stderr, refused


def test_weights_are_listed_once():
    """The default weights of the chart are those of k8s/data/weights.txt."""
    [container] = of_kind(render(tools.helms()[0], "coco-data")[1], "Job")["spec"]["template"]["spec"]["containers"]
    environment = {one["name"]: one["value"] for one in container["env"]}
    lines = (tools.K8S / "data/weights.txt").read_text().splitlines()
    assert environment["WEIGHTS"].split() == [line.split()[0] for line in lines if not line.startswith("#")]


if __name__ == "__main__":
    tools.main(globals())
