// docs/translation.md: our programs accept its command lines.
#include <cstdlib>
#include <fstream>
#include <map>
#include <regex>

#include "apps/cli/values.h"
#include "apps/cnn_benchmarks/flags.h"
#include "apps/imagenet_main/translation.h"
#include "apps/launch_benchmark/translation.h"
#include "apps/mask_rcnn/front_end.h"
#include "apps/mask_rcnn/score_results.h"
#include "apps/train_imagenet/translation.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Arguments = std::vector<std::string>;

// Errors that the program reports independently of the machine.
void check_ours(const Arguments& line) {
  cnn_benchmarks::Flags values;
  cli::FlagSet flags("dtrain-cnn-benchmarks", "", "");
  values.declare(flags);
  EXPECT_TRUE(flags.parse(line).empty());
  values.recipe.apply(flags);
  values.settle(flags);
  values.check(flags);
}

Arguments with_program(Arguments line) {
  line.insert(line.begin(), "program");
  return line;
}

// Command lines of detectors: also their keys.
void check_detector(const Arguments& line) {
  using mask_rcnn::Original;
  const std::map<std::string, Original> originals = {{"tensorpack-train", Original::tensorpack_train},
                                                     {"tensorpack-predict", Original::tensorpack_predict},
                                                     {"aws-train", Original::aws_train}};
  const auto made =
      mask_rcnn::translated(originals.at(line.at(1)), with_program({line.begin() + 2, line.end()}), /*gpus=*/1);
  cli::FlagSet flags("program", "", "");
  if (made->command == "train") {
    mask_rcnn::TrainFlags values;
    values.declare(flags);
    EXPECT_TRUE(mask_rcnn::read_arguments(flags, values.model, with_program(made->arguments))->empty());
    values.check(flags);
    EXPECT_NO_THROW(values.model.without_weights().check());
  } else if (made->command == "eval") {
    mask_rcnn::EvalFlags values;
    values.declare(flags);
    EXPECT_TRUE(mask_rcnn::read_arguments(flags, values.model, with_program(made->arguments))->empty());
    values.check();
  } else {
    EXPECT_TRUE(made->command == "predict" || made->command == "visualize") << made->command;
  }
}

void check(const Arguments& line) {
  if (line.front() == "dtrain-mask-rcnn") return check_detector(line);
  cli::FlagSet flags("program", "", "");
  if (line.front() == "dtrain-train-imagenet") {
    train_imagenet::declare(flags);
    EXPECT_TRUE(flags.parse(line).empty());
    check_ours(with_program(train_imagenet::translated(flags, /*gpu=*/true)));
  } else if (line.front() == "dtrain-imagenet-main") {
    imagenet_main::declare(flags);
    const Arguments seed = flags.parse(line);
    ASSERT_EQ(seed.size(), 1u);
    check_ours(with_program(imagenet_main::translated(flags, seed.front())));
  } else if (line.front() == "dtrain-launch-benchmark") {
    launch_benchmark::declare(flags);
    const Arguments custom = flags.parse(line);
    Arguments started = launch_benchmark::plan(flags, custom, "bin", {{0, 1}, {2, 3}}).launches.front().command;
    const auto program = std::ranges::find(started, "bin/dtrain-imagenet-main");
    ASSERT_NE(program, started.end());
    *program = "dtrain-imagenet-main";
    check({program, started.end()});
  } else {
    EXPECT_EQ(line.front(), "dtrain-cnn-benchmarks");
    check_ours(line);
  }
}

// Command line in the second cell of each row of the long table.
std::vector<std::string> commands() {
  std::ifstream in(source_dir() / "docs/translation.md");
  const std::regex command(R"(`(?:[^`]* )?(dtrain-[^`]*)`)");
  std::vector<std::string> found;
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with('#')) here = line == "## Lines" || line == "### Detectors";
    const size_t cell = line.find(" | ");
    if (!here || !line.starts_with("| `") || cell == std::string::npos) continue;
    const std::string ours = line.substr(cell + 3, line.find(" | ", cell + 3) - cell - 3);
    std::smatch match;
    EXPECT_TRUE(std::regex_match(ours, match, command)) << ours;
    found.push_back(match[1]);
    std::erase(found.back(), '\'');  // the shell's quotes, around words without blanks
  }
  return found;
}

TEST(Translation, AcceptsItsCommandLines) {
  const std::vector<std::string> lines = commands();
  EXPECT_GE(lines.size(), 29u);
  for (const std::string& line : lines) {
    SCOPED_TRACE(line);
    try {
      check(cli::split_words(line));
    } catch (const Error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

}  // namespace
}  // namespace dtrain
