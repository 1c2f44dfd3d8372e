// The log of a training.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/log.h"
#include "libdtrain/run/observer.h"

namespace dtrain::mask_rcnn {

class TrainingLog final : public Observer {
 public:
  // `images`: those of a step, over all ranks; `steps`: those of the run.
  TrainingLog(cli::Log& log, double images, uint64_t steps);

  void begun(const Begun& event) override;
  void stepped(const Stepped& event) override;
  void evaluated(const Evaluated& event) override;
  void saved(const Saved& event) override;
  void noticed(const Noticed& event) override { log_.notice(event.text); }
  void ended(const Ended& event) override;

 private:
  cli::Log& log_;
  double images_;
  uint64_t steps_;
  uint64_t counted_ = 0;  // steps since a line was printed, and their time
  double seconds_ = 0;
};

// "val2017-mAP(bbox)/IoU=0.5:0.95: 0.3821", a line each; -1 stands for what could not be measured, with
// the reason.
std::vector<std::string> lines_of(const Evaluation& evaluation);

}  // namespace dtrain::mask_rcnn
