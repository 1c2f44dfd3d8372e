#include "apps/cli/recorded_weights.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/messages.h"
#include "dtrain/io/input_file.h"
#include "dtrain/models/catalog.h"
#include "dtrain/models/conventions.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostStateBytes = size_t{1} << 20, kMostNameBytes = size_t{16} << 20, kMostNames = 1'000'000;

// State of the checkpoint that contains `file`.
WeightsRecord recorded_beside(const std::string& file) {
  const fs::path folder = fs::path(file).parent_path(), state = folder / "state.json";
  std::error_code none;
  if (!fs::is_regular_file(state, none) || !fs::exists(folder / "MANIFEST.json", none)) return {};
  TrainState read = train_state_from(read_text(state.string(), kMostStateBytes, Fault::checkpoint), state.string());
  read.identity.merge(read.settings);
  return std::move(read.identity);
}

// Metadata of a safetensors file; empty if it is invalid: loading it reports the fault.
SafetensorsMetadata metadata_in(const std::string& file) {
  try {
    return SafetensorsFile(file, Fault::checkpoint).metadata();
  } catch (const Error& error) {
    if (error.fault() == Fault::resource)
      throw;  // a server that does not answer now may answer when weights are loaded
    return {};
  }
}

std::vector<std::string> class_names_from(const std::string& text, const std::string& file) {
  if (text.empty()) return {};
  const std::string where = fmt::format("{}: {}", file, kClassNamesKey);
  const JsonLimits limits{.bytes = kMostNameBytes, .depth = 2, .values = kMostNames};
  const auto names = parse_json<nlohmann::json>(text, where, Fault::checkpoint, limits);
  try {
    return names.get<std::vector<std::string>>();
  } catch (const nlohmann::json::exception& error) {
    throw Error(Fault::checkpoint, fmt::format("{}: expected a list of texts: {}", where, error.what()));
  }
}

const char* name_of(models::PaddingConvention padding) {
  switch (padding) {
    case models::PaddingConvention::symmetric:
      return "symmetric";
    case models::PaddingConvention::same_pool:
      return "same_pool";
    case models::PaddingConvention::same:
      return "same";
  }
  return "";
}

// Settings in which fine-tuning may differ from the recorded training.
bool is_of_training(const std::string& flag) {
  constexpr std::array kFlags = {"num_classes", "image_size",       "data_name",    "preprocessing",
                                 "ml_perf",     "exif_orientation", "label_offset", "loss"};
  return std::ranges::find(kFlags, flag) != kFlags.end();
}

// An empty convention is the model's default; null: unknown model.
std::string resolved(const std::string& flag, const std::string& value, const models::ClassifierInfo* info) {
  if (info == nullptr || !info->residual || !(value.empty() || value == "auto")) return value;
  if (flag == "bottleneck_stride") return *info->conventions.stride_in_3x3 ? "3x3" : "1x1";
  if (flag == "resnet_padding") return name_of(*info->conventions.padding);
  if (flag == "batch_norm_epsilon") return fmt::format("{}", *info->conventions.batch_norm_epsilon);
  return value;
}

bool same_value(const std::string& a, const std::string& b) {
  if (a == b || a.empty() || b.empty()) return a == b;
  char *end_a = nullptr, *end_b = nullptr;
  const float x = std::strtof(a.c_str(), &end_a), y = std::strtof(b.c_str(), &end_b);
  return *end_a == '\0' && *end_b == '\0' && x == y;
}

}  // namespace

WeightsRecord recorded_with(const std::string& file) {
  WeightsRecord record = record_in(metadata_in(file));
  return record.empty() ? recorded_beside(file) : record;
}

std::vector<RecordedFlag> RecordedClassifier::flags() const {
  if (model.empty()) return {};
  const std::string stride = !conventions.stride_in_3x3 ? "auto" : *conventions.stride_in_3x3 ? "3x3" : "1x1";
  const std::string way = preprocessing.substr(0, preprocessing.find(','));
  return {{"model", kModelKey, model},
          {"num_classes", kClassesKey, classes},
          {"data_name", kDataNameKey, data_name},
          {"label_offset", kLabelOffsetKey, label_offset},
          {"image_size", kImageSizeKey, image_size},
          {"exif_orientation", kOrientationKey, orientation},
          {"preprocessing", kPreprocessingKey, way},
          {"loss", kLossKey, loss},
          {"ml_perf", kPreprocessingKey,
           way.empty()                            ? ""
           : preprocessing.ends_with(", ml_perf") ? "true"
                                                  : "false"},
          {"bottleneck_stride", kModelKey, stride},
          {"resnet_padding", kModelKey, conventions.padding ? name_of(*conventions.padding) : "auto"},
          {"batch_norm_epsilon", kModelKey,
           conventions.batch_norm_epsilon ? fmt::format("{}", *conventions.batch_norm_epsilon) : ""}};
}

void RecordedClassifier::imply(FlagSet& set, const RecordedFlag& one) const {
  try {
    set.imply(one.flag, one.value, "weights");
  } catch (const Error& error) {
    throw Error(Fault::checkpoint, fmt::format("{}: {}={}: {}", file, one.key, one.value, error.what()));
  }
}

void RecordedClassifier::refuse_contradictions(const FlagSet& set,
                                               const std::function<bool(const std::string& flag)>& which) const {
  const models::ClassifierInfo* const info = models::find_classifier(model, data_name);
  for (const auto& [flag, key, value] : flags()) {
    if (flag == "image_size" || flag == "exif_orientation" || !set.declares(flag) || !set.given(flag) || !which(flag))
      continue;
    if (flag == "num_classes" && set.text(flag) == "0") continue;  // as in the weights
    const std::string recorded = resolved(flag, value, info);
    DT_CHECK(recorded.empty() || same_value(resolved(flag, set.text(flag), info), recorded), "--", flag, "=",
             set.text(flag), ": ", file, " was trained with ", recorded, "; leave the flag out");
  }
}

RecordedClassifier recorded_classifier(const std::string& file) {
  const WeightsRecord record = recorded_with(file);
  const auto value = [&](const char* key) {
    const auto found = record.find(key);
    return found == record.end() ? std::string() : found->second;
  };
  RecordedClassifier recorded{.file = file};
  const std::string form = value(kModelKey);
  recorded.model = form.substr(0, form.find(','));
  if (recorded.model.empty()) return recorded;
  try {
    recorded.conventions = models::conventions_from(form.substr(recorded.model.size()));
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("{}: {}={}: {}", file, kModelKey, form, error.what()));
  }
  recorded.classes = value(kClassesKey);
  recorded.data_name = value(kDataNameKey);
  recorded.image_size = value(kImageSizeKey);
  recorded.preprocessing = value(kPreprocessingKey);
  recorded.orientation = value(kOrientationKey);
  recorded.label_offset = value(kLabelOffsetKey);
  recorded.loss = value(kLossKey);
  recorded.class_names = class_names_from(value(kClassNamesKey), file);
  return recorded;
}

std::vector<std::string> take_recorded(FlagSet& flags, const std::string& path, bool trains) {
  if (path.empty()) return {};
  const RecordedClassifier recorded = recorded_classifier(weights_file(path));
  const bool another = flags.given("model") && flags.text("model") != recorded.model;
  if (recorded.model.empty() || (trains && another)) return {};
  recorded.refuse_contradictions(flags, [&](const std::string& flag) { return !trains || !is_of_training(flag); });
  std::string taken;
  for (const RecordedFlag& one : recorded.flags()) {
    const bool stays = one.value.empty() || flags.given(one.flag) || flags.text(one.flag) == one.value;
    if (stays || (trains && is_of_training(one.flag))) continue;
    recorded.imply(flags, one);
    taken += fmt::format(" --{}={}", one.flag, one.value);
  }
  if (taken.empty()) return {};
  return {fmt::format("{} was trained with{}: taken", recorded.file, taken)};
}

void print_notices(const WeightReport& report, const std::string& path) {
  for (const std::string& notice : report.notices()) print_message("note", fmt::format("{}: {}", path, notice));
}

WeightsRecord classifier_record(const TrainState& state, const std::string& data_name,
                                const std::vector<std::string>& class_names) {
  WeightsRecord record = {{kDataNameKey, data_name}};
  for (const char* key : {kModelKey, kClassesKey, kImageSizeKey, kPreprocessingKey, kLabelOffsetKey, kLossKey})
    if (const auto found = state.identity.find(key); found != state.identity.end()) record[key] = found->second;
  if (const auto found = state.settings.find(kOrientationKey); found != state.settings.end()) record.insert(*found);
  if (!class_names.empty())
    record[kClassNamesKey] = nlohmann::json(class_names).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return record;
}

}  // namespace dtrain::cli
