#include "libdtrain/train/checkpoint_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <iomanip>
#include <nlohmann/json.hpp>

#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/safetensors.h"
#include "dtrain/train/weights.h"
#include "libdtrain/io/crc32c.h"
#include "libdtrain/io/file_format.h"
#include "libdtrain/io/json_limits.h"

namespace dtrain {
namespace {

using Json = nlohmann::json;                 // for reading
using OrderedJson = nlohmann::ordered_json;  // for writing
namespace fs = std::filesystem;

constexpr std::string_view kPrefix = "step-";
constexpr const char* kModel = "model.safetensors";
constexpr const char* kState = "state.safetensors";
constexpr const char* kTrainState = "state.json";
constexpr const char* kManifest = "MANIFEST.json";
constexpr const char* kAveraged = "averaged.safetensors";
constexpr std::array kListed = {kModel, kState, kTrainState, kAveraged};
constexpr size_t kAlways = 3;  // always present
constexpr JsonLimits kManifestLimits = {.bytes = size_t{64} << 10, .values = 100};
constexpr JsonLimits kStateLimits = {};
constexpr uint64_t kMaxCount = uint64_t{1} << 53;  // steps and samples: exact in double

struct ListedFile {
  std::string name;
  uint64_t bytes = 0;
  std::string crc;
};

struct Manifest {
  uint64_t step = 0;
  std::vector<ListedFile> files;
  uint64_t format = kCheckpointFormat.newest;
};

[[noreturn]] void damaged(const std::string& path, const std::string& what) {
  throw Error(Fault::checkpoint, path + ": damaged: " + what);
}

std::string hex(uint32_t crc) {
  std::ostringstream text;
  text << std::hex << std::setw(8) << std::setfill('0') << crc;
  return text.str();
}

std::string manifest_text(const Manifest& manifest) {
  OrderedJson json = {{"format", manifest.format}, {"step", manifest.step}, {"files", OrderedJson::object()}};
  for (const ListedFile& file : manifest.files)
    json["files"][file.name] = {{"bytes", file.bytes}, {"crc32c", file.crc}};
  const std::string unsigned_text = json.dump(2);
  json["checksum"] = hex(crc32c(unsigned_text.data(), unsigned_text.size()));
  return json.dump(2) + "\n";
}

// Parses a file's JSON by `read`; converts all errors to ours.
template <class Read>
auto read_json(const std::string& path, const std::string& text, const JsonLimits& limits, const Read& read) {
  const auto json = parse_json<Json>(text, path, Fault::checkpoint, limits);
  try {
    return read(json);
  } catch (const nlohmann::json::exception& error) {
    damaged(path, error.what());
  }
}

// Version of dtrain that wrote a manifest. Format 1 does not have it.
std::string writer_of(const Json& manifest) {
  const auto found = manifest.find("version");
  return found != manifest.end() && found->is_string() ? found->get<std::string>().substr(0, 40) : "";
}

// Verifies the CRC-32C of a manifest, which is its last key and covers the text before it. All formats have it, so that
// an unknown format is told from damage.
bool has_checksum(const std::string& text) {
  const std::string begin = ",\n  \"checksum\": \"", end = "\"\n}\n";
  const size_t at = text.rfind(begin);
  if (at == std::string::npos || !text.ends_with(end)) return false;
  const std::string rest = text.substr(0, at) + "\n}";
  return text.substr(at) == begin + hex(crc32c(rest.data(), rest.size())) + end;
}

// A manifest is intact if it equals the serialisation of its content byte for byte.
Manifest read_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifest;
  const std::string text = read_text(path, kManifestLimits.bytes, Fault::checkpoint);
  const Manifest manifest = read_json(path, text, kManifestLimits, [&](const Json& json) {
    const auto count = [&](const Json& object, const char* key) {
      return count_at(object, key, UINT64_MAX, path + ": damaged", Fault::checkpoint);
    };
    Manifest result{count(json, "step"), {}, count(json, "format")};
    if (!kCheckpointFormat.reads(result.format) && !has_checksum(text)) damaged(path, "checksum mismatch");
    require_readable(kCheckpointFormat, result.format, path, writer_of(json));
    const Json& files = json.at("files");
    const auto add = [&](const std::string& name) {
      const Json& file = files.at(name);
      result.files.push_back({name, count(file, "bytes"), file.at("crc32c").get<std::string>()});
    };
    for (const char* name : kListed)
      if (files.contains(name)) add(name);
    if (files.size() != result.files.size()) damaged(path, "it does not list the files of a checkpoint");
    return result;
  });
  if (manifest_text(manifest) != text) damaged(path, "checksum mismatch");
  const size_t count = manifest.files.size();
  const bool expected = count >= kAlways && count <= kListed.size() &&
                        std::equal(manifest.files.begin(), manifest.files.end(), kListed.begin(),
                                   [](const ListedFile& file, const char* name) { return file.name == name; });
  if (!expected) damaged(path, "it does not list the files of a checkpoint");
  return manifest;
}

void check_size(const InputFile& file, const ListedFile& listed) {
  if (file.size() != listed.bytes)
    damaged(file.path(), concat(file.size(), " bytes, the manifest says ", listed.bytes));
}

std::string state_name(size_t state, const Parameter& parameter) {
  return concat("optimizer.", state, ".", parameter.name);
}

void write_state(OutputFile& file, const ParameterStore& store, const CheckpointSnapshot& snapshot) {
  std::vector<TensorSpec> plan;
  for (size_t i = 0; i < snapshot.optimizer.size(); ++i)
    for (const Parameter& parameter : store.parameters())
      plan.push_back({state_name(i, parameter), DType::f32, parameter.shape});
  file.write(safetensors_header(plan));
  for (const std::vector<float>& arena : snapshot.optimizer)
    for (const Parameter& parameter : store.parameters())
      file.write(arena.data() + parameter.offset, static_cast<size_t>(parameter.shape.count()) * sizeof(float));
}

void load_state(const std::string& path, ParameterStore& store) {
  const SafetensorsFile file(path, Fault::checkpoint);
  const size_t parameters = store.parameters().size();
  const size_t states = parameters ? file.entries().size() / parameters : 0;
  if (states * parameters != file.entries().size())
    throw Error(Fault::checkpoint,
                concat(path, ": ", file.entries().size(), " tensors of optimiser state do not divide ",
                       "among the model's ", parameters, " parameters"));
  Context& context = store.context();
  std::vector<float> host;
  for (size_t i = 0; i < states; ++i) {
    const Tensor& arena = store.optimizer_state(static_cast<int>(i));
    for (const Parameter& parameter : store.parameters()) {
      const SafetensorsEntry* entry = file.find(state_name(i, parameter));
      if (!entry || entry->dtype != "F32" || entry->shape != parameter.shape)
        throw Error(Fault::checkpoint, concat(path, ": ", state_name(i, parameter), " is ",
                                              entry ? concat(entry->dtype, " ", entry->shape) : "missing",
                                              ", expected F32 ", parameter.shape));
      host.resize(static_cast<size_t>(parameter.shape.count()));
      file.read(*entry, host.data());
      context.upload(host.data(), arena.slice(parameter.offset, parameter.offset + parameter.shape.count()));
    }
  }
  // Optimiser state that the saved run had not used yet is zero.
  for (int i = static_cast<int>(states); i < store.optimizer_states(); ++i) context.fill_zero(store.optimizer_state(i));
}

// Directory entries. Throws Error if it cannot be read.
std::vector<fs::directory_entry> entries_of(const std::string& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code failure;
  for (fs::directory_iterator at(directory, failure), end; !failure && at != end; at.increment(failure))
    entries.push_back(*at);
  if (failure)
    throw Error(fault_of_errno(failure.value(), Fault::checkpoint), concat(directory, ": ", failure.message()));
  return entries;
}

// Step in a checkpoint's name; nullopt for other names.
std::optional<uint64_t> step_of(const fs::directory_entry& entry) {
  const std::string name = entry.path().filename();
  uint64_t step = 0;
  if (!name.starts_with(kPrefix)) return std::nullopt;
  std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), step);
  return name == concat(kPrefix, step) ? std::optional(step) : std::nullopt;
}

// Whether an entry is a directory or a link to one. Throws Error if unknown, except for links.
bool is_directory(const fs::directory_entry& entry) {
  std::error_code failure, unknown;
  const fs::file_type type = entry.status(failure).type();
  if (type == fs::file_type::none && !entry.is_symlink(unknown))
    throw Error(fault_of_errno(failure.value(), Fault::checkpoint),
                concat(entry.path().string(), ": ", failure.message()));
  return type == fs::file_type::directory;
}

}  // namespace

uint64_t CheckpointSnapshot::bytes() const {
  size_t count = values.size() + buffers.size();
  if (!average.empty()) count += average.size() + buffers.size();
  for (const auto& arena : optimizer) count += arena.size();
  return count * sizeof(float);
}

std::vector<uint64_t> list_checkpoints(const std::string& directory) {
  std::vector<uint64_t> steps;
  for (const fs::directory_entry& entry : entries_of(directory))
    if (const auto step = step_of(entry); step && is_directory(entry)) steps.push_back(*step);
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<uint64_t> every_nth(const std::vector<uint64_t>& steps, size_t n) {
  std::vector<uint64_t> chosen;
  for (size_t i = 0; i < steps.size(); ++i)
    if (i % n == 0 || i + 1 == steps.size()) chosen.push_back(steps[i]);
  return chosen;
}

std::vector<BrokenLink> list_broken_links(const std::string& directory) {
  std::vector<BrokenLink> links;
  for (const fs::directory_entry& entry : entries_of(directory)) {
    std::error_code reason, unknown;
    const auto step = step_of(entry);
    if (!step || !entry.is_symlink(unknown)) continue;
    entry.status(reason);
    if (reason) links.push_back({*step, reason});
  }
  std::ranges::sort(links, {}, &BrokenLink::step);
  return links;
}

std::string checkpoint_path(const std::string& directory, uint64_t step) {
  return concat(directory, "/", kPrefix, step);
}

std::optional<std::string> newest_checkpoint(const std::string& train_dir,
                                             const std::function<bool(const std::string& path)>& usable) {
  const std::string directory = train_dir + "/checkpoints";
  std::error_code failure;  // reported by list_checkpoints()
  const fs::file_type type = fs::status(directory, failure).type();
  if (type != fs::file_type::directory && type != fs::file_type::none) return std::nullopt;
  std::vector<uint64_t> steps = list_checkpoints(directory);
  for (; !steps.empty(); steps.pop_back()) {
    std::string path = checkpoint_path(directory, steps.back());
    require_known_format(path);
    if (usable(path)) return path;
  }
  return std::nullopt;
}

uint64_t write_checkpoint(FileSystem& files, const std::string& path, const ParameterStore& store,
                          const CheckpointSnapshot& snapshot) {
  require_success(files.make_directory(path), "mkdir", path);
  Manifest manifest{snapshot.state.step, {}};
  uint64_t total = 0;
  const auto write = [&](const char* name, const auto& fill) {
    OutputFile file(files, path + "/" + name);
    fill(file);
    file.sync();
    manifest.files.push_back({name, file.size(), hex(file.crc())});
    total += file.size();
  };
  write(kModel, [&](OutputFile& file) {
    write_weights(file, store, snapshot.values.data(), snapshot.buffers.data(), snapshot.state.step,
                  snapshot.state.weights);
  });
  write(kState, [&](OutputFile& file) { write_state(file, store, snapshot); });
  write(kTrainState, [&](OutputFile& file) { file.write(train_state_text(snapshot.state)); });
  if (!snapshot.average.empty())
    write(kAveraged, [&](OutputFile& file) {
      write_weights(file, store, snapshot.average.data(), snapshot.buffers.data(), snapshot.state.step,
                    snapshot.state.weights);
    });
  const std::string text = manifest_text(manifest);
  write(kManifest, [&](OutputFile& file) { file.write(text); });
  return total;
}

VerifiedCheckpoint verify_checkpoint(const std::string& path) {
  const Manifest manifest = read_manifest(path);
  for (const ListedFile& listed : manifest.files) {
    const InputFile file(path + "/" + listed.name, Fault::checkpoint);
    check_size(file, listed);
    if (const std::string crc = hex(crc32c_of(file)); crc != listed.crc)
      damaged(file.path(), concat("CRC-32C ", crc, ", the manifest says ", listed.crc));
  }
  const std::string state_path = path + "/" + kTrainState;
  VerifiedCheckpoint verified{
      train_state_from(read_text(state_path, kStateLimits.bytes, Fault::checkpoint), state_path), {}};
  if (verified.state.step != manifest.step)
    damaged(state_path, concat("step is ", verified.state.step, ", the manifest says ", manifest.step));
  for (const fs::directory_entry& entry : entries_of(path)) {
    const std::string name = entry.path().filename();
    const bool listed = std::ranges::any_of(manifest.files, [&](const ListedFile& file) { return file.name == name; });
    if (name != kManifest && !listed) verified.extra.push_back(name);
  }
  return verified;
}

void require_known_format(const std::string& path) {
  try {
    read_manifest(path);
  } catch (const FormatError&) {
    throw;
  } catch (const Error&) {  // damaged: for those who read all of it
  }
}

bool looks_complete(const std::string& path) {
  try {
    for (const ListedFile& listed : read_manifest(path).files)
      check_size(InputFile(path + "/" + listed.name, Fault::checkpoint), listed);
    return true;
  } catch (const Error&) {
    return false;
  }
}

std::string train_state_text(const TrainState& state) {
  const OrderedJson json = {{"step", state.step},
                            {"cursor", state.cursor},
                            {"loss_scale",
                             {{"value", state.device.loss_scale},
                              {"double_after", state.device.double_after},
                              {"good_steps", state.device.good_steps},
                              {"skipped", state.device.skipped}}},
                            {"identity", state.identity},
                            {"settings", state.settings}};
  return json.dump(2) + "\n";
}

TrainState train_state_from(const std::string& text, const std::string& path) {
  using Settings = std::map<std::string, std::string>;
  return read_json(path, text, kStateLimits, [&](const Json& json) {
    const auto count = [&](const Json& object, const char* key, uint64_t most) {
      return count_at(object, key, most, path + ": damaged", Fault::checkpoint);
    };
    StepState device;
    if (json.contains("loss_scale")) {  // missing in checkpoints of earlier versions
      const Json& saved = json.at("loss_scale");
      saved.at("value").get_to(device.loss_scale);
      if (!(device.loss_scale > 0 && std::isfinite(device.loss_scale)))
        damaged(path, concat("loss scale: value is ", saved.at("value").dump(), ", expected a positive number"));
      device.double_after = static_cast<int32_t>(count(saved, "double_after", INT32_MAX));
      device.good_steps = static_cast<int32_t>(count(saved, "good_steps", INT32_MAX));
      device.skipped = count(saved, "skipped", kMaxCount);
    }
    return TrainState{count(json, "step", kMaxCount),      count(json, "cursor", kMaxCount),    device,
                      json.at("identity").get<Settings>(), json.at("settings").get<Settings>(), {}};
  });
}

void load_tensors(const std::string& path, ParameterStore& store, const Tensor& average) {
  const auto load = [&](const std::string& file) {
    const WeightReport report = load_weights(store, file, Fault::checkpoint);
    if (!report.complete())
      throw Error(Fault::checkpoint, concat(file, ": does not fit the model: ", report.summary()));
  };
  const std::string model = path + "/" + kModel, averaged = path + "/" + kAveraged;
  if (average) {
    std::error_code unknown;
    load(fs::exists(averaged, unknown) ? averaged : model);
    store.context().copy(store.values(), average);
  }
  load(model);
  load_state(path + "/" + kState, store);
}

int remove_leftovers(FileSystem& files, const std::string& directory) {
  std::vector<std::string> leftovers;
  for (const fs::directory_entry& entry : entries_of(directory)) {
    const std::string name = entry.path().filename();
    if (name.starts_with(kPrefix) && is_temporary_name(name) && !entry.is_symlink()) leftovers.push_back(entry.path());
  }
  int removed = 0;
  for (const std::string& path : leftovers) removed += remove_files(files, path);
  return removed;
}

}  // namespace dtrain
