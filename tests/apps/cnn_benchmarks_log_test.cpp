// The printed log, to the letter.
#include "apps/cnn_benchmarks/log.h"

#include <sstream>

#include "tests/testing.h"

namespace dtrain::cnn_benchmarks {
namespace {

Config horovod_config() {
  Config config;
  config.flags.variable_update = "horovod";
  config.flags.horovod_device = "cpu";
  config.flags.device = "cpu";
  config.dataset = "imagenet";
  config.info.name = "resnet50";
  config.batch = 64;
  return config;
}

TEST(Log, HeaderOfTfCnnBenchmarks) {
  std::ostringstream out, notices;
  Plan plan;
  plan.num_batches = 100;
  plan.num_epochs = 0.16;
  Log(out, notices).header(horovod_config(), plan, "1.2.3");
  EXPECT_EQ(out.str(),
            "dtrain:      1.2.3\n"
            "Model:       resnet50\n"
            "Dataset:     imagenet (synthetic)\n"
            "Mode:        training\n"
            "SingleSess:  False\n"
            "Batch size:  64 global\n"
            "             64 per device\n"
            "Num batches: 100\n"
            "Num epochs:  0.16\n"
            "Devices:     ['horovod/cpu:0']\n"
            "NUMA bind:   False\n"
            "Data format: NCHW\n"
            "Optimizer:   sgd\n"
            "Variables:   horovod\n"
            "Horovod on:  cpu\n"
            "==========\n");
  EXPECT_EQ(notices.str(), "");
}

TEST(Log, HeaderOfOtherModes) {
  Config config = horovod_config();
  config.flags.variable_update = "replicated";
  config.flags.data_dir = "/data";
  config.flags.gradient_accumulation = 4;
  config.info.name = "lenet";
  config.eval_batch = 50;
  std::ostringstream out;
  Log log(out, out);
  log.header(config, Plan(), "1.2.3");
  EXPECT_NE(out.str().find("Model:       lenet5\nDataset:     imagenet\nMode:        training\n"), std::string::npos);
  EXPECT_NE(out.str().find("Batch size:  256 global\n             64 per device\n"), std::string::npos);
  EXPECT_NE(out.str().find("Devices:     ['/cpu:0']\n"), std::string::npos);
  EXPECT_NE(out.str().find("Variables:   replicated\nAllReduce:   None\n==========\n"), std::string::npos);

  out.str("");
  config.mode = RunMode::evaluation;
  log.header(config, Plan(), "1.2.3");
  EXPECT_NE(out.str().find("Mode:        evaluation\nSingleSess:  False\nBatch size:  50 global\n"), std::string::npos);
}

TEST(Log, StepLinesAndFooter) {
  std::ostringstream out, notices;
  Log log(out, notices);
  Throughput speed(32);
  speed.add(0.5);
  speed.add(0.25);
  log.columns("total_loss", false);
  log.step(1, speed, 8.27951, std::nullopt);
  log.columns("base_loss", true);
  log.step(40, speed, 0, Accuracy{0.5, 0.9994, 32});
  log.evaluation_step(10, 154.449);
  log.accuracy({0.75, 1, 128});
  log.total(6410.834);
  log.notice("slow disk");
  // Speeds 64 and 128: their mean time gives 85.3, their deviation is 32, the median of |s - 96| is 32.
  EXPECT_EQ(out.str(),
            "Step\tImg/sec\ttotal_loss\n"
            "1\timages/sec: 85.3 +/- 22.6 (jitter = 47.4)\t8.280\n"
            "Step\tImg/sec\tbase_loss\ttop_1_accuracy\ttop_5_accuracy\n"
            "40\timages/sec: 85.3 +/- 22.6 (jitter = 47.4)\t0.000\t0.500\t0.999\n"
            "10\t154.4 examples/sec\n"
            "Accuracy @ 1 = 0.7500 Accuracy @ 5 = 1.0000 [128 examples]\n"
            "----------------------------------------------------------------\n"
            "total images/sec: 6410.83\n"
            "----------------------------------------------------------------\n");
  EXPECT_EQ(notices.str(), "note: slow disk\n");
}

}  // namespace
}  // namespace dtrain::cnn_benchmarks
