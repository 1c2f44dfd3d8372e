// The served flags, in the order and under the headings in which the help lists them.
#include "apps/cnn_benchmarks/flags.h"

#include <fmt/format.h>

#include "data/catalog.h"
#include "models/catalog.h"

namespace dtrain::cnn_benchmarks {
namespace {

using cli::kNotNegative;
using cli::kPositive;

constexpr cli::Range kShare{0, 1};
constexpr cli::Range kBelowOne{0, 0.999999};

void declare_model(cli::FlagSet& flags, Flags& v) {
  flags.group("Model, mode, size");
  flags.add("model", v.model, fmt::format("{}", fmt::join(models::classifier_names(), ", ")));
  flags.add("batch_size", v.batch_size, "images per device and step; 0: the model's default", kNotNegative);
  flags.add("eval_batch_size", v.eval_batch_size, "the same for evaluation; 0: batch_size", kNotNegative);
  flags.add("num_batches", v.num_batches, "timed steps, 100 if neither this nor num_epochs is given", kPositive);
  flags.add("num_epochs", v.num_epochs, "instead of num_batches: passes over the data, rounded up to whole batches",
            kNotNegative);
  flags.add("num_eval_batches", v.num_eval_batches,
            "length of an evaluation; default: as num_batches or num_epochs. "
            "One pass at most: each image counts once",
            kPositive);
  flags.add("num_eval_epochs", v.num_eval_epochs, "instead of num_eval_batches", kNotNegative);
  flags.add("num_warmup_batches", v.num_warmup_batches,
            "untimed steps in front, which do train and do count in the step number of checkpoints; default "
            "max(10, 5 * autotune_threshold^2). A resumed run does not repeat them",
            kNotNegative);
  flags.add("autotune_threshold", v.autotune_threshold, "only sets the default of num_warmup_batches", kPositive);
  flags.add("num_gpus", v.num_gpus, "devices of this process: 1", kPositive);
  flags.add_choice("device", v.device, {"cpu", "gpu"},
                   "not given: the GPU where there is one, else the CPU with a notice");
  flags.add_choice("data_format", v.data_format, {"NHWC", "NCHW"},
                   "the engine is NHWC; NCHW is accepted with a notice");
  flags.add("forward_only", v.forward_only, "inference: no gradients, no updates; the loss is shown as 0");
  flags.add("freeze_when_forward_only", v.freeze_when_forward_only, "parameters are constants in forward_only anyway");
  flags.add("eval", v.eval, "evaluate the newest checkpoint of train_dir instead of training");
  flags.add("print_training_accuracy", v.print_training_accuracy, "add top-1 and top-5 columns");
  flags.add("display_every", v.display_every, "steps between printed lines", kPositive);
  flags.add("display_perf_ewma", v.display_perf_ewma,
            "weight of the newest step in the displayed speed; default: all "
            "steps weigh the same",
            kShare);
  flags.add_choice("loss_type_to_report", v.loss_type_to_report, {"base_loss", "total_loss"},
                   "total_loss includes the L2 term of weight_decay");
  flags.add("tf_random_seed", v.tf_random_seed, "seed of initial values, order of samples, augmentation and dropout");
}

void declare_evaluation(cli::FlagSet& flags, Flags& v) {
  flags.group("Evaluation");
  flags.add("eval_interval_secs", v.eval_interval_secs, "pause between evaluations with --eval; 0: evaluate once",
            kNotNegative);
  flags.add("eval_during_training_every_n_steps", v.eval_during_training_every_n_steps,
            "pause training for an evaluation; at most one of these four forms. Steps are global, warm-up included",
            kPositive);
  flags.add("eval_during_training_every_n_epochs", v.eval_during_training_every_n_epochs, "the same by epochs",
            kNotNegative);
  flags.add("eval_during_training_at_specified_steps", v.eval_during_training_at_specified_steps, "e.g. 100,200,500");
  flags.add("eval_during_training_at_specified_epochs", v.eval_during_training_at_specified_epochs, "e.g. 0.5,1,10");
  flags.add("stop_at_top_1_accuracy", v.stop_at_top_1_accuracy, "end training once an evaluation reaches this share",
            kShare);
}

void declare_data(cli::FlagSet& flags, Flags& v) {
  flags.group("Data");
  flags.add("data_dir", v.data_dir, "folder of TFRecord files train-* and validation-*; not given: synthetic data");
  flags.add("data_name", v.data_name,
            fmt::format("{}; default: guessed from data_dir, else {}", fmt::join(data::dataset_names(), " or "),
                        data::datasets().front().name));
  flags.add_choice(
      "resize_method", v.resize_method, {"crop", "nearest", "bilinear", "bicubic", "area", "round_robin"},
      "of ImageNet's images; crop takes the central part as it is, without random boxes, and pads with black");
  flags.add("distortions", v.distortions, "distort brightness, saturation, hue and contrast of ImageNet's images");
  flags.add("distort_color_in_yiq", v.distort_color_in_yiq, "saturation and hue in YIQ instead of HSV");
  flags.add("fuse_decode_and_crop", v.fuse_decode_and_crop, "only the crop window is decoded; pixels are equal anyway");
  flags.add("ml_perf", v.ml_perf, "subtract the mean colour instead of scaling to [-1, 1]; ignore bounding boxes");
  flags.add("datasets_prefetch_buffer_size", v.datasets_prefetch_buffer_size, "batches decoded ahead", kPositive);
  flags.add("datasets_num_private_threads", v.datasets_num_private_threads,
            "threads of the input pipeline; default and 0: num_inter_threads, else one per core", kNotNegative);
}

void declare_optimizer(cli::FlagSet& flags, Flags& v) {
  flags.group("Optimiser and schedule");
  flags.add_choice("optimizer", v.optimizer, {"sgd", "momentum", "rmsprop", "adam", "adamw", "lars"},
                   "sgd is plain, momentum is Nesterov's; adamw and lars are extensions");
  flags.add("init_learning_rate", v.init_learning_rate, "default: the model's own schedule", kNotNegative);
  flags.add("piecewise_learning_rate_schedule", v.piecewise_learning_rate_schedule,
            "LR0;E1;LR1;...;En;LRn: rate LRi from epoch Ei on");
  flags.add("num_epochs_per_decay", v.num_epochs_per_decay, "epochs between the drops of init_learning_rate",
            kNotNegative);
  flags.add("learning_rate_decay_factor", v.learning_rate_decay_factor, "factor of each drop", kNotNegative);
  flags.add("minimum_learning_rate", v.minimum_learning_rate, "the drops end here", kNotNegative);
  flags.add("num_learning_rate_warmup_epochs", v.num_learning_rate_warmup_epochs,
            "linear from 0, with init_learning_rate or piecewise_learning_rate_schedule", kNotNegative);
  flags.add("resnet_base_lr", v.resnet_base_lr, "ResNet on ImageNet: rate at a global batch of 256, 0.128 by default",
            kNotNegative);
  flags.add("momentum", v.momentum, "of momentum and lars", kShare);
  flags.add("rmsprop_decay", v.rmsprop_decay, "of rmsprop", kShare);
  flags.add("rmsprop_momentum", v.rmsprop_momentum, "of rmsprop", kShare);
  flags.add("rmsprop_epsilon", v.rmsprop_epsilon, "of rmsprop", kNotNegative);
  flags.add("adam_beta1", v.adam_beta1, "of adam and adamw", kBelowOne);
  flags.add("adam_beta2", v.adam_beta2, "of adam and adamw", kBelowOne);
  flags.add("adam_epsilon", v.adam_epsilon, "of adam and adamw", kNotNegative);
  flags.add("gradient_clip", v.gradient_clip, "limit each gradient element to +-x", kNotNegative);
  flags.add("weight_decay", v.weight_decay, "L2 on all but biases and batch-norm parameters", kNotNegative);
  flags.add("single_l2_loss_op", v.single_l2_loss_op, "the L2 term is one pass in any case");
}

void declare_machine(cli::FlagSet& flags, Flags& v) {
  flags.group("Precision, kernels, threads");
  flags.add("use_fp16", v.use_fp16, "the same as --precision=fp16");
  flags.add("fp16_loss_scale", v.fp16_loss_scale, "the loss of fp16 is multiplied by it, its gradients divided: 128",
            kPositive);
  flags.add("fp16_enable_auto_loss_scale", v.fp16_enable_auto_loss_scale,
            "halve the loss scale and skip the update where a gradient is not finite, double it after "
            "fp16_inc_loss_scale_every_n good steps");
  flags.add("fp16_inc_loss_scale_every_n", v.fp16_inc_loss_scale_every_n, "of fp16_enable_auto_loss_scale", kPositive);
  flags.add("gpu_indices", v.gpu_indices,
            "numbers of the GPUs that the ranks of a host take, in order; default: from the first on");
  flags.add("gpu_memory_frac_for_testing", v.gpu_memory_frac_for_testing,
            "share of the GPU's memory that may be used; 0: all that is free", kShare);
  flags.add("num_intra_threads", v.num_intra_threads, "compute threads; default and 0: OMP_NUM_THREADS or one per core",
            kNotNegative);
  flags.add("num_inter_threads", v.num_inter_threads,
            "threads of the input pipeline where "
            "datasets_num_private_threads is not given; 0: one per core",
            kNotNegative);
  flags.add("mkl", v.mkl, "oneDNN is used on a CPU in any case");
  flags.add("sync_on_finish", v.sync_on_finish, "the clock stops after the device has finished in any case");
}

void declare_output(cli::FlagSet& flags, Flags& v) {
  flags.group("Output");
  flags.add("train_dir", v.train_dir, "folder of the checkpoints; a run started again continues from the newest");
  flags.add("save_model_secs", v.save_model_secs, "seconds between checkpoints; 0: only at the end", kNotNegative);
  flags.add("save_model_steps", v.save_model_steps, "instead of save_model_secs: steps between checkpoints", kPositive);
  flags.add("max_ckpts_to_keep", v.max_ckpts_to_keep, "the newest ones; 2 at least are kept", kPositive);
}

void declare_extensions(cli::FlagSet& flags, Flags& v) {
  flags.group("Extensions of dtrain");
  flags.add("image_size", v.image_size, "side of the images in pixels; 0: the model's default", kNotNegative);
  flags.add("num_classes", v.num_classes,
            "outputs of the model; 0: the data set's default, where class 0 is background", kNotNegative);
  flags.add("label_offset", v.label_offset, "added to the labels of the files, e.g. -1 with --num_classes=1000");
  flags.add("weights", v.weights,
            "safetensors file, by torchvision's names, to start from, or to evaluate with --eval");
  flags.add("resume", v.resume,
            "auto: from the newest checkpoint of train_dir if there is one; never: refuse to start "
            "where there is one; or the path of a checkpoint");
  flags.add_choice("precision", v.precision, {"fp32", "bf16", "fp16"},
                   "type of activations and gradients; a CPU has fp32 only");
  flags.add("tf32", v.tf32, "fp32 on a GPU: products may round their inputs to 10 bits of mantissa, which is faster");
  flags.add("deterministic", v.deterministic,
            "only algorithms that give the same bits in every run; a CPU's always do, at an equal number of threads");
  flags.add("cuda_graph", v.cuda_graph,
            "on a GPU: run the first steps, then record one and replay it; results are the same");
  flags.add_choice("preprocessing", v.preprocessing, data::preprocessing_names(),
                   "crops, resizing and normalisation as "
                   "tf_cnn_benchmarks or as torchvision has them");
  flags.add_choice("jpeg_decoder", v.jpeg_decoder, {"host", "gpu"},
                   "gpu: by nvJPEG, whose pixels are a few levels off; the host takes what it cannot decode");
  flags.add("metrics_file", v.metrics_file, "JSON lines, one per displayed step; `step` counts warm-up steps");
  flags.add_choice("on_bad_record", v.on_bad_record, {"fail", "skip"}, "skip takes the shard's next good record");
  flags.add("bad_record_budget", v.bad_record_budget, "bad records that may be skipped", kNotNegative);
  flags.add("gradient_accumulation", v.gradient_accumulation, "batches per update; the gradient is their mean",
            kPositive);
  flags.add("label_smoothing", v.label_smoothing, "share of the target spread over all classes", kBelowOne);
  flags.add_choice("lr_schedule", v.lr_schedule, {"auto", "constant", "cosine", "polynomial"},
                   "auto: as tf_cnn_benchmarks; the others start from init_learning_rate");
  flags.add("end_learning_rate", v.end_learning_rate, "where cosine and polynomial end", kNotNegative);
  flags.add("lr_power", v.lr_power, "exponent of polynomial", kNotNegative);
  flags.add("gradient_clip_norm", v.gradient_clip_norm, "limit the norm of the whole gradient; 0: off", kNotNegative);
  flags.add("lars_trust", v.lars_trust, "trust coefficient of lars", kNotNegative);
}

}  // namespace

void declare(cli::FlagSet& flags, Flags& values) {
  declare_model(flags, values);
  declare_evaluation(flags, values);
  declare_data(flags, values);
  declare_optimizer(flags, values);
  declare_machine(flags, values);
  declare_ranks(flags, values);
  declare_output(flags, values);
  declare_extensions(flags, values);
  declare_unserved(flags);
}

}  // namespace dtrain::cnn_benchmarks
