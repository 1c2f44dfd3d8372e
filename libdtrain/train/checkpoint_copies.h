// CheckpointCopies: reads a train_dir in object storage, which another job may be writing at the same time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "libdtrain/io/file_lock.h"
#include "libdtrain/train/checkpoint_objects.h"

namespace dtrain {

struct CheckpointCopiesOptions {
  std::string url{};                               // s3://BUCKET/PREFIX, or one checkpoint, PREFIX/checkpoints/step-N
  std::string parent{};                            // local folder for copies, shared with other processes
  std::function<void(const std::string&)> note{};  // receives lines for the user
};

// Keeps one checkpoint, and while it is replaced two, in a folder below `parent`, locked against other processes. Takes
// no lease and writes nothing to the object storage: credentials that can only read are enough. Errors of the service:
// Fault::resource, after the client's retries. Throws FormatError for checkpoints of an unknown format.
class CheckpointCopies {
 public:
  // The copy that an earlier process left is used again if it is equal.
  explicit CheckpointCopies(CheckpointCopiesOptions options);

  // Address of the checkpoint of a step.
  std::string address(uint64_t step) const;
  // Steps of checkpoints with a manifest, ascending.
  std::vector<uint64_t> steps() const;
  // Path of a copy of the newest complete checkpoint; nullopt if there is none. Skips damaged ones with a note.
  // A checkpoint that the job deletes during the download is replaced by the then newest one.
  std::optional<std::string> newest();
  // The same for one step; nullopt, with a note, if it is damaged or deleted.
  std::optional<std::string> of(uint64_t step);

 private:
  enum class Result { copied, damaged, deleted };
  std::map<uint64_t, ListedCheckpoint> list() const;
  Result copy(uint64_t step, const ListedCheckpoint& listed);
  void download(const ObjectManifest& manifest, const std::string& path) const;
  std::string path_of(uint64_t step) const;
  void note(const std::string& text) const;

  const CheckpointCopiesOptions options_;
  const std::optional<uint64_t> only_;  // `url` is this checkpoint's
  const remote::S3Address prefix_;      // of the train_dir
  const CheckpointObjects checkpoints_;
  std::string folder_;
  std::optional<FileLock> lock_;
};

}  // namespace dtrain
