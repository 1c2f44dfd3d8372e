"""Faults of the service and of the network: each is survived, or ends in one line that names the object."""

import pathlib
import random
import threading

import s3_server

CONTENT = random.Random(2).randbytes(12_000_000)
FILE = "s3://bucket/file"


def read(server, **variables):
    assert server.tool("read", FILE, f"0:{len(CONTENT)}", **variables).stdout == CONTENT


def survives(*kinds):
    """A test that each kind of fault, on two requests, costs two more requests and changes nothing."""
    def test(server):
        server.objects("bucket", {"file": CONTENT})
        for kind in kinds:
            server.clear()
            server.fault(kind, method="GET", path="file", times=2)
            read(server)
            requests = len([one for one in server.requests if one[0] == "GET"])
            # A reset request is not recorded.
            assert requests == (4 if kind == "reset" else 6), f"{kind}: {server.requests}"
    return test


test_errors = survives("error", "slow_down", "unavailable", "throttled", "body_timeout")
test_network = survives("truncated", "reset", "wrong_range")


def test_stalled_body(server):
    server.objects("bucket", {"file": CONTENT})
    server.pause = 6
    server.fault("slow_body", method="GET", path="file", times=1)
    read(server, DTRAIN_REMOTE_TIMEOUT="12")


def test_lasting_faults(server):
    server.objects("bucket", {"file": CONTENT})
    for kind, text, code in (("slow_down", "the server answers 503 (SlowDown)", 6),
                             ("error", "the server answers 500 (InternalError)", 6),
                             ("truncated", "the answer ends after 32768 bytes", 6),
                             ("wrong_range", "another range of bytes than requested", 6),
                             ("denied", "access denied (AccessDenied); the request was signed with the credentials of "
                              "AWS_ACCESS_KEY_ID", 2),
                             ("expired", "(ExpiredToken); the request was signed with", 2),
                             ("skewed", "access denied (RequestTimeTooSkewed)", 2)):
        server.clear()
        server.fault(kind, times=-1)
        assert server.refused(f"{FILE}: ", "read", FILE, "0:100") == code
        assert server.refused(text, "read", FILE, "0:100", AWS_MAX_ATTEMPTS="2") == code
    server.clear()
    assert server.refused("not found (NoSuchKey)", "read", "s3://bucket/other", "0:1") == 2
    assert server.refused("not found (NoSuchBucket)", "read", "s3://elsewhere/other", "0:1") == 2
    assert len(server.requests) == 2  # not repeated
    assert server.refused("not found (NoSuchBucket)", "list", "s3://elsewhere/other") == 2


def test_total_time(server):
    server.objects("bucket", {"file": CONTENT})
    server.fault("slow_down", times=-1)
    server.refused("503", "read", FILE, "0:100", AWS_MAX_ATTEMPTS="1000", DTRAIN_REMOTE_TIMEOUT="2")
    assert 2 <= len(server.requests) < 100


def test_no_server(server):
    assert server.refused("cannot be read", "read", FILE, "0:1", AWS_ENDPOINT_URL="http://127.0.0.1:9") == 6
    code = server.refused("resolve host", "read", FILE, "0:1", AWS_ENDPOINT_URL="http://s3.example.invalid")
    assert code == 6
    # A certificate that is not trusted is not tried again, and no plain HTTP is.
    server.refused(f"{FILE}: cannot be read", "read", FILE, "0:1", AWS_ENDPOINT_URL=server.url.replace("http", "https"))


def test_region(server):
    server.objects("bucket", {f"file{i}": CONTENT[:100] for i in range(3)})
    server.region = "eu-central-1"
    assert server.tool("read", "s3://bucket/file0", "0:100").stdout == CONTENT[:100]
    assert [status for _, status in server.methods()] == [301, 206]
    server.requests.clear()
    assert server.tool("list", "s3://bucket", AWS_DEFAULT_REGION="eu-central-1").stdout
    assert [status for _, status in server.methods()] == [200]
    server.requests.clear()
    server.tool("upload", "s3://bucket/new", 5 << 20, input=CONTENT)
    assert [status for _, status in server.methods()][:2] == [301, 200]
    assert server.ask("GET", "/bucket/new") == CONTENT


def test_skewed_clock(server):
    server.objects("bucket", {"file": CONTENT})
    server.fault("skewed", times=1)
    read(server)
    assert [status for _, status in server.methods()].count(403) == 1


def test_rotated_credentials(server):
    """Keys that the service refuses as expired during the run are replaced, with the pod's token of then, or the shared
    file's keys of then."""
    server.objects("bucket", {"file": CONTENT})
    keys = {f"ASIAROTATED{i}": f"rotated-secret-{i}-that-no-output-may-hold" for i in range(2)}
    server.secrets.update(keys)
    folder, used = pathlib.Path(server.folder()), []
    token, shared = folder / "token", folder / "credentials"

    def rotate(i):
        token.write_text(f"token-{i}")
        shared.write_text(f"[default]\naws_access_key_id=ASIAROTATED{i}\naws_secret_access_key={keys[f'ASIAROTATED{i}']}\n")

    def service(handler, _):
        name = "ASIAROTATED" + handler.headers["Authorization"].removeprefix("token-")
        return s3_server.json_page(AccessKeyId=name, SecretAccessKey=keys[name], Token="t",
                                   Expiration="2100-01-01T00:00:00Z")()

    def page(handler, body):
        used.append(handler.headers["Authorization"].split("Credential=")[1].split("/")[0])
        return handler.fail(400, "ExpiredToken") if used[-1] == "ASIAROTATED0" and len(used) > 1 else handler.forward(body)
    server.pages |= {"/credentials": service, "/bucket/file": page}
    no_keys = {"AWS_ACCESS_KEY_ID": None, "AWS_SECRET_ACCESS_KEY": None}
    for source in ({"AWS_CONTAINER_CREDENTIALS_FULL_URI": f"{server.url}/credentials",
                    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": str(token)},
                   {"AWS_SHARED_CREDENTIALS_FILE": str(shared)}):
        rotate(0)
        used.clear()
        process = waiting(server, **no_keys, **source)
        rotate(1)
        _, errors = process.communicate("\n", timeout=60)
        assert process.returncode == 0 and not errors, errors
        assert used == ["ASIAROTATED0", "ASIAROTATED0", "ASIAROTATED1"], used


def waiting(server, **variables):
    """A process that has opened the file, and reads its end after a line on standard input."""
    pipe = s3_server.subprocess.PIPE
    process = s3_server.subprocess.Popen([s3_server.TOOL, "wait", FILE], env=server.environment(**variables), text=True,
                                         stdin=pipe, stdout=pipe, stderr=pipe)
    assert process.stdout.readline() == "open\n"
    return process


def test_replaced(server):
    """An object that is replaced while it is open is an error, whether the server checks If-Match or not."""
    for kind in (None,) if server.conditional else (None, "replaced_silently"):
        server.objects("bucket", {"file": CONTENT})
        server.clear()
        process = waiting(server)
        server.ask("PUT", "/bucket/file", CONTENT[::-1])
        if kind:
            server.pages["/bucket/file"] = without_precondition
        _, errors = process.communicate("\n", timeout=60)
        assert process.returncode == 2 and f"{FILE}: was replaced since it was opened" in errors, errors
        server.pages.clear()


def without_precondition(handler, body):
    del handler.headers["If-Match"]
    return handler.forward(body)


def test_many_readers_under_faults(server):
    server.objects("bucket", {f"file{i}": CONTENT[:2_000_000 + i] for i in range(4)})
    generator = random.Random(3)
    for _ in range(12):
        server.fault(generator.choice(["error", "slow_down", "reset", "truncated", "wrong_range"]), method="GET", times=1)
    results = {}

    def work(i):
        results[i] = server.tool("threads", f"s3://bucket/file{i}", "100000", AWS_MAX_ATTEMPTS="15").stdout.decode().strip()
    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i in range(4):
        assert results[i] == s3_server.hashlib.sha256(CONTENT[:2_000_000 + i]).hexdigest()


if __name__ == "__main__":
    s3_server.run_cases(globals())
