// dtrain-mask-rcnn export: exports a detector to ONNX.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/mask_rcnn/exchange.h"
#include "apps/mask_rcnn/loaded_detector.h"
#include "apps/mask_rcnn/predictor.h"
#include "dtrain/models/detection/onnx.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr cli::Range<int64_t> kPixels{1, 16384};

models::OnnxImage image_of(const Settings& settings, const data::ImageSize& size) {
  const detection::Placement placement = evaluation_placement(size, settings.data);
  models::OnnxImage image{.height = size.height,
                          .width = size.width,
                          .canvas_height = placement.canvas_height,
                          .canvas_width = placement.canvas_width,
                          .resized_height = placement.size.height,
                          .resized_width = placement.size.width};
  if (placement.size.height != size.height) image.rows = placement.rows;
  if (placement.size.width != size.width) image.columns = placement.columns;
  image.rounds_pixels = placement.rounds_pixels;
  std::copy_n(settings.data.mean, 3, image.mean);
  std::copy_n(settings.data.deviation, 3, image.deviation);
  image.whole_pixels = settings.paste() == data::coco::Paste::whole_pixels;
  return image;
}

}  // namespace

void ExportOptions::declare_size(cli::FlagSet& flags) {
  flags.add("height", height, "of the input images in pixels; default: the short edge of evaluation", kPixels);
  flags.add("width", width, "of the input images in pixels; default: the maximum long edge of evaluation", kPixels);
}

void export_weights(const ExportOptions& options, const cli::FlagSet& given) {
  std::vector<std::string> notices;
  const Settings settings = options.model.settings(given, notices);
  DT_CHECK(!options.onnx.empty() && !settings.weights.empty(), "expected --onnx and --load; see --help");
  cli::print_notes(notices);
  const LoadedDetector loaded(settings, settings.weights);
  require_complete(loaded.weights.report, settings.weights);
  const data::ResizeRule& rule = settings.data.evaluation_resize;
  const data::ImageSize size{static_cast<int>(options.height.value_or(rule.max_short_edge)),
                             static_cast<int>(options.width.value_or(rule.max_size))};
  const models::OnnxImage image = image_of(settings, size);
  models::export_onnx(loaded.store, loaded.detector, image, options.onnx);
  cli::patient_stdout() << fmt::format("{}: {} classes, images of {} x {}, resized to {} x {}\n",
                                       cli::escaped(options.onnx), loaded.detector.options().classes, size.height,
                                       size.width, image.resized_height, image.resized_width)
                        << std::flush;
}

int export_model(const Arguments& argv) {
  ExportOptions options;
  cli::FlagSet flags(argv.front(), "--onnx FILE --load WEIGHTS [flags] [--config KEY=VALUE...]",
                     "Exports a detector as an ONNX model (opset 17) for images of one size, with the same detections "
                     "as predict. The graph includes resizing, normalisation and padding. Input: `image` [3, height, "
                     "width], RGB from 0 to 1; outputs: `boxes`, `scores`, `labels` and `masks`.");
  flags.add("onnx", options.onnx, "file to write");
  options.declare_size(flags);
  options.model.declare_conventions(flags);
  options.model.declare_load(flags);
  const auto positional = read_arguments(flags, options.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  export_weights(options, flags);
  return 0;
}

}  // namespace dtrain::mask_rcnn
