// The flags of tf_cnn_benchmarks whose values nothing here reads, and what becomes of each. Longer than usual: one
// table.
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
constexpr char kCheckpoints[] = "Checkpoints";
constexpr char kDisplay[] = "Display";
constexpr char kTensorFlow[] = "Machinery of TensorFlow";

constexpr char kNoSsd[] = "it is for SSD300, which is not among the models";
constexpr char kOrder[] = "each record is read by its number when it is due, and the order never depends on timing";
constexpr char kOneDevice[] = "a process has one device; --datasets_prefetch_buffer_size says how far input runs ahead";
constexpr char kGpuThreads[] = "one thread queues the work of the GPU";
constexpr char kOpenMp[] = "threads are those of GNU's OpenMP, which reads OMP_PROC_BIND, OMP_PLACES and the like";
constexpr char kNoGraph[] = "steps are run as they are written, and there is no graph of TensorFlow";
constexpr char kTracker[] = "kernels are queued without tracking events";
constexpr char kBuckets[] = "gradients are summed in the buckets of --bucket_mb";
constexpr char kStale[] =
    "each step of this engine waits for the gradients of all ranks, so that N ranks train as one does; updates that "
    "are "
    "asynchronous or one step old are not made";

// Types and defaults as tf_cnn_benchmarks declares them.
constexpr Unread kUnread[] = {
    {kMode, "collect_eval_results_async", "bool", "false", "score evaluations in a process of their own", kRefused,
     kNoSsd},
    {kMode, "freeze_when_forward_only", "bool", "false", "make constants of the parameters in forward_only", kNoEffect,
     "nothing updates them in forward_only"},

    {kInput, "use_datasets", "bool", "true", "tf.data as the input pipeline", kNoEffect,
     "there is one input pipeline, in which each epoch is a permutation of all records"},
    {kInput, "datasets_use_prefetch", "bool", "true", "copy batches to the device ahead of their step", kNoEffect,
     "they always are"},
    {kInput, "datasets_parallel_interleave_cycle_length", "int", "", "files read at once", kNoEffect, kOrder},
    {kInput, "datasets_parallel_interleave_prefetch", "int", "", "records read ahead per file", kNoEffect, kOrder},
    {kInput, "datasets_sloppy_parallel_interleave", "bool", "false", "let timing change the order of the records",
     kNoEffect, kOrder},
    {kInput, "multi_device_iterator_max_buffer_size", "int", "1", "batches on the host per device", kNoEffect,
     kOneDevice},
    {kInput, "use_multi_device_iterator", "bool", "true", "input of the 1.12 branch for several devices", kNoEffect,
     kOneDevice},
    {kPixels, "fuse_decode_and_crop", "bool", "true", "decode the window of the crop only", kNoEffect,
     "the pixels are the same, and no more than the window is ever decoded"},

    {kMachine, "fp16_vars", "bool", "false", "keep parameters in fp16 as well", kRefused,
     "parameters and their updates are fp32, so that small updates are not lost"},
    {kMachine, "mkl", "bool", "false", "Intel's library of kernels on a CPU", kNoEffect,
     "a CPU computes with its successor, oneDNN, in any case"},
    {kMachine, "use_numa_affinity", "bool", "false", "bind to NUMA nodes", kNoEffect,
     "numactl and mpirun --bind-to numa bind processes from outside"},
    {kMachine, "kmp_blocktime", "int", "0", "milliseconds that idle threads of Intel's OpenMP spin", kNoEffect,
     "threads are those of GNU's OpenMP; waiting ones sleep unless OMP_WAIT_POLICY=active"},
    {kMachine, "kmp_affinity", "string", "granularity=fine,verbose,compact,1,0", "cores of Intel's OpenMP threads",
     kNoEffect, kOpenMp},
    {kMachine, "kmp_settings", "int", "1", "let Intel's OpenMP print its settings", kNoEffect, kOpenMp},
    {kMachine, "trt_mode", "|FP32|FP16|INT8", "", "optimise a frozen model by TensorRT", kRefused,
     "TensorRT is not used; --precision=fp16 or bf16 is what runs faster here"},
    {kMachine, "trt_max_workspace_size_bytes", "int", "4294967296", "memory for TensorRT", kNoEffect,
     "TensorRT is not used"},

    {kTensorFlow, "winograd_nonfused", "bool", "true", "let cuDNN take Winograd's algorithms", kNoEffect,
     "cuDNN's algorithms are found by its heuristics and by measuring"},
    {kTensorFlow, "batchnorm_persistent", "bool", "true", "let cuDNN take persistent kernels for batch norm", kNoEffect,
     "batch norm has kernels of its own"},
    {kTensorFlow, "xla", "bool", "false", "compile just in time where possible", kNoEffect, kNoGraph},
    {kTensorFlow, "xla_compile", "bool", "false", "compile all just in time", kNoEffect, kNoGraph},
    {kTensorFlow, "enable_optimizations", "bool", "true", "optimise the graph", kNoEffect, kNoGraph},
    {kTensorFlow, "use_tf_layers", "bool", "true", "build models of tf.layers", kNoEffect, kNoGraph},
    {kTensorFlow, "use_resource_vars", "bool", "false", "another kind of variable", kNoEffect, kNoGraph},
    {kTensorFlow, "compute_lr_on_cpu", "bool", "false", "compute the learning rate on the host", kNoEffect,
     "it always is"},
    {kTensorFlow, "sparse_to_dense_grads", "bool", "false", "make sparse gradients dense", kNoEffect,
     "all gradients are dense"},
    {kTensorFlow, "single_l2_loss_op", "bool", "false", "one pass for the L2 term", kNoEffect, "it always is one pass"},
    {kTensorFlow, "sync_on_finish", "bool", "false", "wait for the device after the last step", kNoEffect,
     "the clock always stops after the device has finished"},
    {kTensorFlow, "use_python32_barrier", "bool", "false", "Python's barrier between threads", kNoEffect,
     "there is no Python"},
    {kTensorFlow, "gpu_thread_mode", "global|gpu_private|gpu_shared", "gpu_private", "threads that serve GPUs",
     kNoEffect, kGpuThreads},
    {kTensorFlow, "per_gpu_thread_count", "int", "0", "threads per GPU", kNoEffect, kGpuThreads},
    {kTensorFlow, "force_gpu_compatible", "bool", "false", "page-locked memory for all host tensors", kNoEffect,
     "what is copied to a GPU lies in page-locked memory in any case"},
    {kTensorFlow, "allow_growth", "bool", "", "take GPU memory as it is needed", kNoEffect, "it always is"},
    {kTensorFlow, "use_unified_memory", "bool", "", "use more memory than the GPU has", kNoEffect,
     "a model for which the GPU's memory is too small ends with an error that says what would fit"},
    {kTensorFlow, "timestamped_allocator", "bool", "false", "stamp released memory with the time", kNoEffect,
     "the order of the queues says when memory is free again"},
    {kTensorFlow, "gpu_kt_max_interval", "int", "0", "kernels between tracking events", kNoEffect, kTracker},
    {kTensorFlow, "gpu_kt_max_bytes", "int", "0", "bytes between tracking events", kNoEffect, kTracker},
    {kTensorFlow, "gpu_kt_max_pending", "int", "0", "tracking events at a time", kNoEffect, kTracker},
    {kTensorFlow, "partitioned_graph_file_prefix", "string", "", "files of the graph's parts", kRefused, kNoGraph},
    {kTensorFlow, "debugger", "string", "", "TensorFlow's debugger: cli or HOST:PORT", kRefused, kNoGraph},

    {kDistribution, "local_parameter_device", "cpu|gpu", "gpu", "where parameters live", kNoEffect,
     "they live where they are computed with"},
    {kDistribution, "agg_small_grads_max_bytes", "int", "0", "largest gradient that is packed", kNoEffect, kBuckets},
    {kDistribution, "agg_small_grads_max_group", "int", "10", "gradients of a pack", kNoEffect, kBuckets},
    {kDistribution, "allreduce_merge_scope", "int", "1", "gradients that are summed together", kNoEffect, kBuckets},
    {kDistribution, "network_topology", "dgx1|gcp_v100", "dgx1", "topology for hierarchical_copy", kNoEffect,
     "NCCL finds the links between GPUs by itself"},
    {kDistribution, "ps_hosts", "string", "", "host:port of each parameter server", kNoEffect,
     "no parameter server is needed or spoken to"},
    {kDistribution, "controller_host", "string", "", "host:port of the controller", kNoEffect,
     "no controller is needed or spoken to"},
    {kDistribution, "server_protocol", "string", "grpc", "protocol between servers", kNoEffect,
     "how the ranks were started chooses the transport: MPI, TCP or NCCL"},
    {kDistribution, "variable_consistency", "strong|relaxed", "strong", "relaxed: parameters of one step before",
     kRefused, kStale},
    {kDistribution, "staged_vars", "bool", "false", "parameters of one step before", kRefused, kStale},
    {kDistribution, "cross_replica_sync", "bool", "true", "false: asynchronous updates", kRefused, kStale},

    {kCheckpoints, "backbone_model_path", "string", "", "weights of SSD300's backbone", kRefused, kNoSsd},
    {kDisplay, "flush_stdout", "bool", "true", "an old flag: write each line at once", kNoEffect,
     "each line always is"},
};

}  // namespace

void declare_unread(cli::FlagSet& flags) {
  for (const Unread& flag : kUnread) {
    flags.group(flag.group);
    (flags.add_unread(flag.name, flag.type, flag.initial, flag.meaning).*flag.fate)(flag.reason);
  }
}

}  // namespace dtrain::cnn_benchmarks
