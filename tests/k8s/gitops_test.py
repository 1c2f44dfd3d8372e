"""Tests what GitOps controllers need: renders with the same bytes each time, Secrets that a script creates, jobs that
are not resubmitted after they have finished, and charts as OCI artefacts."""

import base64
import json
import pathlib
import re
import tempfile

import tools
import yaml
from charts import ALL, CHARTS, SERVERS, VARIANTS, render
from serving_pod import created_secrets, serving_secret


def test_renders_are_deterministic():
    """Two renderings of a chart have the same bytes."""
    for helm in tools.helms():
        for chart in ALL:
            for values in [[], *VARIANTS[chart]]:
                assert render(helm, chart, values)[0] == render(helm, chart, values)[0], (chart, values)
    for path in CHARTS.glob("*/templates/**/*"):
        if path.is_file():
            found = re.search(r"\b(gen(CA|SelfSigned\w+|SignedCert|PrivateKey)|rand\w+|uuidv4|now|bcrypt)\b", path.read_text())
            assert not found, f"{path}: {found[0]} differs with each rendering"


def names_of(folder, certificate):
    """Subject alternative names of a certificate that its CA signed."""
    for name, data in (("ca.crt", certificate["ca.crt"]), ("tls.crt", certificate["tls.crt"])):
        (folder / name).write_bytes(base64.b64decode(data))
    tools.check_run("openssl", "verify", "-purpose", "sslserver", "-CAfile", folder / "ca.crt", folder / "tls.crt")
    text = tools.check_run("openssl", "x509", "-in", folder / "tls.crt", "-noout", "-ext", "subjectAltName")
    return {word.strip() for word in text.splitlines()[1].split(",")}


def test_creates_secrets():
    """k8s/serving-secret.sh creates certificate and token once; --new replaces them."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        first = created_secrets(folder, "served", "team", "model.example.org")
        assert set(first) == {"served-tls", "served-token"} and set(first["served-token"]) == {"token"}
        assert names_of(folder, first["served-tls"]) == {"IP Address:127.0.0.1", *(f"DNS:{one}" for one in (
            "served", "served.team", "served.team.svc", "localhost", "model.example.org"))}
        assert len(base64.b64decode(first["served-token"]["token"])) == 48
        assert created_secrets(folder, "served", "team") == first
        second = created_secrets(folder, "--new", "served", "team")
        assert not [one for one in first if first[one] == second[one]]
    with tempfile.TemporaryDirectory() as folder:
        assert set(created_secrets(folder, "--token-only", "served")) == {"served-token"}
        for words in ([], ["Served"], ["served", "team", "a,DNS:b"], ["--what", "served"], ["served", "--server=x"]):
            refused = serving_secret(folder, *words)
            assert refused.returncode == 1 and "serving-secret.sh: " in refused.stderr, (words, refused)


def test_takes_over_secrets():
    """The certificate and token that version 0.2 of the chart stored in the release's Secret are kept."""
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name, "secrets")
        folder.mkdir()
        data = {key: base64.b64encode(key.encode()).decode() for key in ("htpasswd", "ca.crt", "tls.crt", "tls.key", "token")}
        (folder / "served.json").write_text(json.dumps({"data": data}))
        found = created_secrets(name, "served")
        assert found["served-tls"] == {key: data[key] for key in ("ca.crt", "tls.crt", "tls.key")}
        assert found["served-token"] == {"token": data["token"]}


def test_mounts_created_secrets():
    """The pods mount the Secrets of the script, an explicit Secret, or that of cert-manager."""
    for helm in tools.helms():
        for chart in SERVERS:
            for values, secret, issued in (([], "training-tls", False), (["nginx.tls_secret=own"], "own", False),
                                           (["nginx.issuer=Issuer/ours"], "training-tls", True)):
                objects = {one["kind"]: one for one in render(helm, chart, ["jupyter.enabled=true", *values])[1]}
                text = yaml.safe_dump(objects["Deployment"])
                assert f"name: {secret}\n" in text and "secretName: training-token\n" in text, (chart, values)
                assert set(objects["Secret"]["data"]) == {"htpasswd"}
                assert ("Certificate" in objects) == issued
                if issued:
                    spec = objects["Certificate"]["spec"]
                    assert spec["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "ours"}
                    assert spec["secretName"] == secret and "training.default.svc" in spec["dnsNames"]


if __name__ == "__main__":
    tools.main(globals())
