// dtrain-data coco: COCO's annotations and folders of images to TFRecord shards.
#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <regex>

#include "apps/cli/messages.h"
#include "apps/dataset/writing.h"
#include "data/detection_record.h"
#include "data/detection_source.h"
#include "libdtrain/core/error.h"
#include "libdtrain/io/file_system.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// A split as it lies in COCO's folders.
struct Half {
  std::string annotations, images;
};

// The years of annotations/instances_SPLIT<year>.json.
std::vector<std::string> years_of(const std::string& input, const std::string& split) try {
  const std::regex name("instances_" + split + "(.*)\\.json");
  std::vector<std::string> years;
  for (const auto& entry : fs::directory_iterator(fs::path(input) / "annotations")) {
    const std::string file = entry.path().filename().string();
    if (std::smatch match; std::regex_match(file, match, name)) years.push_back(match[1]);
  }
  std::sort(years.begin(), years.end());
  return years;
} catch (const fs::filesystem_error& error) {
  throw Error(fault_of_errno(error.code().value(), Fault::data),
              concat(input, "/annotations: cannot be listed: ", error.code().message()));
}

// Nothing where there is no such split.
std::optional<Half> find_half(const std::string& input, const std::string& split, const std::string& year) {
  std::vector<std::string> years = years_of(input, split);
  if (!year.empty()) std::erase_if(years, [&](const std::string& found) { return found != year; });
  if (years.empty()) return {};
  if (years.size() > 1)
    throw Error(Fault::data, concat(input, "/annotations: instances_", split, years[0], ".json and instances_", split,
                                    years[1], ".json; choose one by --year"));
  const std::string name = split + years.front();
  Half half{concat(input, "/annotations/instances_", name, ".json"),
            existing_folder(input, {name.c_str(), ("images/" + name).c_str(), split.c_str()})};
  if (half.images.empty())
    throw Error(Fault::data, concat(half.annotations, ": no folder ", input, "/", name, " with its images"));
  return half;
}

// The image keeps its bytes; it is decoded, for a record must be good.
std::string record_of(const data::DetectionSource& source, uint64_t image, const Half& half, bool masks,
                      KeptWarnings& warnings) {
  std::string place = concat(half.annotations, ": image ", source.locate(image).record);
  try {
    const auto reader = source.reader();
    const data::DetectionSample sample = reader->read(image, {});
    place = concat(half.images, "/", sample.name);
    data::ImageDecoder decoder;
    const data::ImageInfo info = decoder.open(sample.encoded);
    const data::ImageSize size{info.height, info.width}, turned{info.width, info.height};
    if (size != sample.size && !(info.orientation >= 5 && turned == sample.size))
      throw Error(Fault::data, concat("is ", info.width, "x", info.height, " pixels large, ", half.annotations,
                                      " has it as ", sample.size.width, "x", sample.size.height));
    decoder.decode();
    if (!decoder.damage().empty()) throw Error(Fault::data, data::damaged_image(decoder.damage()));
    warnings.add(place, decoder.warning());
    return data::detection_example({.encoded = sample.encoded,
                                    .format = info.format == data::ImageFormat::png ? "png" : "jpeg",
                                    .filename = sample.name,
                                    .id = sample.id,
                                    .id_text = sample.id_text,
                                    .size = sample.size,
                                    .objects = sample.objects,
                                    .categories = source.categories()},
                                   masks);
  } catch (const Error& error) {
    const data::BadRecordError placed(place, error.what());
    if (error.fault() == Fault::data) throw placed;
    throw Error(error.fault(), placed.what());
  }
}

// How annotations become records.
struct Conversion {
  int64_t seed = 0;
  bool masks = true, strict = false;
};

data::Split split_of(const std::string& name, int64_t shards, const Half& half, const Conversion& how,
                     KeptWarnings& warnings) {
  const std::shared_ptr<const data::DetectionSource> source =
      data::open_coco(half.annotations, half.images, {.strict = how.strict});
  cli::print_notes(source->notices());
  if (source->size() == 0) throw Error(Fault::data, half.annotations + ": lists no images that can be used");
  return {name, shards, source->size(),
          [source, half, masks = how.masks, &warnings,
           order = data::shuffled(source->size(), static_cast<uint64_t>(how.seed))](uint64_t i) {
            return record_of(*source, order[i], half, masks, warnings);
          }};
}

}  // namespace

int coco(const Arguments& argv) {
  CommonFlags common;
  std::string year;
  int64_t shards = 256, validation_shards = 0;
  Conversion how;
  cli::FlagSet flags(
      argv.front(), "--input DIR --output DIR [flags]",
      "Writes train-*-of-* and validation-*-of-* in the schema of TensorFlow's object detection from "
      "DIR/annotations/instances_train<year>.json and instances_val<year>.json, either of which may be "
      "missing, and the images in DIR/train<year> and DIR/val<year>. JPEGs and PNGs keep their bytes. "
      "Every image is decoded once; --on_bad_image says what becomes of those that cannot be. What of the "
      "annotations is unusable is left out, as detectron2 and TensorPack do, and counted. EXIF blocks "
      "stay: --exif_orientation of the programs that train decides on them.");
  common.reads_images = true;
  common.declare(flags, "folder that holds annotations/ and the folders of images");
  flags.add("year", year, "where there are annotations of several years, those to convert: 2017");
  flags.add("shards", shards, "train shards", {1, data::kMaxShards});
  flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards",
            {0, data::kMaxShards});
  flags.add("masks", how.masks, "store the masks of objects, as PNGs and as polygons or run lengths");
  flags.add("strict", how.strict,
            "refuse annotations with faults, which are all listed, instead of doing without what is faulty");
  if (!common.parse(flags, argv)) return 0;
  how.seed = common.seed;

  const std::optional<Half> train = find_half(common.input, "train", year);
  const std::optional<Half> validation = find_half(common.input, "val", year);
  if (!train && !validation)
    throw Error(Fault::data, concat(common.input, "/annotations: neither instances_train", year,
                                    "*.json nor instances_val", year, "*.json in it"));
  if (validation_shards == 0) validation_shards = std::max<int64_t>(shards / 8, 1);
  KeptWarnings warnings;
  std::vector<data::Split> splits;
  if (train) splits.push_back(split_of("train", shards, *train, how, warnings));
  if (validation) splits.push_back(split_of("validation", validation_shards, *validation, how, warnings));
  return write_set(common, splits, "", warnings);
}

}  // namespace dtrain::dataset
