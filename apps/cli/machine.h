// The device that a program computes on, and how.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "libdtrain/autograd/parameters.h"
#include "libdtrain/core/context.h"

namespace dtrain::cli {

struct Machine {
  bool gpu = false;
  int index = 0;                 // which GPU
  DType precision = DType::f32;  // of activations and gradients, f32 where layers are in int8; f16 needs a GPU
  bool tf32 = false, deterministic = false;
  double memory_share = 0;  // the fraction of the GPU's memory that may be used; 0: all free memory
  size_t memory_limit = 0;  // the same in bytes, if not 0
  bool trial = false;       // for a few calls only: a GPU's algorithms are neither measured nor kept
  int threads = 0;          // compute threads of a CPU; 0: OMP_NUM_THREADS or one per core

  const char* device() const { return gpu ? "gpu" : "cpu"; }
  std::unique_ptr<Context> make_context() const;
  // What models read of their parameters there. A pixel of 16 bytes suits a GPU.
  ComputeOptions compute() const;
};

// What a CPU context computes with, for logs: "2 threads, avx2".
std::string describe(const Context&);

// The user said how many compute threads there shall be: as a number that is not 0, or in OMP_NUM_THREADS.
bool threads_are_chosen(int64_t threads);

// The number of the GPU that a rank takes by its number among the ranks of its host. A launcher may have left each rank
// one GPU to see, which is number 0 then.
int gpu_of_rank(int local_rank);
// Why GPU `index` cannot be used; empty where it can.
std::string why_no_gpu(int index = 0);

// Cores that this process may run on, of those of the machine; a container with a quota is a machine of so many.
struct Cores {
  int usable = 1, online = 1;
  int quota = 0;  // what the processes of this host, or container, may use together; 0: no limit

  // Those of one of `ranks` processes of this host, `sharing` of which, with this one, may run on its cores.
  int share(int ranks, int sharing) const;
};
Cores available_cores();

// Cores for each of `ranks` processes that this one starts, by split_cores(), near the GPU of each where `gpu`; nothing
// where they are not to be bound: `threads` were asked for that would not fit, or OpenMP has been told where they run.
std::vector<std::vector<int>> cores_for_ranks(int ranks, bool gpu, int64_t threads);

// "fp32", "bf16" or "fp16"; anything else is fp32.
DType precision_of(const std::string& name);
const char* name_of_precision(DType precision);

}  // namespace dtrain::cli
