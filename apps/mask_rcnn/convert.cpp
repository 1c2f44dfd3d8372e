// dtrain-mask-rcnn convert: converts weights between the tensor names and layouts of programs.
#include <utility>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/recorded_weights.h"
#include "apps/detection/recorded_categories.h"
#include "apps/mask_rcnn/exchange.h"
#include "apps/mask_rcnn/loaded_detector.h"

namespace dtrain::mask_rcnn {
namespace {

const models::WeightNames& names_with_id(const std::string& id) {
  for (const models::WeightNames* const names : models::all_weight_names())
    if (names->id == id) return *names;
  throw Error("no names of the program " + id);
}

// Metadata of the output file. Without --preset, the conventions of another program's weights are unknown.
WeightsRecord record_of(const std::string& from, const cli::FlagSet& given, const Settings& settings) {
  const WeightsRecord of_source = cli::recorded_with(from);
  if (!given.given("preset") && !recorded_settings(of_source, from)) return of_source;
  WeightsRecord record = settings.recorded_with_weights();
  if (const auto found = of_source.find(detection::kCategoriesKey); found != of_source.end()) record.insert(*found);
  return record;
}

const models::WeightNames& target_of(const ConvertOptions& options) {
  if (!options.names.empty()) return names_with_id(options.names);
  return names_with_id(options.format == ArrayFormat::npz ? "tensorpack" : "torchvision");
}

void print_count(const char* title, const std::vector<std::string>& tensors, const char* meaning) {
  std::ostream& out = cli::patient_stdout();
  out << fmt::format("{:<13}{}{}\n", title, tensors.size(), tensors.empty() ? "" : meaning);
  for (const std::string& tensor : tensors) out << "  " << cli::escaped(tensor) << '\n';
}

std::string recorded_line(const WeightsRecord& record) {
  if (const auto settings = recorded_settings(record, "")) return "conventions of the preset " + settings->preset;
  return "none; set the conventions with --preset";
}

void print_report(const ConvertOptions& options, const models::LoadedWeights& loaded,
                  const std::vector<TensorSpec>& written, const WeightsRecord& record) {
  std::ostream& out = cli::patient_stdout();
  if (options.lists_tensors)
    for (const TensorSpec& tensor : written)
      out << fmt::format("{}  {} ", cli::escaped(tensor.name), safetensors_dtype(tensor.dtype)) << tensor.shape << '\n';
  out << fmt::format("{:<13}{}, {}'s names\n", "Read:", cli::escaped(options.from), loaded.names.program);
  out << fmt::format("{:<13}{} tensors\n", "Taken:", loaded.report.loaded.size());
  print_count("Missing:", loaded.report.missing, ", also missing in the output");
  print_count("Left over:", loaded.report.unexpected, ", not part of the model");
  print_count("Other shape:", loaded.report.mismatched, ", ignored");
  if (options.format == ArrayFormat::safetensors) out << fmt::format("{:<13}{}\n", "Recorded:", recorded_line(record));
  out << fmt::format("{:<13}{}, {}'s names", "Written:", cli::escaped(options.to), target_of(options).program)
      << std::endl;
}

}  // namespace

std::vector<std::string> program_ids() {
  std::vector<std::string> ids;
  for (const models::WeightNames* const names : models::all_weight_names()) ids.emplace_back(names->id);
  return ids;
}

void convert_weights(ConvertOptions options, const cli::FlagSet& given) {
  options.from = options.model.load = weights_file(options.from);
  std::vector<std::string> notices;
  const Settings settings = options.model.settings(given, notices, ModelFlags::Use::to_convert);
  cli::print_notes(notices);
  const LoadedDetector loaded(settings, options.from);
  const auto& taken = loaded.weights.report.loaded;
  const WeightsRecord record = record_of(options.from, given, settings);
  const std::vector<TensorSpec> written = models::save_detector(loaded.store, {taken.begin(), taken.end()},
                                                                target_of(options), options.format, options.to, record);
  print_report(options, loaded.weights, written, record);
}

int convert(const Arguments& argv) {
  ConvertOptions options;
  cli::FlagSet flags(argv.front(), "--from FILE --to FILE [--names PROGRAM] [flags] [--config KEY=VALUE...]",
                     "Converts weights between the tensor names of torchvision (used by checkpoints), TensorPack and "
                     "detectron2, as dtrain-convert does. Values are preserved bit for bit; the number of classes is "
                     "taken from the file.");
  flags.add("from", options.from,
            "input file, .safetensors, .npz, .pth or .pkl, with the tensor names of any of the programs");
  flags.add("to", options.to, "output file, .safetensors or .npz; a file of that name is replaced");
  std::vector<std::string> choices = program_ids();
  choices.insert(choices.begin(), "");
  flags.add_choice("names", options.names, choices,
                   "tensor names in the output file; default: TensorPack's in .npz, else torchvision's");
  options.model.declare_conventions(flags);
  const auto positional = read_arguments(flags, options.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  const std::string& to = options.to;
  DT_CHECK(!options.from.empty() && !to.empty(), "expected --from and --to; see --help");
  DT_CHECK(to.ends_with(".safetensors") || to.ends_with(".npz"), "--to=", to, ": expected .safetensors or .npz");
  options.format = to.ends_with(".npz") ? ArrayFormat::npz : ArrayFormat::safetensors;
  convert_weights(std::move(options), flags);
  return 0;
}

}  // namespace dtrain::mask_rcnn
