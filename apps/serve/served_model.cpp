#include "apps/serve/served_model.h"

#include <filesystem>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::serve {

ServedModel::ServedModel(ServedModelOptions options, const cli::FlagSet& set,
                         std::function<void(const Session*)> changed)
    : options_(std::move(options)), set_(set), changed_(std::move(changed)) {
  if (options_.train_dir.empty()) {
    cli::ClassifierFlags flags = options_.flags;
    flags.take_recorded(set_);
    flags.check();
    session_ = std::make_shared<Session>(flags, set_, options_.machine, options_.max_pixels, 0);
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

// A checkpoint that cannot be used leaves the one before in service. It may be removed while it is read, because a
// training keeps only its last few: then the next look finds a newer one.
void ServedModel::look() {
  std::string path;
  try {
    const auto newest = newest_checkpoint(options_.train_dir, looks_complete);
    if (!newest || *newest == path_ || *newest == failed_) return;
    path = *newest;
    const uint64_t step = verify_checkpoint(path).state.step;
    cli::ClassifierFlags flags = options_.flags;
    flags.weights = path + "/model.safetensors";
    flags.take_recorded(set_);
    flags.check();
    auto session = std::make_shared<Session>(flags, set_, options_.machine, options_.max_pixels, step);
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
