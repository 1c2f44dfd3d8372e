#!/usr/bin/env python3
"""Compares CPU training, decoding and reading with PyTorch and others, and prints a table of ratios.

scripts/bench_cpu.sh builds the benchmarks and calls this script. The programs alternate within each round; a figure is the
median over the rounds. Real data is expected in $DTRAIN_TEST_DATA (default ../shared/data); parts without data are
skipped with a notice.
"""
import argparse
import collections
import datetime
import json
import os
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

root = pathlib.Path(__file__).resolve().parent.parent
data = pathlib.Path(os.environ.get("DTRAIN_TEST_DATA", root.parent / "shared" / "data"))
TORCH = {"NCHW": [], "channels_last": ["--channels_last"]}  # with the flags that ask for it
COMPILED = {"torch.compile, channels_last": ["--channels_last", "--mode", "compile"]}
Row = collections.namedtuple("Row", "what ours peer ratio target met")


def output_of(command, **environment):
    done = subprocess.run([str(part) for part in command], cwd=root, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, env=dict(os.environ, **{key: str(value) for key, value in environment.items()}))
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: exit {done.returncode}\n{done.stderr}{done.stdout[-2000:]}")
    return done.stdout


class Comparison:
    def __init__(self, options):
        self.options = options
        self.build = root / options.build
        self.rows, self.notes, self.commands, self.raw = [], [], [], {}

    def run(self, name, command, parse, **environment):
        """Runs a command, prints it, and keeps its parsed output under `name`."""
        words = [f"{key}={value}" for key, value in environment.items()] + [str(part) for part in command]
        line = " ".join(words).replace(f"{root}/", "").replace(str(data), os.path.relpath(data, root))
        if line not in self.commands:
            self.commands.append(line)
        print(f"  {line}", flush=True)
        self.raw.setdefault(name, []).append(parse(output_of(command, **environment)))

    def median(self, name, key):
        return statistics.median(run[key] for run in self.raw[name])

    def add(self, what, ours, peer, ratio, target, met):
        self.rows.append(Row(what, ours, peer, f"{ratio:.2f}" if ratio else "", target, {True: "yes", False: "NO", None: ""}[met]))

    def skip(self, what, why):
        self.notes.append(f"skipped: {what}: {why}")
        print(f"  {self.notes[-1]}", flush=True)


def last_json(text):
    return json.loads(text.strip().splitlines()[-1])


def google_benchmark(key):
    return lambda text: {run["name"]: run[key] for run in json.loads(text)["benchmarks"]}


def torch_forms(c):
    """Available forms of the PyTorch step (layout, eager or compiled): command by name."""
    forms = {}
    for python in dict.fromkeys((c.options.python, c.options.debian_python)):
        try:
            version, compiles = output_of([python, "-c", "import torch; print(torch.__version__, hasattr(torch, 'compile'))"]).split()
        except SystemExit:
            c.skip(f"PyTorch of {python}", "not installed")
            continue
        name = f"torch {version.partition('+')[0]}"
        for form, flags in (TORCH | COMPILED if compiles == "True" and python == c.options.python else TORCH).items():
            forms[f"{name} {form}"] = [python, root / "benchmarks/peers/resnet50_peer.py"] + flags
    return forms


def train_step(c, precision="fp32"):
    o = c.options
    flags = ["--threads", o.threads, "--batch", o.batch, "--size", o.size, "--steps", o.steps]
    ours = [c.build / "benchmarks/step_bench"] + flags
    forms, step = torch_forms(c), "step"
    if precision != "fp32":
        forms = {f"{name} {precision}": command for name, command in forms.items() if "NCHW" not in name and str(o.python) == str(command[0])}
        flags, step = flags + ["--precision", precision], f"step {precision}"
    for _ in range(o.rounds):
        c.run("step", ours, last_json)
        if precision != "fp32":
            c.run(step, ours + ["--precision", precision], last_json)
        for name, command in list(forms.items()):
            try:
                c.run(name, command + flags, last_json)
            except SystemExit as failure:  # torch.compile fails on some restricted instruction sets
                del forms[name]
                c.skip(f"the training step of {name}", f"failed: {str(failure).strip().splitlines()[-1][:120]}")
    if not forms:
        return c.skip(f"the training step in {precision}", "no PyTorch found")
    best = max(forms, key=lambda name: c.median(name, "images_per_sec"))
    rate, peer_rate = c.median(step, "images_per_sec"), c.median(best, "images_per_sec")
    what, least = f"ResNet-50 v1.5 {precision} step, batch {o.batch}, {o.size} px, {o.threads} threads", 1.8 if precision == "fp32" else 1.5
    c.add(what, f"{rate:.2f} images/s", f"{peer_rate:.2f} ({best})", rate / peer_rate, f">= {least}", rate >= least * peer_rate)
    cpu, peer_cpu = c.median(step, "images_per_cpu_sec"), max(c.median(name, "images_per_cpu_sec") for name in forms)
    c.add("    the same per second of processor time", f"{cpu:.2f} images/s", f"{peer_cpu:.2f} (the best of them)",
          cpu / peer_cpu, "", None)
    peak, peer_peak = c.median(step, "peak_mib"), min(c.median(name, "peak_mib") for name in forms)
    c.add("    its peak memory", f"{peak:.0f} MiB", f"{peer_peak:.0f} (the least of them)", peak / peer_peak, "<= 1", peak <= peer_peak)
    if precision != "fp32":
        own, own_peak = c.median("step", "images_per_sec"), c.median("step", "peak_mib")
        c.add("    beside our own fp32", f"{rate:.2f} images/s", f"{own:.2f}", rate / own, ">= 1.8", rate >= 1.8 * own)
        c.add("    its peak memory beside our own fp32", f"{peak:.0f} MiB", f"{own_peak:.0f}", peak / own_peak, "<= 0.65", peak <= 0.65 * own_peak)
        return None
    start, peer_start = c.median(step, "start_to_first_step_s"), c.median(best, "start_to_first_step_s")
    c.add("    process start to first step", f"{start:.2f} s", f"{peer_start:.2f}", start / peer_start, "< 2 s", start < 2)
    faults = c.median(step, "page_faults_per_step")
    c.add("    page faults per later step", f"{faults:.0f}", f"{c.median(best, 'page_faults_per_step'):.0f}", None, "~ 0", faults < 16)


def decode(c):
    images = data / "imagenet_sample"
    if not images.is_dir():
        return c.skip("decoding", f"no {images}")
    records = c.build / "benchmarks/imagenet_sample"
    if not records.is_dir():
        with tempfile.NamedTemporaryFile("w", suffix=".txt") as labels:  # the sample has only some classes
            labels.writelines(f"{folder.name}\n" for folder in sorted((images / "train").iterdir()))
            labels.flush()
            output_of([c.build / "bin/dtrain-data", "imagenet", "--input", images, "--labels", labels.name, "--output", records,
                       "--shards", 4])

    def rates(text):
        found = {name: float(rate) for name, rate in re.findall(r"^(.+): (\d+) images/s$", text, re.M)}
        c.notes += [line for line in text.splitlines() if "not installed" in line and line not in c.notes]
        return found

    seconds = c.options.seconds
    for _ in range(c.options.rounds):
        c.run("decode in memory", [c.build / "benchmarks/decode_bench", "--benchmark_filter=augment/torchvision_train",
                                   f"--benchmark_min_time={seconds}", "--benchmark_format=json"], google_benchmark("items_per_second"),
              DTRAIN_DECODE_DIR=images / "train")
        c.run("decode from records", [c.build / "bin/dtrain-data", "throughput", records, "--threads", 1, "--seconds", seconds, "--json"],
              last_json)
        c.run("decode peers", [c.options.python, root / "benchmarks/peers/decode_peer.py", images / "train", seconds], rates)
    peers = {name: c.median("decode peers", name) for name in c.raw["decode peers"][0] if "only" not in name}
    pil = peers.pop("PIL + torchvision")
    other = max(peers, key=peers.get)
    in_memory = c.median("decode in memory", "augment/torchvision_train")
    from_records = c.median("decode from records", "images_per_sec_per_core")
    for kind, rate in (("processor time, in memory", in_memory), ("wall time, from TFRecords", from_records)):
        c.add(f"Decode, crop, flip, normalise, one core; {kind}", f"{rate:.0f} images/s", f"{pil:.0f} (PIL + torchvision)", rate / pil,
              ">= 2.6", rate >= 2.6 * pil)
        c.add("", f"{rate:.0f} images/s", f"{peers[other]:.0f} ({other})", rate / peers[other], ">= 1.25", rate >= 1.25 * peers[other])


def records(c):
    for _ in range(c.options.rounds):
        c.run("records", [c.build / "benchmarks/record_bench", "--benchmark_filter=read_",
                          f"--benchmark_min_time={min(c.options.seconds, 1)}", "--benchmark_format=json"], google_benchmark("bytes_per_second"))
    for order in ("read_sequentially", "read_at_random"):
        rate = c.median("records", order) / 1e9
        c.add(f"TFRecord read + CRC + parse, {order}", f"{rate:.2f} GB/s", "", None, ">= 3", rate >= 3)


def data_wait(c):
    program, records = c.build / "bin/dtrain-cnn-benchmarks", c.build / "benchmarks/imagenet_sample"
    if not program.exists() or not records.is_dir():
        return c.skip("waiting for data", f"no {records if program.exists() else program}")
    o = c.options
    metrics = c.build / "benchmarks/metrics.jsonl"
    metrics.unlink(missing_ok=True)

    def share(_):
        lines = [json.loads(line) for line in metrics.read_text().splitlines()][1:]
        waits = [line["data_wait_ms"] * line["images_per_sec"] / (1000 * o.batch) for line in lines]
        return {"share": statistics.median(waits), "images_per_sec": statistics.median(line["images_per_sec"] for line in lines)}

    c.run("real data", [program, "--model=resnet50_v1.5", "--data_name=imagenet", f"--data_dir={records}", "--device=cpu",
                        f"--batch_size={o.batch}", f"--image_size={o.size}", "--num_classes=1001", "--num_warmup_batches=1",
                        f"--num_batches={o.steps + 1}", "--display_every=1", f"--num_intra_threads={o.threads}",
                        f"--metrics_file={metrics}"], share)
    waiting, rate = c.median("real data", "share"), c.median("real data", "images_per_sec")
    c.add("Share of a step spent waiting for data, real JPEGs", f"{100 * waiting:.2f} %", "", None, "~ 0", waiting < 0.01)
    if "step" not in c.raw:
        return None
    synthetic = c.median("step", "images_per_sec")
    c.add("    images/s on real data against synthetic", f"{rate:.2f}", f"{synthetic:.2f} (synthetic)", rate / synthetic, ">= 0.97",
          rate >= 0.97 * synthetic)


def tape(c):
    for _ in range(c.options.rounds):
        c.run("tape", [c.build / "benchmarks/tape_bench", "--benchmark_filter=_step", "--benchmark_min_time=0.2", "--benchmark_format=json"],
              google_benchmark("per_op"))
    worst = max(c.raw["tape"][0], key=lambda op: c.median("tape", op))
    nanoseconds = 1e9 * c.median("tape", worst)
    c.add(f"Overhead per op, forward and backward ({worst})", f"{nanoseconds:.0f} ns", "", None, "< 2000", nanoseconds < 2000)


def depthwise(c):
    """Times of the depthwise layers of MobileNet v1, weighted by their count in the network."""
    o = c.options
    layers = {"112x32/k3s1": 1, "112x64/k3s2": 1, "56x128/k3s1": 1, "56x128/k3s2": 1, "28x256/k3s1": 1, "28x256/k3s2": 1,
              "14x512/k3s1": 5, "14x512/k3s2": 1, "7x1024/k3s1": 1}
    seconds = min(o.seconds, 0.2)
    peer = [o.python, root / "benchmarks/peers/depthwise_peer.py", "--threads", o.threads, "--batch", o.batch, "--seconds", seconds]
    ours = [c.build / "benchmarks/depthwise_bench", "--device", "cpu", "--batch", o.batch, f"--benchmark_min_time={seconds}",
            "--benchmark_format=json"]

    def times(text):
        return {name.removesuffix("/real_time").partition("/f32/")[2]: time for name, time in google_benchmark("time")(text).items()}

    def network(name, which):
        return sum(count * c.median(name, f"{which}/{layer}") for layer, count in layers.items())

    for _ in range(o.rounds):
        c.run("depthwise", ours, times, OMP_NUM_THREADS=o.threads)
        for name, flags in TORCH.items():
            c.run(f"depthwise {name}", peer + flags, last_json)
    for which in ("forward", "dgrad", "wgrad"):
        best = min((f"depthwise {name}" for name in TORCH), key=lambda name: network(name, which))
        time, peer_time = network("depthwise", which), network(best, which)
        c.add(f"Depthwise convolutions of MobileNet v1, {which}, batch {o.batch}", f"{1000 * time:.1f} ms",
              f"{1000 * peer_time:.1f} ({best.removeprefix('depthwise ')})", peer_time / time, ">= 1", time <= peer_time)


# --isa by name: the engine's instruction sets and oneDNN's names for them.
LOWERED = {"avx2": "AVX2", "avx512": "AVX512_CORE", "avx512_bf16": "AVX512_CORE_BF16"}


def lowered(isa):
    """Environment that restricts the kernels of the engine, PyTorch and oneDNN to an instruction set."""
    names = {"DTRAIN_CPU_ISA": isa, "ONEDNN_MAX_CPU_ISA": LOWERED[isa], "DNNL_MAX_CPU_ISA": LOWERED[isa]}
    return names | ({"ATEN_CPU_CAPABILITY": isa} if isa == "avx2" else {})


def peaks(c):
    """Peak FLOP/s (multiply-adds in registers) and memory bandwidth (sums of long arrays), measured by step_bench."""
    found = last_json(output_of([c.build / "benchmarks/step_bench", "--peaks", "--threads", c.options.threads]))
    return {"instruction set": found["isa"], "peak of fp32": f"{found['peak_gflops']:.0f} GFLOP/s, {c.options.threads} threads",
            "peak of memory": f"{found['peak_gb_per_s']:.0f} GB/s"}


def inference(options):
    """Runs compare_inference.py with the same threads and instruction set; it prints its own table."""
    subprocess.run([sys.executable, "-B", root / "benchmarks/compare_inference.py", f"--build={options.build}", f"--peers={options.python}",
                    f"--rounds={options.rounds}", f"--seconds={options.seconds}", f"--threads={options.threads}", "--precision=fp32,bf16,int8"],
                   check=True)


def name_of_results(text):
    """Validates a part of a file name, for argparse."""
    if not re.fullmatch(r"[\w.-]+", text):
        raise argparse.ArgumentTypeError(f"'{text}' is not a valid part of a file name; expected letters, digits, '-', '_' and '.'")
    return text


def machine():
    cpu = dict(line.split(":", 1) for line in output_of(["lscpu"]).splitlines() if ":" in line)
    flags = cpu["Flags"].split()
    commit = output_of(["git", "rev-parse", "--short", "HEAD"]).strip()
    changed = bool(output_of(["git", "status", "--porcelain", "--untracked-files=no"]).strip())
    return {"processor": cpu["Model name"].strip(), "cores": os.cpu_count(),
            "vectors": next(flag for flag in ("avx512f", "avx2", "sse2") if flag in flags),
            "load_average_at_start": os.getloadavg()[0], "commit": commit + (" with changes" if changed else ""),
            "date": datetime.datetime.now().astimezone().isoformat(timespec="seconds")}


def table(rows):
    heads = Row("what", "ours", "peer", "ratio", "target", "met")
    widths = [max(len(row[i]) for row in rows + [heads]) for i in range(len(heads))]
    lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in [heads] + rows]
    return "\n".join([lines[0], "-" * len(lines[0])] + lines[1:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", nargs="?", choices=["quick"], help="one short round per part")
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-cpu-NAME.json")
    parser.add_argument("--only", default="train_step,train_step_bf16,decode,records,data_wait,tape,depthwise,inference",
                        help="parts, separated by commas")
    parser.add_argument("--isa", choices=sorted(LOWERED), help="restricts both sides to this instruction set")
    parser.add_argument("--build", default="build")
    parser.add_argument("--python", default="/usr/bin/python3", help="Python with the newest torch and torchvision")
    parser.add_argument("--debian_python", default="/usr/bin/python3", help="Python with Debian's torch")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--size", type=int, default=224)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int)
    parser.add_argument("--seconds", type=float)
    options = parser.parse_args()
    quick = options.mode == "quick"
    options.rounds = options.rounds or (1 if quick else 5)
    options.steps = options.steps or (2 if quick else 5)
    options.seconds = options.seconds or (1 if quick else 4)

    os.environ.update(lowered(options.isa) if options.isa else {})
    c = Comparison(options)
    about = {**machine(), **peaks(c)}
    parts = options.only.split(",")
    for part in parts:
        if part == "inference":  # runs after this table
            continue
        {"train_step": train_step, "train_step_bf16": lambda c: train_step(c, "bf16"), "decode": decode, "records": records, "data_wait": data_wait, "tape": tape,
         "depthwise": depthwise}[part](c)
    text = "\n".join([f"{key}: {value}" for key, value in about.items()] +
                     [f"rounds: {options.rounds}, medians", "", table(c.rows), ""] + c.notes + ["commands:"] +
                     [f"  {command}" for command in c.commands]) + "\n"
    print("\n" + text)
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-cpu-{options.save}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(
            {"machine": about, "rounds": options.rounds, "rows": [row._asdict() for row in c.rows], "notes": c.notes,
             "commands": c.commands, "runs": c.raw}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")
    if "inference" in parts:
        inference(options)


if __name__ == "__main__":
    main()
