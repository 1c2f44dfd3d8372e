"""A Kubernetes API that serves objects read-only, so that tests run the real kubectl with its templates.

    with FakeApi(objects) as api:
        subprocess.run(["kubectl", "get", "nodes"], env=dict(os.environ, **api.environment))
"""

import http.server
import json
import pathlib
import re
import tempfile
import threading

# Plural, kind and scope by group and version.
RESOURCES = {
    "v1": (("nodes", "Node", False), ("namespaces", "Namespace", False), ("configmaps", "ConfigMap", True),
           ("secrets", "Secret", True), ("persistentvolumeclaims", "PersistentVolumeClaim", True),
           ("resourcequotas", "ResourceQuota", True)),
    "apps/v1": (("deployments", "Deployment", True), ("daemonsets", "DaemonSet", True)),
    "apiextensions.k8s.io/v1": (("customresourcedefinitions", "CustomResourceDefinition", False),),
    "karpenter.sh/v1": (("nodepools", "NodePool", False),),
    "karpenter.sh/v1alpha1": (("nodeoverlays", "NodeOverlay", False),),
    "kueue.x-k8s.io/v1beta2": (("clusterqueues", "ClusterQueue", False), ("localqueues", "LocalQueue", True)),
}
SHORT_NAMES = {"customresourcedefinitions": ["crd"]}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        code, answer = self.server.api.answer(self.path.partition("?")[0])
        body = json.dumps(answer).encode()
        self.send_response(code)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class FakeApi:
    """Serves `objects`. Kinds of Karpenter and Kueue exist only if there are objects of their group."""

    def __init__(self, objects):
        self.objects = objects

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory()
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.api = self
        threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        config = pathlib.Path(self.folder.name, "config")
        address = f"http://127.0.0.1:{self.server.server_address[1]}"
        config.write_text(json.dumps({
            "apiVersion": "v1", "kind": "Config", "current-context": "a",
            "clusters": [{"name": "a", "cluster": {"server": address}}], "users": [{"name": "a", "user": {}}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}]}), encoding="utf-8")
        self.environment = {"KUBECONFIG": str(config), "KUBECACHEDIR": str(pathlib.Path(self.folder.name, "cache"))}
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.folder.cleanup()

    def versions(self):
        used = {one["apiVersion"] for one in self.objects}
        return [version for version in RESOURCES if "." not in version.partition("/")[0] or version in used
                or version.startswith("apiextensions")]

    def groups(self):
        groups = {}
        for group, slash, version in (one.partition("/") for one in self.versions()):
            if slash:
                groups.setdefault(group, []).append({"groupVersion": f"{group}/{version}", "version": version})
        return [{"name": name, "versions": versions, "preferredVersion": versions[0]} for name, versions in groups.items()]

    def answer(self, path):
        if path == "/version":
            return 200, {"major": "1", "minor": "35", "gitVersion": "v1.35.0"}
        if path == "/api":
            return 200, {"kind": "APIVersions", "versions": ["v1"]}
        if path == "/apis":
            return 200, {"kind": "APIGroupList", "apiVersion": "v1", "groups": self.groups()}
        match = re.fullmatch(r"/(?:api/(v1)|apis/([^/]+/[^/]+))(?:/(.*))?", path)
        version = match and (match[1] or match[2])
        if version not in self.versions():
            return self.missing(path)
        if not match[3]:
            return 200, {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": version, "resources": [
                {"name": plural, "singularName": "", "kind": kind, "namespaced": namespaced, "verbs": ["get", "list"],
                 "shortNames": SHORT_NAMES.get(plural, [])} for plural, kind, namespaced in RESOURCES[version]]}
        parts = match[3].split("/")
        namespace = None
        if parts[0] == "namespaces" and len(parts) > 2:
            namespace, parts = parts[1], parts[2:]
        return self.find(version, namespace, *parts)

    def find(self, version, namespace, plural, name=None):
        kinds = [kind for one, kind, _ in RESOURCES[version] if one == plural]
        found = [one for one in self.objects if one["apiVersion"] == version and one["kind"] in kinds
                 and (namespace is None or one["metadata"].get("namespace", "default") == namespace)]
        if name is None:
            metadata = {"resourceVersion": "1"}
            return 200, {"kind": f"{kinds[0]}List", "apiVersion": version, "metadata": metadata, "items": found}
        for one in found:
            if one["metadata"]["name"] == name:
                return 200, one
        return self.missing(name)

    @staticmethod
    def missing(name):
        return 404, {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404,
                     "message": f"{name} not found", "details": {"name": name}}
