// dtrain-classify: classifies images with a trained model.
#include <iostream>

#include <fmt/format.h>

#include "apps/classify/calibrate.h"
#include "apps/classify/classify.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/export_classifier.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Classifies images, preprocessed as in evaluation, or exports the model to ONNX. The weights are a checkpoint's, "
    "TRAIN_DIR/checkpoints/step-N/model.safetensors, which records the model and how it was trained, or torchvision's "
    "or timm's, saved as safetensors.\n"
    "Exit codes: 0 done, 1 usage or a calibration of other weights, 2 a calibration or an image could not be read or "
    "decoded (the others are done), 3 NaN or Inf, 5 weights that cannot be read or do not fit, 6 memory or disk.";

int run(const std::vector<std::string>& argv) {
  classify::Options options;
  cli::FlagSet flags("dtrain-classify", "--weights F [--model M] [flags] [--onnx FILE] IMAGE...", kAbout);
  flags.add_command("calibrate", "calibrates a model for --precision=int8 on labelled images");
  options.model.declare(flags);
  options.model.declare_precision(flags);
  flags.group("Output");
  flags.add("onnx", options.onnx,
            "file to export the model to as ONNX (opset 17), with a dynamic batch size: `images` [n, 3, size, size], "
            "RGB from 0 to 1, to `logits` [n, classes]");
  flags.add("top", options.top, "number of most probable classes to print", cli::kPositiveCount);
  flags.add("json", options.json,
            R"(a line per image: {"file": F, "top": [{"class": C, "name": N, "probability": P}, ...]}, or {"file": F, )"
            R"("error": E}; without "name" where the weights have recorded none, with "warning" for an image that )"
            R"(decodes, but is damaged)");
  flags.add("label", options.label,
            "true class of the images, for --json and for dtrain-report, which ranks images by their error",
            cli::kClasses);
  flags.add("logits", options.logits, "also print the logits of all classes");
  flags.add_choice("device", options.device, {"auto", "cpu", "gpu"}, "auto: a GPU if there is one");
  flags.add("num_intra_threads", options.threads, "compute threads; 0: OMP_NUM_THREADS or one per core", cli::kThreads)
      .former_name("threads");
  const auto images = cli::read_command_line(flags, argv);
  if (!images) return 0;
  DT_CHECK(!options.model.weights.empty() && !(images->empty() && options.onnx.empty()),
           "expected --weights, and at least one image or --onnx; see --help");
  options.model.take_recorded(flags);
  options.model.check();
  DT_CHECK(options.onnx.empty() || options.model.precision == "fp32",
           "--onnx: the graph is of fp32; --precision=", options.model.precision, " may not be given with it");
  if (!options.onnx.empty()) cli::export_classifier(options.model, flags, options.threads, options.onnx, std::cout);
  return images->empty() ? 0 : classify::classify(options, flags, *images, std::cout);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv, cli::Waiting::spin_first);
  return cli::run_main([&] {
    std::vector<std::string> arguments{argv, argv + argc};
    if (argc < 2 || arguments[1] != "calibrate") return run(arguments);
    arguments.erase(arguments.begin());
    arguments[0] = "dtrain-classify calibrate";
    return classify::run_calibrate(arguments);
  });
}
