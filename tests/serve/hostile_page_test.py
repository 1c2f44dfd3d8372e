#!/usr/bin/env python3
"""The page of dtrain-serve with malicious names in a real browser: as classes, categories, files, browsed images and
server errors. Names are displayed verbatim, nothing is executed, no request leaves the page, and the page fits the
window. A script of this test answers the page's requests; the page and its Content-Security-Policy are real.

Exit codes: 0 passed, 1 failed, 77 a tool is missing.
"""
import json
import socket
import sys
import tempfile
import time
from pathlib import Path

from serving import Server, jpeg, train

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
import browser
from hostile_names import NAMES, shown

# Replaces the server's responses by names of the test. An image is just its number.
LIE = """(() => {
    const names = %s, detects = location.hash === "#detects";
    const answer = (value, status = 200) => new Response(typeof value === "string" ? value : JSON.stringify(value),
        {status, headers: {"X-Model-Version": "1"}});
    window.honest = window.fetch;
    window.fetch = async (path, options) => {
        if (path === "models") return answer({images: names.length, models: [{name: "default", ready: true, detects,
            version: 1, precision: "fp32", categories: names.map((name, i) => ({id: i, name}))}]});
        if (path === "images") return answer({images: names.map((name, i) =>
            detects ? {name, objects: []} : {name, label: i, label_name: name})});
        if (path.startsWith("images/")) return answer(path.slice(7));
        const text = await options.body.text(), i = Number(text.slice(1)), name = names[i];
        if (text[0] === "e") return answer({error: name}, 400);
        if (text[0] === "t") return answer(name, 500);
        const at = Number(text), called = names[at];
        if (detects) return answer({width: 8, height: 8, detections: [
            {bbox: [1, 2, 3, 4], score: 0.75, category_id: at, category: called}]});
        return answer([{class: at, name: called, probability: 0.75}, {class: 999, name: called, probability: 0.25}]);
    };
    window.until = async condition => {
        for (let i = 0; i < 500 && !condition(); ++i) await new Promise(go => setTimeout(go, 10));
        return condition();
    };
})()"""
ASK_ALL = """(async () => {
    await until(() => !document.querySelector("#walk").hidden);
    document.querySelector("#sort").click();
    await until(() => document.querySelectorAll("#images button").length === %d && document.querySelector("article"));
    return [...document.querySelectorAll("#images button")].map(one => one.textContent);
})()"""
# Text of the page for a browsed image, once shown.
SHOW = """(async () => {
    document.querySelectorAll("#images button")[%d].click();
    const found = () => document.querySelector("article img");
    await until(() => found() && found().alt.startsWith(%s));
    const texts = selector => [...document.querySelectorAll("article " + selector)].map(one => one.textContent);
    return {alt: found().alt, items: texts("li"), label: texts(".plain + p"), cells: texts("tbody td:first-child")};
})()"""


def check(condition, what):
    if not condition:
        raise AssertionError(str(what)[:600])


class Page:
    def __init__(self, page, server, names, listener):
        self.page, self.names, self.listener = page, names, listener
        self.origin = f"http://127.0.0.1:{server.port}/"

    def unharmed(self):
        page = self.page
        check(page.value("document.title") == "Predictions" and page.value("typeof window.forged") == "undefined",
              "a name was executed as a script")
        check(not page.errors and not page.complaints, f"{page.errors} {page.complaints}")
        check(all(url.startswith((self.origin, "blob:")) for url in page.requests), f"requests to other origins: {page.requests}")
        width = page.value("document.documentElement.scrollWidth")
        check(width <= page.value("innerWidth"), f"the page is {width} pixels wide")
        self.none_asked()

    def none_asked(self):
        try:
            self.listener.accept()
        except BlockingIOError:
            return
        raise AssertionError("a request went to another origin")

    def walk(self, mode):
        self.page.open("about:blank")
        self.page.open(self.origin + mode)
        self.buttons = self.page.value(ASK_ALL % len(self.names))

    def wait(self, expression, wanted):
        deadline = time.monotonic() + 8
        while (found := self.page.value(expression)) != wanted:
            check(time.monotonic() < deadline, f"{expression} is {found!r}, expected {wanted!r}")
            time.sleep(0.01)

    def classifier(self, i, name):
        check(self.buttons[i] == f"{shown(name)}: 0.288", f"the list: {self.buttons[i]}")
        found = self.page.value(SHOW % (i, json.dumps(shown(name))))
        check(found["items"] == [f"{shown(name)} (class {i}): 75.00 %", f"{shown(name)} (class 999): 25.00 %"], found)
        check(found["label"] == [f"The label is {shown(name)} (class {i})."] and found["alt"] == shown(name), found)

    def detector(self, i, name):
        options = "[...document.querySelectorAll('#category option')].map(one => [one.value, one.textContent])[%d]"
        check(self.page.value(options % (i + 1)) == [name, shown(name)], "the choice of classes")
        found = self.page.value(SHOW % (i, json.dumps(shown(name))))
        check(found["cells"] == [shown(name)] and found["alt"] == f"{shown(name)} with 1 objects", found)
        for choice, count in ((name, 1), ("", 1), (self.names[i - 1], 0), ("", 1)):
            self.page.value(f"(node => {{ node.value = {json.dumps(choice)}; node.dispatchEvent(new Event('change')); }})"
                            "(document.querySelector('#category'))")
            rows = self.page.value("document.querySelectorAll('article tbody tr').length")
            check(rows == count, f"{rows} objects of {choice!r}")

    def errors(self, i, name, folder):
        for kind, text in (("e", f"400: {shown(name)}"), ("t", f"500: {shown(name)}")):
            path = folder / f"{kind}{i}.jpg"  # choosing the same file again raises no change event
            path.write_text(f"{kind}{i}")
            self.page.choose("#file", path)
            self.wait("document.querySelector('#message').textContent", text)

    def file(self, i, name, folder):
        path = folder / name.replace("/", "").replace("\0", "")[:200]
        path.write_text(str(i))
        self.page.choose("#file", path)
        self.wait("document.querySelector('article img').alt", f"{shown(path.name)} with 1 objects")


# Injected scripts and requests are blocked by the page's Content-Security-Policy.
PUT = "(node => { node.%s = '%%s'; document.%s.append(node); %s})(document.createElement('%s'))"
INTRUDERS = {
    "an image with a handler": "document.body.insertAdjacentHTML('beforeend', '<img src=x onerror=window.forged=1>')",
    "a script": (PUT % ("textContent", "body", "", "script")).replace("%s", "window.forged=1"),
    "a script from elsewhere": PUT % ("src", "body", "", "script"),
    "an image from elsewhere": "void (new Image().src = '%s')",
    "a request elsewhere": "honest('%s').catch(() => 0).then(() => 0)",
    "a form": PUT % ("action", "body", "node.submit(); ", "form"),
    "another base": PUT % ("href", "head", "", "base"),
    "a frame": PUT % ("src", "body", "", "iframe"),
    "a text that is evaluated": "(() => { try { setTimeout('window.forged=1', 0); } catch (error) { } })()",
}


def intrude(target, code):
    page = target.page
    page.open("about:blank")
    page.open(target.origin)
    page.complaints.clear()
    elsewhere = f"http://127.0.0.1:{target.listener.getsockname()[1]}/x"
    page.value(code.replace("%s", elsewhere))
    page.value("new Promise(go => setTimeout(go, 50)).then(() => 0)")
    check(page.value("typeof window.forged") == "undefined", "it ran")
    check(page.value("new URL('models', document.baseURI).href") == target.origin + "models", "the base URL was changed")
    check(any("Content Security Policy" in one for one in page.complaints), f"no policy violation: {page.complaints}")
    target.none_asked()
    page.complaints.clear()
    page.errors.clear()


def try_names(target, folder, outcomes):
    def attempt(kind, function, *more):
        for i, (title, name) in enumerate(NAMES.items()):
            try:
                function(i, name, *more)
                target.unharmed()
            except (AssertionError, RuntimeError) as problem:
                outcomes.setdefault(title, []).append(f"as {kind}: {problem}")
                target.page.complaints.clear()
    target.walk("")
    attempt("a class", target.classifier)
    target.walk("#detects")
    attempt("a category", target.detector)
    attempt("an error", target.errors, folder)
    attempt("a file", target.file, folder)


def files_on_disk(server, names):
    """The server's list has the file names, with invalid UTF-8 replaced."""
    listed = {one["name"] for one in json.loads(server.ask("GET", "/images")[1])["images"]}
    check(listed == names, listed ^ names)


def main():
    if browser.find() is None:
        print("SKIPPED: there is no Chromium")
        sys.exit(77)
    outcomes, count = {}, len(NAMES) + len(INTRUDERS) + 1
    with tempfile.TemporaryDirectory() as name, socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        folder = Path(name)
        train(folder / "trained", 1, "--model=trivial")
        (folder / "images/1").mkdir(parents=True)
        listed = {"1/\ufffd.jpg"}
        (folder / "images/1" / b"\xff.jpg".decode(errors="surrogateescape")).write_bytes(jpeg())
        for hostile in NAMES.values():
            file = hostile.replace("/", "").replace("\0", "")[:60] + ".jpg"
            (folder / "images/1" / file).write_bytes(jpeg())
            listed.add(f"1/{file}")
        flags = (f"--train_dir={folder}/trained", f"--images={folder}/images")
        with Server(*flags) as server, browser.Browser(800, 600) as page:
            try:
                files_on_disk(server, listed)
            except AssertionError as problem:
                outcomes["files on disk"] = [str(problem)]
            page.call("Page.addScriptToEvaluateOnNewDocument", source=LIE % json.dumps(list(NAMES.values())))
            target = Page(page, server, list(NAMES.values()), listener)
            try_names(target, folder, outcomes)
            for title, code in INTRUDERS.items():
                try:
                    intrude(target, code)
                except AssertionError as problem:
                    outcomes[title] = [str(problem)]
            code = server.stop()
    for title, problems in outcomes.items():
        print(f"FAILED {title}:", "; ".join(problems))
    print(f"{count - len(outcomes)} of {count} attacks were handled")
    sys.exit(1 if outcomes or code else 0)


if __name__ == "__main__":
    main()
