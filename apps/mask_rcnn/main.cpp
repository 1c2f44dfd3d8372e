// dtrain-mask-rcnn: trains, evaluates and runs object detectors with instance masks.
#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "apps/cli/commands.h"
#include "apps/cli/environment.h"
#include "apps/cli/output.h"
#include "apps/cli/run_main.h"
#include "apps/mask_rcnn/commands.h"
#include "apps/mask_rcnn/key_reference.h"

namespace {

using namespace dtrain;

constexpr std::array kCommands = {
    cli::Command{"train", mask_rcnn::train, "trains Mask R-CNN on a data set in COCO format"},
    cli::Command{"eval", mask_rcnn::eval, "computes COCO metrics of a model or of a results file"},
    cli::Command{"predict", mask_rcnn::predict, "detects objects in images"},
    cli::Command{"visualize", mask_rcnn::visualize, "draws ground truth, proposals and results side by side"},
    cli::Command{"convert", mask_rcnn::convert, "converts weights between the formats of other programs"},
    cli::Command{"export", mask_rcnn::export_model, "exports a detector to ONNX"},
    cli::Command{"tensorpack-train", mask_rcnn::tensorpack_train, "takes the arguments of TensorPack's train.py"},
    cli::Command{"tensorpack-predict", mask_rcnn::tensorpack_predict, "takes the arguments of TensorPack's predict.py"},
    cli::Command{"aws-train", mask_rcnn::aws_train, "takes the arguments of AWS Mask R-CNN's train.py"},
};

// Prints the key reference, with any command; false if not requested.
bool print_keys(const std::vector<std::string>& argv) {
  const auto asks = [&](const char* form) { return std::ranges::find(argv, form) != argv.end(); };
  const bool help = asks("--help=KEYS"), markdown = asks("--help=KEYS_MARKDOWN");
  if (help || markdown)
    cli::patient_stdout() << (help ? mask_rcnn::key_help() : mask_rcnn::key_markdown()) << std::flush;
  return help || markdown;
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] {
    if (print_keys({argv, argv + argc})) return 0;
    return cli::run_command(
        {.program = "dtrain-mask-rcnn",
         .meaning = "trains, evaluates and runs object detectors with instance masks",
         .codes = "0 done, 1 usage, 2 data, 3 NaN or Inf, 4 another rank or the network, 5 checkpoint or weights, 6 "
                  "memory or disk, 75 stopped on request after a checkpoint: the same command resumes.",
         .commands = kCommands},
        {argv, argv + argc});
  });
}
