"""Malicious names for tests of HTML pages in a browser."""
import re

# Effects of an injected script are visible in the page.
HARM = "document.title='forged';window.forged=1"
NAMES = {
    "the end of a script": f"</script><script>{HARM}</script>",
    "the end of a style and of a title": f"</style></title><script>{HARM}</script>",
    "an image that fails": f"<img src=x onerror=\"{HARM}\">",
    "a picture with a handler": f"<svg/onload={HARM.split(';')[0]}>",
    "quotes that end an attribute": f"\" onmouseover=\"{HARM}\" autofocus onfocus=\"{HARM}\" x='",
    "a template": "`${" + HARM.split(";")[1] + "}` {{7*7}} ${7*7}",
    "an address that is a script": f"javascript:{HARM}",
    "an address elsewhere": "//evil.example/x.png",
    "a comment that does not end": "<!--<script>",
    "entities": "&amp;&lt;b&gt;&#x202e;&nbsp",
    "a name turned round": "\u202e% 00.001 :tac",
    "isolates that do not end": "\u2066\u2067\u2068cat\u2069\u2069\u2069\u2069",
    "Hebrew": "\u05d0\u05d1\u05d2 123",
    "nothing that is seen": "a\u200b\u200c\u2060\ufeffb",
    "line separators": "a\u2028b\u2029c\nd\re",
    "control characters": "a\x1b[31m\x07\x7f\x9bb",
    "a prototype": "__proto__",
    "a constructor": "constructor",
    "a number": "-1e999",
    "ten thousand letters": "W" * 10_000,
    "half a pair": "a\U0001f600b\u0301",
    "spaces": "  a  b\t ",
}


def shown(name):
    """As pages show it: what turns the direction of writing, breaks lines or controls is escaped."""
    def escape(match):
        code = ord(match[0])
        return {10: "\\n", 13: "\\r"}.get(code, f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}")
    return re.sub("[\x00-\x08\x0a-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]", escape, name)
