#include "libdtrain/train/remote_train_dir.h"

#include <unistd.h>

#include <cctype>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <utility>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/digest.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/remote/remote_file.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;
namespace fs = std::filesystem;

constexpr const char *kRunObject = ".dtrain/run.json", *kLeaseObject = ".dtrain/lease.json", *kBestName = "best";
constexpr const char *kEventFiles = "events.out.tfevents.", *kStarts = "starts.json";
constexpr size_t kMostSmallBytes = 1 << 16, kMostRunFiles = 100'000;

// Texts of an object of JSON; empty for absent ones.
std::string text_in(const std::string& text, const char* key) {
  const auto parsed = parse_json_line<Json>(text, {.bytes = kMostSmallBytes, .values = 100});
  const auto found = parsed.is_object() ? parsed.find(key) : parsed.end();
  return parsed.is_object() && found != parsed.end() && found->is_string() ? found->template get<std::string>() : "";
}

// Whether a start is counted whose end is unknown. Only the machine that it ran on can tell how it ended.
bool is_open(const std::string& starts) {
  const auto parsed = parse_json_line<Json>(starts, {.bytes = kMostSmallBytes, .values = 10'000});
  return parsed.is_object() && parsed.value("open", Json()) == true;
}

void write_text(const std::string& path, const std::string& text) {
  AtomicFile file(path);
  file.write(text);
  file.commit();
}

// Step of the checkpoint that `best` names.
std::optional<uint64_t> step_of_best(const std::string& text, const std::map<uint64_t, ListedCheckpoint>& listed) {
  for (const auto& [step, checkpoint] : listed)
    if (text == checkpoint_path("checkpoints", step)) return step;
  return std::nullopt;
}

}  // namespace

std::string working_folder_name(const std::string& url) {
  const remote::S3Address address = remote::parse_s3(url, Fault::config, /*is_folder=*/true);
  const std::string text = address.text();
  Digest digest;
  digest.add(text.data(), text.size());
  std::string name = address.key.empty() ? address.bucket : fs::path(address.key).parent_path().filename().string();
  name = name.substr(0, 64);
  for (char& c : name)
    if (!std::isalnum(static_cast<unsigned char>(c)) && c != '-' && c != '_' && c != '.') c = '_';
  return name + "-" + digest.hex().substr(0, 16);
}

RemoteTrainDir::RemoteTrainDir(RemoteTrainDirOptions options)
    : options_(std::move(options)),
      storage_(remote::remote_storage()),
      prefix_(remote::parse_s3(options_.url, Fault::config, /*is_folder=*/true)),
      checkpoints_(storage_, prefix_) {
  const std::string record = options_.folder + ".json";
  make_directories(system_files(), options_.folder);
  lock_.emplace(options_.folder + ".lock");
  std::error_code unknown;
  const std::string known = fs::exists(record, unknown) ? read_text(record, kMostSmallBytes, Fault::resource) : "";
  std::string writer = text_in(known, "writer");
  const std::string run = text_in(known, "run"), shared = text_in(read(kRunObject).value_or(""), "run");
  if (writer.empty()) {
    writer = unique_suffix();
    write_text(record, Json{{"url", prefix_.text()}, {"writer", writer}, {"run", run}}.dump() + "\n");
  }
  lease_ = std::make_unique<remote::Lease>(storage_, object(kLeaseObject),
                                           remote::LeaseHolder{.writer = writer,
                                                               .run = shared.empty() ? "new" : shared,
                                                               .host = options_.host,
                                                               .time = "",
                                                               .pid = ::getpid(),
                                                               .seconds = options_.lease_seconds},
                                           remote::LeaseOptions{options_.note, options_.stop});
  adopt_run(run, writer);
  note(concat(prefix_.text(), ": working folder ", options_.folder));
  synchronise();
}

RemoteTrainDir::~RemoteTrainDir() {
  if (!lease_ || failing_) return;
  try {
    upload_files();
  } catch (...) {  // another error is on its way
  }
}

void RemoteTrainDir::finish() {
  failing_ = true;
  upload_files();
  failing_ = false;
  lease_.reset();
}

remote::S3Address RemoteTrainDir::object(const std::string& name) const { return {prefix_.bucket, prefix_.key + name}; }

void RemoteTrainDir::note(const std::string& text) const {
  if (options_.note) options_.note(text);
}

std::optional<std::string> RemoteTrainDir::read(const std::string& name) const {
  const remote::S3Address address = object(name);
  const remote::HttpAnswer answer = storage_->s3.send({.address = address, .most_bytes = kMostSmallBytes});
  if (answer.status == 404) return std::nullopt;
  if (answer.status != 200) remote::fail_with(address.text(), answer, Fault::resource);
  return answer.body;
}

void RemoteTrainDir::adopt_run(const std::string& local_run, const std::string& writer) {
  std::string run = text_in(read(kRunObject).value_or(""), "run");
  if (run.empty() || options_.clear) {
    if (options_.clear) clear();
    run = unique_suffix();
    storage_->s3.put(object(kRunObject), Json{{"format", 1}, {"run", run}}.dump() + "\n");
  }
  lease_->set_run(run);
  if (run == local_run) return;
  std::error_code unknown;
  if (!options_.clear && !fs::is_empty(options_.folder, unknown)) set_aside();
  write_text(options_.folder + ".json", Json{{"url", prefix_.text()}, {"writer", writer}, {"run", run}}.dump() + "\n");
}

void RemoteTrainDir::set_aside() {
  const std::string aside = options_.folder + ".superseded-" + unique_suffix();
  require_success(system_files().rename(options_.folder, aside), "rename", options_.folder);
  make_directories(system_files(), options_.folder);
  note(concat(options_.folder, " belongs to an earlier run of ", prefix_.text(), ": renamed to ", aside));
}

void RemoteTrainDir::clear() {
  for (const auto& [step, listed] : checkpoints_.list()) checkpoints_.remove(step, listed);
  storage_->s3.remove(object(kBestName));
  for (const remote::S3Object& found :
       storage_->s3.list(object(kEventFiles), "/", kMostRunFiles, Fault::resource).objects)
    storage_->s3.remove({prefix_.bucket, found.key});
}

std::optional<uint64_t> RemoteTrainDir::newest_sound() const {
  std::vector<uint64_t> steps = list_checkpoints(local("checkpoints"));
  for (; !steps.empty(); steps.pop_back()) {
    try {
      verify_checkpoint(checkpoint_path(local("checkpoints"), steps.back()));
      return steps.back();
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      if (error.fault() == Fault::resource) throw;  // not a sign of damage
    }
  }
  return std::nullopt;
}

void RemoteTrainDir::synchronise() {
  make_directories(system_files(), local("checkpoints"));
  remove_leftovers(system_files(), local("checkpoints"));
  Listed listed = checkpoints_.list();
  const std::optional<uint64_t> own = newest_sound(), newest = download_newest(listed, own);
  if (newest != own || !own) {
    download_files();
    download_best(listed);
  } else if (const auto found = listed.find(*own); found == listed.end() || !found->second.has_manifest) {
    note(concat("uploading the checkpoint of step ", *own));
    upload(*own, checkpoint_path(local("checkpoints"), *own), listed, /*replaces_later=*/false);
  }
}

std::optional<uint64_t> RemoteTrainDir::download_newest(const Listed& listed, std::optional<uint64_t> newest) const {
  std::string problems;
  for (auto at = listed.rbegin(); at != listed.rend() && (!newest || at->first > *newest); ++at) {
    std::string problem;
    try {
      if (const auto manifest = checkpoints_.find(at->first, at->second, problem)) {
        download(*manifest);
        return at->first;
      }
    } catch (const FormatError&) {
      throw;
    } catch (const Error& error) {
      if (error.fault() != Fault::checkpoint) throw;
      problem = error.what();
    }
    if (problem.empty()) continue;
    note("skipped a damaged checkpoint: " + problem);
    problems += (problems.empty() ? "" : "; ") + problem;
  }
  if (!newest && !problems.empty())
    throw Error(Fault::checkpoint, concat("no usable checkpoint in ", prefix_.text(), ": ", problems,
                                          "; to start from the beginning, choose another --train_dir, or give "
                                          "--clear_train_dir"));
  return newest;
}

void RemoteTrainDir::download(const ObjectManifest& manifest) const {
  const std::string path = checkpoint_path(local("checkpoints"), manifest.step);
  note(concat("downloading the checkpoint of step ", manifest.step, ", ", manifest.bytes() >> 20, " MiB"));
  std::error_code unknown;
  if (fs::symlink_status(path, unknown).type() != fs::file_type::not_found)
    require_success(system_files().rename(path, path + ".damaged-" + unique_suffix()), "rename", path);
  checkpoints_.download(manifest, path);
}

void RemoteTrainDir::download_best(const Listed& listed) {
  best_ = read(kBestName).value_or("");
  const auto step = step_of_best(best_, listed);
  if (!step) return;
  std::string problem;
  std::error_code unknown;
  if (!looks_complete(checkpoint_path(local("checkpoints"), *step))) {
    try {
      if (const auto manifest = checkpoints_.find(*step, listed.at(*step), problem)) download(*manifest);
    } catch (const Error& error) {
      if (error.fault() != Fault::checkpoint) throw;
      problem = error.what();
    }
    if (!problem.empty()) return note("the best checkpoint is not usable: " + problem);
  }
  fs::remove(local(kBestName), unknown);
  require_success(system_files().symlink(best_, local(kBestName)), "link", local(kBestName));
}

void RemoteTrainDir::download_files() {
  for (const remote::S3Object& found : storage_->s3.list(prefix_, "/", kMostRunFiles, Fault::resource).objects) {
    const std::string name = found.key.substr(prefix_.key.size());
    if (name.empty() || stays_local(name)) continue;
    const std::string path = local(name), made = temporary_name(path);
    remote::download_file({prefix_.bucket, found.key}, made);
    require_success(system_files().rename(made, path), "rename", made);
    if (name == kStarts && is_open(read_text(path, kMostSmallBytes, Fault::resource))) {
      require_success(system_files().unlink(path), "remove", path);
      continue;
    }
    const InputFile file(path, Fault::resource);
    uploaded_[name] = {file.size(), file.revision()};
  }
}

}  // namespace dtrain
