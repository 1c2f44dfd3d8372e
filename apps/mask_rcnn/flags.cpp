#include "apps/mask_rcnn/flags.h"

#include <fmt/format.h>

#include <filesystem>

#include "apps/cli/command_line.h"
#include "apps/cli/recorded_weights.h"
#include "dtrain/models/detection/presets.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::mask_rcnn {
namespace {

std::vector<std::string> preset_names() {
  std::vector<std::string> names;
  for (const models::DetectorPreset& preset : models::detector_presets()) names.push_back(preset.name);
  return names;
}

}  // namespace

Arguments ModelFlags::take_config(const Arguments& argv, std::vector<std::string>& assignments) {
  Arguments rest;
  bool in_config = false;
  for (const std::string& argument : argv) {
    constexpr std::string_view kEquals = "--config=";
    if (argument == "--config") {
      in_config = true;
    } else if (argument.starts_with(kEquals)) {
      in_config = true;
      assignments.push_back(argument.substr(kEquals.size()));
    } else if (in_config && !argument.starts_with("-")) {
      assignments.push_back(argument);
    } else {
      in_config = false;
      rest.push_back(argument);
    }
  }
  return rest;
}

void ModelFlags::declare_conventions(cli::FlagSet& flags, const std::string& group) {
  flags.group(group);
  flags.add_choice("preset", preset, preset_names(),
                   "conventions of the program that the weights or the configuration come from; default: as recorded "
                   "with the weights");
  flags.add("config_file", config_file, "text file of KEY=VALUE lines; --config takes precedence");
}

void ModelFlags::declare_load(cli::FlagSet& flags) {
  flags
      .add("load", load,
           "weights: a file (.safetensors, .npz, .pth, .pkl; also s3:// or https://) with the tensor names of "
           "torchvision, TensorPack or detectron2, a checkpoint folder, or a train_dir (also s3://), whose newest "
           "checkpoint is used")
      .may_be_remote();
}

void ModelFlags::declare(cli::FlagSet& flags) {
  declare_conventions(flags);
  declare_load(flags);
  flags
      .add("data_dir", data_dir,
           "folder, or s3://BUCKET/PREFIX, with annotations/instances_SPLIT.json and the images in SPLIT/; the same as "
           "DATA.BASEDIR")
      .may_be_remote();
  flags.add_choice(
      "exif_orientation", exif_orientation, {"auto", "apply", "ignore"},
      "apply or ignore the EXIF orientation tag of images. auto: as recorded with the weights, else as the preset's "
      "program (TensorPack and AWS apply it). Never applied to an image whose annotations state its stored size");
  flags.add("strict", strict, "reject faulty annotations and list all faults, instead of dropping faulty objects");
}

Settings ModelFlags::changed(Settings settings, std::vector<std::string>& notices) const {
  if (!config_file.empty()) notices = apply_file(settings, config_file);
  for (const std::string& assignment : assignments)
    if (std::string notice = apply(settings, assignment); !notice.empty()) notices.push_back(std::move(notice));
  if (!data_dir.empty()) settings.data.base_dir = data_dir;
  if (!load.empty()) settings.weights = load;
  if (exif_orientation != "auto")
    settings.data.orientation = exif_orientation == "apply" ? data::Orientation::apply : data::Orientation::ignore;
  settings.data.strict = strict;
  return settings;
}

Settings ModelFlags::without_weights() const {
  std::vector<std::string> dropped;
  return changed(preset_settings(preset), dropped);
}

std::string ModelFlags::weights() const {
  const std::string path = load.empty() ? without_weights().weights : load;
  return path.empty() ? path : weights_file(path);
}

Settings ModelFlags::settings(const cli::FlagSet& given, std::vector<std::string>& notices, Use use) const {
  const std::string file = weights();
  const auto recorded = file.empty() ? std::nullopt : recorded_settings(cli::recorded_with(file), file);
  const bool as_recorded = recorded && use != Use::to_train;
  if (as_recorded && given.given("preset")) recorded->require_preset(preset, file);
  Settings base = as_recorded ? *recorded : preset_settings(preset);
  for (const std::string& assignment : continued) apply(base, assignment);
  Settings settings = changed(std::move(base), notices);
  settings.weights = file;
  if (as_recorded) settings.require_model_of(*recorded, file);
  if (recorded && use == Use::to_train && recorded->preset != preset)
    notices.push_back(fmt::format("{} was trained with the preset {}, and this run trains with {}; see --preset", file,
                                  recorded->preset, preset));
  std::error_code unknown;
  const bool is_there = !file.empty() && std::filesystem::exists(file, unknown);
  if (is_there && !recorded && use == Use::as_trained && !given.given("preset"))
    notices.push_back(fmt::format("{} records no conventions; using --preset={}", file, preset));
  settings.check();
  return settings;
}

void TrainFlags::declare(cli::FlagSet& flags) {
  model.declare(flags);
  run.declare(flags);
  machine.declare(flags);
  ranks.declare(flags);
  checkpoints.declare_saving(flags).former_name("logdir");
  fine_tuning.declare(flags);
  display.declare(flags);
  summaries.declare(flags, /*always=*/true);
  tracing.declare(flags);
  flags.add("throughput_log_freq", throughput_log_freq,
            "steps between lines of AWS Mask R-CNN's [ThroughputTracker]; 0: one line per epoch", cli::kCount);
  flags.add_choice(
      "compatible_with", compatible_with, {"dtrain", "tensorpack"},
      "format of the log: tensorpack prints TensorPack's lines, such as `Start Epoch`, `total_cost:` and a "
      "progress bar of the epoch every `--display_every` steps");
  for (const char* length : {"num_eval_batches", "num_eval_epochs"})
    flags.declared(length).refused("evaluations use all validation images");
  flags.declared("num_warmup_batches").refused("all steps are timed; TRAIN.WARMUP sets the learning-rate warm-up");
  flags.declared("sync_batch_norm").refused("use --config BACKBONE.NORM=SyncBN");
}

void TrainFlags::check(const cli::FlagSet& flags) const {
  flags.check_refused();
  run.check(flags);
  machine.check(flags);
  checkpoints.check(flags);
}

void TrainFlags::resume_at_starting_epoch() {
  const std::string& train_dir = checkpoints.train_dir;
  if (checkpoints.resume != "auto" || train_dir.empty() || model.load.empty()) return;
  if (model.without_weights().starting_epoch == 1) return;
  std::error_code unknown;
  if (!std::filesystem::is_directory(model.load, unknown) || newest_checkpoint(train_dir, looks_complete)) return;
  const std::optional<std::string> loaded =
      looks_complete(model.load) ? model.load : newest_checkpoint(model.load, looks_complete);
  if (!loaded) return;
  checkpoints.resume = *loaded;
  model.load.clear();
}

std::optional<std::vector<std::string>> read_arguments(cli::FlagSet& flags, ModelFlags& model, const Arguments& argv) {
  return cli::read_command_line(flags, ModelFlags::take_config(argv, model.assignments));
}

}  // namespace dtrain::mask_rcnn
