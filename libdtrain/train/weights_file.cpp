// weights_file(): the file of weights in a checkpoint or a train_dir, on the disk or in object storage.
#include <filesystem>
#include <ranges>

#include "dtrain/io/remote_path.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/train/checkpoint_files.h"
#include "libdtrain/train/checkpoint_objects.h"

namespace dtrain {
namespace {

constexpr const char* kWeights = "model.safetensors";

// Whether an object is there. Access may be denied for want of the permission to list: then opening it reports that.
bool may_be_object(const std::string& address) {
  try {
    return file_exists(address);
  } catch (const Error& error) {
    if (error.fault() == Fault::resource) throw;
    return true;
  }
}

[[noreturn]] void fail_without_weights(const std::string& path, Fault fault) {
  throw Error(fault, concat(path, ": neither a checkpoint nor a train_dir with a complete one"));
}

std::string remote_weights_file(const std::string& url, Fault fault) {
  const remote::S3Address prefix = remote::parse_s3(url, fault, /*is_folder=*/true);
  const bool may_be_file = !prefix.key.empty() && !url.ends_with('/');
  if (may_be_file && may_be_object(url)) return url;
  if (auto newest = newest_remote_weights(url, fault)) return *newest;
  if (may_be_file && !folder_exists(url)) return url;
  fail_without_weights(url, fault);
}

}  // namespace

std::string weights_file(const std::string& path, Fault fault) {
  namespace fs = std::filesystem;
  if (path.starts_with("s3://")) return remote_weights_file(path, fault);
  std::error_code unknown;
  if (!fs::is_directory(path, unknown)) return path;
  if (std::string file = concat(path, "/", kWeights); fs::exists(file, unknown)) return file;
  const std::optional<std::string> newest = newest_checkpoint(path, looks_complete);
  if (!newest) fail_without_weights(path, fault);
  return concat(*newest, "/", kWeights);
}

std::optional<std::string> newest_remote_weights(const std::string& url, Fault fault) {
  const remote::S3Address prefix = remote::parse_s3(url, fault, /*is_folder=*/true);
  if (std::string file = prefix.text() + kWeights; may_be_object(file)) return file;
  const CheckpointObjects objects(remote::remote_storage(), prefix);
  const auto checkpoints = objects.list();
  for (const auto& [step, listed] : std::views::reverse(checkpoints)) {
    std::string damage;
    if (!objects.find(step, listed, damage)) continue;
    const std::string path = checkpoint_path(prefix.text() + "checkpoints", step);
    require_known_format(path);
    return concat(path, "/", kWeights);
  }
  return std::nullopt;
}

}  // namespace dtrain
