"""Tables of docs/performance.md: one function per task reads the shape that the task's comparison script writes."""
import json
import re
import statistics

KINDS = ("allreduce", "cifar10", "coco-eval", "convergence-resized", "convergence", "cpu", "detection", "gpu",
         "inference", "input", "onednn", "ranks", "scale", "serving", "storage")


class Result:
    """One measurement file."""

    def __init__(self, path, machines):
        match = re.fullmatch(rf"(\d{{4}}-\d\d-\d\d)-({'|'.join(KINDS)})-([\w.-]+)\.json", path.name)
        if not match or match[3] not in machines:
            raise SystemExit(f"{path}: expected <date>-<task>-<machine>.json with a task of {', '.join(KINDS)} "
                             f"and a machine of machines.json ({', '.join(machines)})")
        self.path, self.used = path, False
        self.date, self.kind, self.slug = match.groups()
        self.data = json.loads(path.read_text())
        self.machine = machines[self.slug]["name"]
        about = self.data["machine"] if isinstance(self.data.get("machine"), dict) else self.data
        self.commit = about.get("commit", "").replace(" with changes", "+") or ", ".join(self.data.get("commits", ()))
        # The commit that added the figures, for measured commits that are no longer in the history.
        self.commit += f", recorded in {self.data['recorded in']}" if "recorded in" in self.data else ""
        self.about = about

    def rows(self, pattern):
        """Rows whose name matches; a row without a name continues the one before."""
        found, name = [], ""
        for row in self.data.get("rows", ()):
            name = row["what"].strip() or name
            if re.match(pattern, name):
                found.append({**row, "what": name})
        return found

    def group(self, pattern):
        """The row that matches and the indented rows below it, by name."""
        group = {}
        for row in self.data.get("rows", ()):
            if not group and re.match(pattern, row["what"]):
                group["first"] = row
            elif group and row["what"].startswith("    "):
                group[row["what"].strip()] = row
            elif group:
                break
        return group


class Results:
    """All measurements of a folder."""

    def __init__(self, folder):
        self.machines = json.loads((folder / "machines.json").read_text())
        paths = sorted(path for path in folder.iterdir() if path.name != "machines.json")
        self.all = [Result(path, self.machines) for path in paths]

    def newest(self, kind, has=lambda result: True):
        """The newest result of each machine that has such a measurement, in the order of machines.json."""
        found = {result.slug: result for result in self.all if result.kind == kind and has(result)}
        for result in found.values():
            result.used = True
        return sorted(found.values(), key=lambda result: list(self.machines).index(result.slug))


class Table:
    """A table, then the notes of its results, the peers' versions and the files."""

    def __init__(self, *heads, notes_on=""):
        self.heads, self.lines, self.results, self.notes_on = heads, [], [], notes_on

    def add(self, result, *cells):
        if result not in self.results:
            self.results.append(result)
        self.lines.append(cells)

    def text(self):
        def line(cells):
            return "| " + " | ".join(str(cell) for cell in cells) + " |"

        notes = [f"- {result.machine}: {note.removeprefix(self.notes_on + ': ')}" for result in self.results
                 for note in result.data.get("notes", ())
                 if note.startswith(self.notes_on) and not note.endswith("not measured")]
        peers = sorted({peer for result in self.results for peer in peers_of(result)})
        sources = [f"`{result.path.name}` (commit {result.commit})" for result in self.results]
        rows = [line(self.heads), "|" + "---|" * len(self.heads), *map(line, self.lines)]
        below = [*notes, *([""] if notes else []), *([f"Peers: {', '.join(peers)}."] if peers else [])]
        return "\n".join(rows + (["", *below, "Source: " + ",\n".join(sources) + "."] if sources else []))


def peers_of(result):
    """Names and versions of the programs that dtrain is compared with, as far as the file records them."""
    if "peer" in result.data:
        return {result.data["peer"]}
    names = {"onnxruntime": "ONNX Runtime", "openvino": "OpenVINO", "torch": "PyTorch", "torch_compile": "PyTorch"}
    versions = result.data.get("versions", {}).items()
    found = {f"{names[name]} {re.match('[0-9.]+', version)[0]}" for name, version in versions if name in names}
    for model in set(re.findall(r'"(?:model": "torchvision|torch": ")[^"]*"', json.dumps(result.data))):
        found |= {f"{'PyTorch' if name == 'torch' else name} {version}"
                  for name, version in re.findall(r'(torch|torchvision)(?:": "| )(\d[\d.]*\d)', model)}
    if "open_mpi" in result.about:
        found |= {result.about["open_mpi"].split("(")[-1].replace(")", ""), f"gloo of {result.about['gloo']}"}
    return found


def in_our_terms(name):
    """A row's name in the field's terms."""
    return name.replace("processor ", "CPU ").replace("read truth", "read ground truth")


def number(text):
    """The number at the beginning of a cell, without its unit."""
    return re.match(r"[\d.]+", text)[0]


def remark(text):
    """What a cell has in parentheses."""
    return re.search(r"\((.*)\)", text)[1]


def short(value):
    """Three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def spread(values):
    return f"{short(min(values))} to {short(max(values))}"


def machines(results):
    table = Table("machine", "processor", "instruction sets", "cores", "fp32 peak, GFLOP/s", "memory, GB/s")
    peaks = {result.slug: result for result in results.newest("cpu", lambda result: "peak of fp32" in result.about)}
    for slug, machine in results.machines.items():
        if any(result.slug == slug for result in results.all):
            about = peaks[slug].about if slug in peaks else {}
            cells = (number(about[key]) if key in about else "" for key in ("peak of fp32", "peak of memory"))
            table.lines.append((machine["name"], machine["processor"], machine["vectors"], machine["cores"], *cells))
    return table


def training(results, precision):
    pattern = rf"ResNet-50 v1.5 {precision} step"
    table = Table("machine", "dtrain, images/s", "rounds", "PyTorch, images/s", "fastest form", "ratio",
                  "peak memory, MiB", "PyTorch, MiB",
                  *(("first step after, s", "PyTorch, s") if precision == "fp32" else ("dtrain bf16 to fp32",)))
    for result in results.newest("cpu", lambda result: result.group(pattern)):
        group = result.group(pattern)
        step, memory = group["first"], group["its peak memory"]
        last = (group["beside our own fp32"]["ratio"],) if precision != "fp32" else (
            number(group["process start to first step"][side]) for side in ("ours", "peer"))
        runs = result.data["runs"]["step" if precision == "fp32" else "step bf16"]
        form = re.sub(r"^torch (\S+) ", r"PyTorch \1, ", remark(step["peer"])).replace(f" {precision}", "")
        table.add(result, result.machine, number(step["ours"]), spread([run["images_per_sec"] for run in runs]),
                  number(step["peer"]), form, step["ratio"], number(memory["ours"]), number(memory["peer"]), *last)
    return table


def inference(results, precision):
    table = Table("machine", "batch", "dtrain, ms", "rounds", *(() if precision == "bf16" else ("ONNX Runtime",)),
                  "OpenVINO", *(() if precision == "int8" else ("PyTorch",)), "ratio to the fastest",
                  notes_on=precision)
    ending = "" if precision == "fp32" else f"_{precision}"
    for result in results.newest("inference", lambda result: f"{precision} 1" in result.data["ms"]):
        for batch in (1, 16):
            times = result.data["ms"][f"{precision} {batch}"]
            medians = {name.removesuffix(ending): statistics.median(values) for name, values in times.items()}
            ours = medians.pop("dtrain")
            torch = min((medians[name] for name in ("torch", "torch_compile") if name in medians), default=None)
            peers = [medians.get("onnxruntime"), medians.get("openvino"), torch]
            table.add(result, result.machine, batch, short(ours), f"{len(times['dtrain'])}: {spread(times['dtrain'])}",
                      *(short(peer) for peer in peers if peer), f"{min(medians.values()) / ours:.2f}")
    return table


def plain(kind, pattern, *heads):
    """Rows as they are stored: what, dtrain, peer, ratio."""
    def table_of(results):
        table = Table("machine", *(heads or ("measurement", "dtrain", "peer", "ratio")))
        for result in results.newest(kind, lambda result: result.rows(pattern)):
            for row in result.rows(pattern):
                peer = row["peer"].replace(" (pycocotools)", "")
                table.add(result, result.machine, in_our_terms(row["what"]), row["ours"], peer, row["ratio"])
        return table
    return table_of


def convergence(results):
    table = Table("image size", "metric", "dtrain: mean (seeds)", "torchvision: mean (seeds)", "ratio")
    for kind, size in (("convergence-resized", "256x256, resized to 224x224"), ("convergence", "256x256")):
        for result in results.newest(kind):
            for row in result.rows(""):
                table.add(result, size, row["what"], row["ours"], row["peer"], row["ratio"])
    return table


def all_reduce(results):
    table = Table("machine", "ranks, message", "dtrain, GB/s", "Open MPI", "Open MPI, yielding", "gloo",
                  "ratio to the fastest")
    for result in results.newest("allreduce"):
        cases = {}
        for row in result.rows(""):
            cases.setdefault(row["what"], []).append(row)
        for what, rows in cases.items():
            rates = [number(rows[0]["ours"]), *(number(row["peer"]) for row in rows)]
            table.add(result, result.machine, what, *rates, min(float(row["ratio"]) for row in rows))
    return table


def scaling(results):
    table = Table("machine", "ranks", "step, s", "predicted, s", "error", "exposed all-reduce, s", "predicted, s")
    for result in results.newest("scale"):
        for line in result.data["table"][2:]:
            table.add(result, result.machine, *(cell.strip() for cell in line.strip("|").split("|")))
    return table


def serving(results):
    table = Table("machine", "connections", "server", "requests/s", "p50, ms", "p99, ms", "ratio of requests/s")
    for result in results.newest("serving"):
        for connections in sorted({run["connections"] for run in result.data["runs"]}):
            found = {}
            for server in ("dtrain-serve", "FastAPI"):
                case = server, connections
                runs = [run for run in result.data["runs"] if (run["server"], run["connections"]) == case]
                found[server] = [statistics.median(run[key] for run in runs) for key in ("rate", "p50_ms", "p99_ms")]
            for server, values in found.items():
                ratio = f"{found[server][0] / found['FastAPI'][0]:.2f}" if server == "dtrain-serve" else ""
                name = result.data.get("peer", server) if server == "FastAPI" else server
                table.add(result, result.machine, connections, name, *(f"{value:.1f}" for value in values), ratio)
    return table


def onednn(results):
    table = Table("machine", "convolutions of ResNet-50", "dtype", "pass", "oneDNN {system}, ms", "oneDNN {other}, ms",
                  "speed-up")
    for result in results.newest("onednn"):
        sums = {}
        for row in result.rows(""):
            if row["ours"] != "none":
                _, _, kernel, _, dtype, direction = row["what"].split()
                total = sums.setdefault((f"{kernel[1:]}x{kernel[1:]}", dtype, direction), [0, 0])
                total[0] += float(number(row["ours"]))
                total[1] += float(number(row["peer"]))
        table.heads = [head.format(**result.data["versions"]) for head in table.heads]
        for case, (system, other) in sorted(sums.items(), key=lambda item: (item[0][1], item[0][0])):
            table.add(result, result.machine, *case, f"{system:.1f}", f"{other:.1f}", f"{system / other:.2f}")
    return table


def gpu(results):
    table = Table("machine", "measurement", "dtrain, images/s", "PyTorch, images/s", "fastest form", "ratio",
                  "device memory, MiB", "PyTorch, MiB")
    for result in results.newest("gpu"):
        steps = {name: found[0] for name, found in result.data["steps"].items()}
        for precision in ("bf16", "fp16", "fp32"):
            gpu_steps(table, result, {name: run for name, run in steps.items() if f".{precision}." in name}, precision)
        for decoder, words in (("host", "decoded by the CPU"), ("gpu", "decoded by nvJPEG")):
            for name, run in steps.items():
                if name.startswith(f"ours.records.{decoder}."):
                    table.add(result, result.machine, f"the same from TFRecords of JPEGs, bf16, {words}",
                              f"{run['images_per_sec']:.0f}", *[""] * 5)
        gpu_detection(table, result, {name: found[0] for name, found in result.data.get("detection", {}).items()})
    return table


def gpu_steps(table, result, steps, precision):
    """The captured step of one precision beside the fastest form of PyTorch."""
    ours = next((run for name, run in steps.items() if name.startswith("ours.captured.")), None)
    peers = [run for name, run in steps.items() if name.startswith("torch.")]
    if ours and peers:
        peer = max(peers, key=lambda run: run["images_per_sec"])
        form = f"{peer['layout']}, {'CUDA graph' if peer['mode'] == 'graph' else peer['mode']}"
        table.add(result, result.machine, f"ResNet-50 v1.5 step, {precision}, batch {ours['batch']}",
                  f"{ours['images_per_sec']:.0f}", f"{peer['images_per_sec']:.0f}", form,
                  f"{ours['images_per_sec'] / peer['images_per_sec']:.2f}", ours["peak_device_mib"],
                  min(run["peak_device_mib"] for run in peers))


def gpu_detection(table, result, detectors):
    ours = detectors.pop("ours.bf16", None)
    if ours and detectors:
        peer = min(detectors.values(), key=lambda run: run["seconds"])
        table.add(result, result.machine, f"Mask R-CNN step, bf16, 800x1344, batch {ours['batch']}",
                  f"{ours['batch'] / ours['seconds']:.0f}", f"{peer['batch'] / peer['seconds']:.1f}",
                  f"torchvision, {peer['layout']}", f"{peer['seconds'] / ours['seconds']:.2f}", ours["pool_peak_mib"],
                  peer["peak_device_mib"])


TABLES = {
    "machines": machines,
    "training-fp32": lambda results: training(results, "fp32"),
    "training-bf16": lambda results: training(results, "bf16"),
    "inference-fp32": lambda results: inference(results, "fp32"),
    "inference-bf16": lambda results: inference(results, "bf16"),
    "inference-int8": lambda results: inference(results, "int8"),
    "gpu": gpu,
    "detection": plain("detection", ""),
    "convergence": convergence,
    "cifar10": plain("cifar10", "", "measurement", "dtrain", "PyTorch", "ratio"),
    "serving": serving,
    "all-reduce": all_reduce,
    "ranks": plain("ranks", "", "measurement", "2 ranks x 1 thread", "1 rank x 2 threads", "ratio"),
    "scaling": scaling,
    "data": plain("cpu", r"Decode|TFRecord|images/s on real|Share of a step|Overhead"),
    "input": plain("input", r".*processor", "measurement", "class folders", "shards", "ratio"),
    "storage": plain("storage", "", "measurement", "s3://", "local files", "ratio"),
    "coco-eval": plain("coco-eval", "", "measurement", "dtrain", "pycocotools", "ratio"),
    "depthwise": plain("cpu", "Depthwise", "measurement", "dtrain", "PyTorch", "ratio"),
    "onednn": onednn,
}
