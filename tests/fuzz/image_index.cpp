// Indices beside class folders: their body, and opening a folder with one.
#include "data/image_index.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <stdexcept>

#include "data/image_folder.h"
#include "libdtrain/io/crc32c.h"
#include "tests/fuzz/fuzz.h"

namespace {

// Two files of the time 0, which an index may claim to be images.
const std::filesystem::path& root() {
  static const std::filesystem::path folder = [] {
    for (const char* name : {"a", "b"}) {
      std::filesystem::create_directories(dtrain::fuzz::folder() / "train" / name);
      const std::string path = (dtrain::fuzz::folder() / "train" / name / "1.txt").string();
      dtrain::write_file(path, "text");
      const timespec epoch[2] = {};
      ::utimensat(AT_FDCWD, path.c_str(), epoch, 0);
    }
    return dtrain::fuzz::folder();
  }();
  return folder;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  std::string body = fuzz::text_of(data, size);
  if (const auto files = data::image_index_from(body))
    if (data::image_index_body(*files) != body) throw std::logic_error("an index is not the same after it was written");
  const uint32_t crc = crc32c(body.data(), body.size());
  body.append(reinterpret_cast<const char*>(&crc), sizeof crc);
  return fuzz::expect(Fault::data, [&] {
    write_file((root() / ".train.dtidx").string(), body);
    const auto source = data::open_image_folder({root().string(), true, {}, {}});
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < source->size(); ++i) source->read(i, buffer);
  });
}
