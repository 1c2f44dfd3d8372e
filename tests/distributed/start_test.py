"""Start of ranks: different settings end the job, Horovod's variables are adopted, and a resumed run keeps its order of
additions. ctest runs each test_* function on its own, with the folder of the programs in DTRAIN_BIN_DIR.
"""

import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

from cluster import living_ranks, two_programs, wait_until

WRAPPER = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "dtrain-mpirun"
PROGRAMS = pathlib.Path(os.environ["DTRAIN_BIN_DIR"])
MPIRUN = ["mpirun", "--allow-run-as-root", "--oversubscribe", "--bind-to", "none"]
MODEL = ["--model=lenet", "--image_size=28", "--num_classes=11", "--device=cpu", "--num_intra_threads=1",
         "--variable_update=horovod", "--num_warmup_batches=0", "--display_every=1", "--batch_size=4",
         "--init_learning_rate=0.01"]


def run(command, variables=None):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env=dict(os.environ, OMP_WAIT_POLICY="passive", **(variables or {})), check=False)
    return done.returncode, done.stdout


def draw(folder, seed=1):
    code, output = run([PROGRAMS / "dtrain-data", "synthesize", f"--output={folder}", "--train=16", "--validation=4",
                        "--image_size=28", "--shards=1", f"--seed={seed}"])
    expect(code == 0, output)
    return f"--data_dir={folder}"


def program(*flags):
    return [PROGRAMS / "dtrain-cnn-benchmarks", *MODEL, *flags]


def train(*flags, variables=None):
    code, output = run([*MPIRUN, "-np", 2, *program(*flags)], variables)
    expect(code == 0, f"exit {code}:\n{output}")
    return output


def train_unlike(first, second):
    """Two ranks with different flags, which must exit with code 1."""
    code, output = run([*MPIRUN, *two_programs(program(*first), program(*second))])
    expect(code == 1, f"exit {code}:\n{output}")
    return output


def expect(condition, what):
    if not condition:
        raise AssertionError(what)


def expect_in(part, text):
    expect(part in text, f"'{part}' is missing in:\n{text}")


def cores_in(table):
    """The cores column of the rank table."""
    rows = [line.split() for line in table.splitlines() if " CPU " in line]
    return [row[4] for row in rows if row[0].isdigit()]


def test_unbound_ranks_divide_the_cores(_):
    if len(os.sched_getaffinity(0)) < 2:
        print("SKIPPED: one core cannot be shared out")
        return
    bound = cores_in(train("--num_batches=1"))
    expect(len(bound) == 2 and bound[0] != bound[1], f"cores {bound}")
    unbound = cores_in(train("--num_batches=1", variables={"OMP_PROC_BIND": "false"}))
    expect(len(unbound) == 2 and unbound[0] == unbound[1], f"cores {unbound}")


def checkpoint(train_dir, step):
    return pathlib.Path(train_dir) / "checkpoints" / f"step-{step}"


def settings_of(train_dir, step):
    return json.loads((checkpoint(train_dir, step) / "state.json").read_text())["settings"]


def test_different_flags_end_the_job(_):
    output = train_unlike(["--num_batches=2"], ["--num_batches=2", "--momentum=0.5"])
    expect_in("the ranks have different settings: --momentum is '0.9' on rank 0 on ", output)
    expect_in(", and '0.5' on rank 1 on ", output)


def test_different_data_end_the_job(folder):
    one, other = draw(f"{folder}/one"), draw(f"{folder}/other", seed=2)
    output = train_unlike([one, "--num_batches=2"], [other, "--num_batches=2"])
    expect_in("the ranks have different settings: the training data set is '", output)


def crc32c(data):
    crc = 0xffffffff
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82f63b78 if crc & 1 else 0)
    return crc ^ 0xffffffff


def change_first_record(path):
    """Flips a bit of the first record and updates its checksum: a valid file of equal size with different content."""
    data = bytearray(path.read_bytes())
    end = 12 + int.from_bytes(data[:8], "little")
    data[end - 1] ^= 1
    crc = crc32c(data[12:end])
    masked = ((crc >> 15 | crc << 17) + 0xa282ead8) & 0xffffffff
    data[end:end + 4] = masked.to_bytes(4, "little")
    path.write_bytes(data)


def test_one_different_file_ends_the_job(folder):
    for name in ("one", "other"):
        code, output = run([PROGRAMS / "dtrain-data", "synthesize", f"--output={folder}/{name}", "--train=200",
                            "--validation=4", "--image_size=16", "--shards=100"])
        expect(code == 0, output)
    change_first_record(pathlib.Path(f"{folder}/other/train-00017-of-00100"))
    output = train_unlike([f"--data_dir={folder}/one", "--num_batches=2"], [f"--data_dir={folder}/other", "--num_batches=2"])
    expect_in("the ranks have different settings: the training data set is 'train-00017-of-00100: ", output)
    expect_in(" on rank 0 on ", output)
    expect_in(" and 'train-00017-of-00100: ", output)
    expect("train-00016" not in output and "train-00018" not in output, output)


def test_flags_of_one_rank_may_differ(folder):
    same = draw(f"{folder}/data")
    second = program(same, "--num_batches=2", "--num_inter_threads=2", "--gpu_indices=3,4")
    code, output = run([*MPIRUN, *two_programs(program(same, "--num_batches=2"), second)])
    expect(code == 0, f"exit {code}:\n{output}")


def test_ranks_and_collectives_are_logged(folder):
    output = train("--num_batches=4", f"--metrics_file={folder}/metrics")
    begin, table, end = (output.index(line) for line in ("Initializing graph\n", "Ranks:       2 on 1 host\n",
                                                         "Running warm up\n"))
    expect(begin < table < end, output)
    expect(output.count("  CPU  ") == 2 and output.count("Ranks:  ") == 1, output)
    expect_in(" of the step): doubling to 64 KiB, then direct over MPI, f32 on the wire\n", output)
    lines = [json.loads(line) for line in pathlib.Path(f"{folder}/metrics").read_text().splitlines()]
    expect("all_reduce_ms" not in lines[0] and lines[1]["all_reduce_ms"] > 0, lines)
    expect(lines[1]["all_reduce_bytes"] > 4e6 and lines[1]["all_reduce_exposed_ms"] >= 0, lines)


def test_horovod_variables_are_adopted(_):
    output = train("--num_batches=2", "--last_bucket_mb=0.25",
                   variables={"HOROVOD_FUSION_THRESHOLD": "1048576", "HOROVOD_CYCLE_TIME": "0.5"})
    expect_in("note: HOROVOD_FUSION_THRESHOLD: taken as --bucket_mb=1\n", output)
    expect_in("note: HOROVOD_CYCLE_TIME: the order of messages is fixed; there is no negotiation\n", output)
    code, output = run(program("--num_batches=2"), {"HOROVOD_SIZE": "2", "HOROVOD_RANK": "0"})
    expect(code == 1, output)
    expect_in("use horovodrun --mpi or mpirun", output)


def spans_of(path):
    """Names of the spans, by lane name."""
    events = json.loads(pathlib.Path(path).read_text())
    lanes = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name"}
    spans = {}
    for event in events:
        if event["ph"] == "X":
            spans.setdefault(lanes[event["tid"]], []).append(event["name"])
    return spans


def test_all_reduces_have_timeline_lanes(folder):
    output = train("--num_batches=3", f"--trace_file={folder}/trace", "--bucket_mb=1", "--last_bucket_mb=0.25",
                   variables={"HOROVOD_TIMELINE": f"{folder}/timeline"})
    expect_in(f"note: HOROVOD_TIMELINE: taken as --timeline={folder}/timeline\n", output)
    expect_in(f"Dumping trace to {folder}/trace\n", output)
    traced, whole = spans_of(f"{folder}/trace"), spans_of(f"{folder}/timeline")
    buckets = [lane for lane in whole if lane.startswith("all-reduce: bucket ")]
    expect(len(buckets) > 1, whole)
    for lane in buckets:
        name = lane.removeprefix("all-reduce: ")
        expect(traced[lane] == ["queued", name], traced)
        expect(whole[lane] == ["queued", name] * 3, whole)
    expect(whole["steps"] == ["step 1", "step 2", "step 3"], whole)
    expect("reduce" in traced["compute"], traced)


def test_resumed_run_keeps_the_all_reduce_order(folder):
    data = draw(f"{folder}/data")
    unusual = ["--bucket_mb=0.01", "--last_bucket_mb=0.5", "--wire_precision=bf16", "--all_reduce_algorithm=ring"]
    train(data, "--num_batches=4", f"--train_dir={folder}/whole", *unusual)
    train(data, "--num_batches=2", f"--train_dir={folder}/halves", *unusual)
    output = train(data, "--num_batches=4", f"--train_dir={folder}/halves")
    expect_in("ring over MPI, bf16 on the wire", output)
    for name in ("model.safetensors", "state.json"):
        whole, halves = ((checkpoint(f"{folder}/{run_dir}", 4) / name).read_bytes() for run_dir in ("whole", "halves"))
        expect(whole == halves, f"{name} is not the same")
    output = train(data, "--num_batches=6", "--wire_precision=fp32", f"--train_dir={folder}/halves")
    expect_in("note: wire of gradients: fp32 was requested, but the checkpoint was trained with bf16: the order of",
              output)
    expect_in("ring over MPI, f32 on the wire", output)


def test_bucket_sizes_are_tuned(folder):
    data = draw(f"{folder}/data")
    # 6 MiB of gradients: 0.5, 1, 4 and 10 MiB are tried, three steps each.
    output = train(data, "--autotune_buckets", "--bucket_mb=0.5", "--num_batches=13", f"--train_dir={folder}/run",
                   "--save_model_steps=5")
    expect_in(" MiB are the fastest and are used from here on", output)
    expect("bucket bytes" not in settings_of(f"{folder}/run", 10), settings_of(f"{folder}/run", 10))
    tuned = int(settings_of(f"{folder}/run", 13)["bucket bytes"])
    expect(tuned in (1 << 19, 1 << 20, 4 << 20, 10 << 20), tuned)
    output = train(data, "--autotune_buckets", "--bucket_mb=0.5", "--num_batches=14", f"--train_dir={folder}/run")
    expect_in(f"note: gradient buckets of {tuned} bytes are adopted from the checkpoint", output)


def test_a_killed_wrapper_leaves_no_rank(folder):
    data, mark = draw(f"{folder}/data"), f"DTRAIN_TEST_JOB={os.getpid()}"
    wrapper = subprocess.Popen([WRAPPER, *MPIRUN[1:], "-np", "2", *program(data, "--num_batches=1000000")],
                               stdout=subprocess.PIPE, env=dict([*os.environ.items(), mark.split("=")]))
    wait_until(lambda: b"images/sec: " in wrapper.stdout.readline(), "a step")
    wrapper.kill()
    wrapper.wait()
    wait_until(lambda: not living_ranks(mark), "an end of all ranks")


def start_with_room_for(threads):
    """Two ranks with thread stacks of 2 GB each; memory of program and MPI is small."""
    stack = 2_000_000  # KiB
    limits = f'ulimit -s {stack}; ulimit -v {600_000 + threads * stack}; exec "$@"'
    return run([*MPIRUN, "-np", 2, "bash", "-c", limits, "rank", *program("--num_batches=1")])


def test_little_address_space(_):
    if "DTRAIN_SANITIZED" in os.environ:
        print("SKIPPED: address space that AddressSanitizer leaves", flush=True)
        sys.exit(77)
    with concurrent.futures.ThreadPoolExecutor() as starts:
        for threads, (code, output) in enumerate(starts.map(start_with_room_for, range(3))):
            expect(code == 6 and re.search("^error: rank [01] on .*: cannot start another thread", output, re.M)
                   and "terminate called" not in output, f"room for {threads} threads: exit {code}:\n{output}")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        globals()[sys.argv[1]](scratch)
