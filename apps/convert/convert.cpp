#include "apps/convert/convert.h"

#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/export_classifier.h"
#include "apps/cli/output.h"
#include "apps/cli/vision.h"
#include "apps/convert/array_copy.h"
#include "dtrain/models/classifier_weights.h"
#include "libdtrain/io/result_file.h"
#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::convert {
namespace {

constexpr char kDetector[] = "mask_rcnn";

enum class Kind { arrays, classifier, detector };

// What the weights are of, as --model, --names, the record or the tensor names say.
Kind kind_of(const Options& options) {
  const std::string& model = options.classifier.model;
  if (model == kDetector) return Kind::detector;
  if (!model.empty()) return Kind::classifier;
  if (options.names.empty() && options.target() != Target::onnx) return Kind::arrays;
  const auto detectors = {"detectron2", "tensorpack"};
  if (std::ranges::find(detectors, options.names) != detectors.end()) return Kind::detector;
  if (!cli::recorded_classifier(options.in).model.empty()) return Kind::classifier;
  if (models::classes_of_weights(options.in, Fault::checkpoint)) return Kind::detector;
  throw Error(fmt::format("{}: does not record its model; expected --model, a classifier of dtrain-info --models or {}",
                          options.in, kDetector));
}

// A flag that the conversion would not use is an error.
void refuse_unused(const Options& options, Kind kind, const cli::FlagSet& given) {
  const char* const reason = kind == Kind::arrays     ? "needs --model: without it, tensors are copied by name"
                             : kind == Kind::detector ? "is for classifiers, the weights are of a detector"
                                                      : "is for detectors, the weights are of a classifier";
  for (const auto& [group, names] : given.names()) {
    const Kind used_for = group == kDetectorGroup ? Kind::detector : Kind::classifier;
    if (group == kOutputGroup || used_for == kind) continue;
    for (const std::string& name : names)
      DT_CHECK(name == "model" || !given.given(name), "--", name, ": ", reason, "; leave the flag out");
  }
  DT_CHECK(kind == Kind::detector || options.detector.model.assignments.empty(), "--config: ", reason,
           "; leave the flag out");
  const bool is_onnx = options.target() == Target::onnx;
  DT_CHECK(is_onnx || !(options.detector.height || options.detector.width), "--height, --width: of ONNX models only");
  DT_CHECK(!is_onnx || options.dtype == "keep", "--dtype: ONNX models are written in f32; leave the flag out");
}

// Metadata of the output: the input's, with the record of its checkpoint.
SafetensorsMetadata metadata_of_output(const ArrayFile& file) {
  SafetensorsMetadata metadata = file.metadata();
  metadata.merge(metadata_of(cli::recorded_with(file.path())));
  return metadata;
}

void finish(const Options& options, const ArrayFile& file, CopyPlan plan, const std::string& names) {
  if (plan.arrays.empty())
    throw Error(Fault::checkpoint, fmt::format("{}: it has no tensor that {} can hold", file.path(), options.out));
  if (options.format() == ArrayFormat::safetensors) order_by_alignment(plan);
  write_copy(file, plan, options.format(), metadata_of_output(file), options.out);
  print_copy(file, plan, options.format(), options.out, names, !options.summary);
}

void copy_arrays(const Options& options) {
  const ArrayFile file(options.in, Fault::checkpoint);
  finish(options, file, plan_copy(file, options.format(), options.dtype == "f32"), "");
}

// The classifier's tensors under the names of a program.
CopyPlan renamed_copy(const Options& options, const ArrayFile& file, const models::Renaming& renaming) {
  CopyPlan plan;
  std::set<const ArrayEntry*> taken;
  for (const auto& [from, to, shape] : renaming.arrays) {
    taken.insert(from);
    const auto [type, refusal] = output_type(file, *from, options.format(), options.dtype == "f32");
    if (!refusal.empty()) {
      plan.left_out.push_back({from->name, refusal});
      continue;
    }
    const auto inner = unwrapped_names(from->name);
    const bool stripped = std::ranges::find(inner, to) != inner.end();
    plan.stripped += stripped;
    plan.renamed += !stripped && from->name != to;
    plan.arrays.push_back({from, {to, type, shape}});
  }
  for (const ArrayEntry& entry : file.entries())
    if (!taken.contains(&entry)) plan.left_out.push_back({entry.name, "not part of the model"});
  return plan;
}

void convert_classifier(Options& options, const cli::FlagSet& given) {
  cli::ClassifierFlags& flags = options.classifier;
  flags.weights = options.in;
  flags.take_recorded(given);
  flags.check();
  if (options.target() == Target::onnx) {
    DT_CHECK(options.names.empty(), "--names: an ONNX model has its own; leave the flag out");
    return cli::export_classifier(flags, given, /*threads=*/0, options.out, cli::patient_stdout());
  }
  const std::string program = options.names.empty() ? "torchvision" : options.names;
  DT_CHECK(program == "torchvision" || program == "timm", "--names=", program, ": ", flags.model,
           " is a classifier; expected torchvision or timm");
  flags.prints_notices = false;
  const cli::LoadedClassifier loaded(flags, given, cli::inference_machine("cpu", 0));  // checks that the weights fit
  const ArrayFile file(options.in, Fault::checkpoint);
  const models::Renaming renaming =
      models::rename_classifier(loaded.store(), cli::find_model(flags.model, flags.data_name), file, program);
  finish(options, file, renamed_copy(options, file, renaming),
         fmt::format("{}'s names to {}'s", renaming.from.program, program));
}

void convert_detector(Options& options, const cli::FlagSet& given) {
  DT_CHECK(options.names != "timm", "--names=timm: ", options.in,
           " is a detector; expected torchvision, detectron2 or "
           "tensorpack");
  DT_CHECK(options.dtype == "keep", "--dtype: tensors of detectors are written as f32; leave the flag out");
  if (options.target() == Target::onnx) {
    DT_CHECK(options.names.empty(), "--names: an ONNX model has its own; leave the flag out");
    options.detector.model.load = options.in;
    options.detector.onnx = options.out;
    return mask_rcnn::export_weights(options.detector, given);
  }
  mask_rcnn::convert_weights({.model = options.detector.model,
                              .from = options.in,
                              .to = options.out,
                              .names = options.names,
                              .format = options.format(),
                              .lists_tensors = !options.summary},
                             given);
}

}  // namespace

Target Options::target() const {
  const auto is = [&](const std::string& format) { return to.empty() ? out.ends_with("." + format) : to == format; };
  if (is("safetensors")) return Target::safetensors;
  if (is("npz")) return Target::npz;
  DT_CHECK(is("onnx"), out, ": expected a name that ends with .safetensors, .npz or .onnx, or --to");
  return Target::onnx;
}

void convert(Options options, const cli::FlagSet& given) {
  options.target();
  const std::string present = replaced_file(options.out);
  DT_CHECK(options.force || present.empty(), options.out, ": exists; give --force to replace it, or another name");
  options.in = weights_file(options.in);
  const Kind kind = kind_of(options);
  refuse_unused(options, kind, given);
  switch (kind) {
    case Kind::arrays:
      return copy_arrays(options);
    case Kind::classifier:
      return convert_classifier(options, given);
    case Kind::detector:
      return convert_detector(options, given);
  }
}

}  // namespace dtrain::convert
