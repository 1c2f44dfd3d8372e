// The engine's side of image_folder.py, web_dataset.py and image_list.py: images of a data set in their order.
//   parity_image_source OUTPUT folder|tars|list|labels DATA train|validation
// `labels`: of a list with several labels per image. OUTPUT.json has a line {"label", "labels", "file", "name",
// "bytes"} per image, without "label" for several, OUTPUT.bin the bytes of all images, one after the other.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/image_folder.h"
#include "data/image_list.h"
#include "data/web_dataset.h"
#include "dtrain/core/error.h"

namespace dtrain {
namespace {

int run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.size() == 5 ? arguments[2] : "";
  const bool lists = kind == "list" || kind == "labels", training = arguments.size() == 5 && arguments[4] == "train";
  DT_CHECK(kind == "folder" || kind == "tars" || lists,
           "usage: parity_image_source OUTPUT folder|tars|list|labels DATA train|validation");
  const auto source = lists            ? data::open_image_list({arguments[3], training, kind == "labels", {}, {}})
                      : kind == "tars" ? data::open_web_dataset({arguments[3], training, {}, {}})
                                       : data::open_image_folder({arguments[3], training, {}, {}});
  std::ofstream lines(arguments[1] + ".json"), images(arguments[1] + ".bin", std::ios::binary);
  std::vector<std::byte> buffer;
  for (uint64_t i = 0; i < source->size(); ++i) {
    const auto bytes = source->read(i, buffer);
    images.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const data::RecordLocation place = source->locate(i);
    const auto labels = source->labels(i);
    nlohmann::json line = {{"labels", labels}, {"file", place.file}, {"name", place.name}, {"bytes", bytes.size()}};
    if (labels.size() == 1) line["label"] = labels.front();
    lines << line.dump() << '\n';
  }
  for (const std::string& fault : source->faults()) lines << nlohmann::json{{"fault", fault}}.dump() << '\n';
  return 0;
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    return dtrain::run({argv, argv + argc});
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
