"""Tests that the charts accept all values of the charts that they replace, and have their defaults. The values are those of
amazon-eks-machine-learning-with-terraform-and-kubeflow at the commit of its README of February 2024, with the settings
that this README asks for."""

import pathlib
import tempfile

import tools
import yaml
from charts import CHARTS, HASH, arguments, of_kind

GLOBAL = {"namespace": "kubeflow", "shared_fs": "fsx", "shared_pvc": "pv-fsx"}
BOTH = {
    "gpus": 16, "gpu_nodes": 2, "gpus_per_node": 8, "gpu_instance_type": "p3dn.24xlarge", "image": None, "data_fs": "fsx",
    "data_dir": "data/coco2017", "eval_period_in_epochs": 1, "mode_fpn": "True", "mode_mask": "True",
    "backbone_norm": "FreezeBN", "image_pull_policy": "Always", "nccl_socket_ifname": "^lo,docker0", "if_exclude": "lo,docker0",
    "backbone_weights": "data/coco2017/pretrained-models/ImageNet-R50-AlignPadding.npz", "tf_device_min_sys_mem_mb": 4096,
    "tf_enable_auto_mixed_precision": 0, "nccl_debug": "INFO", "horovod_autotune": 1, "horovod_log_level": "INFO",
    "backoff_limit": 2000}
SERVING = {
    "image": None, "image_pull_policy": "Always",
    "jupyter": {"name": "jupyter", "port": 443, "target_port": 8888, "gpu_instance_type": "g5.xlarge"},
    "tensorboard": {"name": "tensorboard", "port": 6443, "target_port": 6443, "upstream_port": 6006},
    "nginx": {"name": "nginx", "ssl_certificate": "/etc/ssl/domain.crt", "ssl_certificate_key": "/etc/ssl/domain.key",
              "user": "tensorboard", "htpasswd": HASH}}
VALUES = {
    "maskrcnn": {"global": GLOBAL, "maskrcnn": {
        **BOTH, "name": "maskrcnn", "train_script": "/tensorpack/examples/FasterRCNN/train.py", "steps_per_epoch": 7500,
        "lr_schedule": "[240000,320000,360000]", "base_lr": 0.01, "data_train": '["coco_train2017"]',
        "data_val": '("coco_val2017")', "extra_config": "TRAIN.CHECKPOINT_PERIOD=2"}},
    "maskrcnn-optimized": {"global": GLOBAL, "maskrcnn": {
        **BOTH, "name": "mask-rcnn-tensorflow", "train_script": "/mask-rcnn-tensorflow/MaskRCNN/train.py",
        "batch_size_per_gpu": 4, "working_dir": "/mask-rcnn-tensorflow", "images_per_epoch": 120000,
        "lr_epoch_schedule": "[(16, 0.1), (20, 0.01), (24, None)]", "base_lr": 0.0015625, "data_train": '["train2017"]',
        "data_val": '("val2017")', "extra_config": "TRAIN.GRADIENT_CLIP=0.36"}},
    **{chart: {"global": {**GLOBAL, "name": chart, "source_cidr": "203.0.113.7/32", "log_dir": "maskrcnn-2024-02-25-10-00-00"},
               **SERVING} for chart in ("maskrcnn-jupyter", "maskrcnn-optimized-jupyter")}}
# Defaults that differ, listed in k8s/source-documents.md: values of the older chart that are not ours.
DIFFERENT = {"gpu_instance_type", "image_pull_policy", "backoff_limit", "nccl_socket_ifname", "namespace"}
# Computed, or the same with another spelling.
COMPUTED = {"gpus", "gpus_per_node", "steps_per_epoch", "image", "data_val", "name", "train_script", "working_dir",
            "horovod_log_level"}


def rendered(helm, chart, values):
    """Objects of a chart with a file of values."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "values.yaml"
        path.write_text(yaml.safe_dump(values))
        return [one for one in yaml.safe_load_all(tools.check_run(helm, "template", chart, CHARTS / chart, "-f", path)) if one]


def test_accepts_older_values():
    for helm in tools.helms():
        for chart, values in VALUES.items():
            objects = rendered(helm, chart, values)
            assert {one["metadata"]["namespace"] for one in objects} == {"kubeflow"}, chart
            if "jupyter" in chart:
                spec = of_kind(objects, "Deployment")["spec"]["template"]["spec"]
                assert spec["nodeSelector"] == {"node.kubernetes.io/instance-type": "g5.xlarge"}
                limits = spec["containers"][0]["resources"]["limits"]
                assert limits["nvidia.com/gpu"] == 1 and limits["cpu"] == "2", limits
                continue
            job = of_kind(objects, "MPIJob")
            assert job["spec"]["runPolicy"]["backoffLimit"] == 2000
            words = arguments(job)
            for word in ("--autotune_buckets", "--expect_ranks=16", f"DATA.VAL={values['maskrcnn']['data_val']}"):
                assert word in words, (chart, word, words)
            assert "--use_fp16" not in words, chart
            assert chart != "maskrcnn" or "TRAIN.STEPS_PER_EPOCH=7500" in words


def test_has_older_defaults():
    """values.yaml equals the older chart's, or the difference is in the table of the document."""
    table = (tools.K8S / "source-documents.md").read_text()
    table = table[table.index("## What is different"):]
    for name in DIFFERENT:
        assert f"`{name}`" in table, f"source-documents.md does not state that the default of {name} differs"
    for chart in ("maskrcnn", "maskrcnn-optimized"):
        ours = yaml.safe_load((CHARTS / chart / "values.yaml").read_text())
        for part, values in VALUES[chart].items():
            for name, value in values.items():
                if name not in COMPUTED:
                    assert (ours[part][name] == value) != (name in DIFFERENT), (chart, name, ours[part][name], value)


def test_uses_one_namespace():
    """Without `helm -n`, claims and jobs are in kubeflow, as in the older document; with it, in that namespace."""
    for helm in tools.helms():
        for chart, values in (("maskrcnn", []), ("pv-fsx", ["--set", "fs_id=fs-0a1b,mount_name=a,region=us-west-2"])):
            for options, expected in (([], "kubeflow"), (["-n", "team"], "team")):
                text = tools.check_run(helm, "template", "a", CHARTS / chart, *options, *values)
                found = {one["metadata"]["namespace"] for one in yaml.safe_load_all(text) if one and "namespace" in one["metadata"]}
                assert found == {expected}, (chart, options, found)


if __name__ == "__main__":
    tools.main(globals())
