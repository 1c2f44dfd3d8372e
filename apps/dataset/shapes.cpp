// dtrain-data shapes: generates a synthetic detection data set in COCO format.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"
#include "apps/cli/values.h"
#include "apps/dataset/files.h"
#include "apps/dataset/new_folder.h"
#include "apps/dataset/writing.h"
#include "data/coco/write_annotations.h"
#include "data/shapes.h"
#include "dtrain/core/error.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"

namespace dtrain::dataset {
namespace {

namespace coco = data::coco;

struct ShapesFlags {
  CommonFlags common;
  std::string size = "320x240", format = "jpeg";
  int64_t images = 1000, validation = 0, quality = 90;
  double noise = data::SceneOptions().noise;

  void declare(cli::FlagSet& flags) {
    common.declare(flags, nullptr);
    flags.add("images", images, "total number of images", {2, 1'000'000});
    flags.add("validation", validation, "number of validation images; 0: a fifth of all", {0, 999'999});
    flags.add("size", size, "width and height of the images in pixels");
    flags.add("noise", noise, "amplitude of the background texture and of the pixel noise; 0: plain colours",
              {0, data::SceneOptions::kMaxNoise});
    flags.add_choice("format", format, {"jpeg", "png"}, "of the images");
    flags.add("quality", quality, "quality of JPEGs", {1, 100});
  }

  uint64_t training_images() const {
    const int64_t rest = images - (validation > 0 ? validation : std::max<int64_t>(images / 5, 1));
    DT_CHECK(rest > 0, "--validation: expected less than --images, ", images, ", found ", validation);
    return static_cast<uint64_t>(rest);
  }

  data::SceneOptions scene() const {
    const size_t x = size.find('x');
    DT_CHECK(x != size.npos, "--size: expected WIDTHxHEIGHT such as 320x240, found '", size, "'");
    const cli::Range<int64_t> sides{data::SceneOptions::kMinSide, data::SceneOptions::kMaxSide};
    try {
      return {.width = static_cast<int>(cli::parse_number(size.substr(0, x), sides)),
              .height = static_cast<int>(cli::parse_number(size.substr(x + 1), sides)),
              .noise = static_cast<float>(noise),
              .seed = static_cast<uint64_t>(common.seed)};
    } catch (const Error& error) {
      throw Error(concat("--size: ", error.what()));
    }
  }
};

// "000000000001.jpg", as in COCO.
std::string file_name(uint64_t id, const std::string& format) {
  return fmt::format("{:012}.{}", id, format == "png" ? "png" : "jpg");
}

std::vector<std::byte> encoded(const ShapesFlags& flags, const data::Image& image) {
  if (flags.format == "png") return data::encode_png(image.view());
  return data::encode_jpeg(image.view(), {.quality = static_cast<int>(flags.quality)});
}

std::string_view text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// The caller assigns ids.
coco::Annotation annotation_of(const data::SceneObject& object) {
  coco::Annotation annotation;
  annotation.category = static_cast<uint32_t>(object.shape);
  annotation.is_crowd = object.is_crowd;
  annotation.area = static_cast<double>(coco::area(object.mask));
  annotation.box = coco::bounds(object.mask);
  if (object.outline.empty())
    annotation.segmentation = object.mask;
  else
    annotation.segmentation = object.outline;
  return annotation;
}

// Images [begin, end) of a split, train or val.
struct Part {
  std::string name;
  uint64_t begin, end;
};

using Objects = std::vector<std::vector<coco::Annotation>>;  // of each image

// Ids are numbered over the whole set, from 1.
coco::Annotations annotations_of(const Part& part, const ShapesFlags& flags, const data::SceneOptions& scene,
                                 const Objects& objects) {
  coco::Annotations all;
  for (const char* name : data::kShapeNames) all.categories.push_back({std::ssize(all.categories) + 1, name});
  int64_t id = 1;
  for (uint64_t i = 0; i < part.begin; ++i) id += std::ssize(objects[i]);
  for (uint64_t i = part.begin; i < part.end; ++i) {
    all.images.push_back({static_cast<int64_t>(i) + 1, file_name(i + 1, flags.format), scene.width, scene.height});
    for (coco::Annotation annotation : objects[i]) {
      annotation.id = id++;
      annotation.image = static_cast<uint32_t>(i - part.begin);
      all.annotations.push_back(std::move(annotation));
    }
  }
  return all;
}

void write_shapes(const ShapesFlags& flags, const data::SceneOptions& scene) {
  const uint64_t count = static_cast<uint64_t>(flags.images), training = flags.training_images();
  const Part parts[] = {{"train", 0, training}, {"val", training, count}};
  const NewFolder folder(flags.common.output);
  Objects objects(count);
  for_each_index(count, flags.common.threads, "images", [&](size_t i) {
    if (cli::stop_requested()) throw Error("stopped");
    const data::Scene drawn = data::draw_scene(scene, i);
    for (const data::SceneObject& object : drawn.objects) objects[i].push_back(annotation_of(object));
    folder.write(parts[i < training ? 0 : 1].name + "/" + file_name(i + 1, flags.format),
                 text_of(encoded(flags, drawn.image)));
  });
  std::string report;
  for (const Part& part : parts) {
    const coco::Annotations all = annotations_of(part, flags, scene, objects);
    const std::string name = fmt::format("annotations/instances_{}.json", part.name);
    folder.write(name, coco::to_json(all));
    report += fmt::format("{0}: {1} images with {2} objects, {3}/{0} and {3}/{4}\n", part.name, all.images.size(),
                          all.annotations.size(), cli::escaped(flags.common.output), name);
  }
  folder.commit();
  fmt::print("{}", report);
}

}  // namespace

int shapes(const Arguments& argv) {
  ShapesFlags values;
  cli::FlagSet flags(
      argv.front(), "--output DIR [flags]",
      "Draws scenes of partly occluded circles, rectangles, triangles, stars and rings over a textured background, and "
      "writes them in COCO format: annotations/instances_train.json and instances_val.json with boxes and exact masks, "
      "and the images in train/ and val/. A few images have a crowd, a few have no objects.");
  values.declare(flags);
  if (!values.common.parse(flags, argv)) return 0;
  const data::SceneOptions scene = values.scene();
  until_stopped([&] { write_shapes(values, scene); });
  return 0;
}

}  // namespace dtrain::dataset
