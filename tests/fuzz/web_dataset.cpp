// WebDataset archives, their indices and patterns of paths.
#include "data/web_dataset.h"

#include <stdexcept>

#include "data/brace_pattern.h"
#include "data/tar_samples.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string text = fuzz::text_of(data, size);
  if (const auto samples = data::tar_index_from(text, size, 0))
    if (data::tar_index_body(*samples, size, 0) != text)
      throw std::logic_error("an index is not the same after it was written");
  if (size < 64) fuzz::expect(Fault::data, [&] { data::expand_braces(text); });
  return fuzz::expect(Fault::data, [&] {
    std::filesystem::remove(fuzz::folder() / ".a.tar.dtidx");
    const auto source = data::open_web_dataset({.data = fuzz::file_of("a.tar", text)});
    std::vector<std::byte> buffer;
    for (uint64_t i = 0; i < source->size(); ++i)
      if (source->read(i, buffer).size() > size) throw std::logic_error("an image is larger than its archive");
  });
}
