// Evaluation: of the parameters in memory, or of the checkpoints of another run.
#pragma once

#include <optional>

#include "apps/cnn_benchmarks/log.h"
#include "apps/cnn_benchmarks/session.h"

namespace dtrain::cnn_benchmarks {

// True on all ranks where one has been asked to stop. Collective.
bool stop_agreed(Group& group);
// The same in a loop over steps: several ranks agree now and then only.
bool stop_agreed(const Session& session, uint64_t step);

// Of the `examples` rows of a classified batch that count. Waits for the device.
Accuracy accuracy_of(Context& context, const Classification& classified, uint64_t examples);

// Prints speeds and the result of one evaluation. Nothing if a stop was requested before its end.
std::optional<Accuracy> evaluate(const Session& session, Log& log);

// --eval: evaluates --weights, or the newest checkpoint of train_dir once or every eval_interval_secs. Returns the exit
// code.
int run_evaluation(Session& session, Log& log);

}  // namespace dtrain::cnn_benchmarks
