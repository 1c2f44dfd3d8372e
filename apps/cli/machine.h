// Device, precision and threads of a program.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "dtrain/autograd/parameters.h"
#include "dtrain/core/context.h"

namespace dtrain::cli {

struct Machine {
  bool gpu = false;
  int index = 0;                 // which GPU
  DType precision = DType::f32;  // of activations and gradients; f32 with int8 layers; f16 needs a GPU
  bool tf32 = false, deterministic = false;
  double memory_share = 0;  // the fraction of the GPU's memory that may be used; 0: all free memory
  size_t memory_limit = 0;  // the same limit in bytes, if not 0
  bool trial = false;       // for a few calls only: no autotuning of GPU algorithms
  int threads = 0;          // compute threads of a CPU; 0: OMP_NUM_THREADS or one per core

  const char* device() const { return gpu ? "gpu" : "cpu"; }
  std::unique_ptr<Context> make_context() const;
  // Input layout of models on that device: pixels are padded to 16 bytes on a GPU.
  ComputeOptions compute() const;
};

// Threads and instruction set of a CPU context, for logs: "2 threads, avx2".
std::string describe(const Context&);

// Whether the user set the number of compute threads: by a non-zero flag or by OMP_NUM_THREADS.
bool threads_are_chosen(int64_t threads);

// GPU index of a rank, from its local rank. If a launcher shows each rank a single GPU, its index is 0.
int gpu_of_rank(int local_rank);
// Reason why GPU `index` cannot be used; empty if it can.
std::string why_no_gpu(int index = 0);

// Cores available to this process, and cores of the machine; a container's CPU quota counts as the machine.
struct Cores {
  int usable = 1, online = 1;
  int quota = 0;  // CPU quota of this host or container in cores; 0: no limit

  // Cores for one of `ranks` processes of this host, `sharing` of which, including this one, share its affinity mask.
  int share(int ranks, int sharing) const;
};
Cores available_cores();

// Core sets for `ranks` child processes, by split_cores(), near the GPU of each if `gpu`. Empty if they are not to be
// bound: `threads` would not fit, or OpenMP's affinity variables are set.
std::vector<std::vector<int>> cores_for_ranks(int ranks, bool gpu, int64_t threads);

// Parses "fp32", "bf16" or "fp16"; anything else is fp32.
DType precision_of(const std::string& name);
const char* name_of_precision(DType precision);

}  // namespace dtrain::cli
