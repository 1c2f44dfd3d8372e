// Settings recorded with checkpoints and weights: writing, reading and comparison.
#include <fmt/format.h>

#include "apps/mask_rcnn/config_keys.h"
#include "apps/mask_rcnn/settings.h"
#include "dtrain/core/error.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr char kOrientation[] = "PREPROC.EXIF_ORIENTATION", kScaleType[] = "PREPROC.RESIZE_SCALE_DTYPE",
               kEpoch[] = "TRAIN.IMAGES_PER_EPOCH";

// Keys of data location, initial weights and training hyperparameters.
bool is_of_training_alone(const std::string& key) {
  return key == "DATA.BASEDIR" || key == "DATA.VAL" || key == "DATA.FILTER_EMPTY_ANNOTATIONS" ||
         key == "BACKBONE.WEIGHTS" || key == "TEST.BOX_TARGET" || key == "TEST.MASK_TARGET" ||
         key == "TEST.BATCH_SIZE_PER_GPU" || key.starts_with("DATA.TRAIN") || key.starts_with("TRAIN.");
}

}  // namespace

std::map<std::string, std::string> Settings::described() const {
  std::map<std::string, std::string> texts{{kPreset, preset}};
  for (const ConfigKey& key : config_keys())
    if (const auto value = key.get(*this)) texts[key.name] = *value;
  return texts;
}

std::map<std::string, std::string> Settings::model_identity() const {
  std::map<std::string, std::string> texts{{kPreset, preset}};
  for (const ConfigKey& key : config_keys())
    if (const auto value = key.get(*this); value && key.of_model) texts[key.name] = *value;
  return texts;
}

std::map<std::string, std::string> Settings::recorded_with_weights() const {
  std::map<std::string, std::string> texts = described();
  std::erase_if(texts, [](const auto& entry) { return is_of_training_alone(entry.first); });
  return texts;
}

void Settings::require_model_of(const Settings& recorded, const std::string& file) const {
  const std::map<std::string, std::string> ours = model_identity();
  for (const auto& [key, theirs] : recorded.model_identity()) {
    const auto found = ours.find(key);
    DT_CHECK(found != ours.end() && found->second == theirs, key, "=", found == ours.end() ? "" : found->second, ": ",
             file, " was trained with ", theirs, "; leave the key out");
  }
}

void Settings::require_preset(const std::string& name, const std::string& file) const {
  DT_CHECK(name == preset, "--preset=", name, ": ", file, " was trained with the preset ", preset,
           "; leave the flag out");
}

std::vector<std::string> unrecorded_conventions(const std::map<std::string, std::string>& recorded) {
  const auto preset = recorded.find(kPreset);
  if (preset == recorded.end() || recorded.contains(kOrientation)) return {};
  std::vector<std::string> lines = {fmt::format("{}=ignore", kOrientation)};
  if (preset->second == "torchvision" && !recorded.contains(kScaleType)) {
    lines.push_back(fmt::format("{}=float32", kScaleType));
    lines.emplace_back("PREPROC.ROUND_PIXELS=True");
  }
  if (const auto epoch = recorded.find(kEpoch); epoch != recorded.end())
    lines.push_back(fmt::format("{}={}", kEpoch, epoch->second));
  return lines;
}

std::optional<Settings> recorded_settings(const std::map<std::string, std::string>& recorded, const std::string& file) {
  const auto preset = recorded.find(kPreset);
  if (preset == recorded.end()) return std::nullopt;
  std::string what = fmt::format("{}={}", kPreset, preset->second);
  try {
    Settings settings = preset_settings(preset->second);
    for (const std::string& line : unrecorded_conventions(recorded)) apply(settings, line);
    for (const ConfigKey& key : config_keys())
      if (const auto found = recorded.find(key.name); found != recorded.end() && !is_of_training_alone(key.name)) {
        what = fmt::format("{}={}", key.name, found->second);
        key.set(settings, found->second);
      }
    what = "what is recorded";
    settings.check();
    return settings;
  } catch (const Error& error) {
    throw Error(Fault::checkpoint, fmt::format("{}: {}: {}", file, what, error.what()));
  }
}

}  // namespace dtrain::mask_rcnn
