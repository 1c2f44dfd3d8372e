#include "apps/dataset/file_checks.h"

#include <algorithm>
#include <cctype>
#include <filesystem>

#include "apps/dataset/annotation_checks.h"
#include "apps/dataset/files.h"
#include "apps/dataset/record_checker.h"
#include "apps/dataset/writing.h"
#include "data/image_tar.h"
#include "data/image_tree.h"
#include "data/label_file.h"
#include "data/shrink.h"
#include "data/tar_samples.h"
#include "dtrain/core/error.h"
#include "dtrain/data/idx.h"
#include "dtrain/data/mnist.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;

// Lower-case file name extension: ".jpg".
std::string ending_of(const std::string& path) {
  std::string ending = fs::path(path).extension().string();
  std::ranges::transform(ending, ending.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return ending;
}

void add_thumbnail(std::span<const std::byte> encoded, Problem& problem, CheckContext& context) {
  if (context.thumbnails-- <= 0) return;
  try {
    problem.thumbnail = data::shrink_image(encoded, {.size = context.thumbnail_pixels, .quality = 80}).jpeg;
  } catch (const Error&) {  // a problem of the image was reported
  }
}

void check_encoded(const std::string& name, std::span<const std::byte> encoded, FileProblems& found,
                   CheckContext& context) {
  ++found.images;
  if (encoded.empty()) return found.add("empty file", name, "holds no byte");
  const char* kind = "file that is no image";
  try {
    data::sniff_image(encoded);
    kind = "image that cannot be decoded";
    data::ImageDecoder decoder;
    decoder.open(encoded);
    decoder.decode();
    if (!decoder.damage().empty()) {
      found.add("damaged image", name, decoder.damage());
      add_thumbnail(encoded, found.problems.back(), context);
    } else if (!decoder.warning().empty()) {
      found.add("image with a warning", name, decoder.warning(), /*is_fault=*/false);
    }
  } catch (const Error& error) {
    found.add(kind, name, error.what());
  }
}

void check_image(const data::TreeImage& image, FileProblems& found, CheckContext& context) {
  std::string bytes;
  try {
    bytes = data::bytes_of(image);
  } catch (const Error& error) {
    return found.add("file that cannot be read", image.path, error.what());
  }
  check_encoded(image.path, std::as_bytes(std::span(bytes)), found, context);
}

void check_records(const std::string& path, FileProblems& found, CheckContext& context) {
  RecordReader reader(path);
  RecordChecker checker;
  for (;;) try {
      const std::optional<Record> record = reader.next();
      if (!record) {
        if (found.problems.empty()) context.sets.check(path);
        return;
      }
      ++found.records;
      const std::string place = concat(path, ": record ", record->index, " at byte ", record->offset);
      try {
        const PixelFaults pixels = checker.check(record->bytes);
        if (!pixels.damage.empty()) {
          found.add("damaged image", place, pixels.damage);
          data::Example example;
          example.parse(record->bytes);
          add_thumbnail(std::as_bytes(std::span(example.bytes("image/encoded"))), found.problems.back(), context);
        } else if (!pixels.warning.empty()) {
          found.add("image with a warning", place, pixels.warning, /*is_fault=*/false);
        }
      } catch (const Error& error) {
        found.add("bad record", place, error.what());
      }
    } catch (const RecordError& error) {
      ++found.records;
      found.add("broken TFRecord file", path, error.what());
      if (error.rest_lost()) return;
    }
}

void check_idx(const std::string& path, FileProblems& found) {
  const data::IdxArray array = data::read_idx(path);
  if (array.shape.size() == 1)
    data::check_labels_of(array);
  else
    found.images += array.items();
}

// A check whose Error is reported as a problem of this kind.
Check guarded(const std::string& path, const char* kind, std::function<void(FileProblems&)> work) {
  return [path, kind, work = std::move(work)](FileProblems& found) {
    try {
      work(found);
    } catch (const Error& error) {
      found.add(kind, path, error.what());
    }
  };
}

bool is_label_of_sample(const data::TreeImage& member) {
  const auto key = data::tar_key(member.filename);
  return key && (key->extension == "cls" || key->extension == "json");
}

void check_samples(const std::string& path, FileProblems& found) {
  for (const std::string& fault : data::read_tar_samples(InputFile(path)).faults)
    found.add("bad sample", path, fault.starts_with(path + ": ") ? fault.substr(path.size() + 2) : fault);
}

// Of ImageNet's archives all members are images. WebDataset's have other members, whose labels are checked.
std::vector<Check> checks_of_tar(const std::string& path, CheckContext& context) {
  std::vector<Check> checks;
  try {
    std::vector<data::TreeImage> members = data::images_of_tar(path);
    if (std::ranges::any_of(members, is_label_of_sample)) {
      std::erase_if(members, [](const data::TreeImage& member) { return !data::has_image_name(member.filename); });
      checks.push_back(guarded(path, "broken archive", [path](FileProblems& found) { check_samples(path, found); }));
    }
    for (data::TreeImage& image : members)
      checks.push_back(
          [image = std::move(image), &context](FileProblems& found) { check_image(image, found, context); });
  } catch (const Error& error) {
    checks = {
        [path, what = std::string(error.what())](FileProblems& found) { found.add("broken archive", path, what); }};
  }
  return checks;
}

}  // namespace

std::vector<Check> checks_of(const std::string& path, Found how, CheckContext& context) {
  const std::string ending = ending_of(path), name = fs::path(path).filename().string();
  if (ending == ".tar") return checks_of_tar(path, context);
  if (is_idx_file(path))
    return {guarded(path, "broken IDX file", [path](FileProblems& found) { check_idx(path, found); })};
  if (has_record_name(name))
    return {guarded(path, "broken TFRecord file",
                    [path, &context](FileProblems& found) { check_records(path, found, context); })};
  if (ending == ".json" && (how != Found::beside_images || has_annotations_name(name))) {
    if (how == Found::in_folder && !has_annotations_name(name))
      return {[path](FileProblems& found) {
        found.add("file that is not looked at", path, "JSON without a name of annotations", /*is_fault=*/false);
      }};
    return {
        guarded(path, "broken annotations", [path, how](FileProblems& found) { check_annotations(path, how, found); })};
  }
  if (ending == ".txt" || ending == ".csv")
    return {guarded(path, "broken file of labels", [path](FileProblems&) { data::read_lines(path); })};
  return {[path, &context](FileProblems& found) { check_image({.path = path}, found, context); }};
}

}  // namespace dtrain::dataset
