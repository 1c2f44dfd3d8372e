// dtrain-train-imagenet: command-line and log compatible with AWS's train_imagenet_resnet_hvd.py.
#include "apps/cli/arguments.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/run_main.h"
#include "apps/cnn_benchmarks/program.h"
#include "apps/observers/aws_log.h"
#include "apps/train_imagenet/translation.h"

namespace {

using namespace dtrain;

constexpr char kAbout[] =
    "Trains and evaluates ResNets on ImageNet, with the arguments and the log of train_imagenet_resnet_hvd.py of "
    "aws-samples/deep-learning-models. Runs `dtrain-cnn-benchmarks --recipe=aws`.\n"
    "Under mpirun, each process is a rank with its own device, and all ranks train one model. Flags of "
    "dtrain-cnn-benchmarks may follow `--` and take precedence.\n"
    "Exit codes: as dtrain-cnn-benchmarks.";

int run(const std::vector<std::string>& argv) {
  cli::FlagSet flags("dtrain-train-imagenet", "[--flag value | --switch | --noswitch]... [-- flags of dtrain's]",
                     kAbout);
  train_imagenet::declare(flags);
  const auto more = cli::read_command_line(flags, argv);
  if (!more) return 0;
  const bool gpu = cuda_device_count() > 0;
  std::vector<std::string> line = train_imagenet::translated(flags, gpu);
  line.insert(line.begin(), "dtrain-cnn-benchmarks");
  cli::append_flags(line, *more);

  const std::string &folder = flags.text("log_dir"), &model = flags.text("model");
  observers::AwsLogOptions options{
      .log_file = folder + (is_on(flags, "eval") ? "/eval_" : "/") + flags.text("log_name"),
      .new_file = is_on(flags, "clear_log"),
      .checkpoints = folder + "/checkpoints",
      .trained_batch = std::stod(flags.text("batch_size")) * std::stod(flags.text("num_gpus"))};
  cnn_benchmarks::FrontEnd front{.argv = argv, .names = train_imagenet::names(flags, *more)};
  if (is_on(flags, "fp16") && !gpu) front.notices.emplace_back("fp16, the default, needs a GPU; using fp32");
  if (model == "resnet18" || model == "resnet34")
    front.notices.push_back(model + " is the paper's; the script's has other widths");
  front.observer = [&](const cnn_benchmarks::RunFacts& facts, cli::Log& to) {
    options.global_batch = static_cast<double>(facts.global_batch);
    options.samples = static_cast<double>(facts.samples);
    options.ranks = facts.ranks;
    return std::make_unique<observers::AwsLog>(to, options);
  };
  return cnn_benchmarks::run_program(line, front);
}

}  // namespace

int main(int argc, char** argv) {
  cli::let_waiting_threads_sleep(argv);
  return cli::run_main([&] { return run({argv, argv + argc}); });
}
