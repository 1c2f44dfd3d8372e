#include "apps/mask_rcnn/front_end.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/arguments.h"
#include "apps/cli/command_line.h"
#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/mask_rcnn/flags.h"
#include "dtrain/core/error.h"
#include "dtrain/distributed/group.h"

namespace dtrain::mask_rcnn {
namespace {

using Table = std::vector<cli::Argument>;

constexpr char kProfiler[] = "use `-- --trace_file=FILE` or `-- --tfprof_file=FILE`";

const Table kModes = {
    {"visualize", "bool", "false", "draw 100 training images with proposals and results into the folder output"},
    {"evaluate", "string", "", "FILE.json: evaluate --load on DATA.VAL, and write the detections to FILE.json-SPLIT"},
    {"predict", "string", "", "image files: detect objects, and draw them into the folder output"},
};

const Table kTraining = {
    {"load", "string", "", "weights or checkpoint; takes precedence over BACKBONE.WEIGHTS", "load"},
    {"logdir", "string", "train_log/maskrcnn",
     "folder of checkpoints, events and logs; a run resumes from the newest checkpoint"},
};

const Table kPredicting = {
    {"load", "string", "", "weights or checkpoint; required", "load"},
    {"benchmark", "bool", "false", "measure the latency of detection"},
    {"output-pb", "string", "", "frozen graph", "", "", "`dtrain-mask-rcnn export` writes ONNX"},
    {"output-serving", "string", "", "SavedModel", "", "", "`dtrain-mask-rcnn export` writes ONNX"},
};

const Table kAws = {
    {"fp16", "bool", "false", "compute in fp16, with a loss scale of 1024; needs a GPU"},
    {"images_per_epoch", "int", "120000",
     "images of an epoch, the key TRAIN.IMAGES_PER_EPOCH; if not given, one pass over data other than COCO"},
    {"throughput_log_freq", "int", "100", "steps between lines of [ThroughputTracker]", "throughput_log_freq"},
    {"async_eval", "bool", "false", "score evaluations in the background", "",
     "evaluations are always scored on a thread while training continues"},
    {"tfprof", "bool", "false", "profile", "", kProfiler},
    {"tfprof_start_step", "int", "15005", "first step of the profile", "", kProfiler},
    {"tfprof_end_step", "int", "15010", "last step of the profile", "", kProfiler},
    {"log_full_git_diff", "bool", "true", "print the state of the repository", "", "the log names dtrain's version"},
};

// Removes all values of `--name VALUE VALUE...` but the first from argv: the arguments up to the next flag.
Arguments take_more_values(const Arguments& argv, std::string_view name, std::vector<std::string>& values) {
  Arguments rest;
  bool follows = false, is_more = false;  // an argument follows the flag; it follows the flag's first value
  for (const std::string& argument : argv) {
    const bool is_flag = argument.starts_with("-");
    (is_more && !is_flag ? values : rest).push_back(argument);
    is_more = !is_flag && (is_more || follows);
    follows = is_flag && argument == name;
  }
  return rest;
}

struct Words {
  std::vector<std::string> assignments{}, images{}, more{};  // of --config and --predict; after --
};

void require(const cli::FlagSet& flags, const Words& words, Original original) {
  const bool visualizes = is_on(flags, "visualize"), evaluates = !flags.text("evaluate").empty();
  const bool predicts = !words.images.empty();
  const bool benchmarks = original == Original::tensorpack_predict && is_on(flags, "benchmark");
  const bool infers = visualizes || evaluates || predicts || benchmarks;
  flags.check_refused();
  cli::refuse({
      {visualizes + evaluates + predicts + benchmarks > 1,
       "--visualize, --evaluate, --predict and --benchmark exclude each other"},
      {original == Original::tensorpack_predict && !infers,
       "expected one of --visualize, --evaluate, --predict and --benchmark; see --help"},
      {infers && flags.text("load").empty(), "--load is missing: the weights or checkpoint"},
      {evaluates && !flags.text("evaluate").ends_with(".json"), "--evaluate: expected a file name that ends in .json"},
  });
}

// A single process uses one GPU, while TRAINER=replicated uses all of the machine.
std::string notice_of_gpus(const Words& words, int gpus) {
  const bool horovod = std::ranges::any_of(words.assignments,
                                           [](const std::string& text) { return text.starts_with("TRAINER=horovod"); });
  if (gpus < 2 || horovod || launcher_rank(cli::environment()).size > 1) return "";
  return fmt::format("TRAINER=replicated: a process trains on one of the {} GPUs; mpirun -np {} uses all of them", gpus,
                     gpus);
}

Translation training(const cli::FlagSet& flags, const Words& words, Original original, int gpus) {
  Translation made{"train", {"--train_dir=" + flags.text("logdir"), "--compatible_with=tensorpack"}};
  if (const std::string notice = notice_of_gpus(words, gpus); !notice.empty()) made.notices.push_back(notice);
  if (original != Original::aws_train) return made;
  const bool fp16 = is_on(flags, "fp16");
  DT_CHECK(!fp16 || gpus > 0, "--fp16: not supported on a CPU; leave it out");
  if (fp16) made.arguments.insert(made.arguments.end(), {"--precision=fp16", "--fp16_loss_scale=1024"});
  return made;
}

Translation inference(const cli::FlagSet& flags, const Words& words) {
  if (is_on(flags, "visualize")) return {"visualize", {"--output=output", "--images=100", "--split=DATA.TRAIN"}};
  if (const std::string& file = flags.text("evaluate"); !file.empty()) return {"eval", {"--save_results=" + file}};
  if (words.images.empty()) return {"predict", {"--benchmark"}};
  Translation made{"predict", {"--output=output"}};
  made.arguments.insert(made.arguments.end(), words.images.begin(), words.images.end());
  return made;
}

bool trains(const cli::FlagSet& flags, const Words& words, Original original) {
  return original != Original::tensorpack_predict && !is_on(flags, "visualize") && flags.text("evaluate").empty() &&
         words.images.empty();
}

Table table_of(Original original) {
  Table table = original == Original::tensorpack_predict ? kPredicting : kTraining;
  table.insert(table.end(), kModes.begin(), kModes.end());
  if (original == Original::aws_train) table.insert(table.end(), kAws.begin(), kAws.end());
  return table;
}

const char* name_of(Original original) {
  if (original == Original::aws_train) return "MaskRCNN/train.py of aws-samples/mask-rcnn-tensorflow";
  return original == Original::tensorpack_train ? "examples/FasterRCNN/train.py of TensorPack"
                                                : "examples/FasterRCNN/predict.py of TensorPack";
}

int run_command(Original original, const Arguments& argv) {
  const auto made = translated(original, argv, cuda_device_count());
  if (!made) return 0;
  if (launcher_rank(cli::environment()).rank <= 0) cli::print_notes(made->notices);
  Arguments line{argv.front().substr(0, argv.front().find(' ') + 1) + made->command};
  line.insert(line.end(), made->arguments.begin(), made->arguments.end());
  if (made->command == "train") return train(line);
  if (made->command == "eval") return eval(line);
  return made->command == "predict" ? predict(line) : visualize(line);
}

}  // namespace

std::optional<Translation> translated(Original original, const Arguments& argv, int gpus) {
  const bool predicts = original == Original::tensorpack_predict;
  cli::FlagSet flags(
      argv.front(), "[--flag value | --switch]... [--config KEY=VALUE...] [-- flags of dtrain's]",
      fmt::format(
          "Takes the arguments of {}{}. --config takes the keys of its config.py; --help=KEYS lists them. Flags of the "
          "command that runs, such as `dtrain-mask-rcnn {}`, may follow `--` and take precedence.",
          name_of(original), predicts ? "" : ", and prints TensorPack's log in training",
          predicts ? "predict" : "train"));
  const Table table = table_of(original);
  cli::declare(flags, fmt::format("Arguments of {}", name_of(original)), table);
  Words words;
  const Arguments rest = take_more_values(ModelFlags::take_config(argv, words.assignments), "--predict", words.images);
  const auto more = cli::read_command_line(flags, rest);
  if (!more) return std::nullopt;
  words.more = *more;
  if (!flags.text("predict").empty()) words.images.insert(words.images.begin(), flags.text("predict"));
  require(flags, words, original);
  const bool in_training = trains(flags, words, original);
  Translation made = in_training ? training(flags, words, original, gpus) : inference(flags, words);
  made.arguments.push_back(original == Original::aws_train ? "--preset=aws" : "--preset=tensorpack");
  if (!flags.text("load").empty()) made.arguments.push_back("--load=" + flags.text("load"));
  if (in_training && original == Original::aws_train)
    made.arguments.push_back("--throughput_log_freq=" + flags.text("throughput_log_freq"));
  cli::append_flags(made.arguments, words.more);
  if (in_training && flags.declares("images_per_epoch") && flags.given("images_per_epoch"))
    words.assignments.insert(words.assignments.begin(), "TRAIN.IMAGES_PER_EPOCH=" + flags.text("images_per_epoch"));
  if (words.assignments.empty()) return made;
  made.arguments.emplace_back("--config");
  made.arguments.insert(made.arguments.end(), words.assignments.begin(), words.assignments.end());
  return made;
}

int tensorpack_train(const Arguments& argv) { return run_command(Original::tensorpack_train, argv); }
int tensorpack_predict(const Arguments& argv) { return run_command(Original::tensorpack_predict, argv); }
int aws_train(const Arguments& argv) { return run_command(Original::aws_train, argv); }

}  // namespace dtrain::mask_rcnn
