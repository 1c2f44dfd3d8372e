#include "dtrain/models/detection/weight_files.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "libdtrain/io/result_file.h"
#include "models/detection/array_arrangement.h"

namespace dtrain::models {
namespace {

constexpr int64_t kMostClasses = 1 << 16;  // limit on memory
constexpr std::string_view kRunningMean = ".running_mean", kBatches = ".num_batches_tracked";

using ByName = std::map<std::string, const ArrayEntry*>;

std::string_view without_output(std::string_view name) {
  return name.ends_with(":0") ? name.substr(0, name.size() - 2) : name;
}

// Entries with and without prefixes of wrappers (module., model.).
ByName by_name(const ArrayFile& file) {
  ByName entries;
  for (const ArrayEntry& entry : file.entries()) entries[std::string(without_output(entry.name))] = &entry;
  for (const ArrayEntry& entry : file.entries())
    for (const std::string_view inner : unwrapped_names(without_output(entry.name))) entries.emplace(inner, &entry);
  return entries;
}

// The name table with the most matches in the file.
const WeightNames& names_in(const ByName& entries, const ParameterStore& store,
                            std::span<const WeightNames* const> candidates) {
  const WeightNames* best = candidates.front();
  int64_t most = 0;
  for (const WeightNames* const names : candidates) {
    const int64_t known = std::ranges::count_if(store.parameters(), [&](const Parameter& parameter) {
      return entries.contains(foreign_name(*names, store, parameter.name).text);
    });
    if (known > most) best = names, most = known;
  }
  return *best;
}

// A convolution over the whole image stores its elements in the order of a linear layer.
bool fits(const Shape& file, const Shape& expected) {
  return file == expected ||
         (expected.rank() == 2 && file.rank() == 4 && file[0] == expected[0] && file.count() == expected.count());
}

class Loading {
 public:
  Loading(const ParameterStore& store, const ArrayFile& file, const ByName& entries, const WeightNames& names)
      : store_(store), context_(store.context()), file_(file), entries_(entries), names_(names) {}

  void load(const Parameter& parameter) {
    const ForeignName name = foreign_name(names_, store_, parameter.name);
    load(parameter.name, name.text, parameter.value, ArrayArrangement(parameter, names_.order, name.layer));
  }
  void load(const Buffer& buffer) {
    load(buffer.name, foreign_name(names_, store_, buffer.name).text, buffer.value, ArrayArrangement(buffer));
  }

  // Call after the last lookup.
  WeightReport finish() {
    for (const ArrayEntry& entry : file_.entries())
      if (!asked_.contains(&entry) && std::ranges::none_of(names_.extras, [&entry](std::string_view extra) {
            return entry.name.find(extra) != entry.name.npos;
          }))
        report_.unexpected.push_back(entry.name);
    std::ranges::sort(report_.unexpected);
    report_.left_out = file_.left_out();
    return std::move(report_);
  }

 private:
  void load(const std::string& ours, const std::string& theirs, const Tensor& value,
            const ArrayArrangement& arrangement) {
    const auto found = entries_.find(theirs);
    if (theirs.empty() || found == entries_.end()) {
      report_.missing.push_back(theirs.empty() || theirs == ours ? ours : concat(ours, " (", theirs, ")"));
      return;
    }
    const ArrayEntry& entry = *found->second;
    asked_.insert(&entry);
    if (!file_.readable(entry) || !fits(entry.shape, arrangement.theirs())) {
      const std::string type = file_.readable(entry) ? "" : entry.dtype + " ", expected = type.empty() ? "" : "F32 ";
      report_.mismatched.push_back(
          concat(theirs, ": file ", type, entry.shape, ", model ", expected, arrangement.theirs()));
      return;
    }
    const std::vector<float> read = file_.read(entry);
    const auto bad = std::ranges::find_if(read, [](float number) { return !std::isfinite(number); });
    if (bad != read.end())
      throw Error(Fault::numeric,
                  concat(file_.path(), ": element ", bad - read.begin(), " of ", theirs, " is not finite"));
    std::vector<float> to(static_cast<size_t>(value.count()));
    if (arrangement.leaves_out()) context_.download(value, to.data(), "loading weights");
    arrangement.for_each([&](size_t our, size_t their) { to[our] = read[their]; });
    context_.upload(to.data(), value);
    report_.note_loaded(ours, theirs, entry);
  }

  const ParameterStore& store_;
  Context& context_;
  const ArrayFile& file_;
  const ByName& entries_;
  const WeightNames& names_;
  std::set<const ArrayEntry*> asked_;
  WeightReport report_;
};

// Array to write; `value` is undefined for num_batches_tracked.
struct Planned {
  TensorSpec spec{};
  Tensor value{};
  std::optional<ArrayArrangement> arrangement{};
};

std::string foreign_or_throw(const WeightNames& names, const ParameterStore& store, const std::string& ours) {
  const std::string theirs = foreign_name(names, store, ours).text;
  DT_CHECK(!theirs.empty(), names.program, " has no name for ", ours);
  return theirs;
}

std::vector<Planned> plan_of(const ParameterStore& store, const std::set<std::string>& only, const WeightNames& names) {
  std::vector<Planned> plan;
  const auto add = [&](const std::string& ours, const Tensor& value, const ArrayArrangement& arrangement) {
    plan.push_back({{foreign_or_throw(names, store, ours), DType::f32, arrangement.theirs()}, value, arrangement});
  };
  for (const Buffer& buffer : store.buffers())
    if (&names == &torchvision_names() && only.contains(buffer.name) && buffer.name.ends_with(kRunningMean))
      plan.push_back(
          {{buffer.name.substr(0, buffer.name.size() - kRunningMean.size()) + std::string(kBatches), DType::i64, {}}});
  for (const Parameter& parameter : store.parameters())
    if (only.contains(parameter.name))
      add(parameter.name, parameter.value,
          ArrayArrangement(parameter, names.order, foreign_name(names, store, parameter.name).layer));
  for (const Buffer& buffer : store.buffers())
    if (only.contains(buffer.name)) add(buffer.name, buffer.value, ArrayArrangement(buffer));
  return plan;
}

// Shape in a file with these names.
Shape named_shape(const WeightNames& names, const Parameter& parameter) {
  const Shape shape = torch_shape(parameter);
  const bool convolves = shape.rank() == 2 && std::ranges::any_of(names.convolutions, [&](std::string_view layer) {
                           return parameter.name.starts_with(layer);
                         });
  if (!convolves) return shape;
  const bool over_image = parameter.options().layout == Layout::flat;
  const int64_t channels = over_image ? parameter.options().channels : shape[1], pixels = shape[1] / channels;
  const auto side = static_cast<int64_t>(std::lround(std::sqrt(static_cast<double>(pixels))));
  return side * side == pixels ? Shape{shape[0], channels, side, side} : shape;
}

}  // namespace

std::optional<int64_t> classes_of_weights(const std::string& path, Fault fault) {
  const ArrayFile file(path, fault);
  const ByName entries = by_name(file);
  for (const WeightNames* const names : all_weight_names())
    for (const std::string_view name : names->scores) {
      const auto scores = entries.find(std::string(name));
      if (scores == entries.end()) continue;
      const int64_t classes = scores->second->shape.count();
      if (classes < 2 || classes > kMostClasses)
        throw Error(fault, concat(path, ": ", name, " of ", classes, " classes; expected 2 to ", kMostClasses));
      return classes;
    }
  return {};
}

LoadedWeights load_by_names(ParameterStore& store, std::span<const WeightNames* const> candidates,
                            const std::string& path, Fault fault) {
  DT_CHECK(store.allocated(), "load_by_names: the store holds no values before ParameterStore::allocate()");
  const ArrayFile file(path, fault);
  const ByName entries = by_name(file);
  const WeightNames& names = names_in(entries, store, candidates);
  Loading loading(store, file, entries, names);
  for (const Parameter& parameter : store.parameters()) loading.load(parameter);
  for (const Buffer& buffer : store.buffers()) loading.load(buffer);
  LoadedWeights loaded{names, loading.finish()};
  loaded.report.require_useful(store, path, fault);
  store.refresh_compute();
  return loaded;
}

Renaming rename_arrays(const ParameterStore& store, std::span<const WeightNames* const> candidates,
                       const WeightNames& to, const ArrayFile& file) {
  const ByName entries = by_name(file);
  Renaming renaming{names_in(entries, store, candidates), {}};
  DT_CHECK(renaming.from.order == to.order, "arrays of ", renaming.from.program,
           " are laid out otherwise than those of ", to.program);
  const auto add = [&](const std::string& ours, const Shape* shape, std::string_view before, std::string_view after) {
    const auto renamed = [&](const WeightNames& names) {
      std::string name = foreign_name(names, store, ours).text;
      if (name.ends_with(before)) name.replace(name.size() - before.size(), before.size(), after);
      return name;
    };
    const auto found = entries.find(renamed(renaming.from));
    if (found != entries.end())
      renaming.arrays.push_back({found->second, renamed(to), shape ? *shape : found->second->shape});
  };
  for (const Parameter& parameter : store.parameters()) {
    const Shape shape = named_shape(to, parameter);
    add(parameter.name, &shape, "", "");
  }
  for (const Buffer& buffer : store.buffers()) {
    add(buffer.name, &buffer.shape, "", "");
    if (buffer.name.ends_with(kRunningMean)) add(buffer.name, nullptr, kRunningMean, kBatches);
  }
  return renaming;
}

LoadedWeights load_detector(ParameterStore& store, const std::string& path, Fault fault) {
  return load_by_names(store, all_weight_names(), path, fault);
}

std::vector<TensorSpec> save_detector(const ParameterStore& store, const std::set<std::string>& only,
                                      const WeightNames& names, ArrayFormat format, const std::string& path,
                                      const WeightsRecord& record) {
  DT_CHECK(store.allocated(), "save_detector: the store holds no values before ParameterStore::allocate()");
  const std::vector<Planned> plan = plan_of(store, only, names);
  std::vector<TensorSpec> specs;
  for (const Planned& one : plan) specs.push_back(one.spec);
  ResultFile file(path);
  ArrayOutput output(file.output(), format, specs, metadata_of(record));
  for (const Planned& one : plan) {
    if (!one.value) {
      constexpr int64_t kNoBatches = 0;
      output.write(&kNoBatches);
      continue;
    }
    std::vector<float> ours(static_cast<size_t>(one.value.count())),
        theirs(static_cast<size_t>(one.spec.shape.count()));
    store.context().download(one.value, ours.data(), "saving weights");
    one.arrangement->for_each([&](size_t our, size_t their) { theirs[their] = ours[our]; });
    output.write(theirs.data());
  }
  output.finish();
  file.commit();
  return specs;
}

}  // namespace dtrain::models
