// dtrain-data: makes, looks into and checks data sets.
#include <array>
#include <cstdio>

#include <fmt/format.h>

#include "apps/cli/run_main.h"
#include "apps/dataset/commands.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace {

using dtrain::dataset::Arguments;

struct Command {
  const char* name;
  int (*run)(const Arguments&);
  const char* meaning;
};

constexpr std::array kCommands = {
    Command{"imagenet", dtrain::dataset::imagenet, "a tree of raw images, a folder per class, to TFRecord shards"},
    Command{"synthesize", dtrain::dataset::synthesize, "drawn shapes and textures as TFRecord shards"},
    Command{"cifar10", dtrain::dataset::cifar10, "CIFAR-10, from image folders or binary batches, to TFRecord shards"},
    Command{"coco", dtrain::dataset::coco, "annotated images in COCO's folders to TFRecord shards"},
    Command{"inspect", dtrain::dataset::inspect, "what TFRecord files hold: a JSON line per file"},
    Command{"verify", dtrain::dataset::verify, "every checksum, record and image of TFRecord files"},
    Command{"index", dtrain::dataset::index, "the index for random access, made ahead of time; gzip files unpacked"},
    Command{"throughput", dtrain::dataset::throughput, "how fast this machine decodes and augments a data set"},
};

void print_help() {
  fmt::print("usage: dtrain-data COMMAND [flags]    (dtrain-data COMMAND --help shows the flags)\n\n");
  for (const Command& command : kCommands) fmt::print("  {:<12}{}\n", command.name, command.meaning);
  fmt::print("\nExit codes: 0 done, 1 usage, 2 bad data, 6 disk or memory.\n");
}

int run(const Arguments& argv) {
  if (argv.size() < 2) throw dtrain::Error("no command given; see dtrain-data --help");
  if (argv[1] == "--help" || argv[1] == "-h" || argv[1] == "help") {
    print_help();
    return 0;
  }
  if (argv[1] == "--version") {
    fmt::print("dtrain-data {}\n", dtrain::cli::version());
    return 0;
  }
  std::vector<std::string> names;
  for (const Command& command : kCommands) {
    names.push_back(command.name);
    if (argv[1] != command.name) continue;
    Arguments rest{"dtrain-data " + argv[1]};
    rest.insert(rest.end(), argv.begin() + 2, argv.end());
    return command.run(rest);
  }
  const auto nearest = dtrain::nearest(argv[1], names);
  throw dtrain::Error("no command " + argv[1] + (nearest ? "; did you mean " + *nearest + "?" : "; see --help"));
}

}  // namespace

int main(int argc, char** argv) {
  return dtrain::cli::run_main([&] { return run(Arguments(argv, argv + argc)); });
}
