// Uploads of RemoteTrainDir.
#include <algorithm>
#include <filesystem>
#include <ranges>
#include <set>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBestObject = "best";

}  // namespace

bool RemoteTrainDir::stays_local(const std::string& name) {
  static const std::set<std::string> kNames = {"lock", "crashed", kBestObject};
  return kNames.contains(name) || name.starts_with('.') || is_temporary_name(name);
}

void RemoteTrainDir::publish(const CommittedCheckpoint& committed) {
  try {
    lease_->require_held();
    Listed listed = checkpoints_.list();
    upload(committed.step, committed.path, listed, /*replaces_later=*/true);
    // The best checkpoint, if its own upload failed.
    for (const uint64_t step : committed.kept_too)
      if (const std::string path = checkpoint_path(local("checkpoints"), step);
          step < committed.step && !listed[step].has_manifest && looks_complete(path))
        upload(step, path, listed, /*replaces_later=*/false);
    prune(committed, listed);
    failing_ = false;
  } catch (const Error& error) {
    failing_ = true;
    throw Error(error.fault(), concat(error.what(), "; the checkpoint is complete in ", committed.path));
  }
}

void RemoteTrainDir::upload(uint64_t step, const std::string& path, Listed& listed, bool replaces_later) {
  for (auto at = listed.lower_bound(step); at != listed.end() && (replaces_later || at->first == step);) {
    checkpoints_.remove(at->first, at->second);
    at = listed.erase(at);
  }
  const ObjectManifest manifest = checkpoints_.upload_data(step, path);
  upload_files();
  lease_->require_held();  // the upload may have taken long
  checkpoints_.commit(manifest);
  ListedCheckpoint& made = listed[step];
  made.has_manifest = true;
  for (const auto& [name, sum] : manifest.files) made.files[name] = sum.bytes;
}

void RemoteTrainDir::upload_files() {
  std::set<std::string> names;
  std::error_code failure, gone;
  for (fs::directory_iterator at(options_.folder, failure), end; !failure && at != end; at.increment(failure))
    if (const std::string name = at->path().filename(); !stays_local(name) && at->is_regular_file(gone))
      names.insert(name);
  if (failure)
    throw Error(Fault::resource, concat(options_.folder, ": cannot list the directory: ", failure.message()));
  for (const std::string& name : names) {
    try {
      const InputFile file(local(name), Fault::resource);
      const Signature signature{file.size(), file.revision()};
      if (const auto found = uploaded_.find(name); found != uploaded_.end() && found->second == signature) continue;
      remote::upload_file(*storage_, local(name), object(name));
      uploaded_[name] = signature;
    } catch (const Error&) {
      if (fs::exists(local(name), gone)) throw;  // else removed since it was listed
    }
  }
  for (auto at = uploaded_.begin(); at != uploaded_.end();) {
    if (names.contains(at->first)) {
      ++at;
      continue;
    }
    storage_->s3.remove(object(at->first));
    at = uploaded_.erase(at);
  }
  upload_best();
}

void RemoteTrainDir::upload_best() {
  std::error_code none;
  const std::string target = fs::read_symlink(local(kBestObject), none);
  if (none || target == best_) return;
  storage_->s3.put(object(kBestObject), target);
  best_ = target;
}

// Also deletes data objects without a manifest, which killed runs left.
void RemoteTrainDir::prune(const CommittedCheckpoint& committed, const Listed& listed) const {
  int64_t kept = 0;
  for (const auto& [step, checkpoint] : std::views::reverse(listed)) {
    const bool is_newest = checkpoint.has_manifest && kept < committed.keep;
    const bool is_kept = checkpoint.has_manifest && std::ranges::count(committed.kept_too, step) > 0;
    kept += is_newest;
    if (!is_newest && !is_kept) checkpoints_.remove(step, checkpoint);
  }
}

}  // namespace dtrain
