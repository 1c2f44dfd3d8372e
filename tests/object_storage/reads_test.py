"""Reads, lists and writes through moto, which a proxy that verifies signatures stands before."""

import hashlib
import json
import random
import threading
import urllib.parse

import s3_server

CONTENT = random.Random(1).randbytes(30_000_000)
KEYS = ["plain.txt", "with space.txt", "a+b.txt", "100%.txt", "%41.txt", "naïve/日本.txt", "a=b&c?d#e.txt",
        "it's (1)*!.txt", "sub/../dots", "a//b", "~tilde:colon;@,$"]


def test_ranges(server):
    server.objects("bucket", {"file": CONTENT[:200_000]})
    out = server.tool("read", "s3://bucket/file", "0:10", "199990:100", "65530:20", "200000:5", "100:150000").stdout
    assert out == (CONTENT[:10] + CONTENT[199_990:200_000] + CONTENT[65_530:65_550] + CONTENT[100:150_100])
    assert len(server.requests) == 4, server.requests  # the beginning, the end, the middle, and the rest


def test_large_reads_use_several_connections(server):
    server.objects("bucket", {"file": CONTENT})
    out = server.tool("read", "s3://bucket/file", f"0:{len(CONTENT)}").stdout
    assert out == CONTENT
    assert len(server.requests) == 1 + 8, server.requests  # parts of 4 MiB after the first 64 KiB


def test_sequential_reads_fetch_ahead(server):
    server.objects("bucket", {"file": CONTENT})
    words = [f"{at}:12" for at in range(0, len(CONTENT), 110_000)]  # as headers of records
    out = server.tool("read", "s3://bucket/file", *words).stdout
    assert out == b"".join(CONTENT[at:at + 12] for at in range(0, len(CONTENT), 110_000))
    assert len(server.requests) <= 18, len(server.requests)


def test_prefetches_run_together(server):
    server.objects("bucket", {"file": CONTENT})
    ranges = random.Random(2).sample(range(1, 250), 24)
    words = [f"{at * 110_000}:100000" for at in ranges]
    expected = b"".join(CONTENT[at * 110_000:at * 110_000 + 100_000] for at in ranges)
    together, opened = threading.Barrier(12), []

    def gate(*_):
        """Requests after the first wait for others."""
        if opened:
            together.wait(60)
        opened.append(None)
    server.gate = gate
    assert server.tool("prefetch", "s3://bucket/file", *words).stdout == expected
    assert len(server.requests) == 1 + 24, server.requests
    server.gate = None
    for kind in ("error", "reset", "truncated", "slow_down"):
        server.requests.clear()
        server.fault(kind, method="GET", times=4, after=1)
        # What is asked twice is read twice, from one request or two.
        assert server.tool("prefetch", "s3://bucket/file", *words, words[0]).stdout == expected + expected[:100_000], kind


def test_prefetch_of_an_object_that_is_replaced(server):
    server.objects("bucket", {"file": CONTENT})
    seen = []

    def gate(*_):
        seen.append(None)
        if len(seen) == 2:
            server.objects("bucket", {"file": CONTENT[::-1]})
    server.gate = gate
    server.refused("s3://bucket/file: was replaced since it was opened", "prefetch", "s3://bucket/file", "3000000:10",
                   "9000000:20")


def test_threads(server):
    server.objects("bucket", {"file": CONTENT})
    digest = server.tool("threads", "s3://bucket/file", "300000").stdout.decode().strip()
    assert digest == hashlib.sha256(CONTENT).hexdigest()


def test_empty(server):
    server.objects("bucket", {"empty": b""})
    assert server.tool("read", "s3://bucket/empty", "0:10").stdout == b""


def test_keys(server):
    server.objects("bucket", {key: key.encode() for key in KEYS})
    for key in KEYS:
        assert server.tool("read", f"s3://bucket/{key}", "0:100").stdout == key.encode(), key
    names = json.loads(server.tool("list", "s3://bucket").stdout)
    assert names == sorted({key.split("/")[0] for key in KEYS}, key=str.encode), names


def test_lists_continue(server):
    server.objects("bucket", {f"data/train-{i:05}-of-01100": b"x" for i in range(1100)} |
                   {"data/sub/a": b"", "data/": b"", "database": b""})
    names = json.loads(server.tool("list", "s3://bucket/data").stdout)
    assert names == sorted([f"train-{i:05}-of-01100" for i in range(1100)] + ["sub"])
    assert sum("list-type" in path for _, path, _ in server.requests) == 2
    assert server.tool("exists", "s3://bucket/data").stdout == b"01\n"
    assert server.tool("exists", "s3://bucket/database").stdout == b"10\n"
    assert server.tool("exists", "s3://bucket/dat").stdout == b"00\n"


def test_existence_is_asked_again(server):
    """The first request of a program, also with a clock that is wrong, or a token that has just expired."""
    server.objects("bucket", {"file": b"content", "empty": b""})
    for kind in ("skewed", "expired", "error"):
        for name in ("file", "empty"):
            server.fault(kind, path=f"/bucket/{name}")
            assert server.tool("exists", f"s3://bucket/{name}").stdout == b"10\n", (kind, name)
    server.fault("denied", path="/bucket/file")
    server.refused("s3://bucket/file: access denied (AccessDenied)", "exists", "s3://bucket/file")


def test_lists_of_a_hostile_server(server):
    for body, text in (("<Contents><Key>d</Key><Size>1</Size></Contents>", "names that do not begin with this prefix"),
                       ("<CommonPrefixes><Prefix>a/</Prefix></CommonPrefixes>", "names that do not begin with this"),
                       ("<IsTruncated>true</IsTruncated><NextContinuationToken>a</NextContinuationToken>",
                        "repeats its continuation token")):
        page = f"<ListBucketResult>{body}</ListBucketResult>".encode()
        server.pages["/bucket/"] = lambda *_, page=page: (200, [], page)
        assert server.refused("s3://bucket/data/: the server", "list", "s3://bucket/data") == 2
        server.refused(text, "list", "s3://bucket/data")


def test_writes(server):
    server.objects("bucket", {})
    for content in (b"", b"small", CONTENT[:5 << 20], CONTENT[:(10 << 20) + 1]):
        for key in ("key", "with space+%/日本"):
            server.requests.clear()
            server.tool("upload", f"s3://bucket/{key}", 5 << 20, input=content)
            assert server.ask("GET", f"/bucket/{urllib.parse.quote(key)}") == content
            posts = [one for one in server.methods() if one[0] == "POST"]
            assert len(posts) == (2 if len(content) > 5 << 20 else 0), server.requests
    server.tool("put", "s3://bucket/other", input=b"content")
    assert server.ask("GET", "/bucket/other") == b"content"
    server.tool("remove", "s3://bucket/other")
    server.tool("remove", "s3://bucket/other")
    assert "other" not in server.keys("bucket")


def test_failed_upload_is_aborted(server):
    server.objects("bucket", {})
    server.fault("denied", method="PUT", path="partNumber=2")
    server.refused("access denied (AccessDenied)", "upload", "s3://bucket/key", 5 << 20, input=CONTENT)
    assert ("DELETE", 204) in server.methods("uploadId"), server.requests
    assert b"<Upload>" not in server.ask("GET", "/bucket?uploads")
    assert not server.keys("bucket")


def test_lost_answers_of_an_upload(server):
    """Each request is carried out, and its answer lost; some services forget an upload that is complete."""
    server.objects("bucket", {"key": b"before"})
    server.forgets_uploads = True
    for method, path in (("POST", "uploads"), ("PUT", "partNumber=1"), ("POST", "uploadId")):
        server.fault("lost", method=method, path=path)
    server.tool("upload", "s3://bucket/key", 5 << 20, input=CONTENT)
    assert server.ask("GET", "/bucket/key") == CONTENT
    assert ("POST", 404) in server.methods("uploadId"), server.requests
    # The object of another upload is not mistaken for this one's.
    server.fault("lost", method="POST", path="uploadId")
    server.fault("error", method="HEAD", path="key", times=-1)
    server.refused("s3://bucket/key: not found (NoSuchUpload)", "upload", "s3://bucket/key", 5 << 20, input=CONTENT)


def test_messages_of_writes(server):
    for words, verb in ((("put",), "written"), (("upload", 5 << 20), "written"), (("remove",), "deleted")):
        code = server.refused(f"s3://bucket/key: cannot be {verb}: ", words[0], "s3://bucket/key", *words[1:],
                              AWS_ENDPOINT_URL="http://127.0.0.1:9", AWS_MAX_ATTEMPTS="1")
        assert code == 6
    server.objects("bucket", {})
    server.fault("denied", method="PUT")
    server.refused("s3://bucket/key: cannot be written: access denied (AccessDenied); the request was signed", "put",
                   "s3://bucket/key")


def test_bucket_in_host(server):
    server.objects("bucket", {"key": b"content"})
    with open(f"{server.folder()}/config", "w") as config:
        config.write(f"[default]\ns3 =\n    addressing_style = virtual\nregion = {server.own_region}\n")
    out = server.tool("read", "s3://bucket/key", "0:100", AWS_CONFIG_FILE=config.name,
                      AWS_ENDPOINT_URL=server.url.replace("127.0.0.1", "localhost"), AWS_DEFAULT_REGION="").stdout
    assert out == b"content"
    assert server.requests == [("GET", "/key", 206)], server.requests


def test_wrong_addressing_style(server):
    with open(f"{server.folder()}/config", "w") as config:
        config.write("[default]\ns3 =\n    addressing_style = vhost\n")
    server.refused("addressing_style below s3 is vhost: expected auto, path or virtual", "read", "s3://bucket/key", "0:1",
                   AWS_CONFIG_FILE=config.name)


def test_requester_pays(server):
    server.objects("bucket", {"key": b"content"})
    seen = []
    server.pages["/bucket/key"] = lambda handler, body: (
        seen.append(handler.headers.get("x-amz-request-payer")), handler.forward(body))[1]
    server.tool("read", "s3://bucket/key", "0:100", AWS_REQUEST_PAYER="requester")
    assert seen == ["requester"]


def test_web(server):
    server.pages["/file"] = s3_server.web_page(CONTENT[:200_000])
    server.pages["/small"] = lambda *_: (200, [], b"small")
    server.pages["/whole"] = lambda *_: (200, [], CONTENT[:200_000])
    server.pages["/moved"] = lambda *_: (302, [("Location", "/file")], b"elsewhere")
    for path in ("/file", "/moved", "/file?signature=secret-of-the-url"):
        assert server.tool("read", server.url + path, "0:10", "100000:50").stdout == CONTENT[:10] + CONTENT[100_000:100_050]
    assert server.tool("read", f"{server.url}/small", "0:10").stdout == b"small"
    assert all("Authorization" not in headers for headers in server.web_headers)
    server.refused("the server ignores ranges of bytes", "read", f"{server.url}/whole", "0:10")
    server.pages["/long_error"] = lambda *_: (403, [], bytes(2 << 20))
    server.refused("cannot be read: the server sends more than the expected 1048576 bytes", "read",
                   f"{server.url}/long_error", "0:10")
    server.pages["/circle"] = lambda *_: (302, [("Location", "/circle")], b"")
    server.web_headers.clear()
    assert server.refused("cannot be read: ", "read", f"{server.url}/circle", "0:10") == 2
    assert len(server.web_headers) == 6  # five redirects, once
    server.pages["/none"] = lambda *_: (404, [], b"")
    server.pages["/moved"] = lambda *_: (302, [("Location", f"{server.url}/file")], b"")
    assert server.tool("read", f"{server.url}/moved", "0:10").stdout == CONTENT[:10]
    for place in (f"{server.url.replace('127.0.0.1', 'localhost')}/file", f"{server.url}0/file", f"{server.url}@host/",
                  "//169.254.169.254/latest/meta-data/", "HTTP://169.254.169.254/latest/meta-data/"):
        server.pages["/moved"] = lambda *_, place=place: (302, [("Location", place)], b"")
        server.web_headers.clear()
        code = server.refused("redirects to another host over http://; expected https://", "read", f"{server.url}/moved",
                              "0:10")
        assert code == 2 and len(server.web_headers) == 1, place
    server.anonymous = True
    server.refused("/none?...: not found", "read", f"{server.url}/none?signature=secret", "0:10")
    server.refused("https://...@host/path: expected https://HOST/PATH, percent-encoded, without a user", "read",
                   "https://user:secret@host/path", "0:10")
    server.refused("a web server has no list of files", "list", server.url)
    for path, expected in (("/file", b"10\n"), ("/whole", b"10\n"), ("/empty", b"10\n"), ("/none", b"00\n")):
        server.pages["/empty"] = lambda *_: (416, [("Content-Range", "bytes */0")], b"")
        assert server.tool("exists", server.url + path).stdout == expected, path
    server.refused("https://...@host/path: expected https://HOST/PATH", "exists", "https://user:secret@host/path")


def test_wrong_addresses(server):
    for address in ("s3://", "s3://bucket", "s3://bucket/", "s3://a/key", "s3://bad bucket/key", "s3:///key"):
        server.refused("expected s3://BUCKET/KEY", "read", address, "0:1")
    server.refused("expected https://HOST/PATH", "read", "https:///path", "0:1")
    for name, value, text in (("AWS_ENDPOINT_URL", "host:9000", "expected http:// or https://"),
                              ("AWS_REGION", "us-east-1/../x", "expected a name such as us-east-1"),
                              ("AWS_ENDPOINT_URL_S3", "ftp://host", "AWS_ENDPOINT_URL_S3: expected http:// or https://"),
                              ("AWS_MAX_ATTEMPTS", "many", "expected an integer"),
                              ("AWS_PROFILE", "absent", "there is no such profile")):
        server.refused(text, "read", "s3://bucket/key", "0:1", **{name: value})


if __name__ == "__main__":
    s3_server.run_cases(globals())
