#include "data/coco/annotations.h"

#include <algorithm>
#include <filesystem>
#include <numeric>

#include "data/coco/read_records.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::data::coco {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

bool stays_in_its_folder(const std::string& name) {
  if (name.empty() || name.find('\0') != std::string::npos) return false;
  const std::filesystem::path path(name);
  return !path.is_absolute() && path.has_filename() && std::find(path.begin(), path.end(), "..") == path.end();
}

// Items in ascending order of their ids, which are all different.
template <class Item>
class ById {
 public:
  ById(std::vector<Item>& items, const std::string& where, const char* what) : items_(items) {
    std::sort(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.id < b.id; });
    const auto twice =
        std::adjacent_find(items.begin(), items.end(), [](const Item& a, const Item& b) { return a.id == b.id; });
    if (twice != items.end()) throw Error(Fault::data, concat(where, ": ", what, " ", twice->id, " is there twice"));
  }
  // kNone where there is no such id.
  uint32_t index(int64_t id) const {
    const auto at = std::lower_bound(items_.begin(), items_.end(), id,
                                     [](const Item& item, int64_t wanted) { return item.id < wanted; });
    return at == items_.end() || at->id != id ? kNone : static_cast<uint32_t>(at - items_.begin());
  }

 private:
  const std::vector<Item>& items_;
};

// What an annotation refers to and lacks is known once the whole file is read.
struct Pending {
  Annotation annotation{};
  int64_t image_id = 0, category_id = 0;
  bool has_area = false, has_box = false;
};

class Reader {
 public:
  Annotations read(const TextSource& source, const AnnotationOptions& options);

 private:
  void take_image(Record& record);
  void take_category(Record& record);
  void take_annotation(Record& record);
  void check_annotation_ids() const;
  void resolve(Pending& pending, const ById<Image>& images, const ById<Category>& categories) const;
  void complete(Pending& pending, const Image& image) const;
  // Leaves the chosen ones; returns what each index of before has become, or kNone.
  std::vector<uint32_t> choose_categories(const std::vector<std::string>& names);
  void add_annotations(const std::vector<uint32_t>& chosen);
  [[noreturn]] void fail(const Pending& pending, const std::string& problem) const {
    throw Error(Fault::data, concat(where_, ": annotation ", pending.annotation.id, ": ", problem));
  }

  std::string where_;
  Annotations result_;
  std::vector<Pending> pending_;
};

void Reader::take_image(Record& record) {
  Image image{record.whole(Key::id), record.text(Key::file_name), record.whole(Key::width), record.whole(Key::height)};
  if (!stays_in_its_folder(image.file_name)) record.fail("file_name leads out of the folder of images, or to none");
  try {
    check_mask_size(image.height, image.width);
  } catch (const Error& error) {
    record.fail(error.what());
  }
  result_.images.push_back(std::move(image));
}

void Reader::take_category(Record& record) {
  result_.categories.push_back({record.whole(Key::id), record.text(Key::name)});
}

void Reader::take_annotation(Record& record) {
  Pending& pending = pending_.emplace_back();
  pending.image_id = record.whole(Key::image_id);
  pending.category_id = record.whole(Key::category_id);
  pending.has_area = !record.lacks(Key::area);
  Annotation& annotation = pending.annotation;
  annotation.id = record.whole(Key::id);
  annotation.is_crowd = record.flag(Key::is_crowd);
  if (pending.has_area) annotation.area = record.number(Key::area);
  if (annotation.area < 0) record.fail(concat("area is ", annotation.area));
  if (const std::optional<Box> box = record.take_box()) {
    annotation.box = *box;
    pending.has_box = true;
  }
  annotation.segmentation = record.take_segmentation();
}

void Reader::check_annotation_ids() const {
  std::vector<int64_t> ids;
  ids.reserve(pending_.size());
  for (const Pending& pending : pending_) ids.push_back(pending.annotation.id);
  std::sort(ids.begin(), ids.end());
  const auto twice = std::adjacent_find(ids.begin(), ids.end());
  if (twice != ids.end()) throw Error(Fault::data, concat(where_, ": annotation ", *twice, " is there twice"));
}

void Reader::complete(Pending& pending, const Image& image) const {
  Annotation& annotation = pending.annotation;
  const bool has_mask = annotation.segmentation.index() != 0;
  if (!pending.has_box && !has_mask) fail(pending, "neither bbox nor segmentation");
  if (!has_mask) {
    annotation.area = annotation.box.width * annotation.box.height;
    return;
  }
  try {
    const Rle mask = mask_of(annotation, image.height, image.width);
    if (!pending.has_area) annotation.area = static_cast<double>(area(mask));
    if (!pending.has_box) annotation.box = bounds(mask);
  } catch (const Error& error) {
    fail(pending, concat("segmentation: ", error.what()));
  }
}

void Reader::resolve(Pending& pending, const ById<Image>& images, const ById<Category>& categories) const {
  Annotation& annotation = pending.annotation;
  annotation.image = images.index(pending.image_id);
  if (annotation.image == kNone) fail(pending, concat("no image has the id ", pending.image_id));
  annotation.category = categories.index(pending.category_id);
  if (annotation.category == kNone) fail(pending, concat("no category has the id ", pending.category_id));
  const Image& image = result_.images[annotation.image];
  const Rle* rle = std::get_if<Rle>(&annotation.segmentation);
  if (rle && (rle->height != image.height || rle->width != image.width))
    fail(pending, concat("segmentation of ", rle->height, " x ", rle->width, " pixels for image ", image.id, " of ",
                         image.height, " x ", image.width));
  if (!pending.has_area || !pending.has_box) complete(pending, image);
}

std::vector<uint32_t> Reader::choose_categories(const std::vector<std::string>& names) {
  const std::vector<Category> all = std::move(result_.categories);
  result_.categories.clear();
  std::vector<uint32_t> chosen(all.size(), kNone);
  for (const std::string& name : names) {
    const auto has_name = [&](const Category& category) { return category.name == name; };
    const auto found = std::find_if(all.begin(), all.end(), has_name);
    if (found == all.end()) {
      std::vector<std::string> known;
      for (const Category& category : all) known.push_back(category.name);
      const std::optional<std::string> near = nearest(name, known);
      throw Error(Fault::data, concat(where_, ": no category has the name '", name, "'",
                                      near ? concat("; did you mean '", *near, "'?") : ""));
    }
    if (std::count_if(all.begin(), all.end(), has_name) > 1)
      throw Error(Fault::data, concat(where_, ": several categories have the name '", name, "'"));
    uint32_t& index = chosen[static_cast<size_t>(found - all.begin())];
    if (index != kNone) throw Error(concat("the class '", name, "' is listed twice"));
    index = static_cast<uint32_t>(result_.categories.size());
    result_.categories.push_back(*found);
  }
  return chosen;
}

void Reader::add_annotations(const std::vector<uint32_t>& chosen) {
  std::vector<size_t> order(pending_.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return pending_[a].annotation.image < pending_[b].annotation.image; });
  result_.annotations.reserve(pending_.size());
  result_.begins.clear();
  for (const size_t i : order) {
    Annotation& annotation = pending_[i].annotation;
    while (result_.begins.size() <= annotation.image) result_.begins.push_back(result_.annotations.size());
    if (!chosen.empty() && chosen[annotation.category] == kNone) continue;
    if (!chosen.empty()) annotation.category = chosen[annotation.category];
    result_.annotations.push_back(std::move(annotation));
  }
  result_.begins.resize(result_.images.size() + 1, result_.annotations.size());
}

Annotations Reader::read(const TextSource& source, const AnnotationOptions& options) {
  where_ = source.where;
  read_records(source, {{"images", "image", [this](Record& record) { take_image(record); }},
                        {"categories", "category", [this](Record& record) { take_category(record); }},
                        {"annotations", "annotation", [this](Record& record) { take_annotation(record); }}});
  const ById<Image> images(result_.images, where_, "image");
  const ById<Category> categories(result_.categories, where_, "category");
  check_annotation_ids();
  for (Pending& pending : pending_) resolve(pending, images, categories);
  add_annotations(options.classes.empty() ? std::vector<uint32_t>{} : choose_categories(options.classes));
  return std::move(result_);
}

}  // namespace

Annotations read_annotations(const std::string& path, const AnnotationOptions& options) {
  return Reader().read(file_source(path), options);
}

Annotations parse_annotations(std::string_view text, const std::string& where, const AnnotationOptions& options) {
  return Reader().read(text_source(text, where), options);
}

Rle mask_of(const Annotation& annotation, int64_t height, int64_t width) {
  if (const Polygons* polygons = std::get_if<Polygons>(&annotation.segmentation))
    return from_polygons(*polygons, height, width);
  const Rle* rle = std::get_if<Rle>(&annotation.segmentation);
  if (!rle) throw Error(Fault::data, concat("annotation ", annotation.id, " has no segmentation"));
  if (rle->height != height || rle->width != width)
    throw Error(Fault::data,
                concat("a mask of ", rle->height, " x ", rle->width, " pixels, expected ", height, " x ", width));
  return *rle;
}

}  // namespace dtrain::data::coco
