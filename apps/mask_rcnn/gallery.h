// The images that an evaluation went worst and best on, and the precision of each class, as a page of HTML.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::mask_rcnn {

struct GalleryImage {
  std::string source{};       // of the picture, from relative_source() or embedded_source()
  std::string path{};         // of the picture from the page's folder; empty where it is embedded
  int width = 0, height = 0;  // of the picture; 0: not known. Wide ones have all those of their list shown broader.
  std::string file_name{};    // as it is shown
  double score = 0;           // from 0 to 1
  // Objects that were found, that were not, and detections of what is not there.
  int64_t hits = 0, misses = 0, false_alarms = 0;
};

struct ClassPrecision {
  std::string name{};
  int64_t objects = 0;                        // in the ground truth
  std::optional<double> box_ap{}, mask_ap{};  // from 0 to 1; none without ground truth, or -1 as COCO has it
};

struct Gallery {
  std::string title{};
  std::vector<std::string> notes{};  // lines below the title: the checkpoint, the data set, the overall AP
  std::string score_name = "score";  // what images are ranked by
  std::vector<GalleryImage> worst{}, best{};
  std::vector<ClassPrecision> classes{};
};

// Where a page finds a picture whose path is relative to the page's folder, "worst/000000000139.png". The path may hold
// any bytes.
std::string relative_source(std::string_view path);
// The picture itself, a PNG file, as a data: URI, so that the page needs no other file.
std::string embedded_source(std::span<const std::byte> png);

// A page of UTF-8 that needs nothing but its pictures: no script, font or style from elsewhere. It suits telephones and
// wide screens, light and dark. Texts are escaped; control characters and bytes that are no UTF-8 become \x1b.
std::string to_html(const Gallery& gallery);

// Writes FOLDER/index.html and, for other programs, FOLDER/gallery.json, which has the same; each in one step. Throws
// Error(Fault::resource) where that fails.
void write_gallery(const std::string& folder, const Gallery& gallery);

}  // namespace dtrain::mask_rcnn
