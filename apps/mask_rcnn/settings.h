// What is trained, on what and how: a preset, changed by TensorPack's and AWS Mask R-CNN's keys.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "data/detection.h"
#include "models/detection/options.h"

namespace dtrain::mask_rcnn {

struct DataSettings {
  std::string base_dir{};                             // has annotations/instances_SPLIT.json and SPLIT/
  std::vector<std::string> training{}, validation{};  // splits; those that are found where none is named
  std::vector<std::string> classes{};                 // names of the categories to keep; all where empty
  data::ResizeRule training_resize{}, evaluation_resize{};
  std::vector<data::ImageSize> canvases{};  // predefined padding; empty: automatic
  data::ColorJitter jitter{};
  float flip_probability = 0.5f;
  bool keep_empty = false;  // images without objects, in training
  float mean[3] = {123.675f, 116.28f, 103.53f}, deviation[3] = {58.395f, 57.12f, 57.375f};  // of red, green and blue
};

// The learning rate is that of a batch of `reference_batch` images, and grows in proportion to the batch; steps are
// those at that batch, and shrink likewise.
struct RateSettings {
  double base_rate = 0.01;
  int64_t reference_batch = 8;
  double warmup_rate = 1e-5;                                    // at which the warm-up begins, at the reference batch
  int64_t warmup_steps = 1000;                                  // steps of the run, whatever the batch
  std::vector<int64_t> schedule = {120'000, 160'000, 180'000};  // a tenth of the rate after each; the last is the end
  double momentum = 0.9, weight_decay = 1e-4, clip_norm = 0;    // of the gradient's global norm; 0: none
  bool decays_biases = true;                                    // or weights of convolutions and linear layers alone
};

struct Settings {
  std::string preset = "torchvision";
  models::DetectorOptions detector{};
  DataSettings data{};
  RateSettings rate{};
  int64_t batch = 1;                                   // images of a device
  int64_t steps_per_epoch = 500;                       // a reporting period
  int64_t evaluate_epochs = 0, checkpoint_epochs = 0;  // every so many periods; 0: at the end alone
  double box_target = 0, mask_target = 0;              // of AP; training ends where both are reached; 0: none
  double visible_score = 0.5;                          // what is drawn

  // The effective settings by key, for people and for checkpoints.
  std::map<std::string, std::string> described() const;
};

// Those of a preset, see models::detector_presets(). Throws Error naming those that there are.
Settings preset_settings(const std::string& preset);

// Applies KEY=VALUE. Throws Error for an unknown key, naming the nearest one, for a value of another type or out of
// range, and for a key that is known and cannot be served, with the reason.
void apply(Settings& settings, const std::string& assignment);

}  // namespace dtrain::mask_rcnn
