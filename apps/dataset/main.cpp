// dtrain-data: creates, inspects and checks data sets.
#include <array>

#include "apps/cli/commands.h"
#include "apps/cli/run_main.h"
#include "apps/dataset/commands.h"

namespace {

using namespace dtrain;
using cli::Command;

constexpr std::array kCommands = {
    Command{"imagenet", dataset::imagenet,
            "converts raw images, in class folders or ImageNet archives, to TFRecord shards"},
    Command{"imagenet-labels", dataset::imagenet_labels,
            "derives the classes of ImageNet's validation images from its development kit"},
    Command{"resize", dataset::resize, "downscales the images of TFRecord shards or folders, for faster reading"},
    Command{"synthesize", dataset::synthesize,
            "generates synthetic images as TFRecord shards, to test training or to measure reading"},
    Command{"shapes", dataset::shapes, "generates synthetic shapes with boxes and masks in COCO format"},
    Command{"cifar10", dataset::cifar10, "converts CIFAR-10, from image folders or binary batches, to TFRecord shards"},
    Command{"coco", dataset::coco, "converts images with annotations of COCO, VOC, YOLO or labelme"},
    Command{"inspect", dataset::inspect, "describes TFRecord and IDX files: one JSON line per file"},
    Command{"verify", dataset::verify, "verifies every checksum, record and image of TFRecord and IDX files"},
    Command{"check", dataset::check, "reports all problems of images, archives, records, annotations and labels"},
    Command{"split", dataset::split, "splits class folders into training, validation and test images"},
    Command{"stats", dataset::stats, "counts images, classes, sizes, objects and duplicates, and measures pixels"},
    Command{"show", dataset::show, "draws a contact sheet of images with their objects, or as a training sees them"},
    Command{"index", dataset::index, "builds indices for random access ahead of time, and unpacks gzip files"},
    Command{"throughput", dataset::throughput, "measures how fast this machine decodes and augments a data set"},
};

}  // namespace

int main(int argc, char** argv) {
  return cli::run_main([&] {
    return cli::run_command({.program = "dtrain-data",
                             .meaning = "creates, inspects and checks data sets",
                             .codes = "0 done, 1 usage, 2 bad data, 6 disk or memory.",
                             .commands = kCommands},
                            {argv, argv + argc});
  });
}
