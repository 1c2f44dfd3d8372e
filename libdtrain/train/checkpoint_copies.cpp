#include "libdtrain/train/checkpoint_copies.h"

#include <algorithm>
#include <filesystem>
#include <ranges>
#include <utility>

#include "dtrain/io/atomic_file.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/remote_train_dir.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr int kMostCopyFolders = 64;   // processes of a host that read the same train_dir at once
constexpr int kMostDeletedInARow = 8;  // downloads that end because the checkpoint was deleted

// Of the checkpoint that the key, PREFIX/checkpoints/step-N/, names; nullopt for other prefixes.
std::optional<uint64_t> step_in_key(const remote::S3Address& address) {
  const fs::path path = fs::path(address.key).parent_path();
  return path.parent_path().filename() == "checkpoints" ? step_in(path.filename().string()) : std::nullopt;
}

remote::S3Address parsed(const std::string& url) { return remote::parse_s3(url, Fault::config, /*is_folder=*/true); }

remote::S3Address train_dir_of(remote::S3Address address) {
  if (step_in_key(address)) address.key.resize(address.key.rfind("checkpoints/"));
  return address;
}

// Whether the folder has the files of the manifest with its checksums.
bool equals(const std::string& path, const ObjectManifest& manifest) {
  return std::ranges::all_of(manifest.files, [&](const auto& file) {
    try {
      const remote::FileSum sum = remote::sum_of_file(path + "/" + file.first);
      return sum.bytes == file.second.bytes && sum.sha256 == file.second.sha256;
    } catch (const Error&) {  // not there, or unreadable
      return false;
    }
  });
}

}  // namespace

CheckpointCopies::CheckpointCopies(CheckpointCopiesOptions options)
    : options_(std::move(options)),
      only_(step_in_key(parsed(options_.url))),
      prefix_(train_dir_of(parsed(options_.url))),
      checkpoints_(remote::remote_storage(), prefix_) {
  make_directories(system_files(), options_.parent);
  for (int i = 0; !lock_; ++i) {
    folder_ = concat(options_.parent, "/", working_folder_name(options_.url), "-", i);
    try {
      lock_.emplace(folder_ + ".lock");
    } catch (const Error& error) {
      if (error.fault() != Fault::config || i + 1 == kMostCopyFolders) throw;  // else another process uses this folder
    }
  }
}

std::string CheckpointCopies::address(uint64_t step) const {
  return checkpoint_path(prefix_.text() + "checkpoints", step);
}

std::map<uint64_t, ListedCheckpoint> CheckpointCopies::list() const {
  auto listed = checkpoints_.list();
  if (only_) std::erase_if(listed, [&](const auto& one) { return one.first != *only_; });
  return listed;
}

std::vector<uint64_t> CheckpointCopies::steps() const {
  std::vector<uint64_t> steps;
  for (const auto& [step, listed] : list())
    if (listed.has_manifest) steps.push_back(step);
  return steps;
}

std::optional<std::string> CheckpointCopies::newest() {
  for (int i = 0; i < kMostDeletedInARow; ++i) {
    Result last = Result::damaged;
    const auto all = list();
    for (const auto& [step, listed] : std::views::reverse(all)) {
      if (!listed.has_manifest) continue;
      last = copy(step, listed);
      if (last == Result::copied) return path_of(step);
      if (last == Result::deleted) break;
    }
    if (last == Result::damaged) return std::nullopt;
  }
  throw Error(Fault::resource, concat(prefix_.text(), ": ", kMostDeletedInARow,
                                      " checkpoints were deleted while they were downloaded; raise "
                                      "--max_ckpts_to_keep or --save_model_secs of the training"));
}

std::optional<std::string> CheckpointCopies::of(uint64_t step) {
  const auto listed = list();
  const auto found = listed.find(step);
  const Result result = found == listed.end() ? Result::deleted : copy(step, found->second);
  if (result == Result::deleted) note(concat("skipped the checkpoint of step ", step, ", which was deleted meanwhile"));
  return result == Result::copied ? std::optional(path_of(step)) : std::nullopt;
}

CheckpointCopies::Result CheckpointCopies::copy(uint64_t step, const ListedCheckpoint& listed) {
  std::string problem;
  const auto manifest = checkpoints_.find(step, listed, problem);
  if (manifest) try {
      download(*manifest, path_of(step));
      require_known_format(path_of(step));
      return Result::copied;
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      std::string unused;
      if (!checkpoints_.find(step, listed, unused) && unused.empty()) return Result::deleted;
      if (error.fault() != Fault::checkpoint) throw;
      problem = error.what();
    }
  if (problem.empty()) return Result::deleted;
  note("skipped a damaged checkpoint: " + problem);
  return Result::damaged;
}

void CheckpointCopies::download(const ObjectManifest& manifest, const std::string& path) const {
  if (equals(path, manifest)) return;
  FileSystem& files = system_files();
  make_directories(files, folder_);
  remove_leftovers(files, folder_);
  remove_files(files, path);
  note(concat("downloading the checkpoint of step ", manifest.step, ", ", manifest.bytes() >> 20, " MiB"));
  checkpoints_.download(manifest, path);
  for (const uint64_t step : list_checkpoints(folder_))
    if (step != manifest.step) remove_files(files, checkpoint_path(folder_, step));
}

std::string CheckpointCopies::path_of(uint64_t step) const { return checkpoint_path(folder_, step); }

void CheckpointCopies::note(const std::string& text) const {
  if (options_.note) options_.note(text);
}

}  // namespace dtrain
