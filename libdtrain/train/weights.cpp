#include "dtrain/train/weights.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string_view>

#include "libdtrain/io/result_file.h"

namespace dtrain {
namespace {

constexpr std::string_view kRunningMean = ".running_mean", kBatches = ".num_batches_tracked";
constexpr std::string_view kOfRecord = "dtrain.";  // prefix of our metadata keys
constexpr size_t kNamesShown = 5;

// Index mapping of filter element (k, i, r, s) between the layouts, used in both directions.
template <class Copy>
void for_each_filter_element(const Shape& krsc, const Copy& copy) {
  const int64_t taps = krsc[1] * krsc[2], channels = krsc[3];
  for (int64_t k = 0; k < krsc[0]; ++k)
    for (int64_t i = 0; i < channels; ++i)
      for (int64_t tap = 0; tap < taps; ++tap) copy((k * channels + i) * taps + tap, (k * taps + tap) * channels + i);
}

// Parameter as [k, r, s, c] filters: a `flat` weight reads an image of h * w by 1 pixels.
Shape filters_of(const Parameter& parameter) {
  const Shape& shape = parameter.shape;
  if (parameter.options().layout == Layout::krsc) return shape;
  return {shape[0], shape[1] / parameter.options().channels, 1, parameter.options().channels};
}

std::string batches_name(const Buffer& buffer) {
  const std::string_view name = buffer.name;
  return name.ends_with(kRunningMean) ? concat(name.substr(0, name.size() - kRunningMean.size()), kBatches) : "";
}

std::vector<TensorSpec> plan_of(const ParameterStore& store) {
  std::vector<TensorSpec> plan;
  for (const Buffer& buffer : store.buffers())
    if (const std::string name = batches_name(buffer); !name.empty()) plan.push_back({name, DType::i64, {}});
  for (const Parameter& parameter : store.parameters())
    plan.push_back({parameter.name, DType::f32, torch_shape(parameter)});
  for (const Buffer& buffer : store.buffers()) plan.push_back({buffer.name, DType::f32, buffer.shape});
  return plan;
}

void require_allocated(const ParameterStore& store, const char* what) {
  DT_CHECK(store.allocated(), what, ": the store holds no values before ParameterStore::allocate()");
}

std::vector<float> download_arena(const ParameterStore& store, const Tensor& arena) {
  std::vector<float> host(static_cast<size_t>(arena.count()));
  store.context().download(arena, host.data(), "saving weights");
  return host;
}

// Arrays of a file, requested by a model.
class Arrays {
 public:
  Arrays(const std::string& path, Fault fault) : file_(path, fault) {}

  // Fills `to` and returns true if the file has `name` as numbers of this shape; else notes the reason in the report.
  bool read(const std::string& name, const Shape& shape, std::vector<float>& to, WeightReport& report) {
    const ArrayEntry* entry = file_.find(name);
    if (!entry) {
      report.missing.push_back(name);
      return false;
    }
    asked_.insert(entry);
    if (!file_.readable(*entry) || entry->shape != shape) {
      report.mismatched.push_back(concat(name, ": file ", entry->dtype, " ", entry->shape, ", model F32 ", shape));
      return false;
    }
    to = file_.read(*entry);
    const auto bad = std::ranges::find_if(to, [](float value) { return !std::isfinite(value); });
    if (bad != to.end())
      throw Error(Fault::numeric, concat(file_.path(), ": element ", bad - to.begin(), " of ", name, " is not finite"));
    report.note_loaded(name, name, *entry);
    return true;
  }

  void report_unexpected(WeightReport& report) const {
    for (const ArrayEntry& entry : file_.entries())
      if (!asked_.contains(&entry) && !entry.name.ends_with(kBatches)) report.unexpected.push_back(entry.name);
    report.left_out = file_.left_out();
  }

 private:
  const ArrayFile file_;
  std::set<const ArrayEntry*> asked_;
};

// "a, b, c, and 4 more"
std::string first_of(const std::vector<std::string>& names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < kNamesShown; ++i) text += (i ? ", " : "") + names[i];
  return names.size() > kNamesShown ? concat(text, ", and ", names.size() - kNamesShown, " more") : text;
}

}  // namespace

std::string WeightReport::summary() const {
  std::string text = concat(loaded.size(), " tensors loaded, ", missing.size(), " missing, ", unexpected.size(),
                            " unexpected, ", mismatched.size(), " of another type or shape");
  const auto add = [&text](const char* kind, const std::vector<std::string>& names) {
    if (!names.empty()) text += concat("; ", kind, ": ", first_of(names));
  };
  add("missing", missing);
  add("unexpected", unexpected);
  add("mismatched", mismatched);
  for (const std::string& line : conversions()) text += "; " + line;
  return text;
}

std::vector<std::string> WeightReport::conversions() const {
  std::vector<std::string> lines;
  if (!cast.empty()) lines.push_back(concat(cast.size(), " tensors cast to F32: ", first_of(cast)));
  if (!unwrapped.empty())
    lines.push_back(concat(unwrapped.size(), " names loaded without wrapper prefix: ", first_of(unwrapped)));
  if (!left_out.empty()) lines.push_back(concat("keys of the file that are not read: ", left_out));
  return lines;
}

std::vector<std::string> WeightReport::notices() const {
  return complete() ? conversions() : std::vector<std::string>{summary()};
}

void WeightReport::note_loaded(const std::string& ours, const std::string& asked, const ArrayEntry& entry) {
  loaded.push_back(ours);
  if (ArrayFile::is_cast(entry)) cast.push_back(concat(ours, " (", entry.dtype, ")"));
  if (!entry.name.starts_with(asked)) unwrapped.push_back(entry.name);
}

void WeightReport::require_useful(const ParameterStore& store, const std::string& path, Fault fault) const {
  const bool expects_none = store.parameters().empty() && (store.buffers().empty() || !loaded.empty());
  const auto is_loaded = [&](const Parameter& one) { return std::ranges::find(loaded, one.name) != loaded.end(); };
  if (expects_none || std::ranges::any_of(store.parameters(), is_loaded)) return;
  throw Error(fault, concat(path, ": does not fit the model: ",
                            loaded.empty() ? "" : "none of its parameters is in the file: ", summary()));
}

SafetensorsMetadata metadata_of(const WeightsRecord& record) {
  SafetensorsMetadata metadata = {{"format", "pt"}};
  for (const auto& [key, value] : record) metadata[concat(kOfRecord, key)] = value;
  return metadata;
}

WeightsRecord record_in(const SafetensorsMetadata& metadata) {
  WeightsRecord record;
  for (const auto& [key, value] : metadata)
    if (key.starts_with(kOfRecord)) record[key.substr(kOfRecord.size())] = value;
  return record;
}

Shape torch_shape(const Parameter& parameter) {
  const Shape& shape = parameter.shape;
  if (parameter.options().layout != Layout::krsc) return shape;
  return {shape[0], shape[3], shape[1], shape[2]};
}

std::vector<float> torch_values(const ParameterStore& store, const Parameter& parameter) {
  require_allocated(store, "torch_values");
  std::vector<float> values(static_cast<size_t>(parameter.shape.count()));
  store.context().download(parameter.value, values.data(), "reading weights");
  if (parameter.options().layout == Layout::plain) return values;
  std::vector<float> ordered(values.size());
  for_each_filter_element(filters_of(parameter), [&](int64_t torch, int64_t ours) { ordered[torch] = values[ours]; });
  return ordered;
}

void write_weights(OutputFile& file, const ParameterStore& store, const float* values, const float* buffers,
                   uint64_t batches_tracked, const WeightsRecord& record) {
  file.write(safetensors_header(plan_of(store), metadata_of(record)));
  for (const Buffer& buffer : store.buffers())
    if (!batches_name(buffer).empty()) file.write(&batches_tracked, sizeof batches_tracked);
  std::vector<float> oihw;
  for (const Parameter& parameter : store.parameters()) {
    const float* value = values + parameter.offset;
    const auto count = static_cast<size_t>(parameter.shape.count());
    if (parameter.options().layout != Layout::plain) {
      oihw.resize(count);
      for_each_filter_element(filters_of(parameter), [&](int64_t torch, int64_t ours) { oihw[torch] = value[ours]; });
      value = oihw.data();
    }
    file.write(value, count * sizeof(float));
  }
  for (const Buffer& buffer : store.buffers())
    file.write(buffers + buffer.offset, static_cast<size_t>(buffer.shape.count()) * sizeof(float));
}

void save_weights(const ParameterStore& store, const std::string& path, uint64_t batches_tracked,
                  const WeightsRecord& record) {
  require_allocated(store, "save_weights");
  const auto values = download_arena(store, store.values());
  const auto buffers = download_arena(store, store.buffer_values());
  ResultFile file(path);
  write_weights(file.output(), store, values.data(), buffers.data(), batches_tracked, record);
  file.commit();
}

WeightReport load_weights(ParameterStore& store, const std::string& path, Fault fault) {
  require_allocated(store, "load_weights");
  Arrays arrays(path, fault);
  Context& context = store.context();
  WeightReport report;
  std::vector<float> value, krsc;
  for (const Parameter& parameter : store.parameters()) {
    if (!arrays.read(parameter.name, torch_shape(parameter), value, report)) continue;
    if (parameter.options().layout != Layout::plain) {
      krsc.resize(value.size());
      for_each_filter_element(filters_of(parameter), [&](int64_t torch, int64_t ours) { krsc[ours] = value[torch]; });
      value.swap(krsc);
    }
    context.upload(value.data(), parameter.value);
  }
  for (const Buffer& buffer : store.buffers())
    if (arrays.read(buffer.name, buffer.shape, value, report)) context.upload(value.data(), buffer.value);
  arrays.report_unexpected(report);
  report.require_useful(store, path, fault);
  store.refresh_compute();
  return report;
}

}  // namespace dtrain
