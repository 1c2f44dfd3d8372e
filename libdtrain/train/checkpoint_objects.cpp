#include "libdtrain/train/checkpoint_objects.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "dtrain/io/atomic_file.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr std::string_view kStepPrefix = "step-", kManifestSuffix = ".json";
constexpr size_t kMostCheckpointObjects = 1'000'000;
constexpr JsonLimits kObjectLimits = {.bytes = size_t{64} << 10, .values = 1000};

// A name that stays in its directory.
bool is_file_name(const std::string& name) {
  return !name.empty() && name.size() <= 255 && name != "." && name != ".." && name.find('/') == name.npos &&
         name.find('\0') == name.npos;
}

std::string damage_of(const std::string& where, const std::string& name, const std::string& what) {
  return concat(where, ": damaged: ", name, " ", what);
}

}  // namespace

std::optional<uint64_t> step_in(std::string_view name) {
  uint64_t step = 0;
  if (!name.starts_with(kStepPrefix)) return std::nullopt;
  std::from_chars(name.data() + kStepPrefix.size(), name.data() + name.size(), step);
  return name == concat(kStepPrefix, step) ? std::optional(step) : std::nullopt;
}

uint64_t ObjectManifest::bytes() const {
  uint64_t sum = 0;
  for (const auto& [name, file] : files) sum += file.bytes;
  return sum;
}

std::string object_manifest_text(const ObjectManifest& manifest) {
  nlohmann::ordered_json json = {
      {"format", kObjectManifestFormat.newest}, {"step", manifest.step}, {"files", nlohmann::ordered_json::object()}};
  for (const auto& [name, sum] : manifest.files) json["files"][name] = {{"bytes", sum.bytes}, {"sha256", sum.sha256}};
  return json.dump(2) + "\n";
}

ObjectManifest object_manifest_from(const std::string& text, const std::string& where) {
  const auto json = parse_json<Json>(text, where, Fault::checkpoint, kObjectLimits);
  try {
    const auto count = [&](const Json& object, const char* key) {
      return count_at(object, key, UINT64_MAX, where + ": damaged", Fault::checkpoint);
    };
    require_readable(kObjectManifestFormat, count(json, "format"), where);
    ObjectManifest manifest{.step = count(json, "step")};
    for (const auto& [name, file] : json.at("files").items()) {
      remote::FileSum sum{count(file, "bytes"), file.at("sha256").get<std::string>()};
      const bool is_hash =
          sum.sha256.size() == 64 && sum.sha256.find_first_not_of("0123456789abcdef") == sum.sha256.npos;
      if (!is_file_name(name) || !is_hash)
        throw Error(Fault::checkpoint, damage_of(where, name, "is no file with a hash"));
      manifest.files[name] = std::move(sum);
    }
    if (!manifest.files.contains("MANIFEST.json"))
      throw Error(Fault::checkpoint, damage_of(where, "MANIFEST.json", "is not listed"));
    return manifest;
  } catch (const Json::exception& error) {
    throw Error(Fault::checkpoint, concat(where, ": damaged: ", error.what()));
  }
}

CheckpointObjects::CheckpointObjects(std::shared_ptr<remote::RemoteStorage> storage, remote::S3Address prefix)
    : storage_(std::move(storage)), folder_{std::move(prefix.bucket), prefix.key + "checkpoints/"} {}

remote::S3Address CheckpointObjects::manifest_of(uint64_t step) const {
  return {folder_.bucket, concat(folder_.key, kStepPrefix, step, kManifestSuffix)};
}

remote::S3Address CheckpointObjects::data_of(uint64_t step, const std::string& name) const {
  return {folder_.bucket, concat(folder_.key, kStepPrefix, step, "/", name)};
}

std::map<uint64_t, ListedCheckpoint> CheckpointObjects::list() const {
  std::map<uint64_t, ListedCheckpoint> checkpoints;
  for (const remote::S3Object& object :
       storage_->s3.list(folder_, "", kMostCheckpointObjects, Fault::resource).objects) {
    const std::string name = object.key.substr(folder_.key.size());
    const size_t slash = name.find('/');
    if (slash != name.npos) {
      const std::string file = name.substr(slash + 1);
      if (const auto step = step_in(name.substr(0, slash)); step && is_file_name(file))
        checkpoints[*step].files[file] = object.bytes;
    } else if (name.ends_with(kManifestSuffix)) {
      if (const auto step = step_in(name.substr(0, name.size() - kManifestSuffix.size())))
        checkpoints[*step].has_manifest = true;
    }
  }
  return checkpoints;
}

std::optional<ObjectManifest> CheckpointObjects::find(uint64_t step, const ListedCheckpoint& listed,
                                                      std::string& problem) const {
  problem.clear();
  if (!listed.has_manifest) return std::nullopt;
  const remote::S3Address address = manifest_of(step);
  const remote::HttpAnswer answer = storage_->s3.send({.address = address, .most_bytes = kObjectLimits.bytes});
  if (answer.status == 404) return std::nullopt;  // deleted since it was listed
  if (answer.status != 200) remote::fail_with(address.text(), answer, Fault::resource);
  try {
    ObjectManifest manifest = object_manifest_from(answer.body, address.text());
    if (manifest.step != step)
      throw Error(Fault::checkpoint, damage_of(address.text(), concat("step ", manifest.step), "belongs elsewhere"));
    for (const auto& [name, sum] : manifest.files) {
      const auto found = listed.files.find(name);
      if (found == listed.files.end() || found->second != sum.bytes)
        throw Error(Fault::checkpoint,
                    damage_of(data_of(step, "").text(), name,
                              found == listed.files.end()
                                  ? "is missing"
                                  : concat("has ", found->second, " bytes, the manifest says ", sum.bytes)));
    }
    return manifest;
  } catch (const FormatError&) {
    throw;
  } catch (const Error& error) {
    problem = error.what();
    return std::nullopt;
  }
}

ObjectManifest CheckpointObjects::upload_data(uint64_t step, const std::string& path) const {
  ObjectManifest manifest{.step = step};
  std::vector<std::string> names;
  std::error_code failure;
  for (fs::directory_iterator at(path, failure), end; !failure && at != end; at.increment(failure))
    names.push_back(at->path().filename());
  if (failure) throw Error(Fault::resource, concat(path, ": cannot list the directory: ", failure.message()));
  std::ranges::sort(names);
  for (const std::string& name : names)
    manifest.files[name] = remote::upload_file(*storage_, path + "/" + name, data_of(step, name));
  return manifest;
}

void CheckpointObjects::commit(const ObjectManifest& manifest) const {
  storage_->s3.put(manifest_of(manifest.step), object_manifest_text(manifest));
}

void CheckpointObjects::download(const ObjectManifest& manifest, const std::string& path) const {
  FileSystem& files = system_files();
  const std::string made = temporary_name(path);
  require_success(files.make_directory(made), "mkdir", made);
  try {
    for (const auto& [name, sum] : manifest.files)
      remote::download_file(data_of(manifest.step, name), made + "/" + name, sum);
    commit_directory(files, made, path);
  } catch (...) {
    remove_files(files, made);
    throw;
  }
}

void CheckpointObjects::remove(uint64_t step, const ListedCheckpoint& listed) const {
  if (listed.has_manifest) storage_->s3.remove(manifest_of(step));
  for (const auto& [name, bytes] : listed.files) storage_->s3.remove(data_of(step, name));
}

}  // namespace dtrain
