#include "apps/serve/served_model.h"

#include <filesystem>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/serve/classifier_session.h"
#include "apps/serve/detector_session.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::serve {

ServedModel::ServedModel(ServedModelOptions options, const cli::FlagSet& set,
                         std::function<void(const Session*)> changed)
    : options_(std::move(options)), set_(set), changed_(std::move(changed)) {
  if (options_.train_dir.empty()) {
    session_ = session_of(options_.flags.weights, 0);
    changed_(session_.get());
    return;
  }
  look();
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

std::shared_ptr<Session> ServedModel::session_of(const std::string& weights, uint64_t version) const {
  TrainState state = cli::recorded_state(weights);
  state.identity.merge(state.settings);
  auto settings = mask_rcnn::recorded_settings(state.identity);
  if (settings || options_.flags.model == "mask_rcnn") {
    if (!settings) settings = mask_rcnn::preset_settings(options_.preset);
    if (!options_.config_file.empty()) mask_rcnn::apply_file(*settings, options_.config_file);
    settings->weights = weights;
    settings->check();
    std::vector<data::coco::Category> known;
    if (!options_.annotations.empty()) known = data::coco::read_annotations(options_.annotations).categories;
    return std::make_shared<DetectorSession>(*settings, options_.machine, std::move(known), options_.annotations,
                                             options_.max_pixels, version);
  }
  cli::ClassifierFlags flags = options_.flags;
  flags.weights = weights;
  flags.take_recorded(set_);
  flags.check();
  return std::make_shared<ClassifierSession>(flags, set_, options_.machine, options_.max_pixels, version);
}

// A checkpoint that cannot be used leaves the one before in service. It may be removed while it is read, because a
// training keeps only its last few: then the next look finds a newer one.
void ServedModel::look() {
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
    changed_(nullptr);
    failed_ = path;
    cli::print_message("warning", fmt::format("cannot take up a checkpoint: {}", error.what()));
  }
}

void ServedModel::watch() {
  std::unique_lock lock(mutex_);
  const auto pause = std::chrono::duration<double>(options_.poll_seconds);
  while (!wake_.wait_for(lock, pause, [&] { return ending_; })) {
    lock.unlock();
    look();
    lock.lock();
  }
}

}  // namespace dtrain::serve
