// dtrain-mask-rcnn export: exports a detector to ONNX.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/output.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/loaded_detector.h"
#include "apps/mask_rcnn/predictor.h"
#include "dtrain/models/detection/onnx.h"

namespace dtrain::mask_rcnn {
namespace {

constexpr cli::Range<int64_t> kPixels{1, 16384};

struct ExportFlags {
  ModelFlags model;
  std::string onnx;
  std::optional<int64_t> height, width;

  void declare(cli::FlagSet& flags) {
    flags.add("onnx", onnx, "file to write");
    flags.add("height", height, "of the input images in pixels; default: the short edge of evaluation", kPixels);
    flags.add("width", width, "of the input images in pixels; default: the maximum long edge of evaluation", kPixels);
    model.declare_conventions(flags);
    model.declare_load(flags);
  }
};

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

int export_model(const Arguments& argv) {
  ExportFlags values;
  cli::FlagSet flags(argv.front(), "--onnx FILE --load WEIGHTS [flags] [--config KEY=VALUE...]",
                     "Exports a detector as an ONNX model (opset 17) for images of one size, with the same detections "
                     "as predict. The graph includes resizing, normalisation and padding. Input: `image` [3, height, "
                     "width], RGB from 0 to 1; outputs: `boxes`, `scores`, `labels` and `masks`.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  std::vector<std::string> notices;
  const Settings settings = values.model.settings(flags, notices);
  DT_CHECK(!values.onnx.empty() && !settings.weights.empty(), "expected --onnx and --load; see --help");
  cli::print_notes(notices);
  const LoadedDetector loaded(settings, settings.weights);
  require_complete(loaded.weights.report, settings.weights);
  const data::ResizeRule& rule = settings.data.evaluation_resize;
  const data::ImageSize size{static_cast<int>(values.height.value_or(rule.max_short_edge)),
                             static_cast<int>(values.width.value_or(rule.max_size))};
  const models::OnnxImage image = image_of(settings, size);
  models::export_onnx(loaded.store, loaded.detector, image, values.onnx);
  cli::patient_stdout() << fmt::format("{}: {} classes, images of {} x {}, resized to {} x {}\n",
                                       cli::escaped(values.onnx), loaded.detector.options().classes, size.height,
                                       size.width, image.resized_height, image.resized_width)
                        << std::flush;
  return 0;
}

}  // namespace dtrain::mask_rcnn
