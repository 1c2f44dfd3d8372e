// --config files of dtrain-cnn-benchmarks, and their entries as flag values.
#include "apps/cli/config_file.h"
#include "apps/cnn_benchmarks/flags.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace dtrain;
  return fuzz::expect(Fault::config, [&] {
    for (const cli::ConfigEntry& entry : cli::config_entries_of(fuzz::text_of(data, size), "run.toml")) {
      cnn_benchmarks::Flags values;
      cli::FlagSet flags("dtrain-cnn-benchmarks", "", "");
      values.declare(flags);
      flags.parse({"dtrain-cnn-benchmarks", "--" + entry.name + "=" + entry.text});
      cli::require_kind(entry, "string");
    }
  });
}
