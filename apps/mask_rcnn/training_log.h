// The log of a training.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "dtrain/run/observer.h"

namespace dtrain::mask_rcnn {

// Progress lines of long evaluations, at each tenth of the images.
class EvaluationLines {
 public:
  // `images`: of an evaluation.
  EvaluationLines(cli::Log& log, uint64_t images) : log_(log), images_(images) {}
  void evaluating(const Evaluating& event);

 private:
  cli::Log& log_;
  uint64_t images_, done_ = 0, tenths_ = 0;
};

class TrainingLog final : public Observer {
 public:
  // `images`: global batch size; `steps`: of the run; `evaluated`: images of an evaluation.
  TrainingLog(cli::Log& log, double images, uint64_t steps, uint64_t evaluated);

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluating(const Evaluating& event) override { evaluation_.evaluating(event); }
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  cli::Log& log_;
  double images_;
  uint64_t steps_;
  EvaluationLines evaluation_;
  uint64_t counted_ = 0;  // steps since the last line, and their time
  double seconds_ = 0;
};

// Log of an evaluation without training.
class EvaluationLog final : public Observer {
 public:
  EvaluationLog(cli::Log& log, uint64_t images) : log_(log), lines_(log, images) {}
  void evaluating(const Evaluating& event) override { lines_.evaluating(event); }
  void evaluated(const Evaluated& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }

 private:
  cli::Log& log_;
  EvaluationLines lines_;
};

// Lines like "val2017-mAP(bbox)/IoU=0.5:0.95: 0.3821"; -1: undefined, with the reason.
std::vector<std::string> lines_of(const Evaluation& evaluation);

}  // namespace dtrain::mask_rcnn
