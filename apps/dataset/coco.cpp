// dtrain-data coco: converts COCO annotations and image folders to TFRecord shards.
#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>

#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/annotated_splits.h"
#include "apps/dataset/writing.h"
#include "data/detection_record.h"
#include "data/orientation.h"
#include "dtrain/core/error.h"
#include "dtrain/data/detection_source.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/io/file_system.h"

namespace dtrain::dataset {
namespace {

// Counts for the notices after a conversion.
struct Notices {
  KeptWarnings warnings{};
  std::atomic<uint64_t> turned{0};
};

// An image for a record, decoded once as a check. JPEG and PNG files are stored unchanged. Other formats, which not
// every reader supports, are encoded as JPEG, and so are images whose annotations refer to the EXIF-rotated size,
// because readers of records rely on the stored size.
class RecordImage {
 public:
  RecordImage(const data::DetectionSample& sample, const std::string& annotations) : bytes_(sample.encoded) {
    const auto [height, width] = sample.size;
    const data::ImageInfo info = decoder_.open(sample.encoded);
    is_turned_ = data::is_upright_size(info, width, height);
    if (!is_turned_ && (info.width != width || info.height != height))
      throw Error(Fault::data, concat("is ", info.width, "x", info.height, " pixels large, ", annotations,
                                      " has it as ", width, "x", height));
    if (is_turned_) decoder_.open(sample.encoded, data::Orientation::apply);
    const data::ImageView pixels = decoder_.decode();
    if (!decoder_.damage().empty()) throw Error(Fault::data, data::damaged_image(decoder_.damage()));
    is_png_ = info.format == data::ImageFormat::png && !is_turned_;
    if (is_png_ || (info.format == data::ImageFormat::jpeg && !is_turned_)) return;
    jpeg_ = data::encode_jpeg(
        pixels, {.quality = 100, .sampling = data::Sampling::s444, .orientation = is_turned_ ? 1 : info.orientation});
    bytes_ = jpeg_;
  }
  std::span<const std::byte> bytes() const { return bytes_; }
  const char* format() const { return is_png_ ? "png" : "jpeg"; }
  bool is_turned() const { return is_turned_; }
  const std::string& warning() const { return decoder_.warning(); }

 private:
  std::span<const std::byte> bytes_;
  std::vector<std::byte> jpeg_;
  data::ImageDecoder decoder_;
  bool is_png_ = false, is_turned_ = false;
};

std::string record_of(const data::DetectionSource& source, uint64_t image, const AnnotatedSplit& files, bool masks,
                      Notices& notices) {
  std::string place = source.locate(image).text();
  try {
    const auto reader = source.reader();
    const data::DetectionSample sample = reader->read(image, {});
    place = concat(files.images, "/", sample.name);
    const RecordImage stored(sample, files.annotations);
    notices.warnings.add(place, stored.warning());
    if (stored.is_turned()) ++notices.turned;
    return data::detection_example({.encoded = stored.bytes(),
                                    .format = stored.format(),
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

// Conversion options of annotations.
struct Conversion {
  int64_t seed = 0;
  bool masks = true, strict = false;
};

// Readable images, and images known to be missing when the annotations are read: these count as bad records, too.
data::Split split_of(const std::string& name, int64_t shards, const AnnotatedSplit& files, const Conversion& how,
                     Notices& notices) {
  const std::shared_ptr<const data::DetectionSource> source =
      data::open_coco(files.annotations, files.images, {.strict = how.strict, .stop = cli::stop_requested});
  cli::print_notes(source->notices());
  std::vector<data::BadRecord> unusable = source->unusable();
  const uint64_t count = source->size() + unusable.size();
  if (count == 0) throw Error(Fault::data, files.annotations + ": lists no images that can be used");
  return {name, shards, count,
          [source, files, masks = how.masks, &notices, unusable = std::move(unusable),
           order = data::shuffled(count, static_cast<uint64_t>(how.seed))](uint64_t i) {
            const uint64_t image = order[i];
            if (image < source->size()) return record_of(*source, image, files, masks, notices);
            const data::BadRecord& bad = unusable[image - source->size()];
            throw data::BadRecordError(bad.file, bad.reason);
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
      "Writes train-*-of-* and validation-*-of-* in the schema of TensorFlow's Object Detection API. Reads "
      "DIR/annotations/instances_train<year>.json and instances_val<year>.json, either of which may be missing, and "
      "the images in DIR/train<year> and DIR/val<year>. JPEGs and PNGs are stored unchanged, EXIF blocks included. "
      "Exception: an image whose annotations refer to its EXIF-rotated form is rotated and encoded as JPEG, as are "
      "images of other formats. Every image is decoded once; --on_bad_image sets the handling of damaged ones. "
      "Unusable annotations are dropped and counted, as in detectron2 and TensorPack.");
  common.reads_images = true;
  common.declare(flags, "folder with annotations/ and the image folders");
  flags.add("year", year, "year to convert if there are annotations of several years, e.g. 2017");
  flags.add("shards", shards, "train shards", {1, data::kMaxShards});
  flags.add("validation_shards", validation_shards, "validation shards; 0: an eighth of --shards",
            {0, data::kMaxShards});
  flags.add("masks", how.masks, "store object masks, as PNG and as polygons or run-length encoding");
  flags.add("strict", how.strict, "reject faulty annotations and list all faults, instead of dropping faulty objects");
  if (!common.parse(flags, argv)) return 0;
  how.seed = common.seed;

  const std::optional<AnnotatedSplit> train = find_split(common.input, "train", year);
  const std::optional<AnnotatedSplit> validation = find_split(common.input, "val", year);
  if (!train && !validation)
    throw Error(Fault::data, concat(common.input, "/annotations: neither instances_train", year,
                                    "*.json nor instances_val", year, "*.json in it"));
  report_others(common.input, train, validation);
  if (validation_shards == 0) validation_shards = std::max<int64_t>(shards / 8, 1);
  Notices notices;
  std::vector<data::Split> splits;
  if (train) splits.push_back(split_of("train", shards, *train, how, notices));
  if (validation) splits.push_back(split_of("validation", validation_shards, *validation, how, notices));
  const int code = write_set(common, splits, "", notices.warnings);
  if (const uint64_t turned = notices.turned; turned > 0)
    cli::print_message("note", concat(turned,
                                      " images were rotated by their EXIF orientation, to match their annotations, and "
                                      "re-encoded as JPEGs of quality 100"));
  return code;
}

}  // namespace dtrain::dataset
