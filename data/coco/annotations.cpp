#include "dtrain/data/coco/annotations.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>
#include <unordered_set>

#include "data/coco/image_record.h"
#include "data/coco/object_checks.h"
#include "data/coco/object_record.h"
#include "data/coco/read_records.h"
#include "dtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::data::coco {
namespace {

bool is_same(const AnnotatedImage& a, const AnnotatedImage& b) { return a.file_name == b.file_name; }
bool is_same(const Category& a, const Category& b) { return a.name == b.name; }

// Polygon coordinates or RLE runs.
uint64_t numbers_of(const Segmentation& segmentation) {
  uint64_t numbers = 0;
  if (const auto* polygons = std::get_if<Polygons>(&segmentation))
    for (const std::vector<double>& polygon : *polygons) numbers += polygon.size();
  if (const auto* rle = std::get_if<Rle>(&segmentation)) numbers += rle->counts.size();
  return numbers;
}

// Items sorted by id, with lookup. Of duplicate ids the last one in the file is kept; `merges` allows duplicates with
// different contents.
template <class Item>
class ById {
 public:
  ById(std::vector<Item>& items, const std::string& where, const std::string& what, bool merges, Findings& findings) {
    std::ranges::stable_sort(
        items, [](const Item& a, const Item& b) { return std::tie(a.id_text, a.id) < std::tie(b.id_text, b.id); });
    std::vector<Item> kept;
    kept.reserve(items.size());
    for (Item& item : items) {
      const auto [at, is_new] = index_.emplace(item.id, static_cast<uint32_t>(kept.size()));
      if (is_new) {
        kept.push_back(std::move(item));
        continue;
      }
      if (!merges && !is_same(kept[at->second], item))
        throw Error(Fault::data, concat(where, ": duplicate ", what, " ", item.id));
      findings.add(concat("lines with the id of another ", what), "taken for it", concat(what, " ", item.id));
      kept[at->second] = std::move(item);
    }
    items = std::move(kept);
  }
  // kNone for an unknown id.
  uint32_t index(int64_t id) const {
    const auto at = index_.find(id);
    return at == index_.end() ? kNone : at->second;
  }

 private:
  std::unordered_map<int64_t, uint32_t> index_;
};

class Reader {
 public:
  explicit Reader(const AnnotationOptions& options) : options_(options) {}
  Annotations read(const TextSource& source);

 private:
  bool scoring() const { return options_.use == AnnotationOptions::Use::scoring; }
  void take_image(Record& record);
  void take_category(Record& record);
  void take_annotation(Record& record);
  // Returns false for a skipped object.
  bool resolve(PendingObject& object, const ById<AnnotatedImage>& images, const ById<Category>& categories);
  bool fits(const PendingObject& object, const AnnotatedImage& image);
  bool complete(PendingObject& object, const AnnotatedImage& image);
  void resolve_all();
  // Returns whether several annotations share an id.
  bool count_repeated_ids();
  void repeat_last_of_each_id();
  void finish_truth(bool repeated);
  // Keeps the chosen categories; returns the new index of each old one, or kNone.
  std::vector<uint32_t> choose_categories(const std::vector<std::string>& names);
  void add_annotations(const std::vector<uint32_t>& chosen);
  void leave_out(std::string_view kind, const PendingObject& object, const std::string& reason = {}) {
    result_.findings.add(kind, kLeftOut, concat(object.title(), reason.empty() ? "" : ": ", reason));
  }

  const AnnotationOptions& options_;
  std::string where_;
  Annotations result_;
  std::vector<PendingObject> pending_;
  std::unordered_set<int64_t> images_left_out_;
};

void Reader::take_image(Record& record) {
  if (std::optional<AnnotatedImage> image = take_image_record(record, options_, result_))
    result_.images.push_back(std::move(*image));
  else
    images_left_out_.insert(record.identifier(Key::id).number);
}

void Reader::take_category(Record& record) {
  Id id = record.identifier(Key::id);
  const bool nameless = scoring() && record.at(Key::name).kind != Value::Kind::string;
  result_.categories.push_back({id.number, nameless ? std::string() : record.text(Key::name), std::move(id.text)});
}

void Reader::take_annotation(Record& record) {
  if (std::optional<PendingObject> object = take_object(record, options_, result_.findings))
    pending_.push_back(std::move(*object));
}

bool Reader::fits(const PendingObject& object, const AnnotatedImage& image) {
  const Rle* rle = std::get_if<Rle>(&object.annotation.segmentation);
  if (!rle || image.width == 0 || (rle->height == image.height && rle->width == image.width)) return true;
  leave_out(
      scoring() ? "masks of another size than their image, which nothing matches"
                : "objects with a mask of another size than their image",
      object,
      concat(rle->height, " x ", rle->width, " pixels, image ", image.id, " has ", image.height, " x ", image.width));
  return false;
}

bool Reader::complete(PendingObject& object, const AnnotatedImage& image) {
  Annotation& annotation = object.annotation;
  const bool has_mask = annotation.segmentation.index() != 0;
  if (!object.has_box && !has_mask) {
    leave_out("objects without box and mask", object);
    return false;
  }
  if (!has_mask) {
    annotation.area = annotation.box.width * annotation.box.height;
    return true;
  }
  try {
    const Rle mask = mask_of(annotation, image.height, image.width);
    if (!object.has_area) annotation.area = static_cast<double>(area(mask));
    if (!object.has_box) annotation.box = bounds(mask);
    return true;
  } catch (const Error& error) {
    leave_out("objects whose mask gives no box or area", object, error.what());
    return false;
  }
}

bool Reader::resolve(PendingObject& object, const ById<AnnotatedImage>& images, const ById<Category>& categories) {
  Annotation& annotation = object.annotation;
  annotation.image = images.index(object.image_id);
  annotation.category = categories.index(object.category_id);
  if (annotation.image == kNone) {
    if (images_left_out_.contains(object.image_id))
      leave_out("annotations of images that are left out", object);
    else
      leave_out("annotations of images that are not listed", object, concat("image ", object.image_id));
  } else if (annotation.category == kNone) {
    leave_out("annotations of categories that are not listed", object, concat("category ", object.category_id));
  } else {
    const AnnotatedImage& image = result_.images[annotation.image];
    if (!fits(object, image)) {
      if (!scoring()) return false;
      annotation.segmentation = Rle{image.height, image.width, {static_cast<uint32_t>(image.height * image.width)}};
    }
    return (object.has_area && object.has_box) || complete(object, image);
  }
  return scoring();  // the last annotation of a shared id may be one of these
}

bool Reader::count_repeated_ids() {
  std::unordered_set<int64_t> ids;
  ids.reserve(pending_.size());
  for (const PendingObject& object : pending_)
    if (!ids.insert(object.annotation.id).second)
      result_.findings.add("annotations with the id of another one",
                           scoring() ? "scored as the last one of their id, as pycocotools does" : "used all the same",
                           object.title());
  return ids.size() < pending_.size();
}

// pycocotools looks annotations up by id, so that all annotations of a shared id become the last one. Copies share a
// mask there; here their size is limited relative to the file's.
void Reader::repeat_last_of_each_id() {
  constexpr uint64_t kFreeNumbers = 16'000'000, kTimesOwn = 16;
  std::unordered_map<int64_t, size_t> last;
  for (size_t i = 0; i < pending_.size(); ++i) last[pending_[i].annotation.id] = i;
  std::vector<size_t> order;
  for (size_t i = 0; i < pending_.size(); ++i)
    if (pending_[i].is_resolved()) order.push_back(i);
  std::ranges::stable_sort(order, {}, [&](size_t i) { return pending_[i].annotation.image; });
  uint64_t own = 0, copied = 0;
  for (const PendingObject& object : pending_) own += numbers_of(object.annotation.segmentation);
  std::vector<PendingObject> repeated;
  repeated.reserve(order.size());
  for (const size_t i : order) {
    const PendingObject& object = pending_[last.at(pending_[i].annotation.id)];
    copied += numbers_of(object.annotation.segmentation);
    if (copied > kFreeNumbers + kTimesOwn * own)
      throw Error(Fault::data,
                  concat(where_, ": ", object.title(), ": so many annotations have its id that their masks have ",
                         "more than ", kFreeNumbers + kTimesOwn * own, " numbers; expected ids of their own"));
    repeated.push_back(object);
  }
  pending_ = std::move(repeated);
}

void Reader::finish_truth(bool repeated) {
  if (repeated) repeat_last_of_each_id();
  std::erase_if(pending_, [](const PendingObject& object) { return !object.is_resolved(); });
  for (PendingObject& object : pending_) {
    if (object.annotation.id != 0) continue;
    object.annotation.never_matches = true;
    result_.findings.add("annotations of id 0", "that no detection matches, as in pycocotools", object.title());
  }
}

void Reader::resolve_all() {
  const ById<AnnotatedImage> images(result_.images, where_, "image", scoring(), result_.findings);
  const ById<Category> categories(result_.categories, where_, "category", scoring(), result_.findings);
  const bool repeated = count_repeated_ids();
  std::erase_if(pending_, [&](PendingObject& object) { return !resolve(object, images, categories); });
  if (scoring()) finish_truth(repeated);
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

Annotations Reader::read(const TextSource& source) {
  where_ = source.where;
  const NonFinite non_finite =
      read_records(source, {{"images", "image", [this](Record& record) { take_image(record); }},
                            {"categories", "category", [this](Record& record) { take_category(record); }},
                            {"annotations", "annotation", [this](Record& record) { take_annotation(record); }}});
  for (uint64_t i = 0; i < non_finite.count; ++i)
    result_.findings.add("numbers NaN or Infinity, which are invalid JSON", "read as missing",
                         concat("byte ", non_finite.first));
  resolve_all();
  if (options_.strict) result_.findings.refuse(where_);
  add_annotations(options_.classes.empty() ? std::vector<uint32_t>{} : choose_categories(options_.classes));
  return std::move(result_);
}

}  // namespace

Annotations read_annotations(const std::string& path, const AnnotationOptions& options) {
  return Reader(options).read(file_source(path, options.stop));
}

Annotations parse_annotations(std::string_view text, const std::string& where, const AnnotationOptions& options) {
  return Reader(options).read(text_source(text, where));
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
