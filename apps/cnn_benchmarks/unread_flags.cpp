// Flags of tf_cnn_benchmarks that are accepted but not read, with their support. Longer than usual: one table.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {
namespace {

struct Unread {
  const char *group, *name, *type, *initial, *meaning;
  cli::Flag& (cli::Flag::*fate)(std::string reason);
  const char* reason;
};

constexpr auto kNoEffect = &cli::Flag::no_effect, kRefused = &cli::Flag::refused;

constexpr char kMode[] = "Mode and evaluation";
constexpr char kInput[] = "Input";
constexpr char kPixels[] = "Preprocessing";
constexpr char kMachine[] = "Device, precision, threads";
constexpr char kDistribution[] = "Distribution in tf_cnn_benchmarks' terms";
constexpr char kDisplay[] = "Display";
constexpr char kTensorFlow[] = "TensorFlow internals";

constexpr char kOrder[] = "records are read by random access in a deterministic order";
constexpr char kOneDevice[] = "a process drives one device; --datasets_prefetch_buffer_size sets the prefetch depth";
constexpr char kGpuThreads[] = "one thread launches all kernels of a GPU";
constexpr char kOpenMp[] = "threads are GNU OpenMP's, which reads OMP_PROC_BIND and OMP_PLACES";
constexpr char kNoGraph[] = "there is no TensorFlow graph";
constexpr char kTracker[] = "kernels are launched without tracking events";
constexpr char kBuckets[] = "gradients are all-reduced in buckets of --bucket_mb";
constexpr char kStale[] =
    "training is synchronous data-parallel SGD; asynchronous and stale updates are not implemented";

// Types and defaults as tf_cnn_benchmarks declares them.
constexpr Unread kUnread[] = {
    {kMode, "freeze_when_forward_only", "bool", "false", "freeze parameters into constants with forward_only",
     kNoEffect, "forward_only never updates parameters"},

    {kInput, "use_datasets", "bool", "true", "tf.data as the input pipeline", kNoEffect,
     "there is a single input pipeline; each epoch is a permutation of all records"},
    {kInput, "datasets_use_prefetch", "bool", "true", "copy batches to the device ahead of their step", kNoEffect,
     "prefetching is always on"},
    {kInput, "datasets_parallel_interleave_cycle_length", "int", "", "files to read concurrently", kNoEffect, kOrder},
    {kInput, "datasets_parallel_interleave_prefetch", "int", "", "records to prefetch per file", kNoEffect, kOrder},
    {kInput, "datasets_sloppy_parallel_interleave", "bool", "false", "allow a non-deterministic order of records",
     kNoEffect, kOrder},
    {kInput, "multi_device_iterator_max_buffer_size", "int", "1", "host batches to prefetch per device", kNoEffect,
     kOneDevice},
    {kInput, "use_multi_device_iterator", "bool", "true", "multi-device iterator of the 1.12 branch", kNoEffect,
     kOneDevice},
    {kPixels, "fuse_decode_and_crop", "bool", "true", "decode only the crop window", kNoEffect,
     "only the crop window is ever decoded; pixels are the same"},

    {kMachine, "fp16_vars", "bool", "false", "keep parameters in fp16", kRefused,
     "master parameters and updates are fp32, so that small updates are not lost"},
    {kMachine, "mkl", "bool", "false", "use Intel MKL on a CPU", kNoEffect,
     "CPU kernels are our own, with oneDNN as fallback"},
    {kMachine, "use_numa_affinity", "bool", "false", "bind to NUMA nodes", kNoEffect,
     "bind processes with numactl or mpirun --bind-to numa"},
    {kMachine, "kmp_blocktime", "int", "0", "milliseconds that idle threads of Intel's OpenMP spin", kNoEffect,
     "threads are GNU OpenMP's; waiting threads sleep unless OMP_WAIT_POLICY=active"},
    {kMachine, "kmp_affinity", "string", "granularity=fine,verbose,compact,1,0", "cores of Intel's OpenMP threads",
     kNoEffect, kOpenMp},
    {kMachine, "kmp_settings", "int", "1", "let Intel's OpenMP print its settings", kNoEffect, kOpenMp},
    {kMachine, "trt_mode", "|FP32|FP16|INT8", "", "optimise a frozen model with TensorRT", kRefused,
     "TensorRT is not used; for speed use --precision=fp16 or bf16"},
    {kMachine, "trt_max_workspace_size_bytes", "int", "4294967296", "memory for TensorRT", kNoEffect,
     "TensorRT is not used"},

    {kTensorFlow, "winograd_nonfused", "bool", "true", "allow cuDNN's Winograd algorithms", kNoEffect,
     "cuDNN algorithms are chosen by heuristics and autotuning"},
    {kTensorFlow, "batchnorm_persistent", "bool", "true", "allow cuDNN's persistent batch-norm kernels", kNoEffect,
     "batch norm has its own kernels"},
    {kTensorFlow, "xla", "bool", "false", "enable XLA's JIT compiler", kNoEffect, kNoGraph},
    {kTensorFlow, "xla_compile", "bool", "false", "compile the model with XLA", kNoEffect, kNoGraph},
    {kTensorFlow, "enable_optimizations", "bool", "true", "enable graph optimisations", kNoEffect, kNoGraph},
    {kTensorFlow, "use_tf_layers", "bool", "true", "build models from tf.layers", kNoEffect, kNoGraph},
    {kTensorFlow, "use_resource_vars", "bool", "false", "use resource variables", kNoEffect, kNoGraph},
    {kTensorFlow, "compute_lr_on_cpu", "bool", "false", "compute the learning rate on the host", kNoEffect,
     "always the case"},
    {kTensorFlow, "sparse_to_dense_grads", "bool", "false", "convert sparse gradients to dense ones", kNoEffect,
     "all gradients are dense"},
    {kTensorFlow, "single_l2_loss_op", "bool", "false", "compute the L2 term in one op", kNoEffect,
     "the L2 term is always one pass"},
    {kTensorFlow, "sync_on_finish", "bool", "false", "synchronise the device after the last step", kNoEffect,
     "timing always includes device synchronisation"},
    {kTensorFlow, "use_python32_barrier", "bool", "false", "use Python's barrier between threads", kNoEffect,
     "there is no Python"},
    {kTensorFlow, "gpu_thread_mode", "global|gpu_private|gpu_shared", "gpu_private",
     "thread pool for GPU kernel launches", kNoEffect, kGpuThreads},
    {kTensorFlow, "per_gpu_thread_count", "int", "0", "threads per GPU", kNoEffect, kGpuThreads},
    {kTensorFlow, "force_gpu_compatible", "bool", "false", "pinned memory for all host tensors", kNoEffect,
     "host buffers of copies to a GPU are always pinned"},
    {kTensorFlow, "allow_growth", "bool", "", "allocate GPU memory on demand", kNoEffect, "always the case"},
    {kTensorFlow, "use_unified_memory", "bool", "", "oversubscribe GPU memory", kNoEffect,
     "out-of-memory errors name a batch size that would fit"},
    {kTensorFlow, "timestamped_allocator", "bool", "false", "timestamp freed memory", kNoEffect,
     "memory is reused in stream order"},
    {kTensorFlow, "gpu_kt_max_interval", "int", "0", "kernels between tracking events", kNoEffect, kTracker},
    {kTensorFlow, "gpu_kt_max_bytes", "int", "0", "bytes between tracking events", kNoEffect, kTracker},
    {kTensorFlow, "gpu_kt_max_pending", "int", "0", "outstanding tracking events", kNoEffect, kTracker},
    {kTensorFlow, "partitioned_graph_file_prefix", "string", "", "prefix of files with the partitioned graphs",
     kRefused, kNoGraph},
    {kTensorFlow, "debugger", "string", "", "TensorFlow's debugger: cli or HOST:PORT", kRefused, kNoGraph},

    {kDistribution, "local_parameter_device", "cpu|gpu", "gpu", "device that holds the parameters", kNoEffect,
     "parameters are on the compute device"},
    {kDistribution, "agg_small_grads_max_bytes", "int", "0", "largest gradient to pack", kNoEffect, kBuckets},
    {kDistribution, "agg_small_grads_max_group", "int", "10", "gradients per pack", kNoEffect, kBuckets},
    {kDistribution, "allreduce_merge_scope", "int", "1", "gradients per all-reduce", kNoEffect, kBuckets},
    {kDistribution, "network_topology", "dgx1|gcp_v100", "dgx1", "topology for hierarchical_copy", kNoEffect,
     "NCCL finds the links between GPUs by itself"},
    {kDistribution, "ps_hosts", "string", "", "host:port of each parameter server", kNoEffect,
     "there are no parameter servers"},
    {kDistribution, "controller_host", "string", "", "host:port of the controller", kNoEffect,
     "there is no controller"},
    {kDistribution, "server_protocol", "string", "grpc", "protocol between servers", kNoEffect,
     "the launcher and the device determine the transport: MPI, TCP or NCCL"},
    {kDistribution, "variable_consistency", "strong|relaxed", "strong", "relaxed: use parameters one step old",
     kRefused, kStale},
    {kDistribution, "staged_vars", "bool", "false", "use parameters one step old", kRefused, kStale},
    {kDistribution, "cross_replica_sync", "bool", "true", "false: asynchronous updates", kRefused, kStale},

    {kDisplay, "flush_stdout", "bool", "true", "flush standard output after each line; deprecated", kNoEffect,
     "each line is always flushed"},
};

}  // namespace

void declare_unread(cli::FlagSet& flags) {
  for (const Unread& flag : kUnread) {
    flags.group(flag.group);
    (flags.add_unread(flag.name, flag.type, flag.initial, flag.meaning).*flag.fate)(flag.reason);
  }
}

}  // namespace dtrain::cnn_benchmarks
