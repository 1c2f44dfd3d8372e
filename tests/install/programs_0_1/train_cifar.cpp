// Trains ResNet-20 on CIFAR-10: train_cifar DATA_DIR TRAIN_DIR [EPOCHS [BATCH]]
// DATA_DIR holds the TFRecords that `dtrain-data cifar10` writes. Killed or stopped by SIGTERM, the same command goes
// on from its last checkpoint and ends with the same bits; under mpirun all ranks train one model.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include "data/catalog.h"
#include "data/loader.h"
#include "libdtrain/dtrain.h"
#include "models/catalog.h"
using namespace dtrain;

volatile std::sig_atomic_t stop_requested = 0;

class Cifar : public Task {
 public:
  Cifar(Context& context, Group& group, const std::string& directory, int64_t batch)
      : store(context), group_(group), batch_(batch), feed_(context) {
    const data::Pixels pixels{.dataset = "cifar10", .size = 32};
    const data::PixelScale scale = pixels.scale();
    training = data::open_split(pixels, {.directory = directory, .classes = 10});
    validation_ =
        data::open_split(pixels, {.directory = directory, .training = false, .augments = false, .classes = 10});
    for (int c = 0; c < 3; ++c) scale_.mean[c] = scale.mean[c], scale_.scale[c] = scale.scale[c];
    model_ = models::make_classifier(store, models::classifier_info("resnet20", "cifar10"), {.classes = 10});
    store.allocate(/*seed=*/1);
  }

  void open(uint64_t cursor) override { loader_.emplace(training, loader_options(true, cursor)); }
  BatchInfo load(int) override {
    feed_.wait_until_copied();  // the loader fills that memory again
    const data::Batch& batch = *loader_->next();
    fed_ = feed_.put({batch["images"], batch["labels"]});
    return {.samples = batch.samples, .cursor = batch.cursor};
  }
  Loss forward(Tape& tape, int) override { return loss_of(tape, fed_[0], fed_[1]); }

  std::future<Evaluation> evaluate(const EvaluationRequest& request) override {
    data::Loader loader(validation_, loader_options(false, 0));
    const data::Batch* batch = nullptr;
    EvaluationLoop loop{.batches = static_cast<int64_t>(validation_->size()), .batch = batch_ * group_.size()};
    loop.load = [&] { return (batch = loader.next()) ? std::optional(batch->valid) : std::nullopt; };
    loop.forward = [&](Tape& tape) { return loss_of(tape, (*batch)["images"], (*batch)["labels"]); };
    return evaluate_batches(store.context(), group_, request, loop);
  }
  void describe(TrainState& state) const override {
    state.identity = {{"model", "resnet20"}, {"data set", training->identity()}};
  }

  ParameterStore store;
  std::shared_ptr<data::Dataset> training;

 private:
  data::LoaderOptions loader_options(bool trains, uint64_t cursor) const {
    return {.batch = batch_,
            .training = trains,
            .seed = 1,
            .cursor = cursor,
            .rank = group_.rank(),
            .ranks = group_.size()};
  }
  Loss loss_of(Tape& tape, const Tensor& images, const Tensor& labels) const {
    const Var x = tape.constant(normalize_pixels(tape.context(), images, scale_));
    return softmax_cross_entropy(tape, model_.forward(tape, x), labels);
  }

  Group& group_;
  int64_t batch_;
  BatchFeed feed_;
  std::shared_ptr<data::Dataset> validation_;
  models::Classifier model_;
  PixelNormalization scale_;
  std::optional<data::Loader> loader_;
  std::vector<Tensor> fed_;
};

struct ProgressLine : Observer {
  void stepped(const Stepped& e) override {
    if (e.shown) std::printf("step %ju: loss %.3f, %.1f ms\n", uintmax_t{e.step}, e.loss, 1e3 * e.seconds);
  }
  void evaluated(const Evaluated& e) override {
    std::printf("step %ju: top-1 %.2f %%\n", uintmax_t{e.step}, 100 * e.result.value("top_1_accuracy"));
  }
  void noticed(const Noticed& e) override { std::fprintf(stderr, "note: %s\n", e.text.c_str()); }
};

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: %s DATA_DIR TRAIN_DIR [EPOCHS [BATCH]]\n", argv[0]), 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // a line is there once it is printed
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stop_requested = 1; });
  const LauncherRank launched = launcher_rank(std::getenv);
  const auto group = launched.size > 1 ? make_mpi_group({}, launched.size) : make_single_group();
  const auto context = make_cpu_context();
  const auto communicator = make_communicator(*group, *context);
  const int64_t batch = argc > 4 ? std::atoll(argv[4]) : 128;
  Cifar task(*context, *group, argv[1], batch);
  const uint64_t epoch = task.training->size() / static_cast<uint64_t>(batch * group->size());
  const auto steps = static_cast<uint64_t>((argc > 3 ? std::atof(argv[3]) : 10) * static_cast<double>(epoch));
  Optimizer optimizer(task.store, {.update = {.rule = UpdateRule::nesterov}, .weight_decay = 1e-4f});
  const Schedule schedule{.decay = Schedule::Decay::cosine, .base = 0.1, .floor = 0, .total_steps = steps};
  Trainer trainer(task.store, optimizer, schedule, {.seed = 1, .communicator = communicator.get()});
  RunOptions options;
  options.cadence.total_steps = steps, options.cadence.save_every_steps = 50;
  options.batch = batch, options.train_dir = argv[2];
  options.cadence.evaluate_after = [epoch](uint64_t step) { return epoch > 0 && step % epoch == 0; };

  ProgressLine line;
  std::vector<Observer*> observers;
  if (group->rank() == 0) observers.push_back(&line);
  Run run(task, trainer, *group, options, observers, [] { return stop_requested != 0; });
  const Outcome outcome = run.train();
  if (outcome == Outcome::finished) run.evaluate();
  group->finish();
  return outcome == Outcome::stopped ? 75 : 0;
} catch (const Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
