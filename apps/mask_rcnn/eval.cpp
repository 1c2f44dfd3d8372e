// dtrain-mask-rcnn eval: a model on a data set, or a file of results alone.
#include <iostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "apps/cli/command_line.h"
#include "apps/cli/log.h"
#include "apps/cli/options/machine.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/datasets.h"
#include "apps/mask_rcnn/flags.h"
#include "apps/mask_rcnn/training_log.h"
#include "libdtrain/distributed/group.h"
#include "libdtrain/run/evaluation.h"

namespace dtrain::mask_rcnn {
namespace {

struct EvalFlags {
  ModelFlags model;
  cli::MachineFlags machine;
  std::string annotations, results, iou_type = "bbox";
  bool json = false;
  int64_t batch = 1;

  void declare(cli::FlagSet& flags) {
    model.declare(flags);
    flags.add("batch_size", batch, "images that are looked at together", cli::kPositiveCount);
    flags.group("A file of results");
    flags.add("annotations", annotations, "COCO's annotations, for --results");
    flags.add("results", results, "COCO's list of detections, which is scored in place of a model");
    flags.add_choice("iou_type", iou_type, {"bbox", "segm"}, "what of the results is compared: boxes or masks");
    flags.add("json", json,
              R"(print one line: {"iou_type": T, "stats": [12 numbers], "names": [...]}; for each -1 among them )"
              R"("why_absent" has the reason)");
    machine.declare(flags);
  }
};

void add_results(data::coco::Evaluator& evaluator, const std::string& path) {
  const std::vector<data::coco::Detection> detections = data::coco::read_results(path);
  for (size_t i = 0; i < detections.size(); ++i) {
    try {
      evaluator.add(detections[i]);
    } catch (const Error& error) {
      throw Error(error.fault(), fmt::format("{}: at index {}: {}", path, i, error.what()));
    }
  }
}

int score_results(const EvalFlags& values) {
  DT_CHECK(!values.annotations.empty(), "--results needs --annotations");
  const auto truth = data::coco::read_annotations(values.annotations);
  data::coco::EvaluationOptions options;
  if (values.iou_type == "segm") {
    require_masks(truth, values.annotations);
    options.compare = data::coco::EvaluationOptions::Compare::masks;
  }
  data::coco::Evaluator evaluator(truth, options);
  add_results(evaluator, values.results);
  const auto statistics = evaluator.score().statistics();
  if (values.json) {
    nlohmann::ordered_json line = {{"iou_type", values.iou_type}, {"stats", nlohmann::json::array()}};
    for (const auto& one : statistics) {
      line["stats"].push_back(one.value);
      line["names"].push_back(one.name);
      if (!one.why_absent.empty()) line["why_absent"][one.name] = one.why_absent;
    }
    cli::patient_stdout() << line.dump() << std::endl;
    return 0;
  }
  for (const auto& one : statistics)
    cli::patient_stdout() << fmt::format(" {} = {:.3f}{}", one.title, one.value,
                                         one.why_absent.empty() ? "" : "   (" + one.why_absent + ")")
                          << std::endl;
  return 0;
}

// What the run says while it evaluates.
class Lines final : public Observer {
 public:
  explicit Lines(cli::Log& log) : log_(log) {}
  void evaluated(const Evaluated& event) override {
    for (const std::string& line : lines_of(event.result)) log_.line(line);
  }
  void noticed(const Noticed& event) override { log_.notice(event.text); }

 private:
  cli::Log& log_;
};

int score_model(const EvalFlags& values, const cli::FlagSet& flags) {
  DT_CHECK(!values.model.load.empty(), "give --load WEIGHTS, or --annotations and --results; see --help");
  cli::Log log(cli::patient_stdout(), cli::patient_stderr());
  std::vector<std::string> notices;
  Settings settings = values.model.settings(notices);
  const cli::Machine machine = values.machine.resolve(flags, {}, notices);
  for (const std::string& notice : notices) log.notice(notice);
  TaskOptions options;
  options.validation = open_validation(settings, nullptr);
  options.evaluation_batch = values.batch;
  options.paste = settings.paste();
  settings.detector.classes = classes_of(*options.validation.front().images);
  Model model(settings, machine, 0, /*gradients=*/false);
  log.line("Weights:     " + model.load(values.model.load, /*complete=*/true));
  const std::unique_ptr<Group> group = make_single_group();
  DetectionTask task(model, *group, std::move(options));
  Lines lines(log);
  return dtrain::evaluate(task, *group, 0, 10, lines, cli::stop_requested) ? 0 : cli::kStopped;
}

}  // namespace

int eval(const Arguments& argv) {
  EvalFlags values;
  cli::FlagSet flags(argv.front(),
                     "--load WEIGHTS --data_dir DIR [flags]\n   or: " + argv.front() +
                         " --annotations A.json --results R.json [--iou_type=segm] [--json]",
                     "Scores a detector, or what another program has found, by COCO's rules.");
  values.declare(flags);
  const auto positional = read_arguments(flags, values.model, argv);
  if (!positional) return 0;
  DT_CHECK(positional->empty(), "unexpected argument ", positional->front());
  values.machine.check(flags);
  if (!values.results.empty()) return score_results(values);
  cli::catch_stop_signals();
  return score_model(values, flags);
}

}  // namespace dtrain::mask_rcnn
