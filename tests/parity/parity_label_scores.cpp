// The engine's side of label_scores.py: metrics of multi-label scores.
//   parity_label_scores CLASSES FILE
// FILE has f32 numbers: per sample the logits and the targets of all classes. Prints a JSON object of metrics.
#include <cstdio>
#include <cstring>
#include <exception>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/train/label_scores.h"

namespace dtrain {
namespace {

void run(const std::vector<std::string>& arguments) {
  DT_CHECK(arguments.size() == 3, "usage: parity_label_scores CLASSES FILE");
  const auto classes = static_cast<size_t>(std::stoul(arguments[1]));
  const std::string bytes = read_text(arguments[2], size_t{1} << 30);
  std::vector<float> numbers(bytes.size() / sizeof(float));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(float));
  LabelScores scores(static_cast<int64_t>(classes));
  const std::span all(numbers);
  for (size_t i = 0; i + 2 * classes <= all.size(); i += 2 * classes)
    scores.add(all.subspan(i, classes), all.subspan(i + classes, classes));
  nlohmann::json values;
  for (const MetricValue& value : scores.values(*make_single_group())) values[value.name] = value.value;
  std::puts(values.dump().c_str());
}

}  // namespace
}  // namespace dtrain

int main(int argc, char** argv) {
  try {
    dtrain::run({argv, argv + argc});
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
