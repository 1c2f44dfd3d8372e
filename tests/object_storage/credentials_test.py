"""Sources of credentials: variables, shared files, web identity, containers, instances; refresh; secrets in no output."""

import datetime
import pathlib
import threading
import time
import urllib.parse

import s3_server

FILE = "s3://bucket/file"
NONE = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}  # not in the environment
ROTATED = {f"ASIAROTATED{i}": f"rotated-secret-{i}-that-no-output-may-hold" for i in range(9)}


def prepare(server):
    server.objects("bucket", {"file": b"content"})
    server.secrets.update(ROTATED)


def read(server, **variables):
    assert server.tool("read", FILE, "0:7", **{**NONE, **variables}).stdout == b"content"


def utc(seconds):
    then = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
    return then.strftime("%Y-%m-%dT%H:%M:%SZ")


def answer(i, seconds=3600):
    return {"AccessKeyId": f"ASIAROTATED{i}", "SecretAccessKey": ROTATED[f"ASIAROTATED{i}"], "Token": f"session-token-{i}",
            "Expiration": utc(seconds), "Code": "Success"}


def test_variables(server):
    prepare(server)
    assert server.tool("read", FILE, "0:7").stdout == b"content"
    read(server, AWS_ACCESS_KEY_ID="ASIAROTATED1", AWS_SECRET_ACCESS_KEY=ROTATED["ASIAROTATED1"], AWS_SESSION_TOKEN="t")
    server.refused("AWS_ACCESS_KEY_ID: the key, secret or token contains a space, line feed or control character", "read",
                   FILE, "0:7", AWS_SESSION_TOKEN="token\n")
    server.refused("one is set; expected both", "read", FILE, "0:7", AWS_SECRET_ACCESS_KEY="")


def test_shared_files(server):
    prepare(server)
    folder = pathlib.Path(server.folder())
    (folder / "credentials").write_text(
        f"# keys\n[default]\naws_access_key_id=ASIAROTATED1\naws_secret_access_key = {ROTATED['ASIAROTATED1']}\n\n"
        f"[other]\r\naws_access_key_id = ASIAROTATED2\r\naws_secret_access_key = {ROTATED['ASIAROTATED2']}\r\n")
    (folder / "config").write_text(
        f"[default]\nregion = us-west-2\n[profile third]\naws_access_key_id = ASIAROTATED3\n"
        f"aws_secret_access_key = {ROTATED['ASIAROTATED3']}\nendpoint_url = {server.url}\n"
        "[profile sso]\nsso_session = company\n")
    files = {"AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials"), "AWS_CONFIG_FILE": str(folder / "config")}
    read(server, **files)
    read(server, **files, AWS_PROFILE="other")
    read(server, **files, AWS_PROFILE="third", AWS_ENDPOINT_URL=None)
    server.refused("profile sso has sso_session, which is not supported", "read", FILE, "0:7", **files, **NONE,
                   AWS_PROFILE="sso")
    server.refused("AWS_PROFILE is fifth: there is no such profile", "read", FILE, "0:7", **files, **NONE,
                   AWS_PROFILE="fifth")
    (folder / "config").write_text("[default]\nservices = minio\n[services minio]\ns3 =\n    endpoint_url = http://host\n")
    read(server, **files)
    server.refused("profile default has services, which is not supported; set AWS_ENDPOINT_URL_S3", "read", FILE, "0:7",
                   **files, **NONE, AWS_ENDPOINT_URL=None)
    (folder / "credentials").write_text("[default]\naws_secret_access_key rotated-secret-1-that-no-output-may-hold\n")
    server.refused("credentials: line 2: expected NAME = VALUE or [SECTION]", "read", FILE, "0:7", **files, **NONE)
    home = folder / "home" / ".aws"
    home.mkdir(parents=True)
    (home / "credentials").write_text(
        f"[default]\naws_access_key_id=ASIAROTATED4\naws_secret_access_key={ROTATED['ASIAROTATED4']}\n")
    read(server, HOME=str(home.parent), AWS_SHARED_CREDENTIALS_FILE=None, AWS_CONFIG_FILE=None)


def test_rotated_shared_file(server):
    """Tools replace the keys in the shared file, which is read again when the service refuses the old ones."""
    prepare(server)
    server.objects("large", {"file": bytes(20_000_000)})
    path = pathlib.Path(server.folder()) / "credentials"
    variables = {**NONE, "AWS_SHARED_CREDENTIALS_FILE": str(path)}

    def write(i):
        path.write_text(f"[default]\naws_access_key_id = ASIAROTATED{i}\naws_secret_access_key = "
                        f"{ROTATED[f'ASIAROTATED{i}']}\naws_session_token = session-token-{i}\n")
    used, lock = [], threading.Lock()

    def rotating(code, rotate):
        """Refuses the first key from the second request on; `rotate` is called before the first refusal."""
        def page(handler, body):
            key = handler.headers.get("Authorization", "none")
            with lock:
                used.append(1 if "ASIAROTATED1" in key else 2 if "ASIAROTATED2" in key else key)
                old = used[-1] == 1
                if old and len(used) > 1 and rotate:
                    rotate.pop()()
            if (not old or len(used) == 1) and handler.headers.get("X-Amz-Security-Token"):
                return handler.forward(body)
            return handler.fail(400 if code == "ExpiredToken" else 403, code)
        return page

    def run(code, rotate, check=0):
        write(1)
        used.clear()
        server.pages["/large/file"] = rotating(code, [rotate])
        return server.tool("read", "s3://large/file", "0:20000000", check=check, **variables)
    for code in ("ExpiredToken", "InvalidAccessKeyId"):
        assert run(code, lambda: write(2)).stdout == bytes(20_000_000)
        assert used[0] == 1 and set(used) == {1, 2}, used
    # A tool that is writing: the file is empty or ends before the token, and then there. Requests must not become anonymous.
    write(2)
    without_token = path.read_text().split("aws_session_token")[0]
    for written in ("", without_token):
        later = threading.Timer(0.3, write, [2])

        def rewrite(written=written, later=later):
            path.write_text(written)
            later.start()
        assert run("ExpiredToken", rewrite).stdout == bytes(20_000_000)
        later.join()
        assert set(used) == {1, 2}, used
    for rotate, text in ((lambda: path.write_text("[other]\n"), b"the keys of profile default were refused, and the profile "
                          b"has no keys any more"),
                         (lambda: path.write_text("[default\n"), b"line 1: expected ']'"),
                         (lambda: None, b"(ExpiredToken); the request was signed with the credentials of profile default")):
        result = run("ExpiredToken", rotate, check=None)
        assert result.returncode and text in result.stderr, result


def test_anonymous(server):
    prepare(server)
    server.anonymous = True
    read(server)
    server.fault("denied")
    server.refused("the request was anonymous, because no AWS credentials were found", "read", FILE, "0:7", **NONE)


def test_web_identity(server):
    prepare(server)
    token = pathlib.Path(server.folder()) / "token"
    token.write_text("web-identity-token\n")
    asked = []

    def sts(_, body):
        asked.append(urllib.parse.parse_qs(body.decode()))
        values = answer(len(asked))
        return 200, [], (
            "<AssumeRoleWithWebIdentityResponse xmlns='https://sts.amazonaws.com/doc/2011-06-15/'>"
            "<AssumeRoleWithWebIdentityResult><Credentials>"
            f"<AccessKeyId>{values['AccessKeyId']}</AccessKeyId><SecretAccessKey>{values['SecretAccessKey']}"
            f"</SecretAccessKey><SessionToken>{values['Token']}</SessionToken><Expiration>{values['Expiration']}"
            "</Expiration></Credentials></AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>").encode()
    server.pages["/"] = sts
    identity = {"AWS_ROLE_ARN": "arn:aws:iam::123456789012:role/training", "AWS_WEB_IDENTITY_TOKEN_FILE": str(token)}
    read(server, **identity)
    assert asked == [{"Action": ["AssumeRoleWithWebIdentity"], "Version": ["2011-06-15"], "RoleSessionName": ["dtrain"],
                      "RoleArn": [identity["AWS_ROLE_ARN"]], "WebIdentityToken": ["web-identity-token"]}]
    server.refused("expected AWS_ROLE_ARN as well", "read", FILE, "0:7", **{**NONE, **identity, "AWS_ROLE_ARN": ""})
    server.pages["/"] = lambda *_: (403, [], s3_server.error_body("AccessDenied", "<Message>web-identity-token</Message>"))
    result = server.tool("read", FILE, "0:7", check=1, **NONE, **identity)
    assert b"AWS credentials: STS answers 403 (AccessDenied)" in result.stderr and b"-token" not in result.stderr


def test_container(server):
    """ECS, EKS Pod Identity: the token is in a file, which is read at each refresh."""
    prepare(server)
    token = pathlib.Path(server.folder()) / "token"
    token.write_text("pod-token")
    seen = []

    def service(handler, _):
        seen.append(handler.headers.get("Authorization"))
        return s3_server.json_page(**answer(len(seen)))()
    server.pages["/v1/credentials"] = service
    url = f"{server.url}/v1/credentials"
    read(server, AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE=str(token))
    read(server, AWS_CONTAINER_CREDENTIALS_FULL_URI=url, AWS_CONTAINER_AUTHORIZATION_TOKEN="other")
    assert seen == ["pod-token", "other"]
    for other in ("http://example.com/credentials", "http://127.0.0.1:80@example.com/credentials"):
        server.refused("expected https://, or http:// and the address of this host", "read", FILE, "0:7", **NONE,
                       AWS_CONTAINER_CREDENTIALS_FULL_URI=other)
    server.pages["/v1/credentials"] = lambda *_: (200, [], b"<html>rotated-secret-1-that-no-output-may-hold")
    server.refused("expected JSON with AccessKeyId", "read", FILE, "0:7", **NONE,
                   AWS_CONTAINER_CREDENTIALS_FULL_URI=url)


def test_instance(server):
    """IMDSv2, also where the instance has no role, and where nothing answers."""
    prepare(server)
    folder = "/latest/meta-data/iam/security-credentials/"

    def with_token(page):
        return lambda handler, body: (page(handler, body) if handler.headers.get("X-aws-ec2-metadata-token") == "imds"
                                      else (401, [], b""))
    server.pages["/latest/api/token"] = lambda handler, _: (
        (200, [], b"imds") if handler.command == "PUT" and handler.headers["X-aws-ec2-metadata-token-ttl-seconds"]
        else (405, [], b""))
    server.pages[folder] = with_token(lambda *_: (200, [], b"role"))
    server.pages[f"{folder}role"] = with_token(s3_server.json_page(**answer(1)))
    service = {"AWS_EC2_METADATA_DISABLED": None, "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url}
    read(server, **service)
    server.anonymous = True
    server.pages[folder] = with_token(lambda *_: (404, [], b""))
    read(server, **service)
    read(server, **{**service, "AWS_EC2_METADATA_SERVICE_ENDPOINT": "http://127.0.0.1:9"})


def test_instance_under_load(server):
    """A service that answers 503 is asked again; requests do not become anonymous."""
    prepare(server)
    folder, asked = "/latest/meta-data/iam/security-credentials/", {}

    def page(name, content):
        def answer_later(*_):
            asked[name] = asked.get(name, 0) + 1
            return (503, [], b"") if asked[name] == 1 else (200, [], content)
        return answer_later
    server.pages["/latest/api/token"] = page("token", b"imds")
    server.pages[folder] = page("roles", b"role")
    server.pages[f"{folder}role"] = s3_server.json_page(**answer(1))
    service = {"AWS_EC2_METADATA_DISABLED": None, "AWS_EC2_METADATA_SERVICE_ENDPOINT": server.url}
    read(server, **service)
    assert asked == {"token": 2, "roles": 2}
    server.anonymous = True
    server.pages["/latest/api/token"] = lambda *_: (503, [], b"")
    code = server.refused("AWS credentials: the instance's service answers 503", "read", FILE, "0:7", **NONE, **service)
    assert code == 6


def test_refresh(server):
    """Credentials are renewed before they expire, and when the service says that they have expired."""
    prepare(server)
    served, seconds = [], [200, 3600]

    def service(*_):
        served.append(1)
        return s3_server.json_page(**answer(len(served), seconds=seconds[min(len(served), 2) - 1]))()
    server.pages["/credentials"] = service
    here = {**NONE, "AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials"}
    server.tool("read", FILE, "0:7", **here)
    assert len(served) == 1
    server.objects("large", {"file": bytes(20_000_000)})
    served.clear()
    server.tool("read", "s3://large/file", "0:20000000", **here)
    assert len(served) == 2, served  # the first ones were about to expire
    server.fault("expired", path="/bucket/file")
    served.clear()
    seconds[0] = 3600
    server.tool("read", FILE, "0:7", **here)
    assert len(served) == 2


def test_service_without_new_credentials(server):
    """Credentials that are about to expire are used, and the service is not asked before each request."""
    prepare(server)
    server.objects("large", {"file": bytes(20_000_000)})
    for later, requests in ((s3_server.json_page(**answer(1, seconds=200)), 2), (lambda *_: (500, [], b""), 6)):
        served = []
        pages = [s3_server.json_page(**answer(1, seconds=200)), later]

        def service(*_, served=served, pages=pages):
            served.append(1)
            return pages[min(len(served), 2) - 1]()
        server.pages["/credentials"] = service
        server.tool("read", "s3://large/file", "0:20000000", **NONE,
                    AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{server.url}/credentials")
        assert len(served) == requests, served


def test_reads_go_on_during_a_refresh(server):
    """While one thread asks the service, others use the credentials that are still valid."""
    prepare(server)
    server.objects("large", {"file": bytes(20_000_000)})
    served, parts = [], []

    def service(*_):
        served.append(1)
        end = time.monotonic() + 60
        while len(served) > 1 and len(parts) < 5 and time.monotonic() < end:  # the beginning, and all parts but one
            time.sleep(0.01)
        seen.append(len(parts))
        return s3_server.json_page(**answer(1, seconds=200))()

    def page(handler, body):
        result = handler.forward(body)
        parts.append(1)
        return result
    seen = []
    server.pages["/credentials"], server.pages["/large/file"] = service, page
    out = server.tool("read", "s3://large/file", "0:20000000", **NONE,
                      AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{server.url}/credentials").stdout
    assert out == bytes(20_000_000)
    assert seen == [0, 5], seen


def test_outage_of_the_service(server):
    prepare(server)
    server.pages["/credentials"] = lambda *_: (500, [], b"")
    code = server.refused("AWS credentials: the container's service answers 500", "read", FILE, "0:7", **NONE,
                          AWS_CONTAINER_CREDENTIALS_FULL_URI=f"{server.url}/credentials")
    assert code == 6


if __name__ == "__main__":
    s3_server.run_cases(globals())
