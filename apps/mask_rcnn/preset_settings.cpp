// Presets beyond the detector: learning rates, schedules, data.
#include "apps/mask_rcnn/settings.h"
#include "dtrain/models/detection/presets.h"

namespace dtrain::mask_rcnn {
namespace {

// torchvision's references/detection for maskrcnn_resnet50_fpn: 26 epochs of COCO's 117,266 images with objects, at
// 0.02 for 16 images.
void set_torchvision(Settings& s) {
  for (data::ResizeRule* rule : {&s.data.training_resize, &s.data.evaluation_resize}) {
    rule->rounding = data::SizeRounding::down;
    rule->rounds_pixels = false;
  }
  s.rate.base_rate = 0.02;
  s.rate.reference_batch = 16;
  s.rate.warmup_rate = 2e-5;
  s.rate.in_epochs = true;
  s.rate.drops = {{16, 0.1}, {22, 0.01}};
  s.rate.end = 26;
  s.images_per_epoch = 117'266;
  s.epoch_of_coco = true;
  s.evaluate_epochs = s.checkpoint_epochs = 1;
}

void set_tensorpack(Settings& s) {
  s.data.training = {"coco_train2017"};
  s.data.validation = {"coco_val2017"};
  s.data.orientation = data::Orientation::apply;  // as OpenCV, its image library
  s.data.skips_ignored = true;
  s.fit_longest_side();
  s.rate.decays_biases = false;
  s.evaluate_epochs = 50;
  s.checkpoint_epochs = 20;
}

void set_tensorpack2019(Settings& s) {
  set_tensorpack(s);
  s.data.training = {"train2014", "valminusminival2014"};
  s.data.validation = {"minival2014"};
  s.rate.warmup_rate = 0.0033;
  s.rate.drops = {{240'000, 0.1}, {320'000, 0.01}};
  s.rate.end = 360'000;
  s.evaluate_epochs = 25;
  s.visible_score = 0.3;
}

void set_aws(Settings& s) {
  set_tensorpack(s);
  s.data.training = {"train2017"};
  s.data.validation = {"val2017"};
  s.rate.base_rate = 0.0125 / 8;
  s.rate.reference_batch = 1;
  s.rate.warmup_rate = 0.0033;
  s.rate.in_epochs = true;
  s.rate.drops = {{8, 0.1}, {10, 0.01}};
  s.rate.end = 12;
  s.images_per_epoch = 120'000;
  s.epoch_of_coco = true;
  s.evaluate_epochs = 1;
  s.seed = 1234;
  s.visible_score = 0.3;
  s.box_target = 0.377;
  s.mask_target = 0.339;
}

}  // namespace

Settings preset_settings(const std::string& preset) {
  Settings settings;
  settings.preset = preset;
  settings.detector = models::detector_preset(preset).options;
  if (preset == "torchvision") set_torchvision(settings);
  if (preset == "tensorpack") set_tensorpack(settings);
  if (preset == "tensorpack2019") set_tensorpack2019(settings);
  if (preset == "aws") set_aws(settings);
  return settings;
}

}  // namespace dtrain::mask_rcnn
