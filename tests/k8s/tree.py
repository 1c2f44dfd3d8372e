"""A copy of k8s/ whose overlays tests change with k8s/set.sh."""

import pathlib
import shutil

import kustomize
import tools
import yaml


class Tree:
    """A copy of k8s/ without the charts."""

    def __init__(self, folder):
        self.root = pathlib.Path(folder) / "k8s"
        shutil.copytree(tools.K8S, self.root, ignore=shutil.ignore_patterns("charts"))
        self.overlays = sorted(path.name for path in (self.root / "overlays").iterdir())
        self.copies = 0

    def folder(self, overlay):
        return self.root / "overlays" / overlay

    def copy(self, overlay):
        """Name of a copy of an overlay in its present state."""
        self.copies += 1
        name = f"{overlay}.copy-{self.copies}"
        shutil.copytree(self.folder(overlay), self.folder(name))
        return name

    def set(self, overlay, *changes):
        return tools.run(self.root / "set.sh", overlay, *changes)

    def text(self, overlay):
        return {path.name: path.read_text(encoding="utf-8") for path in self.folder(overlay).iterdir()}

    def parameters(self, overlay):
        return yaml.safe_load((self.folder(overlay) / "parameters.yaml").read_text(encoding="utf-8"))["data"]

    def render(self, overlay):
        return list(yaml.safe_load_all(tools.check_run("kubectl", "kustomize", self.folder(overlay))))

    def render_all(self, overlays):
        """(overlay, its objects) of each overlay."""
        overlays = list(overlays)
        return zip(overlays, kustomize.render(map(self.folder, overlays)), strict=True)
