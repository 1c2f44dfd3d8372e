"""Tests k8s/ec2 without hosts: the stack on a mock of CloudFormation, the template with cfn-lint, user data in a chroot
with recorders, and which run run.sh resumes."""

import base64
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import mock
import warm_aws

sys.path[:0] = map(str, mock.TOOLS.glob("lib/python3*/site-packages"))
import boto3  # noqa: E402
import yaml  # noqa: E402

EC2 = pathlib.Path(__file__).resolve().parents[3] / "k8s/ec2"
TEMPLATE = EC2 / "cluster.yaml"


def run(command, environment, code=0):
    """Output of a command that must exit with the code."""
    result = subprocess.run([str(part) for part in command], env=environment, text=True, timeout=200,
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == code, f"{command}: exit {result.returncode}, not {code}: {result.stdout}"
    for secret in (mock.ACCESS_KEY, mock.SECRET_KEY):
        assert secret not in result.stdout, "a credential is in the output"
    return result.stdout


def write(path, text):
    path.write_text(text)
    path.chmod(0o755)
    return path


def remove_route_tables(ec2, vpc):
    """Deletes route tables, which moto's CloudFormation keeps, and then refuses to delete their VPC."""
    for table in ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [vpc]}])["RouteTables"]:
        if not any(association["Main"] for association in table["Associations"]):
            for association in table["Associations"]:
                ec2.disassociate_route_table(AssociationId=association["RouteTableAssociationId"])
            ec2.delete_route_table(RouteTableId=table["RouteTableId"])


def test_stack():
    with tempfile.TemporaryDirectory() as name, mock.Mock() as server, warm_aws.Warm(f"{name}/warm"):
        environment = server.environment(STACK="trial", IMAGE_ID="ami-12c6146b", KEY_NAME="mine", WORKERS="2",
                                         SSH_LOCATION="203.0.113.7/32", ZONE="us-west-2a", POLL="1", TIMEOUT="150")
        environment.pop("EFS_ID", None)
        environment["PATH"] = f"{name}/warm:{environment['PATH']}"
        account = boto3.Session(mock.ACCESS_KEY, mock.SECRET_KEY, region_name="us-west-2")
        ec2, efs, stacks = (account.client(name, endpoint_url=server.url) for name in ("ec2", "efs", "cloudformation"))
        ec2.create_key_pair(KeyName="mine")
        stack = [EC2 / "stack.sh"]
        said = run(stack + ["create"], environment)
        assert "CREATE_COMPLETE" in said, said
        [disk] = efs.describe_file_systems()["FileSystems"]
        assert disk["Encrypted"] and f"FileSystem\t{disk['FileSystemId']}" in said, (disk, said)
        found = {one["LogicalResourceId"]: one["PhysicalResourceId"]
                 for one in stacks.describe_stack_resources(StackName="trial")["StackResources"]
                 if "PhysicalResourceId" in one}
        [target] = efs.describe_mount_targets(FileSystemId=disk["FileSystemId"])["MountTargets"]
        assert target["SubnetId"] == found["PrivateSubnet"], target
        [group] = ec2.describe_security_groups(GroupIds=[found["SshGroup"]])["SecurityGroups"]
        [rule] = group["IpPermissions"]
        assert (rule["FromPort"], rule["IpRanges"][0]["CidrIp"]) == (22, "203.0.113.7/32"), rule
        [version] = ec2.describe_launch_template_versions(LaunchTemplateId=found["Template"])["LaunchTemplateVersions"]
        assert version["LaunchTemplateData"]["KeyName"] == "mine", version
        script = base64.b64decode(version["LaunchTemplateData"]["UserData"]).decode()
        assert f"{disk['FileSystemId']}.efs.us-west-2.amazonaws.com:/ /efs" in script, script
        assert version["LaunchTemplateData"]["InstanceType"] == "g6e.48xlarge", version
        hosts = run(stack + ["hosts"], {**environment, "SLOTS": "4"}).splitlines()
        assert len(hosts) == 3 and all(line.endswith(" slots=4") for line in hosts), hosts
        hosts = run(stack + ["hosts"], environment).splitlines()
        assert len(hosts) == 3 and all(line.endswith(" slots=8") for line in hosts), hosts
        assert [line[:7] for line in hosts] == ["10.0.0.", "10.0.64", "10.0.64"], hosts

        remove_route_tables(ec2, found["Vpc"])
        assert "DELETE_COMPLETE" in run(stack + ["delete"], environment)
        assert [one["FileSystemId"] for one in efs.describe_file_systems()["FileSystems"]] == [disk["FileSystemId"]]
        assert not efs.describe_mount_targets(FileSystemId=disk["FileSystemId"])["MountTargets"]
        assert "there is no stack trial" in run(stack + ["delete"], environment)

        said = run(stack + ["create"], {**environment, "EFS_ID": disk["FileSystemId"]})
        assert f"FileSystem\t{disk['FileSystemId']}" in said, said
        assert len(efs.describe_file_systems()["FileSystems"]) == 1
        assert len(efs.describe_mount_targets(FileSystemId=disk["FileSystemId"])["MountTargets"]) == 1


def test_template():
    with tempfile.TemporaryDirectory() as name:
        faulty = TEMPLATE.read_text().replace("CidrBlock: 10.0.0.0/24", "Cidr: 1")
        broken = write(pathlib.Path(name) / "broken.yaml", faulty)
        found = run([mock.TOOLS / "bin/cfn-lint", "--include-checks", "I", "--", TEMPLATE, broken], os.environ, 2)
        assert "('Cidr' was unexpected)" in found and str(TEMPLATE) not in found, found


class Loader(yaml.SafeLoader):
    """Reads CloudFormation's short forms as lists of the tag and its value."""


Loader.add_multi_constructor("!", lambda loader, tag, node: [tag] + [
    loader.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else loader.construct_sequence(node, deep=True)])

URL = "https://cloudformation-waitcondition.test/arn%3Aaws%3A{}?Signature=a%2Fb%3D&Expires=1"
VALUES = {"Fs": "fs-0123", "AWS::Region": "us-west-2", "AWS::URLSuffix": "amazonaws.com",
          "MasterHandle": URL.format("master"), "WorkersHandle": URL.format("workers")}


def user_data():
    """User data of a host, with CloudFormation's substitutions."""
    template = yaml.load(TEMPLATE.read_text(), Loader)
    (_, (text, names)) = template["Resources"]["Template"]["Properties"]["LaunchTemplateData"]["UserData"]["Fn::Base64"]
    assert set(names) == {"Fs"}, names
    return re.sub(r"\$\{([A-Za-z:]+)\}", lambda found: VALUES[found[1]], text)


def bare_root(root):
    """A root file system with three programs, and recorders in place of those that would change or query a machine."""
    for part in ("bin", "etc/ssh/ssh_config.d"):
        (root / part).mkdir(parents=True)
    programs = [shutil.which(name) for name in ("bash", "mkdir", "seq")]
    for path in programs:
        shutil.copy(path, root / "bin")
    for library in re.findall(r"(/\S+) \(0x", "".join(run(["ldd", path], os.environ) for path in programs)):
        (root / library.lstrip("/")).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(library, root / library.lstrip("/"))
    answers = {"apt-get": "[ ! -e /no-packages ]", "chown": "", "sleep": "", "curl": 'printf "%s\\n" "$@" >/signal',
               "hostname": 'if [ "$*" ]; then echo "172.17.0.1 $ADDRESS "; else echo ip-1; fi',
               "mount": 'read -r n </refusals; echo $((n - 1)) >/refusals; [ $n -le 0 ] || exit 32\n'
                        'mkdir -p /efs/packages; echo "echo install.sh >>/calls" >/efs/packages/install.sh'}
    for name, answer in answers.items():
        write(root / "bin" / name, f'#!/bin/bash\necho "${{0##*/}} $*" >>/calls\n{answer}\n')


def test_user_data():
    enter = ["unshare", "--map-root-user", shutil.which("chroot") or "/usr/sbin/chroot"]
    if not shutil.which("shellcheck") or subprocess.run([*enter, "/", "true"], capture_output=True).returncode:
        print("SKIPPED: there is no shellcheck, or no way to enter a root of one's own")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as name:
        script = write(pathlib.Path(name) / "script", user_data())
        run(["shellcheck", script], os.environ)
        root = pathlib.Path(name) / "root"
        bare_root(root)
        write(root / "user-data", script.read_text())

        def start(address, refusals, fails=False):
            """Starts a host; returns its calls, the address of its signal, and its output."""
            for file in ("calls", "signal", "etc/fstab"):
                (root / file).write_text("")
            (root / "refusals").write_text(f"{refusals}\n")
            shutil.rmtree(root / "efs", ignore_errors=True)
            environment = {"PATH": "/bin", "ADDRESS": address}
            ended = subprocess.run([*enter, root, "/bin/bash", "/user-data"], env=environment, capture_output=True,
                                   text=True)
            assert (ended.returncode != 0) == fails, ended
            signal = (root / "signal").read_text().splitlines()
            return (root / "calls").read_text(), signal[-1], json.loads(signal[signal.index("--data-binary") + 1])

        calls, url, body = start("10.0.0.4", 2)
        assert url == VALUES["MasterHandle"], url
        assert body == {"Status": "SUCCESS", "UniqueId": "ip-1", "Reason": "ready", "Data": ""}, body
        assert calls.count("mount /efs") == 3 and calls.count("sleep 5") == 2, calls
        assert "chown 1000:1000 /efs" in calls and calls.index("mount /efs") < calls.index("install.sh"), calls
        assert "--retry 5" in calls and "--request PUT --header Content-Type: " in calls, calls
        assert (root / "etc/fstab").read_text().startswith("fs-0123.efs.us-west-2.amazonaws.com:/ /efs nfs4 ")
        assert "ForwardAgent yes" in (root / "etc/ssh/ssh_config.d/dtrain.conf").read_text()
        assert start("10.0.64.9", 0)[1:] == (VALUES["WorkersHandle"], body)
        calls, url, body = start("10.0.64.9", 1000, fails=True)
        assert (url, body["Status"]) == (VALUES["WorkersHandle"], "FAILURE") and "mounting /efs" in body["Reason"], body
        assert "chown" not in calls, calls
        (root / "no-packages").touch()
        assert "installing packages" in start("10.0.0.4", 0, fails=True)[2]["Reason"]


def test_selects_run_to_resume():
    with tempfile.TemporaryDirectory() as name:
        disk = pathlib.Path(name) / "efs-1"
        (disk / "bin").mkdir(parents=True)
        write(disk / "bin/dtrain-mpirun", '#!/bin/bash\nprintf "%s\\n" "$@" >"$FS/command"\nexit "$CODE"\n')
        hosts = disk / "hostfile"
        environment = {**os.environ, "PATH": f"{disk / 'bin'}:{os.environ['PATH']}", "FS": str(disk),
                       "HOSTFILE": str(hosts)}

        def train(code, *words, slots=8, expected=None, **more):
            """Folder of a run on two hosts that exits with the code."""
            hosts.write_text(f"10.0.0.4 slots={slots} # master\n\n10.0.64.5 slots={slots}\n")
            said = run([EC2 / "run.sh", *words], {**environment, "CODE": str(code), **more}, code)
            return pathlib.Path(said.split()[-1])

        first = train(4)
        assert re.fullmatch(r"mask-rcnn-coco-16-efs-1-\d{4}(-\d\d){5}", first.name), first
        command = (disk / "command").read_text().splitlines()
        for word in (f"--data_dir={disk}/data", f"--train_dir={first}/train_log/maskrcnn", "BACKBONE.NORM=FreezeBN",
                     "-np", "--expect_ranks=16",
                     # Defaults of the older document's script.
                     "--preset=tensorpack2019", "TRAIN.LR_SCHEDULE=[120000,160000,180000]",
                     f"BACKBONE.WEIGHTS={disk}/data/pretrained-models/COCO-R50FPN-MaskRCNN-Standard.npz",
                     "HOROVOD_FUSION_THRESHOLD=67108864"):
            assert word in command, (word, command)
        first = first.rename(disk / "mask-rcnn-coco-16-efs-1-2026-01-01-00-00-00")
        assert train(4) == first
        assert train(4, slots=1) == first, "another number of ranks started a new run"
        norm = train(75, BATCH_NORM="SyncBN")
        assert norm != first and "BACKBONE.NORM=SyncBN" in (disk / "command").read_text()
        norm = norm.rename(disk / "mask-rcnn-coco-16-efs-1-2026-03-01-00-00-00")
        assert train(4) == first
        # The newest run by date is not the last by name.
        newer = shutil.copytree(first, disk / "mask-rcnn-coco-128-efs-1-2026-02-01-00-00-00")
        assert train(0) == newer and (newer / "done").exists()
        assert train(4) == first
        words = ("--save_model_steps=5", 'DATA.TRAIN=["a b"]')
        other = train(4, *words, NEW="1")
        assert other not in (first, newer, norm) and train(4, *words) == other
        command = (disk / "command").read_text().splitlines()
        assert command.index(words[0]) < command.index("--config") < command.index(words[1]), command
        train(1, BATCH_NORM="LayerNorm")
        train(1, HOSTFILE=str(disk / "nothing"))
        train(1, FS=str(disk / "nothing"))


if __name__ == "__main__":
    globals()[sys.argv[1]]()
