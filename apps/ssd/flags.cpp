#include "apps/ssd/flags.h"

#include "dtrain/core/error.h"

namespace dtrain::ssd {
namespace {

// Flags of labels, classification preprocessing, and layers that SSD300 lacks.
constexpr const char* kOfClassifiers[] = {"auto_augment",
                                          "auxiliary_head",
                                          "batch_norm_decay",
                                          "color_jitter",
                                          "cutmix_alpha",
                                          "find_learning_rate",
                                          "exif_orientation",
                                          "graph_file",
                                          "image_size",
                                          "jpeg_decoder",
                                          "label_offset",
                                          "label_smoothing",
                                          "mixup_alpha",
                                          "ml_perf_compliance_logging",
                                          "num_classes",
                                          "preprocessing",
                                          "progressive_resizing",
                                          "random_erase",
                                          "repeated_augmentation",
                                          "resize_method",
                                          "resnet_base_lr"};

}  // namespace

void Flags::declare(cli::FlagSet& flags) {
  flags.group("Mode and evaluation");
  flags.add("collect_eval_results_async", collect_eval_results_async,
            "for ssd300: score evaluations on a background thread while training continues");
  flags.group("Checkpoints");
  flags.add(
      "backbone_model_path", backbone_model_path,
      "for ssd300: pretrained ResNet-34 weights for the backbone: a .safetensors, .npz or .pth file, a checkpoint "
      "folder, or a train_dir");
}

std::string Flags::given() const {
  return collect_eval_results_async    ? "collect_eval_results_async"
         : backbone_model_path.empty() ? ""
                                       : "backbone_model_path";
}

void imply_defaults(cli::FlagSet& flags) {
  flags.imply("optimizer", "momentum", "model");
  flags.imply("weight_decay", "0.0005", "model");
}

void refuse_classifiers_flags(const cli::FlagSet& flags) {
  for (const char* const name : kOfClassifiers)
    DT_CHECK(!flags.given(name), "--", name, ": for image classifiers only, and ssd300 is a detector");
}

}  // namespace dtrain::ssd
