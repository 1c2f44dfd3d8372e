// What is trained, on what and how: a preset, changed by TensorPack's and AWS Mask R-CNN's keys.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "data/coco/paste.h"
#include "data/detection.h"
#include "models/detection/options.h"

namespace dtrain::mask_rcnn {

struct DataSettings {
  std::string base_dir{};                             // has annotations/instances_SPLIT.json and SPLIT/
  std::vector<std::string> training{}, validation{};  // splits; those that are found where none is named
  std::vector<std::string> classes{};                 // names of the categories to keep; all where empty
  data::ResizeRule training_resize{}, evaluation_resize{};
  bool predefined_padding = false;
  std::vector<data::ImageSize> padding_shapes = {{800, 1000}, {800, 1200}, {800, 1350}};  // landscape ones
  data::ColorJitter jitter{};
  float flip_probability = 0.5f;
  bool names_training = false, names_validation = false;      // a key has named the splits, and the preset has not
  data::Orientation orientation = data::Orientation::ignore;  // whether EXIF turns images
  bool keep_empty = false;                                    // images without objects, in training
  bool skips_ignored = false;                                 // objects with "ignore": 1, in training
  bool strict = false;  // annotations with faults are refused, instead of doing without what is faulty
  float mean[3] = {123.675f, 116.28f, 103.53f}, deviation[3] = {58.395f, 57.12f, 57.375f};  // of red, green and blue

  // With predefined padding its shapes and their transposes, rounded up to multiples of 32; else none, which leaves the
  // choice to data::DetectionDataset.
  std::vector<data::ImageSize> canvases() const;
};

// From `after` on the rate is `factor` times what it was after the warm-up.
struct RateDrop {
  double after = 0, factor = 0.1;
};

// The learning rate is that of a batch of `reference_batch` images, and grows in proportion to the batch.
struct RateSettings {
  // Steps of the schedule are those at this batch, and shrink as the batch grows.
  static constexpr int64_t kScheduleBatch = 8;

  double base_rate = 0.01;
  int64_t reference_batch = 8;
  double warmup_rate = 1e-5;    // of the first step, whatever the batch
  int64_t warmup_steps = 1000;  // steps of the run, whatever the batch
  bool fits_warmup = true;      // it is a default, which ends before a short first epoch of the user's data does
  bool of_preset = true;        // nobody has set drops and end
  bool in_epochs = false;       // `after` and `end` are epochs, see Settings::epoch_steps(); else steps
  std::vector<RateDrop> drops = {{120'000, 0.1}, {160'000, 0.01}};
  double end = 180'000;
  double momentum = 0.9, weight_decay = 1e-4, clip_norm = 0;  // of the gradient's global norm; 0: none
  bool decays_biases = true;                                  // and the parameters of norms; or other weights alone
};

struct Settings {
  std::string preset = "torchvision";
  models::DetectorOptions detector{};
  std::string weights{};  // a file to start from; empty: none
  // Shares of matched ones among the anchors and regions that are drawn; the detector's options follow.
  double anchor_share = 0.5, region_share = 0.25;
  DataSettings data{};
  RateSettings rate{};
  bool synchronised_norms = false;          // batch norms of the backbone: over the images of all ranks
  int64_t longest_side = 1333;              // of images, as a key gives it; see fit_longest_side()
  int64_t batch = 1, evaluation_batch = 1;  // images of a device
  std::optional<int64_t> seed{};            // where a key gives one
  int64_t steps_per_epoch = 500;            // a reporting period
  int64_t images_per_epoch = 0;             // if not 0, the period is as many steps as it has whole batches instead
  bool epoch_of_coco = false;               // that many are COCO's by default, which other data do not have
  int64_t evaluate_epochs = 0, checkpoint_epochs = 0;  // every so many periods; 0: at the end alone
  double box_target = 0, mask_target = 0;              // of AP; training ends where both are reached; 0: none
  double visible_score = 0.5;                          // what is drawn

  // Limits the sizes of images. TensorPack makes a multiple of the coarsest stride of a pyramid of the longest side,
  // and limits the sizes of decoded boxes by it.
  void fit_longest_side();
  // How the program of the preset makes pixels of masks.
  data::coco::Paste paste() const;
  // Whether that program scores masks with their boxes in one list, by whose areas detections are small or large then.
  bool area_of_box() const { return preset != "torchvision"; }
  // An epoch is one pass over the `images` to train on, unless they are COCO's or a key has said otherwise; the default
  // warm-up then ends within the first epoch. `batch` as below.
  void fit_epoch(uint64_t images, bool are_coco, int64_t batch);
  // Steps of a reporting period at `batch` images a step, all devices together. Throws Error where there are none.
  int64_t epoch_steps(int64_t batch) const;
  // Throws Error where settings that are sound by themselves do not go together: those of the model and of evaluation,
  // and those of training alone.
  void check() const;
  void check_training() const;
  // The effective settings by key, for people and for checkpoints: applied to those of the same preset, they are these.
  std::map<std::string, std::string> described() const;
  // Those that make the model what it is: the preset and the keys that are `of_model`. A checkpoint must agree.
  std::map<std::string, std::string> model_identity() const;
  // Those that evaluating and showing the weights takes: all but folders, splits and what training alone reads.
  std::map<std::string, std::string> recorded_with_weights() const;
  // Throws Error(Fault::config) naming a key and both values where model_identity() is another than that of `recorded`,
  // the settings that the weights in `file` were trained with.
  void require_model_of(const Settings& recorded, const std::string& file) const;
  // Throws the same where `name`, that of --preset, is not that of these settings, which are recorded with `file`.
  void require_preset(const std::string& name, const std::string& file) const;
};

// Those of a preset, see models::detector_presets(). Throws Error naming those that there are.
Settings preset_settings(const std::string& preset);

// Those that the weights in `file` have recorded, as recorded_with_weights() has them; none where `recorded` is of
// another program. Other entries are left out. Throws Error(Fault::checkpoint), which names file, key and value, for a
// record that no program here writes.
std::optional<Settings> recorded_settings(const std::map<std::string, std::string>& recorded, const std::string& file);

// KEY=VALUE lines of conventions that a record does not state because it is of a version that knew no others: float32
// scales, rounded pixels, images as they are stored, and the length of an epoch. Empty for newer records.
std::vector<std::string> unrecorded_conventions(const std::map<std::string, std::string>& recorded);

// Applies KEY=VALUE. Values are Python's literals: numbers, True, False, None, texts with or without quotes, tuples and
// lists; they are never evaluated. Returns a notice for people where the key has no effect here, else an empty text.
// Throws Error for an unknown key, naming the nearest one, for a value of another type or out of range, and for one
// that cannot be served, with the reason.
std::string apply(Settings& settings, const std::string& assignment);

// The same for each line of a text file; what follows a # at the beginning of a line or after a space is a comment.
// Returns the notices. Errors name the file and the line.
std::vector<std::string> apply_file(Settings& settings, const std::string& path);

}  // namespace dtrain::mask_rcnn
