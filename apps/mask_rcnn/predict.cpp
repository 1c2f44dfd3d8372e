// dtrain-mask-rcnn predict: objects in images.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/draw_objects.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/loaded_detector.h"
#include "apps/mask_rcnn/model.h"
#include "apps/mask_rcnn/placed_image.h"
#include "libdtrain/io/atomic_file.h"

namespace dtrain::mask_rcnn {
namespace {

struct PredictFlags {
  ModelFlags model;
  cli::MachineFlags machine;
  std::string output, annotations;
  bool json = false;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    flags.add("annotations", annotations, "COCO's annotations whose categories are what the classes stand for");
    flags.group("Output");
    flags.add("output", output, "folder for pictures of what was found, NAME.png");
    flags.add("json", json,
              R"(a line per image: {"file", "width", "height", "detections": [{"bbox": [x, y, w, h], "score", )"
              R"("category_id", "segmentation": RLE}]}, or {"file", "error"})");
    machine.declare(flags);
  }
};

nlohmann::ordered_json json_of(const data::coco::Detection& one) {
  nlohmann::ordered_json json;
  if (one.box) json["bbox"] = {one.box->x, one.box->y, one.box->width, one.box->height};
  json["score"] = one.score;
  json["category_id"] = one.category_id;
  if (one.mask)
    json["segmentation"] = {{"size", {one.mask->height, one.mask->width}}, {"counts", data::coco::to_text(*one.mask)}};
  return json;
}

void print_line(const nlohmann::ordered_json& line) {
  cli::patient_stdout() << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

void print_found(const std::string& path, const ImagePlace& place, const std::vector<data::coco::Detection>& found,
                 const std::vector<data::coco::Category>& categories, bool json) {
  if (json) {
    nlohmann::ordered_json line = {{"file", path}, {"width", place.width}, {"height", place.height}};
    line["detections"] = nlohmann::ordered_json::array();
    for (const data::coco::Detection& one : found) line["detections"].push_back(json_of(one));
    print_line(line);
    return;
  }
  std::ostream& out = cli::patient_stdout();
  out << fmt::format("{}: {} objects\n", path, found.size());
  for (const data::coco::Detection& one : found)
    out << fmt::format("  {:5.3f}  {:<16} at {:.0f}, {:.0f}, {:.0f} x {:.0f}\n", one.score,
                       std::ranges::find(categories, one.category_id, &data::coco::Category::id)->name, one.box->x,
                       one.box->y, one.box->width, one.box->height);
  out.flush();
}

// What the classes from 1 on stand for: the categories of --annotations, which a model of torchvision's numbers by
// their ids, or their own numbers.
std::vector<data::coco::Category> categories_of(const std::string& annotations, int64_t classes) {
  std::vector<data::coco::Category> categories;
  for (int64_t i = 1; i < classes; ++i) categories.push_back({i, fmt::format("class {}", i)});
  if (annotations.empty()) return categories;
  const auto known = data::coco::read_annotations(annotations).categories;
  if (known.size() == categories.size()) return known;
  for (const data::coco::Category& category : known) {
    if (category.id < 1 || category.id >= classes)
      throw Error(Fault::data, fmt::format("{}: {} categories, for a model of {} classes", annotations, known.size(),
                                           categories.size()));
    categories[static_cast<size_t>(category.id) - 1].name = category.name;
  }
  return categories;
}

void draw_found(const std::string& path, const PlacedImage& image, const std::vector<data::coco::Detection>& found,
                const std::vector<data::coco::Category>& categories, double visible) {
  std::vector<DrawnObject> objects;
  for (const data::coco::Detection& one : found) {
    if (one.score < visible) continue;
    const auto category = std::ranges::find(categories, one.category_id, &data::coco::Category::id);
    objects.push_back({*one.box, one.mask, category - categories.begin() + 1, score_label(category->name, one.score)});
  }
  Canvas canvas(image.original.view());
  draw_objects(canvas, objects);
  write_png(path, canvas.image().view());
}

std::string picture_name(const std::string& path) { return std::filesystem::path(path).stem().string() + ".png"; }

// No picture shall take the place of another one.
void require_different_names(const std::vector<std::string>& images) {
  std::set<std::string> names;
  for (const std::string& path : images)
    DT_CHECK(names.insert(picture_name(path)).second, "--output: two images would become ", picture_name(path),
             "; predict them with different folders");
}

// A detector and how it is asked.
struct Predictor {
  const PredictFlags& flags;
  const Settings& settings;
  std::vector<data::coco::Category> categories;
  Model model;

  void predict(const std::string& path) {
    const PlacedImage image = place_image(*model.context, path, settings.data);
    Tape tape(*model.context, Mode::eval);
    const models::Canvas& canvas = model.canvas(image.pixels.dim(1), image.pixels.dim(2));
    const models::Detections found =
        model.detector.detect(tape, canvas, model.pixels(tape, image.pixels, image.sizes), image.sizes);
    const auto detections = detections_of(*model.context, found, {image.place}, categories, settings.paste());
    print_found(path, image.place, detections[0], categories, flags.json);
    if (!flags.output.empty())
      draw_found(flags.output + "/" + picture_name(path), image, detections[0], categories, settings.visible_score);
  }
};

}  // namespace

int predict(const Arguments& argv) {
  PredictFlags values;
  cli::FlagSet flags(argv.front(), "--load WEIGHTS IMAGE... [flags] [--config KEY=VALUE...]",
                     "Finds objects in JPEG and PNG images. The weights are those of a checkpoint, of torchvision or "
                     "of detectron2, saved as safetensors, or TensorPack's .npz.");
  values.declare(flags);
  const auto images = read_arguments(flags, values.model, argv);
  if (!images) return 0;
  DT_CHECK(!values.model.load.empty() && !images->empty(), "expected --load and at least one image; see --help");
  if (!values.output.empty()) require_different_names(*images);
  values.machine.check(flags);
  std::vector<std::string> notices;
  Settings settings = values.model.settings(notices);
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  for (const std::string& notice : notices) cli::print_message("note", notice);
  take_classes(settings, settings.weights);
  Predictor predictor{values, settings, categories_of(values.annotations, settings.detector.classes),
                      Model(settings, machine, 0, /*gradients=*/false)};
  predictor.model.load(settings.weights, /*complete=*/true);
  if (!values.output.empty()) make_directories(system_files(), values.output);
  int code = 0;
  for (const std::string& path : *images) {
    try {
      predictor.predict(path);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      if (values.json) print_line({{"file", path}, {"error", error.what()}});
      cli::print_message("error", path + ": " + error.what());
      code = static_cast<int>(Fault::data);
    }
  }
  return code;
}

}  // namespace dtrain::mask_rcnn
