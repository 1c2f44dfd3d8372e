// Command line of dtrain-cnn-benchmarks, one argument per line, up to the resolved settings.
#include <sstream>
#include <vector>

#include "apps/cnn_benchmarks/settings.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  std::vector<std::string> arguments = {"dtrain-cnn-benchmarks"};
  std::istringstream lines(fuzz::text_of(data, size));
  for (std::string line; std::getline(lines, line);) arguments.push_back(line);
  return fuzz::expect(Fault::config, [&] {
    cnn_benchmarks::Flags values;
    cli::FlagSet flags("dtrain-cnn-benchmarks", "", "");
    values.declare(flags);
    flags.parse(arguments);
    make_settings(values, flags, {});
  });
}
