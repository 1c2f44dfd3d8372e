// Recorded classifier metadata against a program's flags.
#include "apps/cli/recorded_weights.h"

#include "apps/cli/conventions.h"
#include "dtrain/autograd/parameters.h"
#include "dtrain/train/weights.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::cli {
namespace {

class RecordedWeights : public testing::Test {
 protected:
  // A weights file with this metadata.
  std::string recorded(const WeightsRecord& record) {
    const auto context = make_cpu_context({.threads = 1});
    ParameterStore store(*context);
    store.add("w", {1}, Init::constant(0));
    store.allocate(1);
    const std::string file = (folder_ / "w.safetensors").string();
    save_weights(store, file, 0, record);
    return file;
  }

  struct Program {
    Program() {
      flags.add("model", model, "");
      flags.add("num_classes", classes, "", {0, 1000});
      flags.add("data_name", data_name, "");
      flags.add("label_offset", offset, "", {-1000, 1000});
      flags.add("image_size", size, "", {0, 1000});
      flags.add("preprocessing", preprocessing, "");
      flags.add("ml_perf", ml_perf, "");
      flags.add("exif_orientation", orientation, "");
      conventions.declare(flags);
    }
    std::string model = "trivial", data_name = "imagenet", preprocessing = "tf_cnn", orientation = "ignore";
    int64_t classes = 0, offset = 0, size = 0;
    bool ml_perf = false;
    ConventionFlags conventions;
    FlagSet flags{"program", "", ""};
  };

  // Message of a program with these arguments about the weights; in evaluation unless `trains`.
  static void take(Program& program, const std::string& file, std::vector<std::string> arguments, bool trains = false) {
    arguments.insert(arguments.begin(), "program");
    program.flags.parse(arguments);
    take_recorded(program.flags, file, trains);
  }
  static void take(const std::string& file, const std::vector<std::string>& arguments, bool trains = false) {
    Program program;
    take(program, file, arguments, trains);
  }

  TempDirectory folder_;
};

TEST_F(RecordedWeights, AFlagThatRepeatsTheModelsDefaultIsTaken) {
  const std::string file = recorded({{"model", "resnet50_v1.5"}, {"data name", "imagenet"}});
  take(file, {"--resnet_padding=symmetric", "--batch_norm_epsilon=1e-5", "--bottleneck_stride=3x3"});
  expect_error([&] { take(file, {"--bottleneck_stride=1x1"}); }, Fault::config, "was trained with 3x3; leave");
  expect_error([&] { take(file, {"--resnet_padding=same"}); }, Fault::config, "was trained with symmetric; leave");
  expect_error([&] { take(file, {"--batch_norm_epsilon=1e-3"}); }, Fault::config, "was trained with 1e-05; leave");
  const std::string other = recorded({{"model", "resnet50, padding symmetric, batch norm epsilon 1e-05"}});
  take(other, {"--resnet_padding=auto", "--bottleneck_stride=1x1"});
  const std::string official = recorded({{"model", "official_resnet50"}});
  take(official, {"--resnet_padding=same_pool"});
}

TEST_F(RecordedWeights, ALabelOffsetMayNotContradictTheRecord) {
  const std::string file = recorded({{"model", "resnet18"}, {"label offset", "-1"}});
  Program program;
  take(program, file, {});
  EXPECT_EQ(program.offset, -1);
  take(file, {"--label_offset=-1"});
  expect_error([&] { take(file, {"--label_offset=0"}); }, Fault::config,
               "--label_offset=0: " + file + " was trained with -1; leave the flag out");
  take(file, {"--label_offset=0"}, /*trains=*/true);  // on other data
}

TEST_F(RecordedWeights, ADamagedRecordIsAFaultOfTheCheckpoint) {
  const std::string many = recorded({{"model", "resnet18"}, {"classes", "many"}});
  expect_error([&] { take(many, {}); }, Fault::checkpoint, many + ": classes=many: ");
  const std::string odd = recorded({{"model", "resnet18, padding odd"}});
  expect_error([&] { take(odd, {}); }, Fault::checkpoint, odd + ": model=resnet18, padding odd: ");
  const std::string half = recorded({{"model", "resnet18"}, {"label offset", "0.5"}});
  expect_error([&] { take(half, {}); }, Fault::checkpoint, half + ": label offset=0.5: ");
}

}  // namespace
}  // namespace dtrain::cli
