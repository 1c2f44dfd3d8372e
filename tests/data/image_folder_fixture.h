// Class folders of synthetic JPEGs.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "data/image_folder.h"
#include "tests/files.h"
#include "tests/jpegs.h"
#include "tests/testing.h"

namespace dtrain::data {

inline std::string numbered_jpeg(int number) {
  const std::vector<std::byte> bytes = smooth_jpeg(40, 30, number, {});
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

class ImageFolderFixture : public testing::Test {
 protected:
  void place(const std::string& name, const std::string& bytes) const {
    std::filesystem::create_directories((root / name).parent_path());
    write_file((root / name).string(), bytes);
  }
  std::unique_ptr<const ImageSource> open(bool training = true) {
    notices.clear();
    return open_image_folder(
        {root.path().string(), training, {.directory = (cache / "c").string()}, [&](const std::string& line) {
           notices.push_back(line);
         }});
  }
  // "LABEL NAME" of each image.
  std::vector<std::string> listed(bool training = true) {
    const auto source = open(training);
    const std::string folder = split_folder(root.path().string(), training) + "/";
    std::vector<std::string> lines;
    for (uint64_t i = 0; i < source->size(); ++i)
      lines.push_back(fmt::format("{} {}", source->label(i), source->locate(i).file.substr(folder.size())));
    return lines;
  }
  void refuses(const std::string& part, bool training = true) {
    expect_error([&] { open(training); }, Fault::data, part);
  }
  // Whether opening again takes the checksum of a file from the index, by its size and time.
  bool is_indexed(const std::string& name) {
    const std::string before = open()->contents(), path = (root / name).string();
    const auto modified = std::filesystem::last_write_time(path);
    std::string bytes = read_file(path);
    bytes.back() = static_cast<char>(bytes.back() ^ 1);
    std::ofstream(path, std::ios::binary) << bytes;
    std::filesystem::last_write_time(path, modified);
    return open()->contents() == before;
  }

  TempDirectory root, cache;
  std::vector<std::string> notices;
};

using Lines = std::vector<std::string>;

}  // namespace dtrain::data
