// dtrain-data stats: statistics of a data set.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/dataset/data_kind.h"
#include "apps/dataset/image_stats.h"
#include "apps/dataset/writing.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

template <class Stats>
void print(const Stats& stats, bool json, int64_t examples) {
  fmt::print("{}", json ? as_json(stats) : as_text(stats, static_cast<size_t>(examples)));
}

}  // namespace

int stats(const Arguments& argv) {
  AnnotationFlags annotations;
  int64_t threads = 0, examples = 20;
  bool json = false, pixels = true;
  cli::FlagSet flags(
      argv.front(), "DIR [flags]",
      "Prints statistics of a data set: images per class, their sizes, and image files with equal bytes, "
      "which are worst in several splits. Of labelled images, in TFRecords, class folders, lists or WebDataset "
      "archives, also the mean and standard deviation of the pixels. Of detection data, also objects "
      "per class and by COCO's ranges of the area, and images without objects.");
  annotations.declare(flags);
  flags.add("pixels", pixels, "decode labelled images for the mean and standard deviation of their pixels");
  flags.add("threads", threads, "worker threads; 0: one per core", cli::kThreads);
  flags.add("examples", examples, "maximum number of groups of equal images, and of unreadable ones, that are named",
            {0, 1'000'000});
  flags.add("json", json, "print one JSON object instead, with all groups of equal images");
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(places->size() == 1, "expected one folder; see --help");
  until_stopped([&] {
    if (is_labelled(places->front(), annotations))
      print(image_stats(places->front(), pixels, threads), json, examples);
    else
      print(stats_of(annotations.open(places->front(), threads), threads), json, examples);
  });
  return 0;
}

}  // namespace dtrain::dataset
