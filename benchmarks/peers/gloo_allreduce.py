#!/usr/bin/env python3
"""gloo counterpart of dtrain-allreduce-benchmark, through torch.distributed.

mpirun ... gloo_allreduce.py SIZES ITERATIONS WARMUP STORE. SIZES are in bytes, separated by commas; STORE is a new file for
the rendezvous. Rank 0 prints a line of JSON: seconds by size, the median over the iterations of the slowest rank's time.
"""
import json
import os
import sys
import time

import torch
import torch.distributed

sizes, (iterations, warmup) = [int(size) for size in sys.argv[1].split(",")], map(int, sys.argv[2:4])
rank, ranks = int(os.environ["OMPI_COMM_WORLD_RANK"]), int(os.environ["OMPI_COMM_WORLD_SIZE"])
torch.set_num_threads(1)
torch.distributed.init_process_group("gloo", init_method=f"file://{os.path.abspath(sys.argv[4])}", rank=rank, world_size=ranks)


def measure(size):
    terms = torch.full((size // 4,), float(rank))
    sums, times = torch.empty_like(terms), []
    for i in range(warmup + iterations):
        sums.copy_(terms)
        torch.distributed.barrier()
        begin = time.perf_counter()
        torch.distributed.all_reduce(sums)
        if i >= warmup:
            times.append(time.perf_counter() - begin)
    assert sums[0] == ranks * (ranks - 1) / 2
    slowest = torch.tensor(times, dtype=torch.float64)
    torch.distributed.all_reduce(slowest, torch.distributed.ReduceOp.MAX)
    return slowest.sort().values[len(times) // 2].item()


seconds = {str(size): measure(size) for size in sizes}
if rank == 0:
    print(json.dumps(seconds))
torch.distributed.destroy_process_group()
