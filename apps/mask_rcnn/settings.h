// Settings of model, data and training: a preset, modified by TensorPack's and AWS Mask R-CNN's keys.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/coco/paste.h"
#include "dtrain/data/detection.h"
#include "dtrain/models/detection/options.h"

namespace dtrain::mask_rcnn {

// TensorPack's prefix of COCO's splits, which their files lack.
inline constexpr char kCocoPrefix[] = "coco_";

struct DataSettings {
  std::string base_dir{};                             // has annotations/instances_SPLIT.json and SPLIT/
  std::vector<std::string> training{}, validation{};  // splits, as metrics name them; empty: as found
  std::vector<std::string> classes{};                 // names of the categories to keep; all where empty
  data::ResizeRule training_resize{}, evaluation_resize{};
  bool predefined_padding = false;
  std::vector<data::ImageSize> padding_shapes = {{800, 1000}, {800, 1200}, {800, 1350}};  // landscape ones
  data::ColorJitter jitter{};
  float flip_probability = 0.5f;
  bool names_training = false, names_validation = false;      // set by a key, not by the preset
  data::Orientation orientation = data::Orientation::ignore;  // apply the EXIF orientation
  bool keep_empty = false;                                    // skip images without objects in training
  bool skips_ignored = false;                                 // objects with "ignore": 1, in training
  bool strict = false;  // reject faulty annotations instead of dropping faulty objects
  float mean[3] = {123.675f, 116.28f, 103.53f}, deviation[3] = {58.395f, 57.12f, 57.375f};  // of red, green and blue

  // With predefined padding: its shapes and their transposes, rounded up to multiples of 32. Else empty:
  // data::DetectionDataset chooses.
  std::vector<data::ImageSize> canvases() const;
};

// From `after` on, the learning rate is `factor` times the rate after warm-up.
struct RateDrop {
  double after = 0, factor = 0.1;
};

// Learning rate at a global batch of `reference_batch`, scaled linearly.
struct RateSettings {
  // Global batch of the schedule's steps, whose number is inversely proportional to the batch.
  static constexpr int64_t kScheduleBatch = 8;

  double base_rate = 0.01;
  int64_t reference_batch = 8;
  double warmup_rate = 1e-5;    // learning rate of the first step, not scaled
  int64_t warmup_steps = 1000;  // steps, not scaled
  bool fits_warmup = true;      // default value: limited to the first epoch
  bool of_preset = true;        // drops and end are the preset's
  bool in_epochs = false;       // `after` and `end` are epochs, see Settings::epoch_steps(); else steps
  std::vector<RateDrop> drops = {{120'000, 0.1}, {160'000, 0.01}};
  double end = 180'000;
  double momentum = 0.9, weight_decay = 1e-4, clip_norm = 0;  // maximum global gradient norm; 0: none
  bool decays_biases = true;  // include biases and normalisation parameters in weight decay
};

struct Settings {
  std::string preset = "torchvision";
  models::DetectorOptions detector{};
  std::string weights{};  // file of initial weights; empty: none
  // Maximum foreground fractions of sampled anchors and RoIs; the detector's options follow.
  double anchor_share = 0.5, region_share = 0.25;
  DataSettings data{};
  RateSettings rate{};
  bool synchronised_norms = false;                     // synchronised batch norm in the backbone
  int64_t longest_side = 1333;                         // maximum image side as given by a key; see fit_longest_side()
  int64_t batch = 1, evaluation_batch = 1;             // images of a device
  std::optional<int64_t> seed{};                       // if set by a key
  int64_t steps_per_epoch = 500;                       // an epoch, i.e. a reporting period
  int64_t images_per_epoch = 0;                        // if not 0: images per epoch, rounded down to whole batches
  bool epoch_of_coco = false;                          // images_per_epoch is COCO's default
  int64_t starting_epoch = 1;                          // TensorPack's number of the first epoch; 1: not checked
  int64_t evaluate_epochs = 0, checkpoint_epochs = 0;  // in epochs; 0: only at the end
  double box_target = 0, mask_target = 0;              // AP targets; training stops when both are reached; 0: none
  double visible_score = 0.5;                          // for pictures

  // Limits image sizes. As in TensorPack, the longest side is rounded up to a multiple of the coarsest pyramid stride,
  // and limits decoded boxes.
  void fit_longest_side();
  // Mask rasterisation of the preset's program.
  data::coco::Paste paste() const;
  // Whether that program evaluates masks and boxes in one list; then box areas classify detections as small, medium or
  // large.
  bool area_of_box() const { return preset != "torchvision"; }
  // Sets the epoch to one pass over the `images`, unless they are COCO's or a key sets it; then limits the default
  // warm-up to the first epoch. `batch` as below.
  void fit_epoch(uint64_t images, bool are_coco, int64_t batch);
  // Steps per epoch at the global batch size `batch`. Throws Error if there are none.
  int64_t epoch_steps(int64_t batch) const;
  // Throws Error for conflicting settings: of model and evaluation, and of training only.
  void check() const;
  void check_training() const;
  // All settings by key, for logs and checkpoints: applied to the preset, they reproduce these settings.
  std::map<std::string, std::string> described() const;
  // The model's identity: the preset and the keys with `of_model`. A resumed checkpoint must have the same.
  std::map<std::string, std::string> model_identity() const;
  // Settings for evaluation and inference: all except folders, splits and training-only keys.
  std::map<std::string, std::string> recorded_with_weights() const;
  // Throws Error(Fault::config) with key and both values if model_identity() differs from that of `recorded`, the
  // training settings of the weights in `file`.
  void require_model_of(const Settings& recorded, const std::string& file) const;
  // Throws the same if `name`, from --preset, differs from the preset of these settings, recorded with `file`.
  void require_preset(const std::string& name, const std::string& file) const;
};

// Settings of a preset, see models::detector_presets(). Throws Error listing the presets.
Settings preset_settings(const std::string& preset);

// Settings recorded with the weights in `file`, from recorded_with_weights(); none if `recorded` is of another program.
// Ignores other entries. Throws Error(Fault::checkpoint) with file, key and value for an invalid record.
std::optional<Settings> recorded_settings(const std::map<std::string, std::string>& recorded, const std::string& file);

// KEY=VALUE lines of conventions that records of older versions do not state, because they were fixed then: float32
// scales, rounded pixels, no EXIF orientation, and the length of an epoch. Empty for newer records.
std::vector<std::string> unrecorded_conventions(const std::map<std::string, std::string>& recorded);

// Applies KEY=VALUE. Values are Python literals: numbers, True, False, None, strings with or without quotes, tuples and
// lists; they are never evaluated. Returns a notice if the key has no effect, else an empty text. Throws Error for an
// unknown key (with the nearest name), for a value of the wrong type or range, and for an unsupported value (with the
// reason).
std::string apply(Settings& settings, const std::string& assignment);

// The same for each line of a text file; # at the beginning of a line or after a space starts a comment. Returns the
// notices. Errors have file and line.
std::vector<std::string> apply_file(Settings& settings, const std::string& path);

}  // namespace dtrain::mask_rcnn
