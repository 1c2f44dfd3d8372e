#include "apps/mask_rcnn/settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "apps/mask_rcnn/config_keys.h"
#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr int64_t kCoarsestStride = 32;  // of a backbone

std::string trimmed(const std::string& text) {
  const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
  return begin == text.npos ? "" : text.substr(begin, end - begin + 1);
}

struct Assignment {
  std::string key, value;
};

Assignment split(const std::string& text) {
  const size_t equals = text.find('=');
  DT_CHECK(equals != text.npos && equals > 0, "expected KEY=VALUE, found '", text, "'");
  return {trimmed(text.substr(0, equals)), trimmed(text.substr(equals + 1))};
}

// Strips a comment.
std::string code_of(const std::string& line) {
  for (size_t i = 0; i < line.size(); ++i)
    if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) return trimmed(line.substr(0, i));
  return trimmed(line);
}

// Checks `channels` of layers with group norm.
void check_groups(bool group_norm, const char* key, int64_t channels) {
  DT_CHECK(!group_norm || channels % models::kNormGroups == 0, key, "=", channels, ": expected a multiple of ",
           models::kNormGroups, " with group norm");
}

void check_resize(const data::ResizeRule& rule, const char* key) {
  DT_CHECK(rule.max_short_edge <= rule.max_size, key, "=", rule.max_short_edge,
           ": expected at most the longest side, PREPROC.MAX_SIZE=", rule.max_size);
  rule.check();
}

}  // namespace

void Settings::fit_longest_side() {
  int64_t size = longest_side;
  if (preset != "torchvision") {
    if (detector.pyramid) size = (size + kCoarsestStride - 1) / kCoarsestStride * kCoarsestStride;
    detector.rpn.coder.clip = detector.box.coder.clip = std::log(static_cast<float>(size) / 16);
  }
  data.training_resize.max_size = data.evaluation_resize.max_size = size;
}

data::coco::Paste Settings::paste() const {
  return preset == "torchvision" ? data::coco::Paste::whole_pixels : data::coco::Paste::continuous;
}

void Settings::fit_epoch(uint64_t images, bool are_coco, int64_t images_per_step) {
  if (!epoch_of_coco || are_coco) return;
  images_per_epoch = std::max(static_cast<int64_t>(images), images_per_step);
  if (rate.fits_warmup) rate.warmup_steps = std::min(rate.warmup_steps, epoch_steps(images_per_step) - 1);
}

int64_t Settings::epoch_steps(int64_t images_per_step) const {
  DT_CHECK(images_per_step > 0, "a batch of ", images_per_step, " images: expected at least one");
  if (images_per_epoch == 0) return steps_per_epoch;
  DT_CHECK(images_per_epoch >= images_per_step, "TRAIN.IMAGES_PER_EPOCH=", images_per_epoch,
           ": expected at least the batch, ", images_per_step);
  return images_per_epoch / images_per_step;
}

void Settings::check() const {
  const MatchOptions& anchors = detector.rpn.match;
  DT_CHECK(anchors.negative <= anchors.positive, "RPN.NEGATIVE_ANCHOR_THRESH=", anchors.negative,
           ": expected at most RPN.POSITIVE_ANCHOR_THRESH, ", anchors.positive);
  check_groups(detector.box.group_norm, "FPN.FRCNN_CONV_HEAD_DIM", detector.box.channels);
  check_groups(detector.mask.group_norm, "MRCNN.HEAD_DIM", detector.mask.channels);
  check_groups(detector.pyramid_norm, "FPN.NUM_CHANNEL", detector.channels);
  DT_CHECK(detector.backbone.batch_norm.frozen || !detector.freeze_norms,
           "BACKBONE.FREEZE_AFFINE=True: expected BACKBONE.NORM=FreezeBN with it");
  if (!detector.pyramid) {
    DT_CHECK(!detector.cascade, "FPN.CASCADE=True: expected MODE_FPN=True with it");
    DT_CHECK(detector.backbone.norm != models::ConvNorm::batch || detector.backbone.batch_norm.frozen,
             "MODE_FPN=False: expected BACKBONE.NORM=FreezeBN, GN or None with it, because padding RoIs would enter "
             "the batch statistics");
  }
  DT_CHECK(!detector.cascade || detector.stages.front().iou == detector.box.match.positive,
           "FRCNN.FG_THRESH=", detector.box.match.positive, ": expected the first head's with FPN.CASCADE, ",
           detector.stages.front().iou, ", see CASCADE.IOUS");
  check_resize(data.evaluation_resize, "PREPROC.TEST_SHORT_EDGE_SIZE");
}

void Settings::check_training() const { check_resize(data.training_resize, "PREPROC.TRAIN_SHORT_EDGE_SIZE"); }

std::string apply(Settings& settings, const std::string& assignment) {
  const auto [name, value] = split(assignment);
  if (name == kPreset) {
    DT_CHECK(unquoted(value) == settings.preset, kPreset, "=", value, ": the settings are those of the preset ",
             settings.preset, ", which no key changes");
    return "";
  }
  const ConfigKey& key = config_key(name);
  try {
    key.set(settings, value);
  } catch (const Error& error) {
    throw Error(fmt::format("{}={}: {}", name, value, error.what()));
  }
  return key.notice.empty() ? "" : fmt::format("{}={} has no effect: {}", name, value, key.notice);
}

std::vector<std::string> apply_file(Settings& settings, const std::string& path) {
  constexpr size_t kLargest = 1 << 20;
  const std::string text = read_text(path, kLargest, Fault::config);
  constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
  std::vector<std::string> notices;
  size_t number = 1;
  for (size_t begin = text.starts_with(kByteOrderMark) ? kByteOrderMark.size() : 0; begin < text.size(); ++number) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = code_of(text.substr(begin, end - begin));
    begin = end + 1;
    if (line.empty()) continue;
    try {
      const std::string notice = apply(settings, line);
      if (!notice.empty()) notices.push_back(notice);
    } catch (const Error& error) {
      throw Error(fmt::format("{}, line {}: {}", path, number, error.what()));
    }
  }
  return notices;
}

}  // namespace dtrain::mask_rcnn
