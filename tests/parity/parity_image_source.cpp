// The engine's side of image_folder.py and web_dataset.py: images of a data set in their order.
//   parity_image_source OUTPUT folder|tars DATA train|validation
// OUTPUT.json has a line {"label", "file", "name", "bytes"} per image, OUTPUT.bin the bytes of all images, one after
// the other.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/image_folder.h"
#include "data/web_dataset.h"
#include "dtrain/core/error.h"

namespace dtrain {
namespace {

int run(const std::vector<std::string>& arguments) {
  const std::string kind = arguments.size() == 5 ? arguments[2] : "";
  DT_CHECK(kind == "folder" || kind == "tars", "usage: parity_image_source OUTPUT folder|tars DATA train|validation");
  const bool training = arguments[4] == "train";
  const auto source = kind == "tars" ? data::open_web_dataset({arguments[3], training, {}, {}})
                                     : data::open_image_folder({arguments[3], training, {}, {}});
  std::ofstream lines(arguments[1] + ".json"), images(arguments[1] + ".bin", std::ios::binary);
  std::vector<std::byte> buffer;
  for (uint64_t i = 0; i < source->size(); ++i) {
    const auto bytes = source->read(i, buffer);
    images.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    const data::RecordLocation place = source->locate(i);
    const nlohmann::json line = {
        {"label", source->label(i)}, {"file", place.file}, {"name", place.name}, {"bytes", bytes.size()}};
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
