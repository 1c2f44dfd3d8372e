"""Tests the pod of the chart maskrcnn-jupyter: dtrain-serve, TensorBoard and Jupyter behind nginx, with curl, Chromium
and a notebook as clients."""

import array
import base64
import contextlib
import importlib
import json
import os
import pathlib
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import zlib

import tools
import yaml
from serving_pod import BOARD, PAGE, PASSWORD, USER, Pod, enter, hash_of, wait_for

NOTEBOOK = tools.TOOLS / "notebook"
TOKEN = "a-token-of-this-test-alone"


def test_opens_only_two_ports():
    """source_cidr may reach nginx through the Service; the servers behind nginx are not reachable."""
    with tempfile.TemporaryDirectory() as folder:
        if not shutil.which("htpasswd"):
            tools.skip("there is no htpasswd")
        pod = Pod(folder, "jupyter.enabled=true")
        service = pod.objects["Service"]["spec"]
        assert service["loadBalancerSourceRanges"] == ["203.0.113.7/32"], service
        names = {one["name"]: one["containerPort"] for one in pod.container("nginx")["ports"]}
        assert {one["port"]: names[one["targetPort"]] for one in service["ports"]} == {443: 8443, 6443: 9443}
        [entry] = pod.objects["NetworkPolicy"]["spec"]["ingress"]
        assert [one["port"] for one in entry["ports"]] == [8443, 9443]
        for container in pod.spec["containers"]:
            assert container["name"] == "nginx" or "ports" not in container, container
        text = yaml.safe_dump([one for kind, one in pod.objects.items() if kind != "Secret"])
        for secret in [one for data in pod.secrets.values() for one in data.values()]:
            assert secret not in text and base64.b64decode(secret).decode().strip() not in text


def test_proxy():
    enter("nginx", "curl", "htpasswd", "openssl", "certutil")
    sys.path.append(str(tools.ROOT / "tests"))
    browser, python_packages = map(importlib.import_module, ("browser", "python_packages"))
    with tempfile.TemporaryDirectory() as folder, Pod(folder) as pod:
        pod.start_serving()
        if not python_packages.installed():
            tools.skip(f"there is no TensorBoard: {python_packages.INSTALL}")
        pod.start("tensorboard", 6006, python_packages.FOLDER / "bin")
        check_passwords(pod)
        check_tls(pod)
        check_bodies(pod)
        check_listeners()
        if browser.find():
            check_browser(pod, browser)
        check_hides_password(pod, 8501, PAGE + "/")
        if not browser.find():
            tools.skip("there is no Chromium, everything else has passed")


def defined_by(name):
    """A function of the notebook."""
    notebook = json.loads((tools.K8S / "charts" / "dtrain-lib" / "files" / "serving.ipynb").read_text())
    cells = "\n".join("".join(one["source"]) for one in notebook["cells"] if one["cell_type"] == "code")
    scope = {"array": array, "base64": base64, "struct": struct, "zlib": zlib}
    for function in re.findall(r"^def .*?\n(?=\S|\Z)", cells + "\n", re.DOTALL | re.MULTILINE):
        exec(function, scope)
    return scope[name]


def test_notebook_draws_masks():
    """The notebook decodes COCO's runs, and draws mask, box, class and score of the objects above the threshold."""
    # The top left quarter of 4 x 6 pixels, column by column: 0 2 2 2 2 2 14 (rows 0 and 1 of columns 0 to 2).
    quarter = [0, 2, 2, 2, 2, 2, 14]
    text = ""
    for number, run in enumerate(quarter):  # COCO's encoding: differences from the run before the last
        value = run - quarter[number - 2] if number > 2 else run
        more = True
        while more:
            part, value = value & 31, value >> 5
            more = value != (-1 if part & 16 else 0)
            text += chr(48 + part + 32 * more)
    assert defined_by("runs_of")(text) == quarter, text
    one = {"bbox": [0, 0, 3, 2], "score": 0.9, "category_id": 3, "segmentation": {"size": [4, 6], "counts": text}}
    image = defined_by("mask_image")(6, 4, [one])
    rows = zlib.decompress(image[image.index(b"IDAT") + 4:image.index(b"IEND") - 8])
    shown = [[rows[25 * row + 4 + 4 * column] for column in range(6)] for row in range(4)]
    assert shown == [[120] * 3 + [0] * 3] * 2 + [[0] * 6] * 2, shown
    picture = defined_by("synthetic_image")()
    answer = {"width": 6, "height": 4, "detections": [one, {**one, "score": 0.4, "category_id": 9}]}
    html = defined_by("drawn")(picture, answer)
    assert base64.b64encode(image).decode() in html and ">3 0.90<" in html and ">9 0.40<" not in html, html
    assert html.count("<img ") == 2 and defined_by("drawn")(picture, answer, 0.3).count("outline") == 2


def test_notebook_with_detector():
    """The whole notebook with a Mask R-CNN and the validation images of the rendered command: a random one is drawn."""
    enter()
    images = tools.DATA / "coco_mini"
    if not NOTEBOOK.is_dir():
        tools.skip(f"there is no {NOTEBOOK}: tests/k8s/tools.sh fetches it")
    if not images.is_dir():
        tools.skip(f"there is no {images}")
    values = ("jupyter.enabled=true", "serve.images=val2017", "serve.annotations=annotations/instances_val2017.json",
              "serve.data_pvc=coco")
    with tempfile.TemporaryDirectory() as folder, Pod(folder, *values) as pod:
        trained = pod.folder / "results" / "first" / "train_log" / "maskrcnn"
        trained.mkdir(parents=True)
        (pod.folder / "home").mkdir()
        (pod.folder / "serve-data").symlink_to(images)
        tools.check_run(tools.PROGRAMS / "dtrain-mask-rcnn", "train", "--preset=tensorpack", "--device=cpu", "--batch_size=1",
                        "--num_batches=1", "--num_intra_threads=1", f"--data_dir={images}", f"--train_dir={trained}",
                        "--config", *SMALL_DETECTOR)
        pod.start("serve", 8501, tools.PROGRAMS, {"OMP_NUM_THREADS": "1"})
        wait_for("model", lambda: tools.run("curl", "-sf", "http://127.0.0.1:8501/readyz").returncode == 0)
        book = json.loads(pod.objects["ConfigMap"]["data"]["serving.ipynb"])
        for cell in book["cells"]:
            cell["source"] = [line.replace("THRESHOLD = 0.5", "THRESHOLD = 0") for line in cell["source"]]
        outputs = run_notebook(pod, book, {"PYTHONPATH": str(NOTEBOOK), "JUPYTER_PATH": str(NOTEBOOK / "share" / "jupyter")})
        text = json.dumps(outputs)
        assert re.search(r"\b\d{12}[.]jpg", text) and "objects'" in text, text[:2000]
        assert "data:image/jpeg;base64" in text and "data:image/png;base64" in text and "outline:2px" in text, text[:2000]


SMALL_DETECTOR = ("BACKBONE.WEIGHTS=", "BACKBONE.BOTTLENECK=False", "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
                  "FPN.NUM_CHANNEL=16", "FPN.FRCNN_FC_HEAD_DIM=32", "MRCNN.HEAD_DIM=16", "FRCNN.BATCH_PER_IM=16",
                  "RPN.BATCH_PER_IM=32", "PREPROC.TRAIN_SHORT_EDGE_SIZE=64", "PREPROC.TEST_SHORT_EDGE_SIZE=64",
                  "PREPROC.MAX_SIZE=96", "TRAIN.EVAL_PERIOD=0", "TEST.RESULT_SCORE_THRESH=0.0001")


def run_notebook(pod, notebook, packages):
    """Outputs of the cells of a notebook, run with Jupyter's variables."""
    source, done = pod.folder / "serving.ipynb", pod.folder / "done.ipynb"
    source.write_text(json.dumps(notebook))
    variables = {one["name"]: one["value"] for one in pod.container("jupyter")["env"]
                 if one["name"].startswith("DTRAIN_")}
    program = ("import nbclient, nbformat, sys; book = nbformat.read(sys.argv[1], 4); "
               "nbclient.NotebookClient(book, timeout=60).execute(); nbformat.write(book, sys.argv[2])")
    tools.check_run(sys.executable, "-c", program, source, done, env={**pod.environment, **packages, **variables})
    return [one for cell in json.loads(done.read_text())["cells"] for one in cell.get("outputs", [])]


def check_passwords(pod):
    for url in (PAGE + "/", PAGE + "/v1/models/maskrcnn", PAGE + "/metrics", BOARD + "/", BOARD + "/data/environment"):
        assert pod.curl(url, user=None)[0] == 401, url
        for user in (f"{USER}:wrong", f"{USER}:", f"other:{PASSWORD}", f"{USER}:{PASSWORD} "):
            assert pod.curl(url, user=user)[0] == 401, (url, user)
    assert '"AVAILABLE"' in pod.curl(PAGE + "/v1/models/maskrcnn")[1]
    # Cross-site requests are rejected although the proxy changes Host and removes Origin.
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 200)):
        fetched = pod.curl(PAGE + "/v1/models/maskrcnn", "-H", f"Sec-Fetch-Site: {site}", "-H", f"Origin: {PAGE}")
        assert fetched[0] == status, (site, fetched)
    assert pod.curl(BOARD + "/data/environment")[0] == 200
    wait_for("the run", lambda: '"."' in pod.curl(BOARD + "/data/runs")[1])  # TensorBoard loads it after its start
    head = pod.curl(PAGE + "/readyz", "-i")[1].lower()
    for line in ("server: nginx\n", "x-content-type-options: nosniff", "x-frame-options: sameorigin"):
        assert line in head, head
    # bcrypt, which the chart's documents recommend; nginx reads the file for each request.
    file = pod.folder / "nginx-proxy" / "htpasswd"
    file.write_text(f"{USER}:{hash_of(PASSWORD, 'B')}\n")
    assert pod.curl(PAGE + "/readyz")[0] == 200 and pod.curl(PAGE + "/readyz", user=f"{USER}:wrong")[0] == 401


def check_tls(pod):
    for url in (PAGE, BOARD):
        stranger = tools.run("curl", "-sS", "-u", f"{USER}:{PASSWORD}", url)
        assert stranger.returncode == 60, stranger
        other_name = tools.run("curl", "-sS", "--cacert", pod.authority, "--connect-to", "::localhost:",
                               url.replace("localhost", "example.org"))
        assert other_name.returncode == 60, other_name
        # Debian's OpenSSL offers old versions only on request; the alert comes from the server.
        old = tools.run("curl", "-sS", "--cacert", pod.authority, "--tlsv1.0", "--tls-max", "1.1",
                        "--ciphers", "DEFAULT@SECLEVEL=0", url)
        assert old.returncode == 35 and "alert protocol version" in old.stderr, old
        for version in ("1.2", "1.3"):
            assert pod.curl(url + "/", f"--tlsv{version}", "--tls-max", version, user=None)[0] == 401
        plain = tools.run("curl", "-sS", "-w", "%{http_code}", "-o", os.devnull, url.replace("https", "http"))
        assert plain.stdout == "400", plain


def check_bodies(pod):
    picture = pod.folder / "picture.png"
    picture.write_bytes(defined_by("synthetic_image")())
    status, body = pod.curl(PAGE + "/predictions/maskrcnn", "-T", picture)
    assert status == 200 and json.loads(body), body
    large = pod.folder / "large"
    for size, expected in ((32 << 20, 400), ((32 << 20) + 1, 413)):
        with large.open("wb") as file:
            file.truncate(size)
        direct = tools.run("curl", "-sS", "-T", large, "-w", "\n%{http_code}",
                           "http://127.0.0.1:8501/predictions/maskrcnn")
        status, body = pod.curl(PAGE + "/predictions/maskrcnn", "-T", large)
        assert status == expected and direct.stdout.endswith(f"\n{expected}"), (size, status, direct)
        assert json.loads(body)["error"], body


def check_hides_password(pod, port, url):
    """The upstream server does not receive the password. Ends the process on the port."""
    process = pod.at.pop(port)
    process.terminate()
    process.wait()
    with socket.create_server(("127.0.0.1", port)) as other:
        client = subprocess.Popen(["curl", "-sS", "--cacert", pod.authority, "-u", f"{USER}:{PASSWORD}", url])
        connection = other.accept()[0]
        head = connection.recv(65536).lower()
        connection.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")
        assert client.wait() == 0 and head.startswith(b"get /") and b"authorization" not in head, head


def check_listeners():
    """Only nginx listens on more than loopback."""
    lines = [line.split() for name in ("tcp", "tcp6")
             for line in pathlib.Path("/proc/net", name).read_text().splitlines()]
    found = {int(words[1].rpartition(":")[2], 16): words[1].partition(":")[0] for words in lines if words[3] == "0A"}
    assert {8501, 6006, 8443, 9443} <= set(found), found
    assert {port for port, address in found.items() if address != "0100007F"} == {8443, 9443}, found


def check_browser(pod, browser):
    """Chromium opens page and TensorBoard only after it trusts the CA."""
    os.environ["HOME"] = pod.environment["HOME"]
    with browser.Browser() as page:
        answer = page.call("Page.navigate", url=PAGE + "/")
        assert answer.get("errorText") == "net::ERR_CERT_AUTHORITY_INVALID", answer
    database = pathlib.Path(os.environ["HOME"], ".pki", "nssdb")
    database.mkdir(parents=True)
    tools.check_run("certutil", "-d", f"sql:{database}", "-N", "--empty-password")
    tools.check_run("certutil", "-d", f"sql:{database}", "-A", "-t", "C,,", "-n", "authority", "-i", pod.authority)
    with_password = f"//{USER}:{PASSWORD}@".replace(" ", "%20")
    with browser.Browser() as page:
        for url in (PAGE + "/", BOARD + "/"):
            answer = page.call("Page.navigate", url=url.replace("//", with_password))
            assert "errorText" not in answer, answer
            while "Page.loadEventFired" not in page.events:
                page.read()
            page.events.clear()
            assert page.value("isSecureContext && location.protocol") == "https:", url
            shown = page.value(f"fetch('{url}').then(async one => [one.status, await one.text()])")
            assert tuple(shown) == pod.curl(url), (url, shown)
            assert not page.errors, page.errors
        assert page.value("document.title") == "TensorBoard"


def test_jupyter():
    """Jupyter's rendered command requires password and token, and serves kernels through the proxy."""
    enter("nginx", "curl", "htpasswd")
    if not NOTEBOOK.is_dir():
        tools.skip(f"there is no {NOTEBOOK}: tests/k8s/tools.sh fetches it")
    packages = {"PYTHONPATH": str(NOTEBOOK), "JUPYTER_PATH": str(NOTEBOOK / "share" / "jupyter"),
                "PATH": f"{NOTEBOOK / 'bin'}:{os.environ['PATH']}"}
    with tempfile.TemporaryDirectory() as folder, Pod(folder, "jupyter.enabled=true", f"jupyter.token={TOKEN}") as pod:
        pod.start_serving()
        pod.start("jupyter", 8888, NOTEBOOK / "bin", packages)
        status = PAGE + "/jupyter/api/status"
        assert pod.curl(f"{status}?token={TOKEN}", user=None)[0] == 401
        assert pod.curl(status)[0] == 403 and pod.curl(status + "?token=wrong")[0] == 403
        code, body = pod.curl(f"{status}?token={TOKEN}")
        assert code == 200 and json.loads(body)["kernels"] == 0, body
        content = json.loads(pod.curl(f"{PAGE}/jupyter/api/contents/examples/serving.ipynb?token={TOKEN}")[1])
        check_notebook(pod, content["content"], packages)
        check_kernel(pod)
        assert TOKEN not in (pod.folder / "nginx.log").read_text()
        check_hides_password(pod, 8888, PAGE + "/jupyter/")


def check_notebook(pod, notebook, packages):
    """The notebook runs completely against the server."""
    outputs = run_notebook(pod, notebook, packages)
    text = "\n".join("".join(one.get("text", one.get("data", {}).get("text/plain", ""))) for one in outputs)
    assert "'AVAILABLE'" in text and "checkpoint of step 1" in text and "\n400 " in text, text
    assert len(re.findall("'probability': ", text)) == 10, text
    picture = defined_by("synthetic_image")()
    html = defined_by("drawn")(picture, [{"class": 3, "probability": 0.99}])
    assert base64.b64encode(picture).decode() in html and "outline" not in html, html


def check_kernel(pod):
    """A kernel is started and used over HTTPS and a WebSocket through nginx."""
    sys.path.append(str(NOTEBOOK))
    websocket = importlib.import_module("websocket")
    kernel = json.loads(pod.curl(f"{PAGE}/jupyter/api/kernels?token={TOKEN}", "-X", "POST", "-d", "{}")[1])["id"]
    secret = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
    url = f"{PAGE}/jupyter/api/kernels/{kernel}/channels".replace("https", "wss")
    options = {"sslopt": {"ca_certs": str(pod.authority), "cert_reqs": ssl.CERT_REQUIRED}, "timeout": 60}
    try:
        websocket.create_connection(url, header=[f"Authorization: Basic {secret}"], **options)
        raise AssertionError("a kernel was started without a token")
    except websocket.WebSocketBadStatusException as error:
        assert error.status_code == 403, error
    channel = websocket.create_connection(f"{url}?token={TOKEN}", header=[f"Authorization: Basic {secret}"], **options)
    with contextlib.closing(channel):
        header = {"msg_id": "1", "msg_type": "execute_request", "session": "1", "username": "", "version": "5.3"}
        content = {"code": "print(6 * 7)", "silent": False, "user_expressions": {}, "allow_stdin": False}
        channel.send(json.dumps({"channel": "shell", "header": header, "parent_header": {}, "metadata": {},
                                 "content": content}))
        while (message := json.loads(channel.recv()))["msg_type"] != "stream":
            pass
        assert message["content"]["text"] == "42\n", message


def test_fargate():
    """The document's commands against a mock of AWS: parameters, the task, and nginx with the task's command."""
    enter("nginx", "curl", "htpasswd")
    sys.path.append(str(tools.HERE / "aws"))
    mock = importlib.import_module("mock")
    if not (mock.TOOLS / "bin" / "aws").exists():
        tools.skip(f"there is no {mock.TOOLS}: tests/k8s/aws/tools.sh fetches it")
    with tempfile.TemporaryDirectory() as folder, Pod(folder) as pod, mock.Mock() as aws:
        pod.start_serving()
        work = pathlib.Path(folder, "work")
        shutil.copytree(pod.folder / "nginx-proxy", work)
        (work / "k8s").symlink_to(tools.K8S)
        lines = [line.strip() for line in (tools.K8S / "fargate" / "README.md").read_text().splitlines()
                 if re.match(r"    (aws ssm|sed|aws ecs register)", line)]
        assert len(lines) == 6, lines
        for line in lines:
            registered = tools.check_run("bash", "-c", line, cwd=work, env=aws.environment())
        task = json.loads(registered)["taskDefinition"]
        assert task["requiresCompatibilities"] == ["FARGATE"] and task["networkMode"] == "awsvpc"
        assert not re.search("ACCOUNT|REGION|FILE_SYSTEM|LOG_DIR", (work / "task.json").read_text())
        serve, nginx = task["containerDefinitions"]
        arguments = pod.container("serve")["args"][1:]
        assert serve["command"] == [word.replace("/fsx/first", "/efs/maskrcnn") for word in arguments]
        assert nginx["image"] == pod.container("nginx")["image"]
        assert [one["containerPort"] for one in nginx["portMappings"]] == [8443]
        check = pod.container("serve")["livenessProbe"]["exec"]["command"]
        for command in (serve["healthCheck"]["command"][1:], check):
            tools.check_run(*command)
        names = {one["valueFrom"].partition("parameter")[2]: one["name"] for one in nginx["secrets"]}
        answer = tools.check_run("aws", "ssm", "get-parameters", "--with-decryption", "--names", *names,
                                 env=aws.environment())
        variables = {names[one["Name"]]: one["Value"] for one in json.loads(answer)["Parameters"]}
        own = pod.at.pop(8443)
        own.terminate()
        own.wait()
        place = pod.folder / "fargate"
        place.mkdir()
        words = [word.replace("/tmp", str(place)) for word in [*nginx["entryPoint"], *nginx["command"]]]
        pod.run("fargate", 8443, words, {**os.environ, **variables})
        assert pod.curl(PAGE + "/readyz")[0] == 200 and pod.curl(PAGE + "/readyz", user=f"{USER}:wrong")[0] == 401
        assert (place / "dtrain" / "tls.key").stat().st_mode & 0o77 == 0


if __name__ == "__main__":
    tools.main(globals())
