"""JSON requests to an API server with the address and token of a kubeconfig."""

import json
import pathlib
import ssl
import urllib.error
import urllib.request

import yaml


class Api:
    def __init__(self, kubeconfig):
        config = yaml.safe_load(pathlib.Path(kubeconfig).read_text())
        self.server = config["clusters"][0]["cluster"]["server"]
        self.token = config["users"][0]["user"]["token"]
        self.context = ssl._create_unverified_context()  # self-signed certificate of this machine

    def call(self, method, path, body=None, content="application/json"):
        """Response of the server; None if there is no such object or, for POST, if it exists."""
        request = urllib.request.Request(self.server + path, json.dumps(body).encode() if body else None, method=method,
                                         headers={"Authorization": f"Bearer {self.token}", "Content-Type": content})
        try:
            with urllib.request.urlopen(request, context=self.context, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code in (404, 409):
                return None
            raise RuntimeError(f"{method} {path}: {error.code} {error.read().decode()[:500]}") from None

    def get(self, path):
        return self.call("GET", path)

    def create(self, path, body):
        return self.call("POST", path, body)

    def delete(self, path):
        return self.call("DELETE", path, {"propagationPolicy": "Background"})

    def merge(self, path, body):
        return self.call("PATCH", path, body, "application/merge-patch+json")
