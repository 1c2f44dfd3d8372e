"""Tests k8s/cluster/destroy.sh with the AWS CLI and a mock of AWS, and recorders for eksctl, Terraform and kubectl."""

import contextlib
import pathlib
import shutil
import subprocess
import sys
import tempfile

import mock
import warm_aws

sys.path[:0] = map(str, mock.TOOLS.glob("lib/python3*/site-packages"))
import boto3  # noqa: E402
import botocore.config  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[3]
CONFIG = """\
apiVersion: eksctl.io/v1alpha5
kind: ClusterConfig
metadata:
  name: trial
  region: us-west-2
managedNodeGroups:
  - name: gpu
    placement: {groupName: trial-group}
"""
# Records its call, then fails or answers. The mock lacks placement groups, VPCs of clusters and queries of FSx; eksctl
# deletes its cluster.
RECORDER = """\
#!/bin/bash
call="$(basename "$0") $*"
case "$call" in aws\\ *) ;; *) echo "$call" >>"$CALLS" ;; esac
[[ -z ${FAIL:-} || ! $call =~ $FAIL ]] || { echo "refused: $call" >&2; exit 1; }
case "$call" in
  aws*describe-placement-groups*) [ ! -e "$FOLDER/group" ] || echo trial-group ;;
  aws*cluster.resourcesVpcConfig.vpcId*) echo "${VPC:-None}" ;;
  aws*"fsx describe-file-systems"*) printf "${FILE_SYSTEMS:-None}\\n" ;;
  aws*delete-placement-group*) rm "$FOLDER/group" ;;
  aws*delete-file-system* | aws*schedule-key-deletion*) echo "$call" >>"$FOLDER/volumes-deleted" ;;
  aws*) exec "$FOLDER/warm/aws" "$@" ;;
  eksctl*delete*) "$FOLDER/warm/aws" eks delete-cluster --name trial >"$FOLDER/deleted" ;;
  kubectl*"get pv"*) cat "$FOLDER/volumes" ;;
  kubectl*"get services"*) printf 'ClusterIP default kubernetes\\nLoadBalancer training tensorboard\\n' ;;
  kubectl*"get ingresses"*) echo "training dashboard" ;;
  kubectl*api-resources*) printf 'pods\\njobs.batch\\nmpijobs.kubeflow.org\\nnodepools.karpenter.sh\\n' ;;
  *"output -raw cluster_name") echo trial ;;
  *"output -raw region") echo us-west-2 ;;
  *"output -raw efs_id") echo fs-efs ;;
  *"output -raw fsx_id") echo fs-fsx ;;
  *"output -raw kms_key_id") echo key-1 ;;
  *"state list "*) echo "${!#}" ;;
  *"terraform destroy"* | terraform*destroy*) "$FOLDER/warm/aws" eks delete-cluster --name trial >"$FOLDER/deleted" ;;
esac
"""
VOLUMES = """\
pvc-1 Delete fsx.csi.aws.com fs-1 fsx.csi.aws.com training scratch
pvc-2 Retain ebs.csi.aws.com vol-2 ebs.csi.aws.com training logs
pv-fsx Retain fsx.csi.aws.com fs-fsx <none> kubeflow pv-fsx
nfs-data Retain efs.csi.aws.com fs-3::fsap-1 <none> other nfs
hostpath Delete <none> <none> <none> <none> <none>
"""
DELETES = ("kubectl delete", "kubectl patch", "eksctl", "terraform -chdir={} destroy", "terraform -chdir={} state rm")


class Trial:
    def __init__(self, folder, server):
        self.folder, self.tree, self.server = folder, folder / "tree/k8s", server
        for name in ("cluster", "data"):
            shutil.copytree(ROOT / "k8s" / name, self.tree / name)
        (folder / "bin").mkdir()
        for name in ("aws", "kubectl", "eksctl", "terraform"):
            (folder / "bin" / name).write_text(RECORDER)
            (folder / "bin" / name).chmod(0o755)
        (folder / "config.yaml").write_text(CONFIG)
        (folder / "volumes").write_text(VOLUMES)
        (folder / "results").mkdir()
        (folder / "results/log").write_text("done\n")
        self.environment = server.environment(CALLS=str(folder / "calls"), FOLDER=str(folder), AWS_MAX_ATTEMPTS="1",
                                              DTRAIN_RETRY_SECONDS="0")
        self.environment["PATH"] = f"{folder / 'bin'}:{self.environment['PATH']}"
        account = boto3.Session(mock.ACCESS_KEY, mock.SECRET_KEY, region_name="us-west-2")
        clients = {name: account.client(name, endpoint_url=server.url, config=botocore.config.Config(read_timeout=600))
                   for name in ("ec2", "eks", "logs", "efs", "sts", "cloudformation", "resourcegroupstaggingapi")}
        self.ec2, self.eks, self.logs, self.efs = (clients[name] for name in ("ec2", "eks", "logs", "efs"))
        # The mock's first response of a service takes long.
        clients["sts"].get_caller_identity()
        clients["cloudformation"].describe_stacks()
        clients["resourcegroupstaggingapi"].get_resources()
        server.ask("PUT", "/bucket")
        self.create()

    def create(self):
        """What eksctl, EKS and the user have created."""
        self.eks.create_cluster(name="trial", roleArn="arn:aws:iam::123456789012:role/any", resourcesVpcConfig={})
        self.logs.create_log_group(logGroupName="/aws/eks/trial/cluster")
        (self.folder / "group").touch()

    def run(self, *words, code=0, **variables):
        (self.folder / "calls").write_text("")
        command = [self.tree / "cluster/destroy.sh", *map(str, words)]
        result = subprocess.run(command, env={**self.environment, **variables}, text=True, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, check=False)
        assert result.returncode == code, f"{words}: {result.returncode}, not {code}: {result.stdout}\n{self.calls()}"
        for secret in (mock.ACCESS_KEY, mock.SECRET_KEY):
            assert secret not in result.stdout
        return result.stdout

    def eksctl(self, *words, **more):
        return self.run(*words, "eksctl", self.folder / "config.yaml", **more)

    def calls(self):
        return (self.folder / "calls").read_text().splitlines()

    def called(self, begin):
        return [call for call in self.calls() if call.startswith(begin)]

    def deletions(self):
        place = self.tree / "cluster/terraform"
        return [call for call in self.calls() if call.startswith(tuple(one.format(place) for one in DELETES))]

    def remains(self):
        groups = [one["logGroupName"] for one in self.logs.describe_log_groups()["logGroups"]]
        return self.eks.list_clusters()["clusters"], groups, (self.folder / "group").exists()


ALL, NONE = (["trial"], ["/aws/eks/trial/cluster"], True), ([], [], False)


@contextlib.contextmanager
def trial():
    with tempfile.TemporaryDirectory() as name, mock.Mock() as server, warm_aws.Warm(f"{name}/warm"):
        yield Trial(pathlib.Path(name), server)


def test_lists_without_yes():
    with trial() as one:
        output = one.eksctl()
        for line in ("would be deleted: load balancer of service training tensorboard",
                     "would be deleted: load balancer of ingress training dashboard",
                     "would be deleted: volume pvc-1, fsx.csi.aws.com fs-1, claim training/scratch",
                     "would be kept: ebs.csi.aws.com vol-2, claim training/logs, Retain",
                     "would be kept: efs.csi.aws.com fs-3::fsap-1, claim other/nfs, Retain",
                     "exists now: EKS cluster: trial", "exists now: log group: /aws/eks/trial/cluster",
                     "exists now: placement group: trial-group", "the cluster trial in us-west-2: nothing was deleted"):
            assert f"destroy.sh: {line}\n" in output or f"destroy.sh: {line};" in output, (line, output)
        assert "hostpath" not in output and not one.deletions() and one.remains() == ALL, (output, one.calls())
        assert "volume pvc-2" in one.eksctl("--delete-volumes") and not one.deletions()


def test_removes_everything():
    with trial() as one:
        output = one.eksctl("--save", f"{one.folder / 'results'}=bucket/kept", "--yes")
        assert {"log", "SHA256SUMS"} <= one.server.keys("bucket", "kept/")
        assert one.remains() == NONE, one.remains()
        steps = ["kubectl delete --namespace training mpijobs.kubeflow.org,jobs.batch,pods --all",
                 "kubectl delete service --namespace training tensorboard",
                 "kubectl delete ingress --namespace training dash",
                 "kubectl delete pvc --namespace training scratch", "kubectl wait --for=delete pv/pvc-1 --timeout",
                 "kubectl delete nodepools.karpenter.sh --all",
                 f"eksctl delete cluster -f {one.folder / 'config.yaml'} --wait"]
        places = [next(i for i, call in enumerate(one.calls()) if call.startswith(step)) for step in steps]
        assert places == sorted(places), one.calls()
        assert not [call for call in one.deletions() if "logs" in call or "kube-system" in call], one.calls()
        assert "kept, and costs money until you delete it: ebs.csi.aws.com vol-2" in output, output
        assert output.endswith("the cluster trial is removed\n") and "left:" not in output, output
        # A second run finds neither the cluster nor remains.
        assert one.eksctl("--no-save", "--yes").endswith("is removed\n") and not one.deletions(), one.calls()
        one.create()
        one.eksctl("--no-save", "--yes", "--delete-volumes")
        patch = next(i for i, call in enumerate(one.calls()) if call.startswith("kubectl patch pv pvc-2 -p"))
        assert one.calls()[patch + 1].startswith("kubectl delete pvc --namespace training logs"), one.calls()
        assert one.called("kubectl wait --for=delete pv/pvc-1 pv/pvc-2 ") and not one.called("kubectl patch pv nfs")


def test_lists_what_is_left():
    with trial() as one:
        tags = [{"Key": "kubernetes.io/cluster/trial", "Value": "owned"}]
        [instance] = one.ec2.run_instances(ImageId="ami-12c6146b", MinCount=1, MaxCount=1, TagSpecifications=[
            {"ResourceType": "instance", "Tags": tags}])["Instances"]
        volume = one.ec2.create_volume(AvailabilityZone="us-west-2a", Size=1, TagSpecifications=[
            {"ResourceType": "volume", "Tags": tags}])
        output = one.eksctl("--no-save", "--yes", code=7, FAIL="delete-placement-group")
        for line in (f"instance: {instance['InstanceId']}", f"EBS volume: {volume['VolumeId']}",
                     "placement group: trial-group"):
            assert f"destroy.sh: left: {line}\n" in output, (line, output)
        assert "log group" not in output and "is removed" not in output, output
        one.ec2.terminate_instances(InstanceIds=[instance["InstanceId"]])
        one.ec2.delete_volume(VolumeId=volume["VolumeId"])
        one.eksctl("--no-save", "--yes")


FAILURES = {  # what fails: exit code, and a part of the message
    "aws sts": (4, "AWS does not respond"), "aws eks describe": (4, "refused: aws eks describe-cluster"),
    "get --raw": (4, "does not respond, so that its volumes and load balancers are not known"),
    "kubectl get pv": (4, "volumes"), "kubectl get services": (4, "load balancers"),
    "delete service": (4, "run it again"), "kubectl wait": (4, "run it again"),
    "kubectl delete --namespace": (4, "run it again"),
    "api-resources": (4, "run it again"), "eksctl delete": (5, "eksctl did not delete"),
    "aws ec2 describe-vol": (4, "what is left"),
}


def test_failures():
    with trial() as one:
        for pattern, (code, line) in FAILURES.items():
            output = one.eksctl("--no-save", "--yes", code=code, FAIL=pattern)
            assert line in output, (pattern, output)
            assert code == 5 or "what is left" in line or not one.called("eksctl"), (pattern, one.calls())
        missing = "--save", f"{one.folder / 'results'}=missing-bucket"
        one.eksctl(*missing, "--yes", code=6)
        assert not one.deletions(), one.calls()


def test_file_systems_in_network():
    """File systems in the network of the cluster prevent its deletion, and are not deleted unasked."""
    with trial() as one:
        [subnet, *_] = one.ec2.describe_subnets()["Subnets"]
        vpc = one.environment["VPC"] = subnet["VpcId"]
        system = one.efs.create_file_system(CreationToken="any")["FileSystemId"]
        target = one.efs.create_mount_target(FileSystemId=system, SubnetId=subnet["SubnetId"])["MountTargetId"]
        expected = f"keeps the network of the cluster: a mount target of EFS {system}, which is kept: aws efs delete-"
        assert expected in one.eksctl() and not one.deletions()
        output = one.eksctl("--no-save", "--yes", code=3, FILE_SYSTEMS="fs-1\tfs-9")
        assert expected in output and "keeps the network of the cluster: FSx fs-9: save its files" in output, output
        assert "FSx fs-1" not in output and not one.deletions(), (output, one.calls())  # deleted with its claim
        config = one.folder / "config.yaml"
        config.write_text(f"{CONFIG}vpc:\n  id: {vpc}\n")
        assert "keeps the network" not in one.eksctl("--no-save", "--yes")
        config.write_text(CONFIG)
        one.create()
        one.efs.delete_mount_target(MountTargetId=target)
        one.eksctl("--no-save", "--yes")


def test_usage():
    with trial() as one:
        cases = {("--yes", "eksctl", one.folder / "config.yaml"): "what is to be saved?",
                 ("eksctl",): "eksctl needs the file", ("eksctl", "none.yaml"): "eksctl needs the file",
                 ("--all", "eksctl"): "usage: ", (): "usage: ", ("kops",): "usage: ",
                 ("--save", "results", "eksctl"): "--save needs FOLDER=BUCKET",
                 ("--save", "none=b", "eksctl"): "none is not a folder",
                 ("eksctl", one.folder / "volumes"): "expected metadata.name and metadata.region"}
        for words, line in cases.items():
            output = one.run(*words, code=1)
            assert line in output and output.count("\n") == 1 and not one.calls(), (words, output)
        output = one.run("terraform", code=1, FAIL="output -raw region")
        assert "has no cluster: terraform init, or nothing was applied" in output and not one.deletions(), output
        (one.folder / "bin/eksctl").unlink()
        assert "eksctl is not installed" in one.eksctl(code=6, PATH=f"{one.folder / 'bin'}:/usr/bin:/bin")


def test_terraform():
    with trial() as one:
        output = one.run("--no-save", "--yes", "terraform", "-var", "region=us-west-2")
        place = f"terraform -chdir={one.tree / 'cluster/terraform'}"
        steps = ["kubectl wait --for=delete pv/pvc-1", f"{place} state rm aws_efs_file_system.this",
                 f"{place} state rm aws_kms_key.this", f"{place} destroy -auto-approve -var region=us-west-2"]
        places = [one.calls().index(next(call for call in one.calls() if call.startswith(step))) for step in steps]
        assert places == sorted(places) and not one.called("eksctl"), one.calls()
        assert "kept, and costs money until you delete it: EFS fs-efs and its KMS key key-1" in output, output
        assert "import aws_efs_file_system.this fs-efs; terraform import aws_kms_key.this key-1" in output, output
        # Its FSx is not kept, although the volume has the policy Retain.
        assert "will be deleted: FSx for Lustre fs-fsx" in output and "delete it: fsx" not in output, output
        one.create()
        output = one.run("--yes", "--no-save", "--delete-volumes", "terraform")
        assert "will be deleted: EFS fs-efs and, after 7 days, its KMS key key-1" in output, output
        assert "import" not in output, output
        expected = ["aws efs delete-file-system --file-system-id fs-efs",
                    "aws kms schedule-key-deletion --key-id key-1 --pending-window-in-days 7"]
        assert (one.folder / "volumes-deleted").read_text().splitlines() == expected
        one.create()
        output = one.run("--no-save", "--yes", "terraform", code=5, FAIL="destroy -auto")
        assert "terraform did not delete" in output and "fs-efs and its KMS key key-1 have left" in output, output
        one.run("--no-save", "--yes", "--delete-volumes", "terraform", code=5, FAIL="delete-file-system")


if __name__ == "__main__":
    for name in sys.argv[1:] or [name for name in list(globals()) if name.startswith("test_")]:
        globals()[name]()
        print(f"{name}: passed")
