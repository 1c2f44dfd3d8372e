// dtrain-mask-rcnn predict: objects in images.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/found.h"
#include "apps/mask_rcnn/model.h"
#include "data/image.h"
#include "data/resize.h"
#include "libdtrain/io/input_file.h"
#include "libdtrain/io/safetensors.h"

namespace dtrain::mask_rcnn {
namespace {

struct PredictFlags {
  ModelFlags model;
  cli::MachineFlags machine;
  std::string output;
  bool json = false;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    flags.group("Output");
    flags.add("json", json,
              R"(a line per image: {"file", "width", "height", "detections": [{"bbox": [x, y, w, h], "score", )"
              R"("category_id", "segmentation": RLE}]}, or {"file", "error"})");
    machine.declare(flags);
  }
};

// An image on a canvas of its own, and where it lies there.
struct Placed {
  Tensor pixels, sizes;
  ImagePlace place;
};

// Decodes, resizes and pads as evaluation does.
Placed place_image(Context& context, const std::string& path, const DataSettings& settings, int64_t id) {
  const InputFile file(path);
  std::vector<std::byte> bytes(file.size());
  file.read(0, bytes.data(), bytes.size());
  data::ImageDecoder decoder;
  const data::ImageInfo info = decoder.open(bytes);
  const data::ImageView image = decoder.decode();
  const data::ResizeRule& rule = settings.evaluation_resize;
  const data::ImageSize size = data::resized({info.height, info.width}, rule.max_short_edge, rule);
  constexpr int64_t kMultiple = 32;
  const auto padded = [](int64_t side) { return (side + kMultiple - 1) / kMultiple * kMultiple; };
  const Shape shape{1, padded(size.height), padded(size.width), 3};
  std::vector<uint8_t> canvas(static_cast<size_t>(shape.count()));
  const auto axis = [](int in, int64_t out) {
    return data::Axis{in, static_cast<int>(out), 0, static_cast<int>(out), false};
  };
  Filter<float> x, y;
  data::make_half_pixel_filter(axis(info.width, size.width), x);
  data::make_half_pixel_filter(axis(info.height, size.height), y);
  std::vector<float> rows;
  data::resample(image, x, y, rows, canvas.data(), 3 * shape[2]);

  Placed placed{context.empty(shape, DType::u8),
                context.empty({1, 2}),
                {id, static_cast<double>(size.height), static_cast<double>(size.width), info.height, info.width}};
  const float sides[] = {static_cast<float>(size.height), static_cast<float>(size.width)};
  context.upload(canvas.data(), placed.pixels);
  context.upload(sides, placed.sizes);
  return placed;
}

// As many classes as the weights have scores for.
int64_t classes_of_weights(const std::string& path) {
  const SafetensorsFile file(path, Fault::checkpoint);
  const SafetensorsEntry* scores = file.find("roi_heads.box_predictor.cls_score.bias");
  if (!scores) throw Error(Fault::checkpoint, path + ": no tensor roi_heads.box_predictor.cls_score.bias");
  return scores->shape.count();
}

nlohmann::ordered_json json_of(const data::coco::Detection& one) {
  nlohmann::ordered_json json;
  if (one.box) json["bbox"] = {one.box->x, one.box->y, one.box->width, one.box->height};
  json["score"] = one.score;
  json["category_id"] = one.category_id;
  if (one.mask)
    json["segmentation"] = {{"size", {one.mask->height, one.mask->width}}, {"counts", data::coco::to_text(*one.mask)}};
  return json;
}

void print_found(const std::string& path, const ImagePlace& place, const std::vector<data::coco::Detection>& found,
                 bool json) {
  std::ostream& out = cli::patient_stdout();
  if (json) {
    nlohmann::ordered_json line = {{"file", path}, {"width", place.width}, {"height", place.height}};
    line["detections"] = nlohmann::ordered_json::array();
    for (const data::coco::Detection& one : found) line["detections"].push_back(json_of(one));
    out << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
    return;
  }
  out << fmt::format("{}: {} objects\n", path, found.size());
  for (const data::coco::Detection& one : found)
    out << fmt::format("  {:5.3f}  class {:<4} at {:.0f}, {:.0f}, {:.0f} x {:.0f}\n", one.score, one.category_id,
                       one.box->x, one.box->y, one.box->width, one.box->height);
  out.flush();
}

// The numbers of classes in place of the categories of a data set.
std::vector<data::coco::Category> numbered_categories(int64_t classes) {
  std::vector<data::coco::Category> categories;
  for (int64_t i = 1; i < classes; ++i) categories.push_back({i, std::to_string(i)});
  return categories;
}

void predict_image(Model& model, const Settings& settings, const std::string& path, bool json) {
  const Placed placed = place_image(*model.context, path, settings.data, 0);
  Tape tape(*model.context, Mode::eval);
  const models::Canvas& canvas = model.canvas(placed.pixels.dim(1), placed.pixels.dim(2));
  const models::Detections found =
      model.detector.detect(tape, canvas, model.pixels(tape, placed.pixels, placed.sizes), placed.sizes);
  const auto detections =
      detections_of(*model.context, found, {placed.place}, numbered_categories(settings.detector.classes),
                    settings.preset == "torchvision" ? data::coco::Paste::whole_pixels : data::coco::Paste::continuous);
  print_found(path, placed.place, detections[0], json);
}

}  // namespace

int predict(const Arguments& argv) {
  PredictFlags values;
  cli::FlagSet flags(argv.front(), "--load WEIGHTS IMAGE... [flags] [--config KEY=VALUE...]",
                     "Finds objects in JPEG and PNG images. The weights are those of a checkpoint or of torchvision, "
                     "saved as safetensors.");
  values.declare(flags);
  const auto images = read_arguments(flags, values.model, argv);
  if (!images) return 0;
  DT_CHECK(!values.model.load.empty() && !images->empty(), "expected --load and at least one image; see --help");
  values.machine.check(flags);
  std::vector<std::string> notices;
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  for (const std::string& notice : notices) cli::print_message("note", notice);
  Settings settings = values.model.settings();
  settings.detector.classes = classes_of_weights(values.model.load);
  Model model(settings, machine, 0, /*gradients=*/false);
  model.load(values.model.load, /*complete=*/true);
  int code = 0;
  for (const std::string& path : *images) {
    try {
      predict_image(model, settings, path, values.json);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", path + ": " + error.what());
      code = static_cast<int>(Fault::data);
    }
  }
  return code;
}

}  // namespace dtrain::mask_rcnn
