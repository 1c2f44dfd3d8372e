// dtrain-mask-rcnn predict: detects objects in images.
#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/input_notices.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/detection/match_categories.h"
#include "apps/mask_rcnn/benchmark.h"
#include "apps/mask_rcnn/draw_objects.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/predictor.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::mask_rcnn {
namespace {

struct PredictFlags {
  ModelFlags model;
  BenchmarkFlags benchmark;
  cli::MachineFlags machine;
  std::string output, annotations;
  bool json = false;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    flags.add("annotations", annotations,
              "COCO annotations that define the categories of the classes; default: as recorded with the weights");
    flags.group("Output");
    flags.add("output", output, "folder for images with detections drawn, NAME.png");
    flags.add(
        "json", json,
        R"(a line per image: {"file", "width", "height", "detections": [{"bbox": [x, y, w, h], "score", )"
        R"("category_id", "segmentation": RLE}]}, or {"file", "error"}; with "warning" where the image is damaged)");
    benchmark.declare(flags);
    machine.declare(flags);
  }
};

void print_line(const nlohmann::ordered_json& line) {
  cli::patient_stdout() << line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << std::endl;
}

void print_found(const std::string& path, const detection::ImagePlace& place,
                 const std::vector<data::coco::Detection>& found, const std::vector<data::coco::Category>& categories,
                 bool json, const std::string& damage) {
  if (json) {
    nlohmann::ordered_json line = {{"file", path}, {"width", place.width}, {"height", place.height}};
    if (!damage.empty()) line["warning"] = damage;
    line["detections"] = nlohmann::ordered_json::array();
    for (const data::coco::Detection& one : found) line["detections"].push_back(detection::json_of(one, categories));
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

void draw_found(const std::string& path, const detection::PlacedImage& image,
                const std::vector<data::coco::Detection>& found, const Predictor& predictor) {
  Canvas canvas(image.original.view());
  draw_objects(canvas, found_objects(found, predictor.categories(), predictor.settings().visible_score));
  write_png(path, canvas.image().view());
}

std::string picture_name(const std::string& path) { return std::filesystem::path(path).stem().string() + ".png"; }

// Output files must not overwrite each other.
void require_different_names(const std::vector<std::string>& images) {
  std::set<std::string> names;
  for (const std::string& path : images)
    DT_CHECK(names.insert(picture_name(path)).second, "--output: two images would become ", picture_name(path),
             "; predict them with different folders");
}

data::DecodeOptions decoding_of(const Predictor& predictor) { return {.orientation = predictor.orientation()}; }

void predict_image(Predictor& predictor, const PredictFlags& values, const std::string& path, cli::ImageCount& count) {
  data::SampleNotes notes;
  const detection::PlacedImage image =
      predictor.place(detection::decode_image(detection::read_image_file(path), decoding_of(predictor), &notes));
  const auto found = predictor.in_file(predictor.detect(image), image.place);
  print_found(path, image.place, found, predictor.categories(), values.json, notes.damage);
  if (!values.output.empty()) draw_found(values.output + "/" + picture_name(path), image, found, predictor);
  count.add(path, notes);
}

// Reports data faults of an image and continues with the others.
int predict_all(Predictor& predictor, const PredictFlags& values, const std::vector<std::string>& images) {
  int code = 0;
  cli::ImageCount count(predictor.orientation());
  for (const std::string& path : images) {
    try {
      predict_image(predictor, values, path, count);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      if (values.json) print_line({{"file", path}, {"error", error.what()}});
      cli::print_message("error", path + ": " + error.what());
      code = static_cast<int>(Fault::data);
    }
  }
  count.report(images.size());
  return code;
}

}  // namespace

int predict(const Arguments& argv) {
  PredictFlags values;
  cli::FlagSet flags(argv.front(),
                     "--load WEIGHTS IMAGE... [flags] [--config KEY=VALUE...]\n   or: " + argv.front() +
                         " --load WEIGHTS --benchmark [IMAGE...] [flags]",
                     "Detects objects in images: JPEG, PNG, WebP, GIF, BMP or TIFF. The weights are a checkpoint's, "
                     "which records how it was trained, or torchvision's, saved as safetensors.");
  values.declare(flags);
  const auto images = read_arguments(flags, values.model, argv);
  if (!images) return 0;
  DT_CHECK(!values.model.load.empty() && (values.benchmark.benchmark || !images->empty()),
           "expected --load and at least one image; see --help");
  values.benchmark.check(flags);
  if (!values.output.empty()) require_different_names(*images);
  values.machine.check(flags);
  std::vector<std::string> notices;
  const Settings settings = values.model.settings(flags, notices);
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  auto known = detection::known_categories(settings.weights, values.annotations, settings.data.classes, notices);
  cli::print_notes(notices);
  Predictor predictor(settings, machine, std::move(known),
                      values.annotations.empty() ? settings.weights : values.annotations);
  if (values.benchmark.benchmark) {
    run_benchmark(predictor, machine, values.benchmark, *images, values.json);
    return 0;
  }
  if (!values.output.empty()) make_directories(system_files(), values.output);
  return predict_all(predictor, values, *images);
}

}  // namespace dtrain::mask_rcnn
