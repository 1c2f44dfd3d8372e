// Flags of tf_cnn_benchmarks: declarations, defaults, documentation page, and typical command lines.
#include <algorithm>
#include <sstream>

#include "apps/cnn_benchmarks/settings.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

struct Default {
  const char *flag, *text;
};

// The 137 flags of benchmark_cnn.py and the one of tf_cnn_benchmarks.py in the last version; the one only in the 1.12
// branch; and flush_stdout of older versions. None is an empty text.
constexpr Default kTfCnnBenchmarks[] = {
    {"adam_beta1", "0.9"},
    {"adam_beta2", "0.999"},
    {"adam_epsilon", "1e-08"},
    {"agg_small_grads_max_bytes", "0"},
    {"agg_small_grads_max_group", "10"},
    {"all_reduce_spec", ""},
    {"allow_growth", ""},
    {"allreduce_merge_scope", "1"},
    {"autotune_threshold", ""},
    {"backbone_model_path", ""},
    {"batch_group_size", "1"},
    {"batch_size", "0"},
    {"batchnorm_persistent", "true"},
    {"benchmark_log_dir", ""},
    {"benchmark_test_id", ""},
    {"collect_eval_results_async", "false"},
    {"compact_gradient_transfer", "true"},
    {"compute_lr_on_cpu", "false"},
    {"controller_host", ""},
    {"cross_replica_sync", "true"},
    {"data_dir", ""},
    {"data_format", "NCHW"},
    {"data_name", ""},
    {"datasets_num_private_threads", ""},
    {"datasets_parallel_interleave_cycle_length", ""},
    {"datasets_parallel_interleave_prefetch", ""},
    {"datasets_prefetch_buffer_size", "1"},
    {"datasets_repeat_cached_sample", "false"},
    {"datasets_sloppy_parallel_interleave", "false"},
    {"datasets_use_caching", "false"},
    {"datasets_use_prefetch", "true"},
    {"debugger", ""},
    {"device", "gpu"},
    {"display_every", "10"},
    {"display_perf_ewma", ""},
    {"distort_color_in_yiq", "true"},
    {"distortions", "false"},
    {"enable_optimizations", "true"},
    {"eval", "false"},
    {"eval_batch_size", "0"},
    {"eval_dir", "/tmp/tf_cnn_benchmarks/eval"},
    {"eval_during_training_at_specified_epochs", ""},
    {"eval_during_training_at_specified_steps", ""},
    {"eval_during_training_every_n_epochs", ""},
    {"eval_during_training_every_n_steps", ""},
    {"eval_interval_secs", "0"},
    {"flush_stdout", "true"},
    {"force_gpu_compatible", "false"},
    {"forward_only", "false"},
    {"fp16_enable_auto_loss_scale", "false"},
    {"fp16_inc_loss_scale_every_n", "1000"},
    {"fp16_loss_scale", ""},
    {"fp16_vars", "false"},
    {"freeze_when_forward_only", "false"},
    {"fuse_decode_and_crop", "true"},
    {"gpu_indices", ""},
    {"gpu_kt_max_bytes", "0"},
    {"gpu_kt_max_interval", "0"},
    {"gpu_kt_max_pending", "0"},
    {"gpu_memory_frac_for_testing", "0"},
    {"gpu_thread_mode", "gpu_private"},
    {"gradient_clip", ""},
    {"gradient_repacking", "0"},
    {"graph_file", ""},
    {"hierarchical_copy", "false"},
    {"horovod_device", ""},
    {"init_learning_rate", ""},
    {"input_preprocessor", "default"},
    {"job_name", ""},
    {"kmp_affinity", "granularity=fine,verbose,compact,1,0"},
    {"kmp_blocktime", "0"},
    {"kmp_settings", "1"},
    {"learning_rate_decay_factor", "0"},
    {"local_parameter_device", "gpu"},
    {"loss_type_to_report", "total_loss"},
    {"max_ckpts_to_keep", "5"},
    {"minimum_learning_rate", "0"},
    {"mkl", "false"},
    {"ml_perf", "false"},
    {"ml_perf_compliance_logging", "false"},
    {"model", "trivial"},
    {"momentum", "0.9"},
    {"multi_device_iterator_max_buffer_size", "1"},
    {"network_topology", "dgx1"},
    {"num_batches", ""},
    {"num_epochs", ""},
    {"num_epochs_per_decay", "0"},
    {"num_eval_batches", ""},
    {"num_eval_epochs", ""},
    {"num_gpus", "1"},
    {"num_inter_threads", "0"},
    {"num_intra_threads", ""},
    {"num_learning_rate_warmup_epochs", "0"},
    {"num_warmup_batches", ""},
    {"optimizer", "sgd"},
    {"partitioned_graph_file_prefix", ""},
    {"per_gpu_thread_count", "0"},
    {"piecewise_learning_rate_schedule", ""},
    {"print_training_accuracy", "false"},
    {"ps_hosts", ""},
    {"resize_method", "bilinear"},
    {"resnet_base_lr", ""},
    {"rewriter_config", ""},
    {"rmsprop_decay", "0.9"},
    {"rmsprop_epsilon", "1"},
    {"rmsprop_momentum", "0.9"},
    {"save_model_secs", "0"},
    {"save_model_steps", ""},
    {"save_summaries_steps", "0"},
    {"server_protocol", "grpc"},
    {"single_l2_loss_op", "false"},
    {"sparse_to_dense_grads", "false"},
    {"staged_vars", "false"},
    {"stop_at_top_1_accuracy", ""},
    {"summary_verbosity", "0"},
    {"sync_on_finish", "false"},
    {"task_index", "0"},
    {"tf_random_seed", "1234"},
    {"tfprof_file", ""},
    {"timestamped_allocator", "false"},
    {"trace_file", ""},
    {"train_dir", ""},
    {"trt_max_workspace_size_bytes", "4294967296"},
    {"trt_mode", ""},
    {"use_chrome_trace_format", "true"},
    {"use_datasets", "true"},
    {"use_fp16", "false"},
    {"use_multi_device_iterator", "true"},
    {"use_numa_affinity", "false"},
    {"use_python32_barrier", "false"},
    {"use_resource_vars", "false"},
    {"use_tf_layers", "true"},
    {"use_unified_memory", ""},
    {"variable_consistency", "strong"},
    {"variable_update", "parameter_server"},
    {"weight_decay", "4e-05"},
    {"winograd_nonfused", "true"},
    {"worker_hosts", ""},
    {"xla", "false"},
    {"xla_compile", "false"},
};

struct DeclaredForPage {
  DeclaredForPage() { values.declare(flags); }
  Flags values;
  cli::FlagSet flags{"dtrain-cnn-benchmarks", "", ""};
};

class TfCnnFlags : public testing::Test, protected DeclaredForPage {
 protected:
  // The error of a command line, as far as it does not depend on the machine; empty if valid.
  static std::string refusal(const std::string& line) {
    DeclaredForPage parsed;
    std::vector<std::string> arguments = {"dtrain-cnn-benchmarks"};
    std::istringstream words(line);
    for (std::string word; words >> word;) arguments.push_back(word);
    try {
      if (const auto rest = parsed.flags.parse(arguments); !rest.empty()) return "left over: " + rest.front();
      parsed.values.settle(parsed.flags);
      parsed.values.check(parsed.flags);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(TfCnnFlags, AllAreDeclaredWithItsDefaults) {
  EXPECT_EQ(std::size(kTfCnnBenchmarks), 140u);
  std::set<std::string> declared;
  for (const auto& [group, members] : flags.names()) declared.insert(members.begin(), members.end());
  for (const auto& [flag, text] : kTfCnnBenchmarks) {
    ASSERT_TRUE(declared.contains(flag)) << flag;
    if (flag == std::string("eval_dir")) continue;  // there it is a folder shared by all users of the machine
    EXPECT_EQ(flags.text(flag), text) << flag;
  }
}

TEST_F(TfCnnFlags, ThePageHasTheTablesOfTheDeclarations) {
  const std::string page = read_file((source_dir() / "docs" / "tf_cnn_benchmarks.md").string());
  const std::string mark = "<!-- Generated from here on. -->\n\n";
  const size_t begin = page.find(mark);
  ASSERT_NE(begin, std::string::npos);
  EXPECT_TRUE(page.substr(begin + mark.size()) == flags.markdown())
      << "docs/tf_cnn_benchmarks.md is not what the flags are: run scripts/document_flags.sh";
}

TEST_F(TfCnnFlags, AcceptsPublishedCommandLines) {
  for (const char* line : {
           // Benchmarks on EKS: the README of 2018, its MPIJobs, and a TFJob.
           "--num_batches=100 --model vgg16 --batch_size 64 --data_name=imagenet --data_dir=/mnt/data "
           "--variable_update horovod --horovod_device gpu --use_fp16",
           "--data_format=NCHW --batch_size=256 --model=resnet50 --optimizer=sgd --variable_update=horovod "
           "--data_name=imagenet --use_fp16 --nodistortions --gradient_repacking=8 --data_dir=/data/imagenet",
           "--model=resnet101 --batch_size=64 --variable_update=horovod",
           "--batch_size=32 --model=resnet50 --variable_update=parameter_server --flush_stdout=true --num_gpus=1 "
           "--local_parameter_device=cpu --device=cpu --data_format=NHWC",
           "--batch_size=2 --num_batches=20 --model=resnet50 --variable_update=parameter_server --forward_only "
           "--data_format=NHWC --device=CPU --job_name=worker --task_index=0 --worker_hosts=a:2222 --ps_hosts=b:2222",
           // The recipe of its README, and what is often added.
           "--batch_size=256 --model=resnet50_v1.5 --optimizer=momentum --variable_update=replicated --nodistortions "
           "--gradient_repacking=8 --num_gpus=8 --num_epochs=90 --weight_decay=1e-4 --data_dir=/data --use_fp16 "
           "--train_dir=run --print_training_accuracy=True --all_reduce_spec=nccl --local_parameter_device=gpu "
           "--xla_compile=True --datasets_use_prefetch --per_gpu_thread_count=2 --compute_lr_on_cpu "
           "--single_l2_loss_op "
           "--loss_type_to_report=base_loss --ml_perf --datasets_num_private_threads=8 --save_model_secs=600",
           "--eval --train_dir=run --eval_dir=/tmp/eval --eval_interval_secs=60 --num_eval_epochs=1",
           "--model=resnet50 --eval_during_training_every_n_epochs=4 --stop_at_top_1_accuracy=0.749 --num_epochs=41",
           // On Intel's processors.
           "--mkl=True --device=cpu --data_format=NCHW --num_intra_threads=28 --num_inter_threads=2 --kmp_blocktime=1 "
           "--kmp_affinity=granularity=fine,verbose,compact,1,0 --kmp_settings=0 --use_numa_affinity",
       })
    EXPECT_EQ(refusal(line), "") << line;
}

// The reasons for which tf_cnn_benchmarks refuses them are TensorFlow's.
TEST_F(TfCnnFlags, SupportsCombinationsThatTheOriginalRefuses) {
  for (const char* line : {
           "--device=cpu --data_format=NCHW",
           "--use_fp16 --fp16_enable_auto_loss_scale --variable_update=horovod",
           "--use_fp16 --fp16_enable_auto_loss_scale --variable_update=replicated --all_reduce_spec=nccl",
           "--all_reduce_spec=nccl --job_name=worker --worker_hosts=a:1,b:1",
           "--eval_during_training_every_n_steps=5 --job_name=worker --worker_hosts=a:1,b:1",
           "--forward_only --freeze_when_forward_only --train_dir=run",
           "--variable_update=distributed_replicated",
           "--variable_update=replicated --job_name=worker --worker_hosts=a:1,b:1",
       })
    EXPECT_EQ(refusal(line), "") << line;
}

TEST_F(TfCnnFlags, UnreadFlagsPrintOneNoticeAndInvalidValuesAreErrors) {
  flags.parse({"program", "--xla", "--noxla", "--xla", "--batch_group_size=4", "--allow_growth", "--use_datasets"});
  const std::vector<std::string> notices = flags.notices();
  EXPECT_EQ(notices.size(), 3u) << testing::PrintToString(notices);
  EXPECT_EQ(std::ranges::count_if(notices, [](const auto& line) { return line.starts_with("--xla=true has no "); }), 1);
  for (const char* line : {"--xla=perhaps", "--kmp_blocktime=long", "--gpu_thread_mode=public", "--trt_mode=FP8"})
    EXPECT_TRUE(contains(refusal(line), "expected ")) << line << ": " << refusal(line);
  for (const char* line :
       {"--fp16_vars", "--trt_mode=FP16 --forward_only --freeze_when_forward_only", "--debugger=cli"})
    EXPECT_TRUE(contains(refusal(line), " is not supported: ")) << line << ": " << refusal(line);
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
