"""Training in a pod of k8s/overlays/resnet50-s3: credentials of EKS Pod Identity, and the policy of k8s/data/s3-policy.json,
which moto enforces."""

import json
import os
import pathlib
import re
import subprocess
import tempfile
import urllib.request

import boto3
import programs_test
import s3_server

SOURCE = pathlib.Path(__file__).resolve().parents[2]
NO_KEYS = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
os.environ["INITIAL_NO_AUTH_ACTION_COUNT"] = "1000000"  # moto: as long as the test prepares users and objects


def policy_text():
    """The policy that the command of k8s/data/README.md makes, of sets/imagenet and results in my-bucket."""
    command = re.search(r"^    (sed .* k8s/data/s3-policy.json) >policy.json$", (SOURCE / "k8s/data/README.md").read_text(),
                        re.MULTILINE)
    return subprocess.check_output(["bash", "-c", command[1]], cwd=SOURCE, text=True)


def assume_role(server):
    """Temporary credentials of a role with the policy. From then on moto checks permissions."""
    def client(service):
        return boto3.client(service, endpoint_url=f"http://127.0.0.1:{server.service_port}", aws_access_key_id="any",
                            aws_secret_access_key="any", region_name="us-east-1")
    iam = client("iam")
    policy = iam.create_policy(PolicyName="s3", PolicyDocument=policy_text())["Policy"]["Arn"]
    role = iam.create_role(RoleName="pod", AssumeRolePolicyDocument=json.dumps({
        "Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": ["sts:AssumeRole", "sts:TagSession"],
                                                "Principal": {"Service": "pods.eks.amazonaws.com"}}]}))["Role"]["Arn"]
    iam.attach_role_policy(RoleName="pod", PolicyArn=policy)
    found = client("sts").assume_role(RoleArn=role, RoleSessionName="pod")["Credentials"]
    server.secrets |= {found["AccessKeyId"]: found["SecretAccessKey"], "token": found["SessionToken"]}
    urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{server.service_port}/moto-api/reset-auth", b"0",
                                                  {"Content-Type": "text/plain"})).close()
    return found


def serve(server, found, folder):
    """Serves credentials as the agent of EKS Pod Identity; returns the variables that the webhook of EKS sets."""
    token = pathlib.Path(folder) / "eks-pod-identity-token"
    token.write_text("token-of-the-pod")
    page = s3_server.json_page(AccessKeyId=found["AccessKeyId"], SecretAccessKey=found["SecretAccessKey"],
                               Token=found["SessionToken"], Expiration="2100-01-01T00:00:00Z", AccountId="123456789012")
    server.pages["/v1/credentials"] = lambda handler, body: (
        page() if handler.headers.get("Authorization") == "token-of-the-pod" else (401, [], b""))
    return {**NO_KEYS, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/v1/credentials",
            "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token), "AWS_DEFAULT_REGION": "us-west-2",
            "AWS_REGION": "us-west-2"}


def test_training(server):
    """The policy is enough for a training, also where optional objects are missing, and gives nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        records = programs_test.made_records(folder)
        server.objects("my-bucket", {f"sets/imagenet/{path.name}": path.read_bytes() for path in records.iterdir()
                                     if path.is_file() and not path.name.startswith(".")})
        server.objects("my-bucket", {"sets/other/file": b"x", "sets/imagenet-2/file": b"x"})
        local = programs_test.train(server, records, folder, "local")
        server.ask("DELETE", "/my-bucket/sets/imagenet/classes.txt")
        pod = serve(server, assume_role(server), folder)
        assert programs_test.train(server, "s3://my-bucket/sets/imagenet", folder, "pod", **pod) == local
        words = ("--train_dir=s3://my-bucket/results/one", "--save_model_steps=2", "--max_ckpts_to_keep=2")
        assert programs_test.train(server, "s3://my-bucket/sets/imagenet", folder, "saved", *words, **pod) == local
        denied = [(status, path) for _, path, status in server.requests if status not in (200, 204, 206, 404)]
        assert not denied, denied
        for words in (("read", "s3://my-bucket/sets/other/file", "0:1"), ("read", "s3://my-bucket/sets/imagenet-2/file", "0:1"),
                      ("put", "s3://my-bucket/sets/imagenet/new"), ("remove", "s3://my-bucket/sets/imagenet/file"),
                      ("list", "s3://elsewhere/sets")):
            server.refused("access denied", *words, input=b"x", **pod)
        server.tool("upload", "s3://my-bucket/results/two/file", 5 << 20, input=bytes(6 << 20), **pod)
        server.tool("remove", "s3://my-bucket/results/two/file", **pod)
        assert server.refused("not found (NoSuchKey)", "read", "s3://my-bucket/sets/imagenet/none", "0:1", **pod) == 2
        pathlib.Path(pod["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).write_text("token-of-another-pod")
        server.refused("AWS credentials: the container's service answers 401", "list", "s3://my-bucket/sets/imagenet", **pod)


if __name__ == "__main__":
    s3_server.run_cases(globals())
