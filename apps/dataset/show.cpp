// dtrain-data show: a contact sheet of a data set.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/dataset/commands.h"
#include "apps/dataset/data_kind.h"
#include "apps/dataset/object_tiles.h"
#include "apps/dataset/sample_tiles.h"
#include "apps/dataset/writing.h"
#include "apps/mask_rcnn/canvas.h"
#include "dtrain/core/error.h"

namespace dtrain::dataset {
namespace {

struct ShowFlags {
  AnnotationFlags annotations;
  SampleFlags samples;
  TileSelection selection;
  std::string output;
  int64_t columns = 4;

  void declare(cli::FlagSet& flags) {
    flags.add("output", output, "PNG file");
    flags.add("split", selection.split, "train, val or test; default: the first one that exists");
    flags.add("images", selection.images, "number of images", {1, 400});
    flags.add("columns", columns, "images in a row", {1, 100});
    flags.add("tile", selection.side,
              "longer side in pixels to which an image of detection data is resized; labelled images keep their size "
              "if it is larger, and are magnified by a whole factor if it is smaller",
              {32, 2000});
    flags.add("seed", selection.seed, "selects the images; of labelled images the trainer's --tf_random_seed",
              {0, INT64_MAX});
    annotations.declare(flags);
    samples.declare(flags);
  }
};

int write_sheet(const ShowFlags& flags, const std::string& data) {
  const Tiles found = is_labelled(data, flags.annotations)
                          ? sample_tiles(data, flags.samples, flags.selection)
                          : object_tiles(flags.annotations.open(data, 0), flags.selection);
  int side = 0;
  for (const Tile& tile : found.tiles) side = std::max({side, tile.picture.width, tile.picture.height});
  mask_rcnn::write_png(flags.output, sheet_of(found.tiles, static_cast<int>(flags.columns), side).view());
  fmt::print("{}: {} of {} images of {}\n", cli::escaped(flags.output), found.tiles.size(), found.images, found.split);
  return found.bad_images > 0 ? static_cast<int>(Fault::data) : 0;
}

}  // namespace

int show(const Arguments& argv) {
  ShowFlags values;
  cli::FlagSet flags(
      argv.front(), "DIR --output FILE.png [flags]",
      "Draws a contact sheet of a data set. Labelled images, in TFRecords, class folders, WebDataset archives or "
      "lists: the "
      "first samples that dtrain-cnn-benchmarks trains on with the same flags and seed, cropped and augmented. "
      "Detection data: randomly selected images with boxes, masks and class names; crowds are labelled. Images that "
      "cannot be used are named; the exit code is 2 then.");
  values.declare(flags);
  const auto places = cli::read_command_line(flags, argv);
  if (!places) return 0;
  DT_CHECK(places->size() == 1, "expected one folder; see --help");
  DT_CHECK(!values.output.empty(), "--output is missing; see --help");
  values.samples.check(flags);
  check_sheet(values.selection.images, std::max(values.selection.side, values.samples.image_size));
  int code = 0;
  until_stopped([&] { code = write_sheet(values, places->front()); });
  return code;
}

}  // namespace dtrain::dataset
