// HTML page with the worst and best images of an evaluation, and the AP of each class.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::mask_rcnn {

struct GalleryImage {
  std::string source{};       // src of the picture, from relative_source() or embedded_source()
  std::string path{};         // path of the picture relative to the page; empty if embedded
  int width = 0, height = 0;  // size of the picture; 0: unknown. A wide picture widens all pictures of its list.
  std::string file_name{};    // display name
  double score = 0;           // from 0 to 1
  // True positives, false negatives and false positives.
  int64_t hits = 0, misses = 0, false_alarms = 0;
};

struct ClassPrecision {
  std::string name{};
  int64_t objects = 0;                        // in the ground truth
  std::optional<double> box_ap{}, mask_ap{};  // from 0 to 1; none without ground truth, or COCO's -1
};

struct Gallery {
  std::string title{};
  std::vector<std::string> notes{};  // lines below the title: the checkpoint, the data set, the overall AP
  std::string score_name = "score";  // name of the ranking metric
  std::vector<GalleryImage> worst{}, best{};
  std::vector<ClassPrecision> classes{};
};

// URL of a picture by its path relative to the page, "worst/000000000139.png". The path may contain any bytes.
std::string relative_source(std::string_view path);
// A PNG file as a data: URI, for a self-contained page.
std::string embedded_source(std::span<const std::byte> png);

// A UTF-8 page without external scripts, fonts or styles. Responsive, with light and dark colour schemes. Texts are
// escaped; control characters and invalid UTF-8 become \x1b.
std::string to_html(const Gallery& gallery);

// Writes FOLDER/index.html and the same data as FOLDER/gallery.json for other programs, each atomically. Throws
// Error(Fault::resource) on failure.
void write_gallery(const std::string& folder, const Gallery& gallery);

}  // namespace dtrain::mask_rcnn
