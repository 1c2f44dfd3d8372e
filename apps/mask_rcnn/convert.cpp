// dtrain-mask-rcnn convert: converts weights between the tensor names and layouts of programs.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/cli/recorded_weights.h"
#include "apps/detection/recorded_categories.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/loaded_detector.h"

namespace dtrain::mask_rcnn {
namespace {

std::vector<std::string> program_ids() {
  std::vector<std::string> ids;
  for (const models::WeightNames* const names : models::all_weight_names()) ids.emplace_back(names->id);
  return ids;
}

const models::WeightNames& names_with_id(const std::string& id) {
  for (const models::WeightNames* const names : models::all_weight_names())
    if (names->id == id) return *names;
  throw Error("no names of the program " + id);
}

struct ConvertFlags {
  ModelFlags model;
  std::string from, to, names;

  void declare(cli::FlagSet& flags) {
    flags.add("from", from,
              "input file, .safetensors, .npz, .pth or .pkl, with the tensor names of any of the programs");
    flags.add("to", to, "output file, .safetensors or .npz");
    std::vector<std::string> choices = program_ids();
    choices.insert(choices.begin(), "");
    flags.add_choice("names", names, choices,
                     "tensor names in the output file; default: TensorPack's in .npz, else torchvision's");
    model.declare_conventions(flags);
  }
  void check() const {
    DT_CHECK(!from.empty() && !to.empty(), "expected --from and --to; see --help");
    DT_CHECK(to.ends_with(".safetensors") || to.ends_with(".npz"), "--to=", to, ": expected .safetensors or .npz");
  }
  ArrayFormat format() const { return to.ends_with(".npz") ? ArrayFormat::npz : ArrayFormat::safetensors; }
  // Metadata of the output file. Without --preset, the conventions of another program's weights are unknown.
  WeightsRecord record(const cli::FlagSet& given, const Settings& settings) const {
    const WeightsRecord of_source = cli::recorded_with(from);
    if (!given.given("preset") && !recorded_settings(of_source, from)) return of_source;
    WeightsRecord record = settings.recorded_with_weights();
    if (const auto found = of_source.find(detection::kCategoriesKey); found != of_source.end()) record.insert(*found);
    return record;
  }
  const models::WeightNames& target() const {
    if (!names.empty()) return names_with_id(names);
    return names_with_id(format() == ArrayFormat::npz ? "tensorpack" : "torchvision");
  }
};

void print_count(const char* title, const std::vector<std::string>& tensors, const char* meaning) {
  std::ostream& out = cli::patient_stdout();
  out << fmt::format("{:<13}{}{}\n", title, tensors.size(), tensors.empty() ? "" : meaning);
  for (const std::string& tensor : tensors) out << "  " << cli::escaped(tensor) << '\n';
}

std::string recorded_line(const WeightsRecord& record) {
  if (const auto settings = recorded_settings(record, "")) return "conventions of the preset " + settings->preset;
  return "none; set the conventions with --preset";
}

void print_report(const ConvertFlags& flags, const models::LoadedWeights& loaded, const WeightsRecord& record) {
  std::ostream& out = cli::patient_stdout();
  out << fmt::format("{:<13}{}, {}'s names\n", "Read:", cli::escaped(flags.from), loaded.names.program);
  out << fmt::format("{:<13}{} tensors\n", "Taken:", loaded.report.loaded.size());
  print_count("Missing:", loaded.report.missing, ", also missing in the output");
  print_count("Left over:", loaded.report.unexpected, ", not part of the model");
  print_count("Other shape:", loaded.report.mismatched, ", ignored");
  if (flags.format() == ArrayFormat::safetensors) out << fmt::format("{:<13}{}\n", "Recorded:", recorded_line(record));
  out << fmt::format("{:<13}{}, {}'s names", "Written:", cli::escaped(flags.to), flags.target().program) << std::endl;
}

}  // namespace

int convert(const Arguments& argv) {
  ConvertFlags values;
  cli::FlagSet flags(argv.front(), "--from FILE --to FILE [--names PROGRAM] [flags] [--config KEY=VALUE...]",
                     "Converts weights between the tensor names of torchvision (used by checkpoints), TensorPack and "
                     "detectron2. Values are preserved bit for bit; the number of classes is taken from the file.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  values.check();
  values.from = values.model.load = weights_file(values.from);
  std::vector<std::string> notices;
  const Settings settings = values.model.settings(flags, notices, ModelFlags::Use::to_convert);
  cli::print_notes(notices);
  const LoadedDetector loaded(settings, values.from);
  const auto& taken = loaded.weights.report.loaded;
  const WeightsRecord record = values.record(flags, settings);
  models::save_detector(loaded.store, {taken.begin(), taken.end()}, values.target(), values.format(), values.to,
                        record);
  print_report(values, loaded.weights, record);
  return 0;
}

}  // namespace dtrain::mask_rcnn
