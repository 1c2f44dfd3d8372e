// Trains ResNet-20 on CIFAR-10: train_cifar DATA_DIR TRAIN_DIR [EPOCHS [BATCH]]
// DATA_DIR holds the TFRecords written by `dtrain-data cifar10`. After a kill or SIGTERM the same command resumes from
// the last checkpoint and gives bit-identical results. Under mpirun all ranks train one model.
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <optional>

#include <dtrain/data/catalog.h>
#include <dtrain/data/loader.h>
#include <dtrain/dtrain.h>
#include <dtrain/models/catalog.h>

namespace dt = dtrain;

volatile std::sig_atomic_t stop_requested = 0;

class Cifar : public dt::Task {
 public:
  Cifar(dt::Context& context, dt::Group& group, const std::string& directory, int64_t batch)
      : store(context), group_(group), batch_(batch), feed_(context) {
    const dt::data::Pixels pixels{.dataset = "cifar10", .size = 32};
    const dt::data::PixelScale scale = pixels.scale();
    training = dt::data::open_split(pixels, {.directory = directory, .classes = 10});
    validation_ =
        dt::data::open_split(pixels, {.directory = directory, .training = false, .augments = false, .classes = 10});
    for (int c = 0; c < 3; ++c) scale_.mean[c] = scale.mean[c], scale_.scale[c] = scale.scale[c];
    model_ = dt::models::make_classifier(store, dt::models::classifier_info("resnet20", "cifar10"), {.classes = 10});
    store.allocate(/*seed=*/1);
  }

  void open(uint64_t cursor) override { loader_.emplace(training, loader_options(true, cursor)); }
  dt::BatchInfo load(int) override {
    feed_.wait_until_copied();  // the loader reuses that memory
    const dt::data::Batch& batch = *loader_->next();
    fed_ = feed_.put({batch["images"], batch["labels"]});
    return {.samples = batch.samples, .cursor = batch.cursor};
  }
  dt::Loss forward(dt::Tape& tape, int) override { return loss_of(tape, fed_[0], fed_[1]); }

  std::future<dt::Evaluation> evaluate(const dt::EvaluationRequest& request) override {
    dt::data::Loader loader(validation_, loader_options(false, 0));
    const dt::data::Batch* batch = nullptr;
    dt::EvaluationLoop loop{.batches = static_cast<int64_t>(validation_->size()), .batch = batch_ * group_.size()};
    loop.load = [&] { return (batch = loader.next()) ? std::optional(batch->valid) : std::nullopt; };
    loop.forward = [&](dt::Tape& tape) { return loss_of(tape, (*batch)["images"], (*batch)["labels"]); };
    return dt::evaluate_batches(store.context(), group_, request, loop);
  }
  void describe(dt::TrainState& state) const override {
    state.identity = {{"model", "resnet20"}, {"data set", training->identity()}};
  }

  dt::ParameterStore store;
  std::shared_ptr<dt::data::Dataset> training;

 private:
  dt::data::LoaderOptions loader_options(bool trains, uint64_t cursor) const {
    return {.batch = batch_,
            .training = trains,
            .seed = 1,
            .cursor = cursor,
            .rank = group_.rank(),
            .ranks = group_.size()};
  }
  dt::Loss loss_of(dt::Tape& tape, const dt::Tensor& images, const dt::Tensor& labels) const {
    const dt::Var x = tape.constant(dt::normalize_pixels(tape.context(), images, scale_));
    return dt::softmax_cross_entropy(tape, model_.forward(tape, x), labels);
  }

  dt::Group& group_;
  int64_t batch_;
  dt::BatchFeed feed_;
  std::shared_ptr<dt::data::Dataset> validation_;
  dt::models::Classifier model_;
  dt::PixelNormalization scale_;
  std::optional<dt::data::Loader> loader_;
  std::vector<dt::Tensor> fed_;
};

struct ProgressLine : dt::Observer {
  void stepped(const dt::Stepped& e) override {
    if (e.shown) std::printf("step %ju: loss %.3f, %.1f ms\n", uintmax_t{e.step}, e.loss, 1e3 * e.seconds);
  }
  void evaluated(const dt::Evaluated& e) override {
    std::printf("step %ju: top-1 %.2f %%\n", uintmax_t{e.step}, 100 * e.result.value("top_1_accuracy"));
  }
  void noticed(const dt::Noticed& e) override { std::fprintf(stderr, "note: %s\n", e.text.c_str()); }
};

int main(int argc, char** argv) try {
  if (argc < 3) return std::fprintf(stderr, "usage: %s DATA_DIR TRAIN_DIR [EPOCHS [BATCH]]\n", argv[0]), 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);  // line-buffered, also in a pipe
  for (const int signal : {SIGTERM, SIGINT}) std::signal(signal, [](int) { stop_requested = 1; });
  const dt::LauncherRank launched = dt::launcher_rank(std::getenv);
  const auto group = launched.size <= 1     ? dt::make_single_group()
                     : launched.without_mpi ? dt::make_tcp_group({}, dt::tcp_options_from(std::getenv))
                                            : dt::make_mpi_group({}, launched.size);
  const auto context = dt::make_cpu_context();
  const auto communicator = dt::make_communicator(*group, *context);
  const int64_t batch = argc > 4 ? std::atoll(argv[4]) : 128;
  Cifar task(*context, *group, argv[1], batch);
  const uint64_t epoch = task.training->size() / static_cast<uint64_t>(batch * group->size());
  const auto steps = static_cast<uint64_t>((argc > 3 ? std::atof(argv[3]) : 10) * static_cast<double>(epoch));
  dt::Optimizer optimizer(task.store, {.update = {.rule = dt::UpdateRule::nesterov}, .weight_decay = 1e-4f});
  const dt::Schedule schedule{.decay = dt::Schedule::Decay::cosine, .base = 0.1, .floor = 0, .total_steps = steps};
  dt::Trainer trainer(task.store, optimizer, schedule, {.seed = 1, .communicator = communicator.get()});
  dt::RunOptions options;
  options.cadence.total_steps = steps, options.cadence.save_every_steps = 50;
  options.batch = batch, options.train_dir = argv[2];
  options.cadence.evaluate_after = [epoch](uint64_t step) { return epoch > 0 && step % epoch == 0; };

  ProgressLine line;
  std::vector<dt::Observer*> observers;
  if (group->rank() == 0) observers.push_back(&line);
  dt::Run run(task, trainer, *group, options, observers, [] { return stop_requested != 0; });
  const dt::Outcome outcome = run.train();
  if (outcome == dt::Outcome::finished) run.evaluate();
  group->finish();
  return outcome == dt::Outcome::stopped ? 75 : 0;
} catch (const dt::Error& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return static_cast<int>(error.fault());
}
