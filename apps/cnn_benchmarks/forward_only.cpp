// Inference at full speed.
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/display.h"
#include "apps/cnn_benchmarks/evaluate.h"
#include "apps/cnn_benchmarks/load_checkpoint.h"
#include "apps/cnn_benchmarks/train_loop.h"

namespace dtrain::cnn_benchmarks {

int run_forward_only(Session& session, Log& log) {
  log.line("Initializing graph");
  if (!session.config.flags.train_dir.empty()) load_newest_checkpoint(session, log);
  Context& context = *session.context;
  Input input = Input::training(context, session.config, session.datasets, session.pixels(), 0);
  Display display(session, log, 0);
  for (uint64_t step = 1; step <= session.plan.total_steps; ++step) {
    if (stop_agreed(session, step)) return cli::kStopped;
    display.begin_step();
    const data::Batch* batch = input.next();
    Tape tape(context, dtrain::Mode::eval);
    const Classification result = session.forward(tape, *batch);
    StepFigures figures;
    figures.step = step;
    figures.accuracy = accuracy_of(context, result, static_cast<uint64_t>(batch->valid));
    figures.wait_seconds = input.wait_seconds();
    display.end_step(figures);
  }
  display.finish();
  return 0;
}

}  // namespace dtrain::cnn_benchmarks
