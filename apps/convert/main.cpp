// dtrain-convert: converts weights of classifiers and detectors between formats and programs.
#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/convert/convert.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Converts weights: files of PyTorch (.pth, .pt, .ckpt), detectron2 (.pkl), safetensors, NumPy (.npz), a checkpoint "
    "folder or a train_dir, to safetensors, NumPy or ONNX. Without --model and --names all tensors are copied by name. "
    "Values are preserved bit for bit, except where the report says that they were cast. The report on stdout lists "
    "the tensors, and what was cast, stripped or left out.\n"
    "Exit codes: 0 done, 1 usage, or OUT exists, 3 NaN or Inf, 5 weights that cannot be read or do not fit, 6 memory "
    "or disk.";

int run(const std::vector<std::string>& argv) {
  convert::Options options;
  cli::FlagSet flags("dtrain-convert", "IN OUT [--to FORMAT] [--model M] [--names PROGRAM] [--config KEY=VALUE...]",
                     kAbout);
  flags.group(convert::kOutputGroup);
  flags.add_choice("to", options.to, {"", "safetensors", "npz", "onnx"}, "format of OUT; default: by its name");
  std::vector<std::string> programs = mask_rcnn::program_ids();
  programs.insert(programs.begin(), {"", "timm"});
  flags.add_choice(
      "names", options.names, programs,
      "program whose tensor names OUT has: torchvision or timm for classifiers, torchvision, detectron2 or "
      "tensorpack for detectors; default with --model: torchvision's, and TensorPack's for a detector in "
      ".npz");
  flags.add_choice("dtype", options.dtype, {"keep", "f32"},
                   "keep: types that the format has are kept; f32: all floating-point tensors are cast");
  flags.add("force", options.force, "replace OUT if it exists");
  flags.add("summary", options.summary, "do not list the tensors");
  options.classifier.declare_model(flags);
  options.detector.model.declare_conventions(flags, convert::kDetectorGroup);
  options.detector.declare_size(flags);
  const auto files = mask_rcnn::read_arguments(flags, options.detector.model, argv);
  if (!files) return 0;
  DT_CHECK(files->size() == 2, "expected two files, IN and OUT, found ", files->size(), "; see --help");
  options.in = files->at(0);
  options.out = files->at(1);
  convert::convert(std::move(options), flags);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
