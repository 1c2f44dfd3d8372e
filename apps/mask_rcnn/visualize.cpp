// dtrain-mask-rcnn visualize: ground truth, proposals and detections of images.
#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/messages.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/output.h"
#include "apps/detection/match_categories.h"
#include "apps/detection/recorded_categories.h"
#include "apps/mask_rcnn/annotated_images.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/panels.h"
#include "apps/mask_rcnn/predictor.h"
#include "apps/mask_rcnn/proposals.h"
#include "dtrain/io/atomic_file.h"

namespace dtrain::mask_rcnn {
namespace {

struct VisualizeFlags {
  ModelFlags model;
  cli::MachineFlags machine;
  std::string split = "DATA.VAL", output;
  int64_t images = 10, proposals = 20;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    flags.add("split", split, "split to visualize, or DATA.TRAIN or DATA.VAL: the first of these");
    flags.add("images", images, "number of images, in the order of their ids", cli::kPositiveCount);
    flags.add("proposals", proposals, "proposals per image, by descending score", cli::kPositiveCount);
    flags.group("Output");
    flags.add("output", output, "folder for the output images, NAME.png");
    machine.declare(flags);
  }

  std::string chosen_split(const DataSettings& data) const {
    if (split == "DATA.TRAIN") return training_splits(data).front();
    return split.empty() || split == "DATA.VAL" ? validation_splits(data).front() : split;
  }
};

std::vector<DrawnObject> best_objects(std::span<const Proposal> proposals, int64_t most) {
  std::vector<DrawnObject> objects;
  for (const Proposal& one : proposals.first(std::min(proposals.size(), static_cast<size_t>(most))))
    objects.push_back({.box = one.box, .label = fmt::format("{:.2f}", one.score)});
  return objects;
}

// The best proposal of each object has a label and the object's colour.
std::vector<DrawnObject> covering_objects(std::span<const Proposal> proposals,
                                          std::span<const data::coco::Annotation> truth) {
  constexpr size_t kPerObject = 3;  // as many as TensorPack shows
  std::vector<DrawnObject> objects;
  std::vector<bool> labelled(truth.size());
  for (const CoveringProposal& one : covering_proposals(proposals, truth, kPerObject)) {
    DrawnObject& object = objects.emplace_back();
    object.box = proposals[one.proposal].box;
    if (labelled[one.object]) continue;
    labelled[one.object] = true;
    object.object_class = int64_t{truth[one.object].category} + 1;
    object.label = fmt::format("IoU {:.2f}", one.iou);
  }
  return objects;
}

// Inputs of all pictures.
struct Visualizer {
  const VisualizeFlags& flags;
  data::coco::Annotations truth;
  std::string folder;  // of the images
  Predictor predictor;
  PictureNames names{};

  void show(size_t index) {
    const data::coco::AnnotatedImage& image = truth.images[index];
    const detection::PlacedImage placed = predictor.place(read_annotated_image(folder, image, predictor.orientation()));
    const models::Detections found = predictor.detect(placed);
    const auto proposals = proposals_of(predictor.context(), found.proposals, placed.place);
    const auto objects = annotated_objects(truth, index, placed.original.height, placed.original.width);
    const auto results =
        found_objects(predictor.in_file(found, placed.place), truth.categories, predictor.settings().visible_score);
    const data::Image& plain = placed.original;
    const std::vector<Panel> panels = {
        {"Ground truth", drawn(plain, objects)},
        {"Best proposals", drawn(plain, best_objects(proposals, flags.proposals))},
        {"Closest proposals", drawn(plain, covering_objects(proposals, truth.of(index)))},
        {"Results", drawn(plain, results)}};
    const std::string path = flags.output + "/" + names.take(image);
    write_png(path, side_by_side(panels).view());
    cli::patient_stdout() << fmt::format("{}: {} objects, {} proposals, {} results", path, objects.size(),
                                         proposals.size(), results.size())
                          << std::endl;
  }
};

// Annotations of a split, with categories in the class order recorded with the weights.
data::coco::Annotations shown_truth(const Settings& settings, const std::string& split,
                                    std::vector<std::string>& notices) {
  data::coco::Annotations truth = read_shown(settings.data, split);
  const auto learnt = detection::recorded_categories(settings.weights);
  if (learnt.empty()) return truth;
  const detection::CategoryMatch match =
      detection::match_categories(truth.categories, learnt, annotations_of(settings.data, split));
  if (!match.notice.empty()) notices.push_back(match.notice);
  if (match.classes.empty()) return truth;
  DataSettings in_order = settings.data;
  in_order.classes = match.classes;
  return read_shown(in_order, split);
}

}  // namespace

int visualize(const Arguments& argv) {
  VisualizeFlags values;
  cli::FlagSet flags(argv.front(), "--load WEIGHTS --data_dir DIR --output DIR [flags] [--config KEY=VALUE...]",
                     "Draws each image of a data set in COCO format with its ground truth, the highest-scoring "
                     "proposals, the best proposals per object, and the detections, side by side.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  DT_CHECK(!values.model.load.empty() && !values.output.empty(), "expected --load and --output; see --help");
  values.machine.check(flags);
  std::vector<std::string> notices;
  const Settings settings = values.model.settings(flags, notices);
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  const std::string split = values.chosen_split(settings.data);
  data::coco::Annotations truth = shown_truth(settings, split, notices);
  cli::print_notes(notices);
  auto categories = truth.categories;
  Visualizer visualizer{values, std::move(truth), images_of(settings.data, split),
                        Predictor(settings, machine, std::move(categories), annotations_of(settings.data, split))};
  make_directories(system_files(), values.output);
  int code = 0;
  for (size_t i = 0; i < std::min(visualizer.truth.images.size(), static_cast<size_t>(values.images)); ++i) {
    try {
      visualizer.show(i);
    } catch (const Error& error) {
      if (error.fault() != Fault::data) throw;
      cli::print_message("error", error.what());
      code = static_cast<int>(Fault::data);
    }
  }
  return code;
}

}  // namespace dtrain::mask_rcnn
