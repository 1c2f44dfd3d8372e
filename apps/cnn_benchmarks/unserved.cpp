// The flags of tf_cnn_benchmarks that this version does not serve, with their defaults. Longer than usual: one table.
#include "apps/cnn_benchmarks/flags.h"

namespace dtrain::cnn_benchmarks {
namespace {

struct Unserved {
  const char *group, *name, *type, *initial, *meaning;
};

constexpr char kModel[] = "Model, mode, size";
constexpr char kEvaluation[] = "Evaluation";
constexpr char kData[] = "Data";
constexpr char kMachine[] = "Precision, kernels, threads";
constexpr char kOutput[] = "Output";

// Types and defaults as tf_cnn_benchmarks declares them. Those that switch between ways of TensorFlow to do the same
// thing are here too: a value other than the default asks for something that does not exist here.
constexpr Unserved kUnserved[] = {
    {kModel, "batch_group_size", "int", "1", "batches per input step"},

    {kEvaluation, "eval_dir", "string", "/tmp/tf_cnn_benchmarks/eval", "folder of evaluation events"},
    {kEvaluation, "collect_eval_results_async", "bool", "false", "SSD only"},

    {kData, "input_preprocessor", "string", "default", "official_models_imagenet"},
    {kData, "use_datasets", "bool", "true", "the RecordInput path"},
    {kData, "datasets_use_prefetch", "bool", "true", "input without prefetching"},
    {kData, "datasets_use_caching", "bool", "false", "compressed records in memory"},
    {kData, "datasets_parallel_interleave_cycle_length", "int", "10",
     "files read at once; the order never depends on it"},
    {kData, "datasets_parallel_interleave_prefetch", "int", "", "records read ahead per file"},
    {kData, "datasets_sloppy_parallel_interleave", "bool", "false", "order of samples by timing"},
    {kData, "datasets_repeat_cached_sample", "bool", "false", "one record for ever"},
    {kData, "multi_device_iterator_max_buffer_size", "int", "1", "batches per device"},
    {kData, "use_multi_device_iterator", "bool", "true", "TensorFlow's input path of 1.12"},

    {kMachine, "fp16_vars", "bool", "false", "fp16 parameters"},
    {kMachine, "winograd_nonfused", "bool", "true", "cuDNN's choice of algorithms"},
    {kMachine, "batchnorm_persistent", "bool", "true", "cuDNN's choice of algorithms"},
    {kMachine, "xla", "bool", "false", "just-in-time compilation"},
    {kMachine, "xla_compile", "bool", "false", "just-in-time compilation"},
    {kMachine, "gpu_thread_mode", "string", "gpu_private", "TensorFlow's GPU threads"},
    {kMachine, "per_gpu_thread_count", "int", "0", "TensorFlow's GPU threads"},
    {kMachine, "force_gpu_compatible", "bool", "false", "page-locked host memory everywhere"},
    {kMachine, "allow_growth", "bool", "", "TensorFlow's GPU memory pool"},
    {kMachine, "use_unified_memory", "bool", "", "GPU memory oversubscribed"},
    {kMachine, "timestamped_allocator", "bool", "false", "TensorFlow's GPU memory pool"},
    {kMachine, "gpu_kt_max_interval", "int", "0", "TensorFlow's kernel tracker"},
    {kMachine, "gpu_kt_max_bytes", "int", "0", "TensorFlow's kernel tracker"},
    {kMachine, "gpu_kt_max_pending", "int", "0", "TensorFlow's kernel tracker"},
    {kMachine, "use_numa_affinity", "bool", "false", "binding to NUMA nodes; numactl does it from outside"},
    {kMachine, "kmp_blocktime", "int", "0", "Intel's OpenMP; GNU's is used, see OMP_WAIT_POLICY"},
    {kMachine, "kmp_affinity", "string", "granularity=fine,verbose,compact,1,0",
     "Intel's OpenMP; GNU's is used, see OMP_PROC_BIND and OMP_PLACES"},
    {kMachine, "kmp_settings", "int", "1", "Intel's OpenMP; GNU's is used, see OMP_DISPLAY_ENV"},
    {kMachine, "trt_mode", "string", "", "TensorRT"},
    {kMachine, "trt_max_workspace_size_bytes", "int", "4294967296", "TensorRT"},
    {kMachine, "enable_optimizations", "bool", "true", "TensorFlow's graph rewriting"},
    {kMachine, "rewriter_config", "string", "", "TensorFlow's graph rewriting"},
    {kMachine, "use_tf_layers", "bool", "true", "TensorFlow's layers"},
    {kMachine, "use_resource_vars", "bool", "false", "TensorFlow's variables"},
    {kMachine, "compute_lr_on_cpu", "bool", "false", "placement of the schedule"},
    {kMachine, "sparse_to_dense_grads", "bool", "false", "sparse gradients"},
    {kMachine, "use_python32_barrier", "bool", "false", "Python's barrier"},

    {kOutput, "trace_file", "string", "", "trace of a step"},
    {kOutput, "use_chrome_trace_format", "bool", "true", "form of the trace"},
    {kOutput, "tfprof_file", "string", "", "profile of ten steps"},
    {kOutput, "graph_file", "string", "", "TensorFlow's graph"},
    {kOutput, "partitioned_graph_file_prefix", "string", "", "TensorFlow's graph"},
    {kOutput, "backbone_model_path", "string", "", "SSD only"},
    {kOutput, "benchmark_log_dir", "string", "", "TensorFlow's benchmark log; see metrics_file"},
    {kOutput, "benchmark_test_id", "string", "", "TensorFlow's benchmark log; see metrics_file"},
    {kOutput, "debugger", "string", "", "TensorFlow's debugger"},
    {kOutput, "ml_perf_compliance_logging", "bool", "false", "MLPerf's log"},
    {kOutput, "flush_stdout", "bool", "true", "output held back; every line is flushed here"},
};

}  // namespace

void declare_unserved(cli::FlagSet& flags) {
  for (const Unserved& flag : kUnserved) {
    flags.group(flag.group);
    flags.add_unserved(flag.name, flag.type, flag.initial, flag.meaning);
  }
}

}  // namespace dtrain::cnn_benchmarks
