#include "apps/dataset/coco_files.h"

#include <algorithm>
#include <filesystem>
#include <mutex>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "apps/cli/stop_signals.h"
#include "apps/dataset/files.h"
#include "apps/dataset/image_names.h"
#include "apps/dataset/new_folder.h"
#include "data/coco/write_annotations.h"
#include "dtrain/core/error.h"
#include "dtrain/data/image.h"

namespace dtrain::dataset {
namespace {

namespace fs = std::filesystem;
namespace coco = data::coco;

// An extension for a name without one, such as that of an image from a labelme file.
std::string ending_of(std::span<const std::byte> encoded) {
  std::string name = data::name_of(data::sniff_image(encoded));
  std::ranges::transform(name, name.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return name == "jpeg" ? ".jpg" : "." + name;
}

class CocoWriter {
 public:
  CocoWriter(const CommonFlags& common, bool links, bool masks)
      : common_(common), links_(links), masks_(masks), lists_(common.on_bad_image == "list") {
    if (!lists_) folder_.emplace(common.output);
  }

  void write(const AnnotatedSource& split) {
    bad_.insert(bad_.end(), split.unusable.begin(), split.unusable.end());
    images_ += split.unusable.size() + split.source->size();
    coco::Annotations all = annotations_of(*split.source);
    place_in_one_folder(all.images);
    std::vector<char> usable(all.images.size());
    for_each_index(all.images.size(), common_.threads, split.name + " images", [&](size_t i) {
      if (cli::stop_requested()) throw Error("stopped");
      usable[i] = write_image(split, i, all.images[i]);
    });
    drop_unusable(all, usable);
    if (lists_) return;
    const std::string name = fmt::format("annotations/instances_{}.json", split.name);
    folder_->write(name, coco::to_json(all));
    report_ += fmt::format("{0}: {1} images with {2} objects, {3}/{0} and {3}/{4}\n", split.name, all.images.size(),
                           all.annotations.size(), cli::escaped(common_.output), name);
  }

  int finish() {
    if (!bad_.empty() && common_.on_bad_image == "fail") {
      report_bad_images(common_, bad_, images_);
      throw Error(Fault::data, fmt::format("{} of {} images cannot be used, and no set is written; repair or remove "
                                           "them, or skip them with --on_bad_image=skip",
                                           bad_.size(), images_));
    }
    if (!lists_) {
      if (!bad_.empty()) folder_->write(data::kSkippedFile, data::to_json({{"", bad_}}));
      folder_->commit();
      fmt::print("{}", report_);
    }
    notices_.warnings.report();
    return report_bad_images(common_, bad_, images_);
  }

 private:
  coco::Annotations annotations_of(const data::DetectionSource& source) const {
    coco::Annotations all;
    all.categories = source.categories();
    const auto reader = source.reader();
    for (uint64_t i = 0; i < source.size(); ++i) {
      const data::DetectionSample sample = reader->read(i, {.bytes = false, .masks = masks_});
      all.images.push_back({.id = sample.id,
                            .file_name = std::string(sample.name),
                            .width = sample.size.width,
                            .height = sample.size.height,
                            .id_text = std::string(sample.id_text)});
      for (coco::Annotation object : sample.objects) {
        object.image = static_cast<uint32_t>(i);
        if (!masks_) object.segmentation = {};
        all.annotations.push_back(std::move(object));
      }
      all.begins.push_back(all.annotations.size());
    }
    return all;
  }

  // Returns whether it can be used.
  bool write_image(const AnnotatedSource& split, size_t index, coco::AnnotatedImage& image) {
    std::string place = split.source->locate(index).text();
    try {
      const auto reader = split.source->reader();
      const data::DetectionSample sample = reader->read(index, {.objects = false});
      const std::string file = split.source->file_of(index);
      place = file;
      const StoredImage checked(sample, split.annotations);
      notices_.warnings.add(place, checked.warning());
      if (!data::has_image_name(image.file_name)) image.file_name += ending_of(sample.encoded);
      if (lists_) return true;
      const std::string name = split.name + "/" + image.file_name;
      if (links_ && data::has_image_name(file))
        folder_->link(name, fs::absolute(file));
      else
        folder_->write(name, {reinterpret_cast<const char*>(sample.encoded.data()), sample.encoded.size()});
      return true;
    } catch (const Error& error) {
      const data::BadRecordError placed(place, error.what());
      if (error.fault() != Fault::data) throw Error(error.fault(), placed.what());
      const std::lock_guard lock(mutex_);
      bad_.push_back(placed.record());
      return false;
    }
  }

  static void drop_unusable(coco::Annotations& all, const std::vector<char>& usable) {
    coco::Annotations kept;
    kept.categories = std::move(all.categories);
    for (size_t i = 0; i < all.images.size(); ++i) {
      if (!usable[i]) continue;
      for (uint64_t k = all.begins[i]; k < all.begins[i + 1]; ++k) {
        all.annotations[k].image = static_cast<uint32_t>(kept.images.size());
        kept.annotations.push_back(std::move(all.annotations[k]));
      }
      kept.images.push_back(std::move(all.images[i]));
      kept.begins.push_back(kept.annotations.size());
    }
    all = std::move(kept);
  }

  const CommonFlags& common_;
  bool links_, masks_, lists_;
  std::optional<NewFolder> folder_;
  std::vector<data::BadRecord> bad_;
  uint64_t images_ = 0;
  std::mutex mutex_;
  Notices notices_;
  std::string report_;
};

}  // namespace

int write_coco_files(const CommonFlags& common, const std::vector<AnnotatedSource>& splits, bool links, bool masks) {
  int code = 0;
  until_stopped([&] {
    CocoWriter writer(common, links, masks);
    for (const AnnotatedSource& split : splits) writer.write(split);
    code = writer.finish();
  });
  return code;
}

}  // namespace dtrain::dataset
