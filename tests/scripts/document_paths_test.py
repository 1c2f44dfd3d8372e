#!/usr/bin/env python3
"""Paths, links and commits in CONTRIBUTING.md and docs/design exist, and CONTRIBUTING.md is short."""
import os
import pathlib
import re
import subprocess
import unittest

SOURCE = pathlib.Path(os.environ.get("DTRAIN_SOURCE_DIR", pathlib.Path(__file__).resolve().parents[2]))
PAGES = [SOURCE / "CONTRIBUTING.md", *sorted((SOURCE / "docs" / "design").glob("*.md"))]
FOLDERS = ("apps", "benchmarks", "cmake", "data", "docs", "examples", "include", "k8s", "libdtrain", "models", "scripts", "tests")
MOST_WORDS = 2500
PLACEHOLDER = "NAME"  # in apps/NAME/main.cpp


def expand(text: str) -> list[str]:
    """Expands a/{b,c}.h to a/b.h and a/c.h."""
    braces = re.search(r"\{([^{}]*)\}", text)
    if not braces:
        return [text]
    before, after = text[:braces.start()], text[braces.end():]
    return [path for part in braces[1].split(",") for path in expand(before + part + after)]


def paths(text: str) -> list[str]:
    """Paths in code spans, relative to the repository's root."""
    spans = [word for span in re.findall(r"`([^`\n]+)`", text) for word in span.split()[:1]]
    named = [path for span in spans for path in expand(span) if re.fullmatch(r"[\w./*-]+", path)]
    return [path for path in named if path.split("/")[0] in FOLDERS and "/" in path and PLACEHOLDER not in path]


class Documents(unittest.TestCase):
    def git(self, *arguments: str) -> subprocess.CompletedProcess:
        return subprocess.run(["git", "-C", str(SOURCE), *arguments], capture_output=True, text=True, check=False)

    def test_paths_exist(self) -> None:
        found = 0
        for page in PAGES:
            for path in paths(page.read_text(encoding="utf-8")):
                found += 1
                self.assertTrue(any(SOURCE.glob(path.rstrip("/"))), f"{page.relative_to(SOURCE)} names {path}")
        self.assertGreater(found, 100)

    def test_links_exist(self) -> None:
        for page in PAGES:
            for link in re.findall(r"\]\(([^)#]+)", page.read_text(encoding="utf-8")):
                if not link.startswith("http"):
                    self.assertTrue((page.parent / link).exists(), f"{page.relative_to(SOURCE)} links to {link}")

    def test_commits_are_in_the_history(self) -> None:
        rows = {commit: page for page in PAGES
                for commit in re.findall(r"\| ([0-9a-f]{8}) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)}
        self.assertGreater(len(rows), 50)
        if self.git("rev-parse", "--is-shallow-repository").stdout.strip() != "false":
            return  # an archive or a shallow clone has no history
        for commit, page in rows.items():
            known = self.git("merge-base", "--is-ancestor", commit, "HEAD")
            self.assertEqual(known.returncode, 0, f"{page.relative_to(SOURCE)} names commit {commit}")

    def test_contributing_is_short(self) -> None:
        words = len((SOURCE / "CONTRIBUTING.md").read_text(encoding="utf-8").split())
        self.assertLessEqual(words, MOST_WORDS, "words of CONTRIBUTING.md; design decisions belong into docs/design")


if __name__ == "__main__":
    unittest.main(argv=[__file__])  # ignores ctest's argument, the build tree
