// Lists of images: comma- and tab-separated text, labels, opening as one label and as several.
#include "data/image_list.h"

#include <algorithm>
#include <stdexcept>

#include "tests/fuzz/fuzz.h"

namespace {

using namespace dtrain;

void open_list(const std::string& path, bool multi_label) {
  const auto source = data::open_image_list({.data = path, .multi_label = multi_label});
  const int64_t count = data::labels_of_lists(path).count;
  std::vector<std::byte> buffer;
  for (uint64_t i = 0; i < source->size(); ++i) {
    const auto labels = source->labels(i);
    const bool in_order = std::ranges::adjacent_find(labels, std::ranges::greater_equal()) == labels.end();
    if (!in_order || (!labels.empty() && (labels.front() < 0 || labels.back() >= count)))
      throw std::logic_error("labels are not different ones below their number");
    if (!multi_label && labels.size() != 1) throw std::logic_error("an image has not one label");
    source->read(i, buffer);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  static const std::string image = fuzz::file_of("a.jpg", "\xff\xd8\xff\xe0 an image by its first bytes");
  const std::string text = fuzz::text_of(data, size);
  for (const char* name : {"a.csv", "a.tsv"}) {
    const std::string path = fuzz::file_of(name, text);
    for (const bool multi_label : {false, true}) fuzz::expect(Fault::data, [&] { open_list(path, multi_label); });
  }
  return 0;
}
