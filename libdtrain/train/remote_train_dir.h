// RemoteTrainDir: a train_dir in object storage, behind a local working folder.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "dtrain/train/checkpoint.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/io/remote/lease.h"
#include "libdtrain/train/checkpoint_objects.h"

namespace dtrain {

struct RemoteTrainDirOptions {
  std::string url{};     // s3://BUCKET/PREFIX
  std::string folder{};  // working folder; FOLDER.lock and FOLDER.json are beside it
  std::string host{};    // of this process, for messages
  int64_t lease_seconds = 120;
  bool clear = false;                              // delete checkpoints and event files of the prefix first
  std::function<void(const std::string&)> note{};  // receives lines for the user
  std::function<bool()> stop{};                    // polled while waiting for the lease
};

// A run reads and writes the working folder as any train_dir; this class copies to and from the prefix:
//   checkpoints/step-<N>.json, checkpoints/step-<N>/...   see CheckpointObjects
//   the files of train_dir: logs, event files, evaluations.json, ...; `best` holds the name of the best checkpoint
//   .dtrain/run.json     id of the run, so that a working folder of an earlier run is not mistaken for this one's
//   .dtrain/lease.json   the job that writes here, see Lease
// Errors of the service: Fault::resource, after the client's retries. Nothing is lost locally.
class RemoteTrainDir {
 public:
  // Locks the working folder and takes the lease. Downloads the newest complete checkpoint, the best one and the files
  // unless the working folder has a checkpoint that is as new; uploads a newer one. Throws Error(Fault::config) if
  // another job holds either.
  explicit RemoteTrainDir(RemoteTrainDirOptions options);
  // Without finish(), as after an error: uploads the files if the service has answered so far.
  ~RemoteTrainDir();
  RemoteTrainDir(const RemoteTrainDir&) = delete;
  RemoteTrainDir& operator=(const RemoteTrainDir&) = delete;

  // For CheckpointOptions::publish: uploads the checkpoint and all files that have changed, then deletes checkpoints
  // that are no longer kept.
  void publish(const CommittedCheckpoint& committed);
  // Uploads changed files and releases the lease: the last call.
  void finish();

 private:
  using Listed = std::map<uint64_t, ListedCheckpoint>;
  using Signature = std::pair<uint64_t, int64_t>;  // size and time of modification

  // Files of this process or machine, and those that are copied in another way.
  static bool stays_local(const std::string& name);
  remote::S3Address object(const std::string& name) const;
  std::string local(const std::string& name) const { return options_.folder + "/" + name; }
  void note(const std::string& text) const;
  // Content of a small object; nullopt if there is none.
  std::optional<std::string> read(const std::string& name) const;

  void adopt_run(const std::string& local_run, const std::string& writer);
  void set_aside();
  void clear();
  void synchronise();
  std::optional<uint64_t> newest_sound() const;
  // Of those that are newer than `newest`. Returns the step of the newest local checkpoint. Throws
  // Error(Fault::checkpoint) if there are only damaged ones.
  std::optional<uint64_t> download_newest(const Listed& listed, std::optional<uint64_t> newest) const;
  void download(const ObjectManifest& manifest) const;
  void download_best(const Listed& listed);
  void download_files();

  // `replaces_later`: deletes checkpoints of later steps, left by an abandoned run.
  void upload(uint64_t step, const std::string& path, Listed& listed, bool replaces_later);
  void upload_files();
  void upload_best();
  void prune(const CommittedCheckpoint& committed, const Listed& listed) const;

  const RemoteTrainDirOptions options_;
  const std::shared_ptr<remote::RemoteStorage> storage_;
  const remote::S3Address prefix_;
  const CheckpointObjects checkpoints_;
  std::optional<FileLock> lock_;
  std::unique_ptr<remote::Lease> lease_;
  std::map<std::string, Signature> uploaded_;  // files as they are in the prefix
  std::string best_;                           // content of the object `best`
  bool failing_ = false;                       // the last upload failed
};

// Name of the working folder of a URL, below a folder for all of them: unique to the URL, and readable.
std::string working_folder_name(const std::string& url);

}  // namespace dtrain
