// dtrain-mask-rcnn eval: evaluates a model on a data set, or a results file.
#include <fmt/format.h>

#include "apps/cli/command_line.h"
#include "apps/cli/input_notices.h"
#include "apps/cli/log.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/cli/stop_signals.h"
#include "apps/mask_rcnn/coco_score.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/model.h"
#include "apps/mask_rcnn/score_results.h"
#include "apps/mask_rcnn/training_log.h"
#include "dtrain/core/error.h"
#include "dtrain/distributed/group.h"
#include "dtrain/io/atomic_file.h"
#include "dtrain/io/remote_path.h"
#include "dtrain/run/evaluation.h"

namespace dtrain::mask_rcnn {
namespace {

void write_gallery_of(const EvalFlags& values, const Settings& settings, const detection::ValidationSplit& split,
                      const std::vector<data::coco::Detection>& detections) {
  EvaluationGallery gallery = gallery_of(values, settings);
  gallery.title = "Evaluation on " + split.name;
  gallery.notes = {"Weights: " + shown_path(settings.weights), "Data: " + settings.data.base_dir};
  gallery.images = images_of(settings.data, split.name);
  gallery.masks = settings.detector.masks;
  write_evaluation_gallery(gallery, read_shown(settings.data, split.name), detections);
}

void save_results(const std::string& path, const std::vector<data::coco::Detection>& detections) {
  AtomicFile file(path);
  data::coco::ResultWriter writer([&](std::string_view text) { file.write(text); });
  for (const data::coco::Detection& one : detections) writer.add(one);
  writer.finish();
  file.commit();
}

int score_model(const EvalFlags& values, const cli::FlagSet& flags) {
  cli::Log log(cli::patient_stdout(), cli::patient_stderr());
  std::vector<std::string> notices;
  Settings settings = values.model.settings(flags, notices);
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  detection::TaskOptions options{.validation = open_validation(settings, nullptr, notices)};
  for (const std::string& notice : notices) log.notice(notice);
  if (!values.gallery.empty()) {
    DT_CHECK(options.validation.size() == 1, "--gallery: several splits; name one of them by DATA.VAL");
    make_gallery_folder(values.gallery);
  }
  options.evaluation_batch = values.batch;
  options.paste = settings.paste();
  std::vector<data::coco::Detection> detections;
  options.score = scorer(settings.detector.masks, settings.area_of_box(), [&](const auto& split, const auto& all) {
    detections = all;
    if (!values.save_results.empty()) save_results(values.save_results + "-" + split.name, all);
  });
  const detection::ValidationSplit shown = options.validation.front();
  settings.detector.classes = classes_of(*shown.images);
  EvaluationLog lines(log, images_in(options.validation));
  Model model(settings, machine, 0, /*gradients=*/false);
  log.line("Weights:     " + model.load(settings.weights, /*complete=*/true).summary());
  const std::unique_ptr<Group> group = make_single_group();
  detection::DetectionTask task(model, *group, std::move(options));
  if (!dtrain::evaluate(task, model.store, {}, *group, 0, 10, lines, cli::stop_requested)) return cli::kStopped;
  cli::report_input(task.evaluation_stats(), settings.data.orientation, /*decodes_on_gpu=*/false, log);
  if (values.gallery.empty()) return 0;
  write_gallery_of(values, settings, shown, detections);
  log.line("Gallery:     " + values.gallery + "/index.html");
  return 0;
}

}  // namespace

int eval(const Arguments& argv) {
  EvalFlags values;
  cli::FlagSet flags(
      argv.front(),
      "--load WEIGHTS|TRAIN_DIR --data_dir DIR [--gallery DIR] [flags]\n   or: " + argv.front() +
          " --annotations A.json --results R.json [--iou_type=segm] [--json] [--gallery DIR --images DIR]",
      "Computes COCO metrics of a detector, or of another program's results file. A gallery shows the worst and the "
      "best images.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  values.check();
  values.machine.check(flags);
  if (!values.results.empty()) return score_results(values, flags);
  cli::catch_stop_signals();
  try {
    return score_model(values, flags);
  } catch (const Error&) {
    if (!cli::stop_requested()) throw;  // a stop request may have aborted reading the annotations
    return cli::kStopped;
  }
}

}  // namespace dtrain::mask_rcnn
