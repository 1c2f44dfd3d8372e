#!/usr/bin/env python3
"""Compares the convolutions of ResNet-50 in the system's oneDNN and in another one: milliseconds, medians, ratio.

    python3 -m venv build/onednn && build/onednn/bin/pip install onednn-devel
    benchmarks/compare_onednn.py --other build/onednn --save NAME

--other is a prefix with include/ and lib/. oneDNN from PyPI uses SYCL with the threads of its OpenCL runtime; the system's
uses OpenMP. benchmarks/peers/onednn_peer.cpp is compiled with each. --isa restricts both. Nothing else should run on the
machine.

Exit codes: 0 done, 1 usage or a program failed.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

from compare_cpu import Row, machine, name_of_results, root, table

LOWERED = {"avx2": {"ONEDNN_MAX_CPU_ISA": "AVX2", "DNNL_MAX_CPU_ISA": "AVX2"}}


def compiled(target, flags):
    command = ["g++", "-std=c++20", "-O2", root / "benchmarks/peers/onednn_peer.cpp", "-o", target, *flags, "-ldnnl"]
    if subprocess.run([str(part) for part in command]).returncode != 0:
        sys.exit("onednn_peer.cpp: does not compile with this oneDNN")
    return target


def times(program, options, **environment):
    settings = dict(os.environ, OMP_NUM_THREADS=str(options.threads), ONEDNN_VERBOSE="0", **LOWERED.get(options.isa, {}), **environment)
    done = subprocess.run([str(program), str(options.calls)], env=settings, text=True, stdout=subprocess.PIPE)
    if done.returncode != 0:
        sys.exit(f"{program}: exit {done.returncode}")
    return json.loads(done.stdout.strip().splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--other", type=pathlib.Path, required=True, help="prefix of the other oneDNN")
    parser.add_argument("--isa", choices=sorted(LOWERED))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=7, help="per shape and round")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--save", metavar="NAME", type=name_of_results,
                        help="write benchmarks/results/<date>-onednn-NAME.json")
    options = parser.parse_args()
    lib = options.other.resolve() / "lib"
    opencl = {"OCL_ICD_FILENAMES": str(lib / "libintelocl.so")} if (lib / "libintelocl.so").exists() else {}
    found = {"system": [], "other": []}
    with tempfile.TemporaryDirectory() as folder:
        system = compiled(pathlib.Path(folder) / "system", [])
        other = compiled(pathlib.Path(folder) / "other", [f"-I{options.other / 'include'}", f"-L{lib}", f"-Wl,-rpath,{lib}",
                                                          "-Wl,--allow-shlib-undefined"])
        versions = [subprocess.run([program, "--version"], text=True, stdout=subprocess.PIPE, check=True, env=settings).stdout.strip()
                    for program, settings in ((system, None), (other, dict(os.environ, LD_LIBRARY_PATH=str(lib), **opencl)))]
        for _ in range(options.rounds):
            found["system"].append(times(system, options))
            found["other"].append(times(other, options, LD_LIBRARY_PATH=str(lib), **opencl))
    rows = []
    for case in found["other"][0]:
        ours, theirs = (statistics.median(run[case] for run in found[side] if case in run) if case in found[side][0] else None
                        for side in ("system", "other"))
        rows.append(Row(case, f"{ours:.2f} ms" if ours else "none", f"{theirs:.2f} ms", f"{ours / theirs:.2f}" if ours else "", "", ""))
    about = machine()
    text = "\n".join([f"{key}: {value}" for key, value in about.items()] +
                     [f"instruction set: {options.isa or 'the best'}", f"threads: {options.threads}; rounds: {options.rounds}, medians",
                      f"ours: system oneDNN {versions[0]}; peer: other oneDNN {versions[1]}; ratio above 1: the other one is faster", "", table(rows)]) + "\n"
    print(text)
    if options.save:
        path = root / "benchmarks/results" / f"{about['date'][:10]}-onednn-{options.save}.json"
        path.write_text(json.dumps({"machine": {**about, "instruction set": options.isa or "the best"}, "rounds": options.rounds,
                                    "threads": options.threads, "versions": {"system": versions[0], "other": versions[1]},
                                    "rows": [row._asdict() for row in rows]}, indent=1) + "\n")
        print(f"saved as {path.relative_to(root)}")


if __name__ == "__main__":
    main()
