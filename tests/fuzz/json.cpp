// JSON parser with limits: accepted input has the same tree as with nlohmann's parser.
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "libdtrain/io/json_limits.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  const std::string text = fuzz::text_of(data, size);
  const JsonLimits limits{.depth = 8, .keys = 100, .values = 1000};
  return fuzz::expect(Fault::data, [&] {
    const auto tree = parse_json<nlohmann::json>(text, "file", Fault::data, limits);
    if (tree != nlohmann::json::parse(text)) throw std::logic_error("another tree than nlohmann's");
  });
}
