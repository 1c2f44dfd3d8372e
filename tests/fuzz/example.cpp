// Wire format of tf.Example, and the boxes in it.
#include "dtrain/data/example.h"

#include "dtrain/data/imagenet.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  static data::Example example;
  static data::BoxReader boxes;
  return fuzz::expect(Fault::data, [&] {
    example.parse(std::as_bytes(std::span(data, size)));
    std::vector<std::string_view> texts;
    std::vector<float> values;
    std::vector<int64_t> integers;
    for (const auto& [key, feature] : example.entries()) {
      if (feature.kind == data::FeatureKind::bytes) feature.read(texts);
      if (feature.kind == data::FeatureKind::float32) feature.read(values);
      if (feature.kind == data::FeatureKind::int64) feature.read(integers);
    }
    boxes.read(example);
    example.int64("image/class/label");
    example.bytes("image/encoded");
  });
}
