"""Requests that reach Debian's OpenStack Swift without the proxy: its own answers, and objects of another client."""

import datetime
import hashlib
import json
import random
import unittest.mock

import boto3
import faults_test
import s3_server

CONTENT = random.Random(6).randbytes(12_000_000)
KEYS = ["with space.txt", "a+b.txt", "100%.txt", "naïve/日本.txt", "a=b&c?d#e.txt", "it's (1)*!.txt", "~tilde:colon;@,$"]


def here(server, **more):
    return {"AWS_ENDPOINT_URL": server.direct, **more}


def other_client(server):
    """boto3's client."""
    return boto3.client("s3", endpoint_url=server.direct, aws_access_key_id=server.user,
                        aws_secret_access_key=server.secret, region_name=server.own_region)


def config(server, text):
    with open(f"{server.folder()}/config", "w") as file:
        file.write(f"[default]\n{text}\n")
    return file.name


def test_signatures_are_verified(server):
    server.objects("bucket", {"file": CONTENT[:10]})
    server.secrets["wrong"] = "wrong-secret-that-no-output-may-hold"
    text = "access denied (SignatureDoesNotMatch); the request was signed with the credentials of AWS_ACCESS_KEY_ID"
    for variable, value in (("AWS_SECRET_ACCESS_KEY", server.secrets["wrong"]), ("AWS_ACCESS_KEY_ID", "AUTH:nobody")):
        wrong = here(server, **{variable: value})
        assert server.refused(text, "read", "s3://bucket/file", "0:1", **wrong) == 2
        assert server.refused(text, "list", "s3://bucket", **wrong) == 2
        assert server.refused(text, "upload", "s3://bucket/new", 5 << 20, input=CONTENT, **wrong) == 6
        assert server.refused("access denied", "exists", "s3://bucket/file", **wrong) == 2
    assert server.keys("bucket") == {"file"}


def test_missing(server):
    server.objects("bucket", {"file": b""})
    for words, text, code in ((("read", "s3://bucket/none", "0:1"), "s3://bucket/none: not found (NoSuchKey)", 2),
                              (("read", "s3://absent/none", "0:1"), "s3://absent/none: not found (NoSuchBucket)", 2),
                              (("list", "s3://absent"), "not found (NoSuchBucket)", 2),
                              (("upload", "s3://absent/key", 5 << 20), "s3://absent/key: not found (NoSuchBucket)", 6)):
        assert server.refused(text, *words, input=b"", **here(server)) == code
    assert server.tool("exists", "s3://bucket/none", **here(server)).stdout == b"00\n"
    assert server.tool("exists", "s3://bucket/file", **here(server)).stdout == b"10\n"


def test_keys(server):
    """Names that need quoting, written and read by both clients."""
    client = other_client(server)
    server.objects("bucket", {})
    for i, key in enumerate(KEYS):
        if i % 2:
            client.put_object(Bucket="bucket", Key=key, Body=key.encode())
        else:
            server.tool("put", f"s3://bucket/{key}", input=key.encode(), **here(server))
        assert server.tool("read", f"s3://bucket/{key}", "0:100", **here(server)).stdout == key.encode(), key
        assert client.get_object(Bucket="bucket", Key=key)["Body"].read() == key.encode(), key
    names = json.loads(server.tool("list", "s3://bucket", **here(server)).stdout)
    assert names == sorted({key.split("/")[0] for key in KEYS}, key=str.encode), names
    server.tool("remove", f"s3://bucket/{KEYS[0]}", **here(server))
    assert [one["Key"] for one in client.list_objects_v2(Bucket="bucket")["Contents"]] == \
        sorted(KEYS[1:], key=str.encode)


def test_multipart(server):
    client = other_client(server)
    server.objects("bucket", {})
    tag = server.tool("upload", "s3://bucket/ours", 5 << 20, input=CONTENT, **here(server)).stdout.decode().strip()
    found = client.get_object(Bucket="bucket", Key="ours")
    assert found["Body"].read() == CONTENT
    assert tag == found["ETag"] and tag.endswith('-3"'), (tag, found["ETag"])
    made = client.create_multipart_upload(Bucket="bucket", Key="theirs")["UploadId"]
    parts = []
    for i, part in enumerate((CONTENT[:5 << 20], CONTENT[5 << 20:])):
        answer = client.upload_part(Bucket="bucket", Key="theirs", UploadId=made, PartNumber=i + 1, Body=part)
        parts.append({"ETag": answer["ETag"], "PartNumber": i + 1})
    client.complete_multipart_upload(Bucket="bucket", Key="theirs", UploadId=made, MultipartUpload={"Parts": parts})
    for key in ("ours", "theirs"):
        digest = server.tool("threads", f"s3://bucket/{key}", "300000", **here(server)).stdout.decode().strip()
        assert digest == hashlib.sha256(CONTENT).hexdigest()
        out = server.tool("read", f"s3://bucket/{key}", f"{(5 << 20) - 10}:20", **here(server)).stdout
        assert out == CONTENT[(5 << 20) - 10:(5 << 20) + 10]


def test_region(server):
    """Swift answers 400 AuthorizationHeaderMalformed, with the region that it expects."""
    server.objects("bucket", {"file": CONTENT[:100]})
    elsewhere = here(server, AWS_DEFAULT_REGION="eu-central-1")
    assert server.tool("read", "s3://bucket/file", "0:100", **elsewhere).stdout == CONTENT[:100]
    assert json.loads(server.tool("list", "s3://bucket", **elsewhere).stdout) == ["file"]
    server.tool("upload", "s3://bucket/new", 5 << 20, input=CONTENT, **elsewhere)
    assert server.ask("GET", "/bucket/new") == CONTENT


def test_other_clock(server):
    """Swift refuses signatures of 15 minutes ago and later: the client follows Swift's clock."""
    class Ahead(s3_server.SwiftServer):
        clock = 3600

    def time_there(*_, **__):
        return datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=Ahead.clock)
    with Ahead() as ahead, unittest.mock.patch("botocore.auth.get_current_datetime", time_there):
        ahead.objects("bucket", {})
        ahead.tool("upload", "s3://bucket/file", 5 << 20, input=CONTENT, **here(ahead))
        assert ahead.ask("GET", "/bucket/file") == CONTENT
        out = ahead.tool("read", "s3://bucket/file", "0:100", **here(ahead)).stdout
        assert out == CONTENT[:100]
        ahead.tool("read", "s3://bucket/file", "0:100")
        assert ahead.methods() == [("GET", 403), ("GET", 206)], ahead.requests


def test_bucket_in_host(server):
    server.objects("bucket", {"a b/file": CONTENT[:100]})
    virtual = {"AWS_ENDPOINT_URL": server.direct.replace("127.0.0.1", "localhost"),
               "AWS_CONFIG_FILE": config(server, "s3 =\n    addressing_style = virtual")}
    assert server.tool("read", "s3://bucket/a b/file", "0:100", **virtual).stdout == CONTENT[:100]
    assert json.loads(server.tool("list", "s3://bucket/a b", **virtual).stdout) == ["file"]
    server.tool("upload", "s3://bucket/new", 5 << 20, input=CONTENT, **virtual)
    assert server.ask("GET", "/bucket/new") == CONTENT
    assert server.refused("not found (NoSuchKey)", "read", "s3://bucket/none", "0:1", **virtual) == 2


def test_replaced(server):
    """Swift answers 412 to If-Match with a former ETag."""
    server.objects("bucket", {"file": CONTENT})
    process = faults_test.waiting(server, **here(server))
    server.ask("PUT", "/bucket/file", CONTENT[::-1])
    _, errors = process.communicate("\n", timeout=60)
    assert process.returncode == 2, errors
    assert errors == "error: s3://bucket/file: was replaced since it was opened (PreconditionFailed)\n", errors


if __name__ == "__main__":
    s3_server.run_cases(globals(), s3_server.SwiftServer)
