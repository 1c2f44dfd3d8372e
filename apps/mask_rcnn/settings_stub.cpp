#include "apps/mask_rcnn/rate_rule.h"
#include "models/detection/presets.h"

namespace dtrain::mask_rcnn {
std::map<std::string, std::string> Settings::described() const { return {{"preset", preset}}; }
Settings preset_settings(const std::string& preset) {
  Settings s;
  s.preset = preset;
  s.detector = models::detector_preset(preset).options;
  return s;
}
void apply(Settings& s, const std::string& a) {
  const auto e = a.find('=');
  const std::string k = a.substr(0, e);
  const double v = std::stod(a.substr(e + 1));
  if (k == "SIZE") s.data.training_resize = s.data.evaluation_resize = {int64_t(v), int64_t(v), int64_t(v) * 2};
  if (k == "LR") s.rate.base_rate = v;
  if (k == "STEPS") s.rate.schedule = {int64_t(v)};
  if (k == "WARMUP") s.rate.warmup_steps = int64_t(v);
  if (k == "FREEZE") s.detector.freeze_at = int(v), s.detector.freeze_norms = v > 0;
  if (k == "FLIP") s.data.flip_probability = float(v);
  if (k == "DEPTH18") s.detector.backbone.blocks = {2, 2, 2, 2}, s.detector.backbone.bottleneck = false;
  if (k == "TINY") {
    s.detector.channels = 64, s.detector.box.features = 256, s.detector.mask.channels = 64;
    s.detector.mask.convolutions = 2, s.detector.box.batch = 64, s.detector.box.positives = 32;
    s.detector.rpn.training = {500, 200}, s.detector.rpn.evaluation = {300, 100};
  }
  if (k == "BN") s.detector.backbone.batch_norm.frozen = v == 0;
}
RateRule::RateRule(const RateSettings& s, int64_t b) : settings_(s), batch_(b), steps_(s.schedule.back()) {
  schedule_.base = s.base_rate * b / s.reference_batch;
  schedule_.warmup_epochs = s.warmup_steps;
  schedule_.steps_per_epoch = 1;
}
std::vector<std::string> RateRule::lines() const { return {}; }
}  // namespace dtrain::mask_rcnn
