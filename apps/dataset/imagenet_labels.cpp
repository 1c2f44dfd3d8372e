// dtrain-data imagenet-labels: derives the classes of ImageNet's validation images from its development kit.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/flags.h"
#include "apps/dataset/commands.h"
#include "data/devkit.h"
#include "dtrain/core/error.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::dataset {

int imagenet_labels(const Arguments& argv) {
  std::string output = "imagenet_2012_validation_synset_labels.txt";
  cli::FlagSet flags(argv.front(), "ILSVRC2012_devkit_t12.tar.gz [--output FILE]",
                     "Writes the WordNet id of each of ImageNet's 50,000 validation images, one per line in the order "
                     "of the images' names, from the development kit of ILSVRC2012: its meta.mat and its ground truth "
                     "of the validation images. `dtrain-data imagenet --validation_labels` takes the file, and the "
                     "development kit itself, too.");
  flags.add("output", output, "the file, replaced if it exists");
  const auto archives = cli::read_command_line(flags, argv);
  if (!archives) return 0;
  DT_CHECK(archives->size() == 1, "expected one argument, ILSVRC2012_devkit_t12.tar.gz; see --help");
  const std::vector<std::string> labels = data::devkit_labels(archives->front());
  AtomicFile file(output);
  for (const std::string& label : labels) file.write(label + "\n");
  file.commit();
  fmt::print("{}: the classes of {} validation images\n", output, labels.size());
  return 0;
}

}  // namespace dtrain::dataset
