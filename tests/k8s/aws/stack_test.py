"""Tests k8s/ec2/stack.sh with a recorder for the AWS CLI: states of stacks, AMIs and file systems that the mock lacks."""

import contextlib
import os
import pathlib
import sys
import tempfile

from ec2_test import EC2, run, write

# Acts like CloudFormation in progress: each status request consumes a line of the file STATES; the last line remains.
# Records sleeps instead of sleeping.
RECORDER = """\
#!/bin/bash
echo "$(basename "$0") $*" >>"$CALLS"
case "$(basename "$0") $*" in
  *StackStatus* | *describe-stacks*StackId*)
    state=$(head -n 1 "$STATES")
    if [[ $* == *StackId* ]]; then
      [[ $state =~ gone|silent ]] || state=arn:stack
    elif [ "$(wc -l <"$STATES")" != 1 ]; then
      sed -i 1d "$STATES"
    fi
    case $state in
      gone) echo "Stack with id x does not exist" >&2; exit 254 ;;
      silent) echo "Could not connect to the endpoint URL" >&2; exit 255 ;;
      *) echo "$state" ;;
    esac ;;
  *describe-stack-events*) echo "Master no capacity" ;;
  *describe-stack-resources*) echo vpc-1 ;;
  *"describe-file-systems"*"VpcId=='vpc-1'"*) echo "${SYSTEMS:-None}" ;;
  *"get-parameter --name /aws/service/"*) [ -z "${NO_IMAGE:-}" ] && echo ami-found ;;
  *"describe-images --image-ids ami-"*) echo "${DEVICE:-/dev/xvda}" ;;
  sleep*) exec /bin/sleep 0.1 ;;
  *) echo arn:stack ;;
esac
"""


@contextlib.contextmanager
def recorded():
    """stack(WORD, CODE, STATE..., VARIABLE=VALUE...) runs stack.sh with the recorder; `calls` is its record."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for program in ("aws", "sleep"):
            write(folder / program, RECORDER)
        calls, states = folder / "calls", folder / "states"
        environment = {**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "CALLS": str(calls),
                       "STATES": str(states), "POLL": "7", "IMAGE_ID": "ami-1", "KEY_NAME": "k",
                       "SSH_LOCATION": "203.0.113.7/32", "ZONE": "z"}

        def stack(word, code, *lines, **more):
            states.write_text("\n".join(lines) + "\n")
            calls.write_text("")
            return run([EC2 / "stack.sh", word], {**environment, **more}, code)

        yield stack, calls


def test_states():
    with recorded() as (stack, calls):
        said = stack("create", 0, "CREATE_IN_PROGRESS", "CREATE_IN_PROGRESS", "CREATE_COMPLETE")
        assert said.count("CREATE_IN_PROGRESS") == 1 and "CREATE_COMPLETE" in said, said
        assert calls.read_text().count("sleep 7\n") == 2, calls.read_text()
        stack("create", 0, *4 * ["silent"], "CREATE_COMPLETE")
        stack("create", 4, "silent")
        assert "Master no capacity" in stack("create", 5, "CREATE_IN_PROGRESS", "ROLLBACK_IN_PROGRESS")
        assert "after 1 s" in stack("create", 124, "CREATE_IN_PROGRESS", TIMEOUT="1")
        stack("delete", 0, "ROLLBACK_COMPLETE", "DELETE_IN_PROGRESS", "gone")
        stack("delete", 5, "DELETE_IN_PROGRESS", "DELETE_FAILED")
        assert "there is no stack" in stack("delete", 0, "gone") and "delete-stack" not in calls.read_text()
        stack("delete", 4, "silent")
        assert stack("status", 0, "gone") == "DELETE_COMPLETE\n"
        stack("status", 4, "silent")
        for lacking in ("KEY_NAME", "SSH_LOCATION", "ZONE"):
            assert lacking in stack("create", 1, "gone", **{lacking: ""})
        stack("create", 0, "CREATE_COMPLETE")
        assert "InstanceType" not in calls.read_text(), "the default is the template's"
        for name in ("p3.16xlarge", "p3dn.24xlarge", "p6-b200.48xlarge", "c7i.48xlarge"):
            stack("create", 0, "CREATE_COMPLETE", INSTANCE_TYPE=name)
            assert f"ParameterKey=InstanceType,ParameterValue={name} " in calls.read_text(), calls.read_text()
        said = stack("create", 1, "gone", INSTANCE_TYPE="p3.17xlarge")
        assert "INSTANCE_TYPE='p3.17xlarge': expected one of g6e.xlarge" in said and not calls.read_text(), said
        stack("create", 1, "gone", POLL="0")
        stack("create", 1, "gone", WORKERS="0")
        assert "cost of an hour: 90.39 USD for 3 h of g6e.48xlarge; " in stack("create", 0, "CREATE_COMPLETE", WORKERS="2")
        assert "fs-1 fs-2 is in the network of dtrain" in stack("delete", 5, "CREATE_COMPLETE", SYSTEMS="fs-1\tfs-2")
        assert "delete-stack" not in calls.read_text(), calls.read_text()


IMAGES = {"": "/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
          "dlami": "/deeplearning/ami/x86_64/base-oss-nvidia-driver-gpu-ubuntu-24.04/latest/ami-id",
          "debian13": "/debian/release/13/latest/amd64", "debian12": "/debian/release/12/latest/amd64"}


def test_images():
    """The newest AMI of a system, with its root device."""
    with recorded() as (stack, calls):
        for image, parameter in IMAGES.items():
            said = stack("create", 0, "CREATE_COMPLETE", IMAGE=image, IMAGE_ID="")
            assert f"get-parameter --name /aws/service{parameter} " in calls.read_text(), calls.read_text()
            assert "ParameterKey=ImageId,ParameterValue=ami-found ParameterKey=RootDevice,ParameterValue=/dev/xvda" in (
                calls.read_text()), calls.read_text()
            assert ("Debian's AMI has no driver" in said) == image.startswith("debian"), said
        stack("create", 0, "CREATE_COMPLETE", DEVICE="/dev/sda1")
        assert "ParameterValue=ami-1 ParameterKey=RootDevice,ParameterValue=/dev/sda1" in calls.read_text(), calls.read_text()
        assert "get-parameter" not in calls.read_text(), calls.read_text()
        assert "expected dlami, debian13 or debian12" in stack("create", 1, "gone", IMAGE="debian11", IMAGE_ID="")
        assert "set IMAGE_ID=ami-..." in stack("create", 1, "gone", IMAGE_ID="", NO_IMAGE="yes")
        assert "has no root device that is a disk: 'None'" in stack("create", 1, "gone", DEVICE="None")
        assert "create-stack" not in calls.read_text(), calls.read_text()


def test_usage():
    with recorded() as (stack, _):
        assert "usage" in stack("destroy", 1, "gone")


if __name__ == "__main__":
    globals()[sys.argv[1]]()
