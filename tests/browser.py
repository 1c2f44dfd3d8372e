"""Headless Chromium over the DevTools protocol, by a pipe instead of a port."""

import base64
import json
import os
import shutil
import subprocess
import tempfile


def find():
    """The browser of this machine, None where there is none."""
    return next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None)


class Browser:
    """One page. Its requests that are not to a file, a data: or a blob: URI are kept in `requests`, errors of its script in
    `errors`, and what else it complains of, as of a blocked script, in `complaints`."""

    def __init__(self, width=1280, height=900):
        self.folder = tempfile.TemporaryDirectory()
        to_browser, from_us = os.pipe()
        to_us, from_browser = os.pipe()
        arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{to_browser} 4>&{from_browser}', "browser", find(), *arguments,
             "--remote-debugging-pipe", f"--user-data-dir={self.folder.name}", "about:blank"],
            pass_fds=(to_browser, from_browser), stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.output, self.input = os.fdopen(from_us, "wb", buffering=0), os.fdopen(to_us, "rb")
        self.number, self.session, self.events, self.rest = 0, None, [], b""
        self.requests, self.errors, self.complaints = [], [], []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime", "Accessibility", "Log"):
            self.call(domain + ".enable")
        self.size(width, height)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.folder.cleanup()

    def read(self):
        while b"\0" not in self.rest:
            more = os.read(self.input.fileno(), 1 << 20)
            if not more:
                raise EOFError("the browser has ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        message = json.loads(text)
        method, params = message.get("method"), message.get("params", {})
        if method == "Network.requestWillBeSent":
            url = params["request"]["url"]
            if not url.startswith(("file:", "data:", "about:", "blob:")):
                self.requests.append(url)
        elif method == "Runtime.exceptionThrown":
            self.errors.append(params["exceptionDetails"].get("text", "") + str(params["exceptionDetails"].get("exception")))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("warning", "error"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled":
            self.complaints.append(str(params["args"]))
        elif method == "Page.javascriptDialogOpening":
            self.complaints.append("a dialog: " + params["message"])
        if method:
            self.events.append(method)
        return message

    def call(self, method, **params):
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session:
            message["sessionId"] = self.session
        self.output.write(json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def size(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600)

    def scheme(self, name):
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": name}])

    def open(self, place):
        """A file, or an address that begins with http://."""
        self.events.clear()
        self.call("Page.navigate", url=place if str(place).startswith("http://") else "file://" + os.path.abspath(place))
        while "Page.loadEventFired" not in self.events:
            self.read()

    def value(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(str(result["exceptionDetails"]))
        return result["result"].get("value")

    def choose(self, selector, path):
        """A file for an <input type=file>."""
        node = self.call("Runtime.evaluate", expression=f"document.querySelector({json.dumps(selector)})")["result"]
        self.call("DOM.setFileInputFiles", objectId=node["objectId"], files=[os.path.abspath(path)])

    def key(self, name):
        codes = {"Enter": 13, "End": 35, "Home": 36, "ArrowLeft": 37, "ArrowRight": 39}
        text = {"text": "\r"} if name == "Enter" else {}
        for kind, more in (("keyDown", text), ("keyUp", {})):
            self.call("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=codes[name], **more)

    def picture(self, path, whole=True):
        data = self.call("Page.captureScreenshot", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
