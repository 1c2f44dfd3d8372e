// A training loop of version 0.1 without Run: schedule, optimizer, moving average, profile, metrics.
#include <cstdio>

#include "libdtrain/layers.h"
#include "libdtrain/ops/scalar_loss.h"
#include "libdtrain/ops/update.h"
#include "libdtrain/testing/array.h"
#include "libdtrain/train/averaged.h"
#include "libdtrain/train/batch_feed.h"
#include "libdtrain/train/loss.h"
#include "libdtrain/train/metrics.h"
#include "libdtrain/train/optimizer.h"
#include "libdtrain/train/profile.h"
#include "libdtrain/train/schedule.h"
#include "libdtrain/train/step_report.h"
#include "libdtrain/train/trainer.h"

int main(int argc, char** argv) {
  const auto context = dtrain::make_cpu_context();
  dtrain::ParameterStore store(*context);
  const dtrain::Linear layer(store, "layer", 4, 1, dtrain::Init::normal(0.1f));
  store.allocate(/*seed=*/1);
  dtrain::Optimizer optimizer(store, {.update = {.rule = dtrain::UpdateRule::adamw}, .averages = true});
  const dtrain::Schedule schedule = dtrain::Schedule::piecewise(0.1, {1}, {0.01}, /*steps_per_epoch=*/10);
  dtrain::Trainer trainer(store, optimizer, schedule, {.micro_steps = 2, .seed = 3});
  const dtrain::Tensor x = dtrain::to_device(*context, dtrain::random_array({8, 4}, 1));
  const dtrain::Tensor target = context->zeros({8, 1});
  dtrain::BatchFeed feed(*context);
  const dtrain::Trainer::Forward forward = [&](dtrain::Tape& tape, int) {
    const std::vector<dtrain::Tensor>& batch = feed.put({x, target});
    return dtrain::mean_squared_error(tape, layer(tape, tape.constant(batch[0])), batch[1]);
  };
  dtrain::Throughput speed(/*batch=*/16);
  dtrain::StepReport last;
  for (int step = 0; step < 10; ++step) {
    const dtrain::StepRequest request{.l2_loss = step == 9, .record = false};
    last = trainer.step(forward, request);
    speed.add(0.001);
  }
  dtrain::with_average(store, optimizer.average(), [&] { std::printf("%s\n", optimizer.describe().c_str()); });
  if (argc > 1) dtrain::MetricsFile(argv[1], 0).append(last.step, {{"loss", last.loss}});
  const auto rows = dtrain::profile_rows({}, dtrain::ProfileBy::op);
  std::printf("step %d: loss %.4f, %.0f samples per second, median %.1f, %zu rows\n", static_cast<int>(last.step),
              last.loss, speed.speed(), dtrain::median({1, 2, 3}), rows.size());
  return last.finite ? 0 : 1;
}
