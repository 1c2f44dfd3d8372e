#!/usr/bin/env python3
"""Runs the jobs of k8s/overlays in emulated pods (namespaces), to completion and through faults.

    run_test.py [test_NAME]       in the root file system of the image in DTRAIN_K8S_IMAGE

Command, variables, users, limits, mounts and policies come from the rendered overlay. Tests scale jobs down to two
cores and seconds by arguments of k8s/set.sh.
"""

import contextlib
import os
import pathlib
import re
import secrets
import shutil
import signal
import tempfile

from harness import image
from harness.manifests import container, made_by, of_kind, overlay, replace_program, shared_folder
from harness.node import Node
from harness.spaces import main, skip

DATA = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", pathlib.Path(__file__).resolve().parents[3] / "shared/data"))


def expect(condition, what, node):
    if not condition:
        raise AssertionError(f"{what}\n{node.logs()}")


def data_set(name):
    if not (DATA / name).is_dir():
        skip(f"there is no {DATA / name}")
    return DATA / name


@contextlib.contextmanager
def running(documents, shares=None, layer=None, **options):
    """A node after applying a manifest, and the controller of its MPIJob or launcher Job. `layer` is a folder that is
    overlaid on the image."""
    engine = image.engine()
    if layer:
        engine.layers.insert(0, layer)
    with Node(engine, shares, **options) as node:
        node.apply(documents)
        yield node, node.job()


def finish(node, job, timeout=100):
    """Waits until a job has succeeded; returns the launchers' output."""
    node.wait(lambda: job.result, "end of the job", timeout)
    expect(job.result == "Complete", f"the job ended as {job.result}", node)
    return launcher_log(node)


def launcher_log(node):
    """Launchers' output without mpirun's timestamps and ranks, which also occur within a line that mpirun read in two
    pieces."""
    text = "\n".join(pod.log() for pod in [*node.past, *node.pods.values()] if "worker" not in pod.name)
    return re.sub(r"\[?(?:\w{3} \w{3} [ \d]\d [\d:]{8} \d{4})?\]?\[\d+,\d+\]<std(?:out|err)>: ?", "", text)


def expect_rank_logs(folder, count, node):
    """-output-filename: the log of each rank is on the shared volume."""
    logs = sorted(folder.rglob("rank.*/stdout"))
    expect(len(logs) == count and logs[0].stat().st_size, f"of {count} ranks these have logs: {logs}", node)


def last_step(text):
    steps = re.findall(r"^(\d+)\timages/sec: ", text, re.M)
    return int(steps[-1]) if steps else 0


STEPS = 200  # of a training with a fault near step 8
SMALL_DETECTOR = ("BACKBONE.BOTTLENECK=False", "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]", "BACKBONE.FREEZE_AT=0",
                  "FPN.NUM_CHANNEL=16", "FPN.FRCNN_FC_HEAD_DIM=32", "MRCNN.HEAD_DIM=16", "FRCNN.BATCH_PER_IM=16",
                  "RPN.BATCH_PER_IM=32", "PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64",
                  "PREPROC.MAX_SIZE=96")


@contextlib.contextmanager
def training(*flags):
    """The overlay `suspended`, resumed, with fewer images and a log line per step."""
    with shared_folder() as folder:
        documents = overlay("suspended", "CPU=2", "MEMORY=1Gi", "SHM=256Mi", "--batch_size=2", "--num_intra_threads=1",
                            f"--num_batches={STEPS}", "--display_every=1", "--num_warmup_batches=0",
                            "--save_model_secs=0", "--collective_timeout=5", "--init_learning_rate=0.001", *flags)
        with running(documents, {"workdisk": folder}) as (node, job):
            node.wait(lambda: job.launcher, "the launcher's Job")
            expect(not node.pods, "a suspended job has pods", node)
            job.suspend(False)
            yield node, job


def reach_step(node, step):
    """Waits until the launcher's first start has printed a step."""
    node.wait(lambda: last_step(launcher_log(node)) >= step, f"step {step}")


def expect_resumed(node, text, steps=STEPS):
    expect("Restored step" in text, "the training did not resume", node)
    expect(last_step(text) == steps, f"the last step is {last_step(text)}, not {steps}", node)


def test_smoke():
    """Unchanged: ranks on two workers, tagged log lines with time, deleted workers at the end, the launcher's log."""
    with running(overlay("smoke")) as (node, job):
        finish(node, job)
        text = job.pod.log()
        expect(re.search(r"\[1,0\]<stdout>:", text), "no line has its rank", node)
        expect(re.search(r"^\[?\w{3} \w{3} .*\[1,0\]", text, re.M), "no line has the time", node)
        expect("launcher" in job.pod.name, "the launcher's pod is named otherwise", node)
        expect(job.pod.codes == [0], "the launcher was started more than once", node)
        node.wait(lambda: not job.workers, "the end of the workers")
        expect(job.pod.log(), "the log is gone", node)


def test_smoke_as_any_user():
    """A user id without a passwd entry, and an fsGroup that makes the keys 0640."""
    user = ("USER_ID=54321", "GROUP_ID=54321", "FS_ID=2000", "USER_NAME=ada", "GROUP_NAME=lab")
    with running(overlay("smoke", *user)) as (node, job):
        finish(node, job)
        names = pathlib.Path(job.pod.volumes.sources["run"], "passwd").read_text()
        expect(names.startswith("ada:x:54321:54321:"), f"the launcher's user is {names}", node)


def test_resnet50_cpu():
    """The overlay's model and image size on the test data; fewer steps, images and threads."""
    images = data_set("tfrecord/tf_cnn_benchmarks")
    with shared_folder() as export:
        shutil.copytree(images, export / "imagenet")
        documents = overlay("resnet50-cpu-multi-nfs", "CPU=2", "MEMORY=3Gi", "SHM=512Mi", "NFS_SERVER=nfs.example",
                            "--batch_size=1", "--max_train_steps=2", "--intra_op_parallelism_threads=1")
        with running(documents, {"nfs.example/nfs": export}) as (node, job):
            finish(node, job)
            expect(list(export.rglob("checkpoints/step-2")), "there is no checkpoint of step 2", node)
            expect_rank_logs(export, 2, node)
            [log] = export.glob("resnet50-cpu-training/logs/*launcher*.log")
            expect("loss = " in log.read_text(), f"{log} is not the launcher's log", node)


def test_tf_cnn_benchmarks():
    """On CPUs, with a smaller network of the same family, in fp32 and with fewer images."""
    documents = overlay("tf-cnn-benchmarks", "SLOTS=1", "CPU=2", "MEMORY=3Gi", "SHM=512Mi", "--device=cpu",
                        "--use_fp16=false", "--batch_size=1", "--num_batches=2", "--num_warmup_batches=0",
                        "--model=resnet18", "--image_size=64", "--num_intra_threads=1")
    with running(documents) as (node, job):
        expect("total images/sec: " in finish(node, job), "there is no result", node)


def test_mask_rcnn():
    """On CPUs, with a small detector, small images, a small COCO and random weights."""
    coco = data_set("coco_mini")
    with shared_folder() as claim:
        shutil.copytree(coco, claim / "data/coco2017")
        documents = overlay("mask-rcnn", "SLOTS=1", "CPU=2", "MEMORY=3Gi", "SHM=512Mi", "--device=cpu",
                            "--num_batches=2", "--num_intra_threads=1", "BACKBONE.WEIGHTS=", *SMALL_DETECTOR)
        with running(documents, {"pv-fsx": claim}) as (node, job):
            finish(node, job)
            expect(list(claim.glob("mask-rcnn/train_log/maskrcnn/checkpoints/step-2")), "there is no checkpoint", node)
            expect_rank_logs(claim, 2, node)


def test_no_operator():
    """A StatefulSet, a Job, and the Secret of k8s/ssh-secret.sh."""
    documents = overlay("no-operator", "--batch_size=2", "--num_batches=3", "--num_warmup_batches=0",
                        "--num_intra_threads=1")
    documents.append(made_by("ssh-secret.sh", "no-operator"))
    with running(documents) as (node, job):
        expect("total images/sec: " in finish(node, job), "there is no result", node)


def test_elastic():
    """Two ranks on two workers, four when the others have started, two again after a worker is lost."""
    steps = 400  # the ranks must still train when the launcher finds the other workers
    with shared_folder() as folder:
        documents = overlay("elastic", "WORKERS=4", "CPU=2", "MEMORY=1Gi", "SHM=256Mi", "--batch_size=1",
                            f"--num_batches={steps}", "--display_every=1", "--num_warmup_batches=0",
                            "--num_intra_threads=1", "--save_model_secs=0", "--save_model_steps=5",
                            "--collective_timeout=5", "--init_learning_rate=0.001")
        with running(documents, {"workdisk": folder}, held={"elastic-worker-2", "elastic-worker-3"}) as (node, job):
            node.wait(lambda: "elastic: 2 ranks on" in launcher_log(node), "2 ranks")
            reach_step(node, 6)
            node.held.clear()
            node.wait(lambda: "elastic: 4 ranks on" in launcher_log(node), "4 ranks")
            reach_step(node, 30)
            node.held.add("elastic-worker-3")
            job.workers[3].delete(grace=0)
            node.wait(lambda: launcher_log(node).count("elastic: 2 ranks on") == 2, "2 ranks again")
            expect_resumed(node, finish(node, job), steps)
            expect(job.pod.codes == [0], "the launcher itself was started again", node)


def test_late_sshd():
    """A launcher that starts before a worker waits for the worker's sshd."""
    documents = overlay("smoke")
    of_kind(documents, "MPIJob")["spec"]["launcherCreationPolicy"] = "AtStartup"
    with running(documents, held={"smoke-worker-1"}) as (node, job):
        node.wait(lambda: "waiting for 2 workers" in launcher_log(node), "the launcher to wait")
        node.wait(lambda: len(job.workers) == 1 and job.workers[0].ready, "a worker")
        node.held.clear()
        finish(node, job)
        expect(job.pod.codes == [0], "the launcher failed before", node)


def test_late_dns():
    """Ready workers without DNS records, as is usual for some seconds."""
    with running(overlay("smoke"), unknown={"smoke-worker-0", "smoke-worker-1"}) as (node, job):
        node.wait(lambda: "waiting for 2 workers" in launcher_log(node), "the launcher to wait")
        node.wait(lambda: node.dns.refused >= 2, "queries for unknown names")
        node.unknown.clear()
        finish(node, job)
        expect(job.pod.codes == [0], "the launcher failed before", node)


def test_killed_rank():
    """mpirun exits with 137, or with 4 if the other rank reports the lost connection first, as it may under Open MPI 5.
    The launcher's container is restarted, and training resumes from the checkpoint."""
    with training("--save_model_steps=5") as (node, job):
        reach_step(node, 8)
        node.signal_rank(1, signal.SIGKILL)
        node.wait(lambda: job.pod.restarts == 1, "a second start")
        codes = (137, 4) if shutil.which("prterun") else (137,)
        expect(job.pod.codes[0] in codes, f"mpirun ended with {job.pod.codes[0]}", node)
        expect_resumed(node, finish(node, job))


def test_lost_worker():
    """A lost node ends the ranks within seconds; training resumes with a replacement pod."""
    with training("--save_model_steps=5") as (node, job):
        reach_step(node, 8)
        lost = job.workers[1]
        lost.cut_off()
        node.wait(lambda: job.pod.restarts, "the end of the start")
        expect(job.pod.codes[0] in (205, 4), f"mpirun ended with {job.pod.codes[0]}", node)
        lost.delete(grace=0)  # like the control plane for pods of a lost node
        node.wait(lambda: len(job.workers) == 2 and job.workers[1] is not lost, "another worker")
        expect_resumed(node, finish(node, job))


def test_drained_worker():
    """A drained node: the ranks save and exit with 75 within the grace period, and resume with the new pod."""
    with training() as (node, job):
        reach_step(node, 8)
        drained = job.workers[1]
        drained.delete()
        node.wait(lambda: job.pod.restarts, "the end of the start")
        expect(job.pod.codes[0] == 75, f"mpirun ended with {job.pod.codes[0]}", node)
        expect_resumed(node, finish(node, job))
        expect(job.workers == [] or job.workers[1] is not drained, "the worker was not replaced", node)


def test_suspend_and_resume():
    """Launcher and workers get SIGTERM: checkpoint, exit code 75, no pods; then training resumes."""
    with training() as (node, job):
        reach_step(node, 8)
        launcher = job.pod
        job.suspend()
        node.wait(lambda: not node.pods, "the end of all pods")
        expect(launcher.codes == [75], f"the launcher ended with {launcher.codes}", node)
        stopped = last_step(launcher_log(node))
        job.suspend(False)
        text = finish(node, job)
        expect_resumed(node, text)
        expect(re.search(rf"Restored step {stopped}\b", text), f"step {stopped} was not saved", node)


def test_mpich():
    """mpiImplementation MPICH. dtrain is built with Open MPI: under MPICH's mpiexec its ranks read their numbers from
    PMI's variables, and connect over TCP with a secret of the job."""
    documents = overlay("smoke")
    job = of_kind(documents, "MPIJob")
    job["spec"]["mpiImplementation"] = "MPICH"
    launcher = container(job)
    launcher["args"] = ["mpiexec.hydra", "-n", "$(RANKS)", *launcher["args"][3:]]
    secret = {"secretKeyRef": {"name": "ranks", "key": "secret"}}
    launcher["env"] += [{"name": "DTRAIN_MASTER_ADDR", "value": "smoke-worker-0.smoke"},
                        {"name": "DTRAIN_MASTER_PORT", "value": "29400"},
                        {"name": "DTRAIN_JOB_SECRET", "valueFrom": secret}]
    documents.append({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "ranks"},
                      "stringData": {"secret": secrets.token_hex(32)}})
    with tempfile.TemporaryDirectory() as folder:
        with running(documents, layer=image.programs(folder, "mpiexec.hydra", "hydra_pmi_proxy")) as (node, job):
            text = finish(node, job)
            expect("2 ranks, cpu" in text and "over TCP" in text, "the ranks did not connect", node)


def test_policy_blocks_other_pods():
    """A pod of another job cannot connect to the workers; without the policy it can."""
    documents = overlay("smoke")
    replace_program(of_kind(documents, "MPIJob"), "sleep", "1000")
    stranger = {"metadata": {"name": "stranger"}, "spec": {"restartPolicy": "Never", "containers": [
        {"name": "stranger", "command": ["sleep", "1000"]}]}}
    for enforced in (True, False):
        with running(documents, enforce_policies=enforced) as (node, job):
            node.start(stranger)
            node.wait(lambda: job.pod and all(pod.ready for pod in job.workers), "the workers")
            reached = [node.connects(node.pods["stranger"], pod.address, 2222) for pod in job.workers]
            expect(reached == [not enforced] * 2, f"the stranger reached {reached}", node)
            expect(node.connects(job.workers[0], job.workers[1].address, 2222), "a worker is blocked", node)


if __name__ == "__main__":
    main(globals())
