// Checkpoints in object storage, which has no rename: data objects first, then a manifest with their sizes and SHA-256.
//   <prefix>checkpoints/step-<N>/{files of the checkpoint's directory}
//   <prefix>checkpoints/step-<N>.json   the manifest; without it there is no checkpoint
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "libdtrain/io/remote/file_transfer.h"
#include "libdtrain/io/remote/remote_storage.h"

namespace dtrain {

// Step in the name of a checkpoint, "step-4"; nullopt for other names.
std::optional<uint64_t> step_in(std::string_view name);

struct ObjectManifest {
  uint64_t step = 0;
  std::map<std::string, remote::FileSum> files{};  // by name
  uint64_t bytes() const;                          // of all files
};
std::string object_manifest_text(const ObjectManifest& manifest);
// Throws Error(Fault::checkpoint), prefixed by `where`, for damaged text, and FormatError for an unknown format.
ObjectManifest object_manifest_from(const std::string& text, const std::string& where);

// What a list of objects shows of a checkpoint.
struct ListedCheckpoint {
  bool has_manifest = false;
  std::map<std::string, uint64_t> files{};  // sizes of the data objects by name
};

class CheckpointObjects {
 public:
  // The key of `prefix` ends with '/', unless it is the bucket.
  CheckpointObjects(std::shared_ptr<remote::RemoteStorage> storage, remote::S3Address prefix);

  // By step. Other names are ignored. Throws Error(Fault::resource).
  std::map<uint64_t, ListedCheckpoint> list() const;
  // The manifest of a listed checkpoint whose data objects have the sizes that it says; nullopt for any other, with
  // the reason in `problem` unless that is a checkpoint without a manifest. Throws FormatError and
  // Error(Fault::resource).
  std::optional<ObjectManifest> find(uint64_t step, const ListedCheckpoint& listed, std::string& problem) const;

  // Writes the data objects of the checkpoint directory `path`.
  ObjectManifest upload_data(uint64_t step, const std::string& path) const;
  // Makes the checkpoint visible: after all data objects.
  void commit(const ObjectManifest& manifest) const;
  // Downloads into the new directory `path`. Throws Error(Fault::checkpoint) if an object differs from the manifest.
  void download(const ObjectManifest& manifest, const std::string& path) const;
  // Deletes the manifest, then the data objects.
  void remove(uint64_t step, const ListedCheckpoint& listed) const;

 private:
  remote::S3Address manifest_of(uint64_t step) const;
  remote::S3Address data_of(uint64_t step, const std::string& name) const;

  const std::shared_ptr<remote::RemoteStorage> storage_;
  const remote::S3Address folder_;
};

}  // namespace dtrain
