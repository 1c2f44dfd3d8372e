// COCO evaluation: CPU seconds for parsing annotations, parsing results, and scoring (from both in memory to the twelve
// metrics). One line of JSON.
//   coco_eval_bench --truth instances.json --results boxes.json --threads 1
//   coco_eval_bench --truth instances.json --results masks.json --compare masks
// Peer with pycocotools: benchmarks/peers/coco_eval_peer.py.
#include <time.h>

#include "benchmarks/json.h"
#include "benchmarks/program.h"
#include "dtrain/data/coco/evaluate.h"

namespace dtrain::data::coco {
namespace {

struct Options {
  std::string truth, results, compare = "boxes";
  int64_t threads = 1;
};

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

JsonObject run(const Options& o) {
  EvaluationOptions options;
  options.threads = static_cast<int>(o.threads);
  options.compare = o.compare == "masks" ? EvaluationOptions::Compare::masks : EvaluationOptions::Compare::boxes;
  const double begin = processor_seconds();
  const Annotations truth = read_annotations(o.truth);
  const double with_truth = processor_seconds();
  const std::vector<Detection> detections = read_results(o.results);
  const double with_results = processor_seconds();
  Evaluator evaluator(truth, options);
  evaluator.add(detections);
  const std::vector<Statistic> statistics = evaluator.score().statistics();
  const double end = processor_seconds();
  std::vector<double> values;
  for (const Statistic& one : statistics) values.push_back(one.value);
  return {{"images", truth.images.size()},
          {"detections", detections.size()},
          {"read_truth_seconds", with_truth - begin},
          {"read_results_seconds", with_results - with_truth},
          {"score_seconds", end - with_results},
          {"statistics", values}};
}

}  // namespace
}  // namespace dtrain::data::coco

int main(int argc, char** argv) {
  using namespace dtrain;
  data::coco::Options options;
  cli::FlagSet flags("coco_eval_bench", "--truth FILE --results FILE [flags]", "CPU time of COCO evaluation.");
  flags.add("truth", options.truth, "ground truth in COCO's format");
  flags.add("results", options.results, "detections in COCO's format");
  flags.add_choice("compare", options.compare, {"boxes", "masks"}, "IoU of boxes or of masks");
  flags.add("threads", options.threads, "evaluation threads", cli::kThreads);
  return run_program(flags, argc, argv, [&] {
    require_flags(flags, {"truth", "results"});
    print_json(data::coco::run(options));
  });
}
