#include "apps/serve/served_model.h"

#include <filesystem>
#include <optional>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/recorded_weights.h"
#include "apps/detection/match_categories.h"
#include "apps/detection/recorded_categories.h"
#include "apps/mask_rcnn/predictor.h"
#include "apps/serve/classifier_session.h"
#include "apps/serve/detector_session.h"
#include "apps/ssd/predictor.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::serve {
namespace {

constexpr const char* kOfClassifiers[] = {"num_classes", "image_size", "preprocessing", "ml_perf"};

// Mask R-CNN settings: as recorded with the weights, or the preset's, overridden by flags.
mask_rcnn::Settings detector_settings(const std::optional<mask_rcnn::Settings>& recorded, const std::string& weights,
                                      const ServedModelOptions& options, const cli::FlagSet& set) {
  if (recorded && set.given("preset")) recorded->require_preset(options.preset, weights);
  if (!recorded && !set.given("preset"))
    cli::print_message("note", fmt::format("{} records no conventions; using --preset={}", weights, options.preset));
  mask_rcnn::Settings settings = recorded ? *recorded : mask_rcnn::preset_settings(options.preset);
  if (!options.config_file.empty()) mask_rcnn::apply_file(settings, options.config_file);
  if (recorded) settings.require_model_of(*recorded, weights);
  if (set.given("exif_orientation"))
    mask_rcnn::apply(settings, "PREPROC.EXIF_ORIENTATION=" + options.flags.exif_orientation);
  settings.weights = weights;
  settings.check();
  return settings;
}

}  // namespace

ServedModel::ServedModel(ServedModelOptions options, const cli::FlagSet& set,
                         std::function<void(const Session*)> changed)
    : options_(std::move(options)), set_(set), changed_(std::move(changed)) {
  if (options_.train_dir.empty()) {
    session_ = session_of(weights_file(options_.flags.weights), 0);
    changed_(session_.get());
    return;
  }
  look(/*starting=*/true);
  thread_ = std::thread([this] { watch(); });
}

ServedModel::~ServedModel() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

std::shared_ptr<const Session> ServedModel::session() const {
  const std::lock_guard lock(mutex_);
  return session_;
}

std::unique_ptr<detection::ImageDetector> ServedModel::detector_with(const std::string& weights) const {
  const WeightsRecord record = cli::recorded_with(weights);
  std::string model = options_.flags.model;
  if (const auto recorded = record.find(cli::kModelKey); model.empty() && recorded != record.end())
    model = recorded->second;
  const auto recorded = mask_rcnn::recorded_settings(record, weights);
  const bool is_ssd = model == ssd::kName;
  if (!is_ssd && !recorded && model != "mask_rcnn") return nullptr;
  for (const char* name : kOfClassifiers)
    DT_CHECK(!set_.given(name), "--", name, ": for image classifiers only, and the model is a detector");
  DT_CHECK(options_.flags.precision == "fp32", "--precision=", options_.flags.precision,
           ": for image classifiers only, and the model is a detector");
  const bool annotated = !options_.annotations.empty();
  const std::string& source = annotated ? options_.annotations : weights;
  if (is_ssd) {  // its classes are COCO's
    DT_CHECK(!set_.given("exif_orientation"), "--exif_orientation: SSD300 sees images as they are stored");
    const auto known =
        annotated ? detection::categories_in(options_.annotations) : detection::recorded_categories(weights);
    return std::make_unique<ssd::Predictor>(weights, options_.machine, known, source);
  }
  const mask_rcnn::Settings settings = detector_settings(recorded, weights, options_, set_);
  std::vector<std::string> notices;
  auto known = detection::known_categories(weights, options_.annotations, settings.data.classes, notices);
  cli::print_notes(notices);
  return std::make_unique<mask_rcnn::Predictor>(settings, options_.machine, std::move(known), source);
}

std::shared_ptr<Session> ServedModel::session_of(const std::string& weights, uint64_t version) const {
  if (auto detector = detector_with(weights))
    return std::make_shared<DetectorSession>(std::move(detector), options_.max_pixels, version);
  cli::ClassifierFlags flags = options_.flags;
  flags.weights = weights;
  flags.ranges_for_any_weights = !options_.train_dir.empty();
  flags.take_recorded(set_);
  flags.check();
  return std::make_shared<ClassifierSession>(flags, set_, options_.machine, options_.max_pixels, version);
}

// An unusable checkpoint leaves the previous one in service. A checkpoint may be deleted while it is read, because
// training keeps only the newest; the next poll then finds a newer one. Flags that conflict with the first checkpoint
// will conflict with later ones too.
void ServedModel::look(bool starting) {
  std::string path;
  try {
    const auto newest = newest_checkpoint(options_.train_dir, looks_complete);
    if (!newest || *newest == path_ || *newest == failed_) return;
    path = *newest;
    const uint64_t step = verify_checkpoint(path).state.step;
    auto session = session_of(path + "/model.safetensors", step);
    changed_(session.get());
    cli::print_message("note", fmt::format("{}: taken up", path));
    path_ = path;
    const std::lock_guard lock(mutex_);
    session_ = std::move(session);
  } catch (const std::exception& error) {
    const auto* const own = dynamic_cast<const Error*>(&error);
    if (starting && own && own->fault() == Fault::config) throw;
    if (path.empty() && failed_ == error.what()) return;  // the folder, or a format, that the last poll reported
    changed_(nullptr);
    failed_ = path.empty() ? error.what() : path;
    cli::print_message("warning", fmt::format("cannot load a checkpoint: {}", error.what()));
  }
}

void ServedModel::watch() {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::duration<double>(options_.poll_seconds);
  while (!wake_.wait_for(lock, pause, [&] { return ending_; })) {
    lock.unlock();
    look(/*starting=*/false);
    lock.lock();
  }
}

}  // namespace dtrain::serve
