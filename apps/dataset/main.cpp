// dtrain-data: makes, looks into and checks data sets.
#include <array>

#include "apps/cli/commands.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/commands.h"

namespace {

using namespace dtrain;
using cli::Command;

constexpr std::array kCommands = {
    Command{"imagenet", dataset::imagenet, "raw images, in class folders or ImageNet's archives, to TFRecord shards"},
    Command{"resize", dataset::resize, "smaller images, of TFRecord shards or of folders, for faster reading"},
    Command{"synthesize", dataset::synthesize, "drawn images, to be learnt or to time reading, as TFRecord shards"},
    Command{"shapes", dataset::shapes, "drawn shapes with boxes and masks in COCO's layout"},
    Command{"cifar10", dataset::cifar10, "CIFAR-10, from image folders or binary batches, to TFRecord shards"},
    Command{"coco", dataset::coco, "annotated images in COCO's folders to TFRecord shards"},
    Command{"inspect", dataset::inspect, "what TFRecord and IDX files hold: a JSON line per file"},
    Command{"verify", dataset::verify, "every checksum, record and image of TFRecord files; IDX files"},
    Command{"check", dataset::check, "all problems of images, archives, records, annotations and labels at once"},
    Command{"index", dataset::index, "the index for random access, made ahead of time; gzip files unpacked"},
    Command{"throughput", dataset::throughput, "how fast this machine decodes and augments a data set"},
};

}  // namespace

int main(int argc, char** argv) {
  return cli::run_main([&] {
    return cli::run_command({.program = "dtrain-data",
                             .meaning = "makes, looks into and checks data sets",
                             .codes = "0 done, 1 usage, 2 bad data, 6 disk or memory.",
                             .commands = kCommands},
                            {argv, argv + argc});
  });
}
