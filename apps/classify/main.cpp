// dtrain-classify: what a trained model takes images for.
#include <iostream>

#include <fmt/format.h>

#include "apps/classify/classify.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "data/catalog.h"
#include "libdtrain/core/error.h"
#include "models/catalog.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Names the most probable classes of images, preprocessed as in evaluation. The weights are those of a checkpoint, "
    "TRAIN_DIR/checkpoints/step-N/model.safetensors, or of torchvision, saved as safetensors.\n"
    "Exit codes: 0 done, 1 usage, 2 an image could not be read or decoded (the others are done), 3 NaN or Inf, 5 "
    "weights that cannot "
    "be read or do not fit, 6 memory or disk.";

int run(const std::vector<std::string>& argv) {
  classify::Options options;
  cli::FlagSet flags("dtrain-classify", "--model M --weights F.safetensors [flags] IMAGE...", kAbout);
  flags.group("Model");
  flags.add("model", options.model, fmt::format("{}", fmt::join(models::classifier_names(), ", ")));
  flags.add("weights", options.weights, "safetensors file, by torchvision's names");
  flags.add("num_classes", options.num_classes, "outputs of the model; 0: as many as the weights have", cli::kClasses);
  flags.group("Images");
  flags.add("image_size", options.image_size, "side in pixels; 0: the model's default", cli::kImageSize);
  flags.add_choice("preprocessing", options.preprocessing, data::preprocessing_names(),
                   "as the model was trained with");
  flags.add("ml_perf", options.ml_perf, "tf_cnn: subtract the mean colour instead of scaling to [-1, 1]");
  flags.group("Output");
  flags.add("top", options.top, "how many classes are named", cli::kPositiveCount);
  flags.add(
      "json", options.json,
      R"(a line per image: {"file": F, "top": [{"class": C, "probability": P}, ...]}, or {"file": F, "error": E})");
  flags.add("logits", options.logits, "print the logits of all classes too");
  flags.add_choice("device", options.device, {"auto", "cpu", "gpu"}, "auto: the GPU where there is one");
  flags.add("num_intra_threads", options.threads, "compute threads; 0: OMP_NUM_THREADS or one per core", cli::kThreads)
      .former_name("threads");
  const auto images = cli::read_command_line(flags, argv);
  if (!images) return 0;
  DT_CHECK(!options.model.empty() && !options.weights.empty() && !images->empty(),
           "expected --model, --weights and at least one image; see --help");
  DT_CHECK(!options.ml_perf || options.preprocessing == "tf_cnn", "--ml_perf needs --preprocessing=tf_cnn");
  return classify::classify(options, *images, std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
