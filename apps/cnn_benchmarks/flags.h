// The flags of dtrain-cnn-benchmarks: those of tf_cnn_benchmarks, by its names, types and defaults, and our own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apps/cli/flags.h"

namespace dtrain::cnn_benchmarks {

// The values of the flags that are served; the initialisers are the defaults. An empty optional or string means that
// the flag was not given.
struct Flags {
  // Model, mode, size
  std::string model = "trivial";
  int64_t batch_size = 0, eval_batch_size = 0;
  std::optional<int64_t> num_batches, num_eval_batches, num_warmup_batches, autotune_threshold;
  std::optional<double> num_epochs, num_eval_epochs;
  int64_t num_gpus = 1;
  std::string device = "gpu", data_format = "NCHW";
  bool forward_only = false, freeze_when_forward_only = false, eval = false, print_training_accuracy = false;
  int64_t display_every = 10;
  std::optional<double> display_perf_ewma;
  std::string loss_type_to_report = "total_loss";
  int64_t tf_random_seed = 1234;

  // Evaluation
  int64_t eval_interval_secs = 0;
  std::optional<int64_t> eval_during_training_every_n_steps;
  std::optional<double> eval_during_training_every_n_epochs;
  std::vector<std::string> eval_during_training_at_specified_steps, eval_during_training_at_specified_epochs;
  std::optional<double> stop_at_top_1_accuracy;

  // Data
  std::string data_dir, data_name, resize_method = "bilinear";
  bool distortions = false, distort_color_in_yiq = true, fuse_decode_and_crop = true, ml_perf = false;
  int64_t datasets_prefetch_buffer_size = 1;
  std::optional<int64_t> datasets_num_private_threads;

  // Optimiser and schedule
  std::string optimizer = "sgd";
  std::optional<double> init_learning_rate, resnet_base_lr;
  std::string piecewise_learning_rate_schedule;
  double num_epochs_per_decay = 0, learning_rate_decay_factor = 0, minimum_learning_rate = 0;
  double num_learning_rate_warmup_epochs = 0;
  double momentum = 0.9, rmsprop_decay = 0.9, rmsprop_momentum = 0.9, rmsprop_epsilon = 1.0;
  double adam_beta1 = 0.9, adam_beta2 = 0.999, adam_epsilon = 1e-8;
  std::optional<double> gradient_clip;
  double weight_decay = 4e-5;
  bool single_l2_loss_op = false;

  // Precision, kernels, threads
  bool use_fp16 = false, mkl = false, sync_on_finish = false;
  std::optional<double> fp16_loss_scale;
  bool fp16_enable_auto_loss_scale = false;
  int64_t fp16_inc_loss_scale_every_n = 1000;
  std::string gpu_indices;
  double gpu_memory_frac_for_testing = 0;
  std::optional<int64_t> num_intra_threads;
  int64_t num_inter_threads = 0;

  // Distribution
  std::string variable_update = "parameter_server", local_parameter_device = "gpu", horovod_device, all_reduce_spec;
  int64_t gradient_repacking = 0, agg_small_grads_max_bytes = 0, agg_small_grads_max_group = 10;
  int64_t allreduce_merge_scope = 1, task_index = 0;
  bool compact_gradient_transfer = true, hierarchical_copy = false, staged_vars = false, cross_replica_sync = true;
  std::string network_topology = "dgx1", variable_consistency = "strong", server_protocol = "grpc";
  std::string job_name, controller_host;
  std::vector<std::string> ps_hosts, worker_hosts;

  // Several ranks
  double bucket_mb = 25, last_bucket_mb = 1;
  bool autotune_buckets = false;
  std::string wire_precision = "auto", all_reduce_algorithm = "auto";
  double collective_timeout = 60;
  int64_t expect_ranks = 0, verify_weights_every = 500;
  bool sync_batch_norm = false;

  // Output
  std::string train_dir;
  int64_t save_model_secs = 0;
  std::optional<int64_t> save_model_steps;
  int64_t max_ckpts_to_keep = 5;

  // Extensions
  int64_t image_size = 0, num_classes = 0, label_offset = 0;
  std::string weights, resume = "auto", precision = "fp32", preprocessing = "tf_cnn", metrics_file;
  std::string on_bad_record = "fail", lr_schedule = "auto", jpeg_decoder = "host";
  int64_t bad_record_budget = 1000, gradient_accumulation = 1;
  bool cuda_graph = true, tf32 = false, deterministic = false;
  double label_smoothing = 0, end_learning_rate = 0, lr_power = 2, gradient_clip_norm = 0, lars_trust = 0.001;
};

// Declares every flag of tf_cnn_benchmarks, 1.12 to its last version, and the extensions, bound to `values`.
void declare(cli::FlagSet& flags, Flags& values);

// The part of it that is about several ranks, tf_cnn_benchmarks' and our own.
void declare_ranks(cli::FlagSet& flags, Flags& values);

// The flags of tf_cnn_benchmarks that exist here so that a job which sets one to a value of no effect still runs.
void declare_unserved(cli::FlagSet& flags);

}  // namespace dtrain::cnn_benchmarks
