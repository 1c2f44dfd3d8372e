#include "data/coco_images.h"

#include <filesystem>
#include <memory>
#include <span>
#include <unordered_map>

#include "dtrain/core/error.h"
#include "dtrain/data/image.h"
#include "dtrain/io/input_file.h"
#include "dtrain/io/record_file.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::data {
namespace {

namespace fs = std::filesystem;

class Completer {
 public:
  explicit Completer(const std::string& folder) : folder_(folder) {}

  void operator()(coco::AnnotatedImage& image, const std::string& stated) {
    if (image.file_name != stated) find(image, stated);
    if (image.width == 0) measure(image);
  }

 private:
  bool exists(const std::string& name) const { return file_exists((folder_ / name).string()); }

  void find(coco::AnnotatedImage& image, const std::string& stated) {
    const std::string name = found(image.file_name, stated);
    const auto [at, is_new] = stated_.emplace(name, stated);
    if (!is_new && at->second != stated)
      throw Error(Fault::data, concat(stated, ": found as ", name, " in ", folder_.string(), ", as is ", at->second));
    image.file_name = name;
  }

  std::string found(const std::string& relative, const std::string& stated) const {
    const bool is_address = stated.find("://") != std::string::npos;
    if (!is_address && !stated.starts_with('/') && exists(stated)) return stated;
    for (size_t begin = 0;;) {
      if (exists(relative.substr(begin))) return relative.substr(begin);
      const size_t slash = relative.find('/', begin);
      if (slash == std::string::npos) break;
      begin = slash + 1;
    }
    if (is_address && exists("../" + relative)) return "../" + relative;
    throw Error(Fault::data, concat("no file ", relative, ", or an end of it, in ", folder_.string()));
  }

  void measure(coco::AnnotatedImage& image) {
    const std::string path = (folder_ / image.file_name).string();
    bytes_ = read_text(path, kMaxRecordBytes);
    const ImageInfo info = decoder_.open(std::as_bytes(std::span(bytes_)));
    coco::check_mask_size(info.height, info.width);
    image.height = info.height;
    image.width = info.width;
  }

  fs::path folder_;
  std::unordered_map<std::string, std::string> stated_;  // stated name by resolved name
  std::string bytes_;
  ImageDecoder decoder_;
};

}  // namespace

std::function<void(coco::AnnotatedImage&, const std::string&)> complete_from(const std::string& folder) {
  return [completer = std::make_shared<Completer>(folder)](coco::AnnotatedImage& image, const std::string& stated) {
    (*completer)(image, stated);
  };
}

}  // namespace dtrain::data
