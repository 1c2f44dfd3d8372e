"""Compares signatures of random requests with botocore's."""

import json
import random
import urllib.parse
from unittest import mock

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import datetime

import s3_server

REQUESTS = 2000
CHARACTERS = [chr(code) for code in range(32, 127)] + list("äß日本語🙂\t\n") + list("+%=&/~ *'()!:@,;?#") * 3


def text(random, most, characters=CHARACTERS):
    return "".join(random.choice(characters) for _ in range(random.randrange(most)))


def random_request(random):
    words = "abcdefghijklmnopqrstuvwxyz0123456789-"
    return {"method": random.choice(["GET", "PUT", "HEAD", "POST", "DELETE"]),
            "host": "b" + text(random, 20, words) + random.choice([".s3.amazonaws.com", ":9000", ".localhost:80"]),
            "path": "/" + text(random, 40),
            "query": {text(random, 10) + "k": text(random, 20) for _ in range(random.randrange(5))},
            "headers": {f"x-amz-{i}" if i else "range": text(random, 20, [chr(c) for c in range(33, 127)] + [" "] * 20)
                        for i in range(random.randrange(5))},
            "body": text(random, 50), "access_key": text(random, 20, words) + "A", "secret_key": text(random, 40, words),
            "token": random.choice(["", text(random, 60, words) + "t"]), "region": "us-" + text(random, 8, words) + "1",
            "time": random.randrange(2**31)}


def botocore_signature(request):
    query = {urllib.parse.quote(name, safe="-_.~"): value for name, value in request["query"].items()}
    line = "&".join(f"{name}={urllib.parse.quote(query[name], safe='-_.~')}" for name in sorted(query))
    path = urllib.parse.quote(request["path"], safe="/-_.~")
    signed = botocore.awsrequest.AWSRequest(
        request["method"], f"http://{request['host']}{path}?{line}",
        {**request["headers"], "host": request["host"]}, request["body"].encode())
    now = datetime.datetime.fromtimestamp(request["time"], datetime.timezone.utc)
    credentials = botocore.credentials.Credentials(request["access_key"], request["secret_key"], request["token"] or None)
    with mock.patch("botocore.auth.get_current_datetime", lambda *_, **__: now):
        botocore.auth.S3SigV4Auth(credentials, "s3", request["region"]).add_auth(signed)
    return {"path": path, "query": line, "authorization": signed.headers["Authorization"]}


def main():
    generator = random.Random(42)
    requests = [random_request(generator) for _ in range(REQUESTS)]
    lines = "\n".join(map(json.dumps, requests)).encode()
    out = s3_server.subprocess.run([s3_server.TOOL, "sign"], input=lines, capture_output=True, check=True).stdout
    answers = [json.loads(line) for line in out.splitlines()]
    assert len(answers) == REQUESTS
    for request, answer in zip(requests, answers):
        expected = botocore_signature(request)
        assert answer == expected, f"{request}\nexpected {expected}\nfound    {answer}"
    print(f"{REQUESTS} signatures are equal to botocore's")


if __name__ == "__main__":
    main()
