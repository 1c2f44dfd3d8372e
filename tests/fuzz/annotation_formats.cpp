// Annotations of VOC, YOLO and labelme. The first byte selects the input: an XML file (v), a SegmentationObject image
// (m), data.yaml (y), lines of a label file (l), a labelme file (j), otherwise YAML alone. What is accepted must be
// accepted by the reader of COCO's annotations, too, without a fault.
#include <cmath>
#include <filesystem>
#include <span>
#include <stdexcept>

#include "data/annotations/instance_masks.h"
#include "data/annotations/label_set.h"
#include "data/annotations/labelme.h"
#include "data/annotations/yaml.h"
#include "data/coco/write_annotations.h"
#include "dtrain/data/png.h"
#include "tests/data/noise.h"
#include "tests/fuzz/fuzz.h"

namespace {

using namespace dtrain;
using namespace dtrain::data;
using namespace dtrain::data::annotations;

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

std::string image() {
  const std::vector<std::byte> png = encode_png(noise(20, 10, 1).view());
  return {reinterpret_cast<const char*>(png.data()), png.size()};
}

// Folders of the three formats, each with one image.
const std::filesystem::path& root() {
  static const std::filesystem::path root = [] {
    for (const char* folder : {"voc/Annotations", "voc/JPEGImages", "yolo"})
      std::filesystem::create_directories(fuzz::folder() / folder);
    for (const char* name : {"voc/JPEGImages/a.png", "yolo/a.png"}) fuzz::file_of(name, image());
    fuzz::file_of("yolo/data.yaml", "train: .\nnames: [cat, dog]\n");
    fuzz::file_of("yolo/a.txt", "");
    return fuzz::folder();
  }();
  return root;
}

void use(const LabelSet& set, LabelledImage image) {
  const size_t objects = image.objects.size();
  if (image.size.height * image.size.width > 1'000'000) return;
  std::vector<ReadSplit> read(set.splits.size());
  read[0].images.emplace_back(std::move(image));
  const coco::Annotations all = assemble(set, std::move(read), {}).front().annotations;
  require(all.annotations.size() <= objects, "more objects than were read");
  const coco::Annotations again = coco::parse_annotations(coco::to_json(all), "again", {.strict = true});
  require(again.annotations.size() == all.annotations.size(), "objects are lost when they are written");
  for (size_t i = 0; i < all.annotations.size(); ++i)
    require(again.annotations[i].box == all.annotations[i].box && again.annotations[i].area == all.annotations[i].area,
            "an object is not the same after it was written");
}

void use_voc(const std::string& text) {
  fuzz::file_of("voc/Annotations/a.xml", text);
  const LabelSet set = open_voc((root() / "voc").string(), {});
  use(set, set.read("Annotations/a.xml"));
}

void use_yolo(const std::string& yaml, const std::string& lines) {
  fuzz::file_of("yolo/data.yaml", yaml);
  fuzz::file_of("yolo/a.txt", lines);
  const LabelSet set = open_yolo((root() / "yolo").string(), {});
  for (const std::string& item : set.splits[0].items) {
    require(std::filesystem::path(item).is_relative() && item.find("..") == item.npos,
            "an image outside of the folder");
    if (item == "a.png") return use(set, set.read(item));
  }
}

void use_labelme(const std::string& text) {
  const LabelmeFiles files{.find = [](const std::string&) { return "a.png"; },
                           .measure =
                               [](const std::string&) {
                                 return ImageSize{10, 20};
                               }};
  const LabelSet set{.splits = {{}}};
  use(set, parse_labelme(text, "a.json", files));
}

void use_masks(std::span<const std::byte> png) {
  for (const coco::Rle& mask : parse_instance_masks(png, "a.png", {4, 5})) coco::check(mask);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string text = fuzz::text_of(data + 1, size - 1);
  root();
  return fuzz::expect(Fault::data, [&] {
    switch (data[0]) {
      case 'v':
        return use_voc(text);
      case 'm':
        return use_masks(std::as_bytes(std::span(text)));
      case 'y':
        return use_yolo(text, "0 .5 .5 .5 .5\n");
      case 'l':
        return use_yolo("train: .\nnames: [cat, dog]\n", text);
      case 'j':
        return use_labelme(text);
      default:
        parse_yaml(text, "text");
    }
  });
}
