// A run of version 0.1 on several ranks, with a task, observers and elastic resumption.
#include <cstdio>
#include <cstdlib>

#include "libdtrain/distributed/bucketer.h"
#include "libdtrain/distributed/communicator.h"
#include "libdtrain/distributed/group.h"
#include "libdtrain/layers.h"
#include "libdtrain/ops/scalar_loss.h"
#include "libdtrain/run/cadence.h"
#include "libdtrain/run/elastic.h"
#include "libdtrain/run/evaluation.h"
#include "libdtrain/run/load_checkpoint.h"
#include "libdtrain/run/observer.h"
#include "libdtrain/run/run.h"
#include "libdtrain/run/task.h"
#include "libdtrain/testing/array.h"
#include "libdtrain/train/checkpoint.h"
#include "libdtrain/train/replicas.h"
using namespace dtrain;

class Regression : public Task {
 public:
  explicit Regression(Context& context)
      : store(context),
        layer_(store, "layer", 4, 1, Init::normal(0.1f)),
        x_(to_device(context, random_array({8, 4}, 1))),
        y_(context.zeros({8, 1})) {
    store.allocate(/*seed=*/1);
  }
  void open(uint64_t cursor) override { cursor_ = cursor; }
  BatchInfo load(int) override { return {.samples = {}, .cursor = cursor_ += 8}; }
  Loss forward(Tape& tape, int) override { return mean_squared_error(tape, layer_(tape, tape.constant(x_)), y_); }
  void describe(TrainState& state) const override { state.identity = {{"model", "regression"}}; }

  ParameterStore store;

 private:
  Linear layer_;
  Tensor x_, y_;
  uint64_t cursor_ = 0;
};

struct Printer : Observer {
  void stepped(const Stepped& e) override { std::printf("step %d: %.4f\n", static_cast<int>(e.step), e.loss); }
};

int main(int argc, char** argv) try {
  const LauncherRank launched = launcher_rank(std::getenv);
  const auto group = launched.size > 1 ? make_tcp_group({}, tcp_options_from(std::getenv)) : make_single_group();
  const auto context = make_cpu_context({.threads = 1});
  const CommunicatorOptions options{.wire = DType::f32, .queue = Queue::communication, .segment = 1 << 16};
  const auto communicator = make_communicator(*group, *context, options);
  communicator->on_sum([](const SumReport& report) { std::printf("%s\n", report.what.c_str()); });
  const Tensor sum = context->zeros({1});
  sum_over_ranks(*communicator, sum, "sum");
  Regression task(*context);
  broadcast_replica(task.store, *communicator, /*root=*/0);
  Optimizer optimizer(task.store, {});
  RunOptions run_options;
  run_options.cadence = Cadence{.total_steps = 5};
  run_options.batch = 8;
  if (argc > 1) run_options.train_dir = argv[1];
  RunShape shape{.batch = 8};
  const std::vector<std::string> notices = continue_as_trained(shape, AskedFor{.wire = true}, run_options, *group);
  Trainer trainer(task.store, optimizer, {.base = 0.1},
                  {.micro_steps = shape.micro_steps, .communicator = communicator.get(), .buckets = shape.buckets});
  Printer printer;
  Run run(task, trainer, *group, run_options, {&printer});
  const Outcome outcome = run.train();
  group->finish();
  static_cast<void>(&load_newest_checkpoint);
  static_cast<void>(&evaluate_batches);
  return outcome == Outcome::finished && notices.empty() ? 0 : 1;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
