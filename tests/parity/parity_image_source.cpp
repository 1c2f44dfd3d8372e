// The engine's side of image_folder.py: images of a data set in their order.
//   parity_image_source OUTPUT folder DIR train|validation
// OUTPUT.json has a line {"label", "file", "bytes"} per image, OUTPUT.bin the bytes of all images, one after the other.
#include <cstdio>
#include <exception>
#include <fstream>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "data/image_folder.h"
#include "dtrain/core/error.h"

namespace dtrain {
namespace {

int run(const std::vector<std::string>& arguments) {
  DT_CHECK(arguments.size() == 5 && arguments[2] == "folder",
           "usage: parity_image_source OUTPUT folder DIR train|validation");
  const auto source = data::open_image_folder({arguments[3], arguments[4] == "train", {}, {}});
  std::ofstream lines(arguments[1] + ".json"), images(arguments[1] + ".bin", std::ios::binary);
  std::vector<std::byte> buffer;
  for (uint64_t i = 0; i < source->size(); ++i) {
    const auto bytes = source->read(i, buffer);
    images.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    lines
        << nlohmann::json{{"label", source->label(i)}, {"file", source->locate(i).file}, {"bytes", bytes.size()}}.dump()
        << '\n';
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
