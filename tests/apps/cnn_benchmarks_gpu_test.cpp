// dtrain-cnn-benchmarks on a GPU: log, CUDA graphs, checkpoints, evaluation, and out of memory.
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>

#include "data/shards.h"
#include "dtrain/core/gpu_info.h"
#include "dtrain/data/png.h"
#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/jpegs.h"

namespace dtrain {
namespace {

class CnnBenchmarksOnGpu : public CnnBenchmarks {
 protected:
  void SetUp() override {
    std::string reason;
    if (cuda_device_count(&reason) == 0) GTEST_SKIP() << "SKIPPED: no GPU: " << reason;
  }
  // Small enough for an emulated GPU; later arguments take precedence.
  Arguments lenet(const std::string& name) const {
    return {"--device=gpu",         "--model=lenet",          "--data_name=imagenet",
            "--data_dir=" + data(), "--image_size=8",         "--num_classes=4",
            "--batch_size=2",       "--num_batches=7",        "--display_every=1",
            "--deterministic",      "--num_warmup_batches=1", "--init_learning_rate=.01",
            "--optimizer=adam",     "--tf_random_seed=3",     "--metrics_file=" + path(name + ".json")};
  }
  // A column of the steps in the metrics file.
  std::vector<double> column(const std::string& name, const std::string& key) const {
    std::vector<double> values;
    std::istringstream lines(read_file(path(name + ".json")));
    for (std::string line; std::getline(lines, line);)
      if (const auto row = nlohmann::json::parse(line); row.contains("loss")) values.push_back(row.at(key));
    return values;
  }
};

TEST_F(CnnBenchmarksOnGpu, CudaGraphStepsLogLikeEagerSteps) {
  const ProgramResult recorded = train(lenet("recorded"));
  ASSERT_EQ(recorded.code, 0) << recorded.err;
  ASSERT_EQ(train(lenet("eager") + Arguments{"--cuda_graph=false"}).code, 0);
  EXPECT_EQ(column("recorded", "loss").size(), 7u);
  for (const char* key : {"step", "loss", "total_loss", "learning_rate", "top_5_accuracy"})
    EXPECT_EQ(column("recorded", key), column("eager", key)) << key;
  EXPECT_GT(column("recorded", "total_loss")[0], column("recorded", "loss")[0]);
  const std::regex log(R"([\s\S]*Devices:     \['/gpu:0'\]\n[\s\S]*)"
                       R"(Running warm up\nDone warm up\nStep\tImg/sec\ttotal_loss\n(\d\timages/sec: .*\n){7}-+\n)"
                       R"(total images/sec: .*\n-+\nData wait:   .*\n)"
                       R"(Step parts:  forward .* ms, backward .* ms, update .* ms\n)"
                       R"(GPU time:    .* ms per step, .* ms between steps, for input\nModel FLOPs: .* TFLOP/s.*\n)"
                       R"(Bandwidth:   .* TB/s at least.*\nPeak memory: \d+ MiB, \d+ MiB on the GPU\n)");
  EXPECT_TRUE(std::regex_match(recorded.out, log)) << recorded.out;
}

TEST_F(CnnBenchmarksOnGpu, RunsNcclOnASingleGpu) {
  const ProgramResult alone = train(lenet("alone"));
  ASSERT_EQ(alone.code, 0) << alone.err;
  const ProgramResult nccl = train(lenet("nccl") + Arguments{"--all_reduce_spec=nccl"});
  if (contains(nccl.err, "built without NCCL")) GTEST_SKIP() << "SKIPPED: this build has no NCCL";
  ASSERT_EQ(nccl.code, 0) << nccl.err;
  EXPECT_FALSE(contains(alone.out, "NCCL")) << alone.out;
  EXPECT_TRUE(contains(nccl.out, "All-reduce:  ")) << nccl.out;
  EXPECT_TRUE(contains(nccl.out, "NCCL ")) << nccl.out;
  EXPECT_EQ(column("nccl", "loss"), column("alone", "loss"));
  const std::vector<double> waits = column("nccl", "wait_for_sums_ms");
  EXPECT_EQ(waits.size(), 7u);
  for (double wait : waits) EXPECT_GT(wait, 0);
}

TEST_F(CnnBenchmarksOnGpu, FollowsTheCpu) {
  ASSERT_EQ(train(lenet("gpu")).code, 0);
  ASSERT_EQ(train(lenet("cpu") + Arguments{"--device=cpu"}).code, 0);
  const std::vector<double> gpu = column("gpu", "loss"), cpu = column("cpu", "loss");
  ASSERT_EQ(gpu.size(), cpu.size());
  for (size_t i = 0; i < gpu.size(); ++i) EXPECT_NEAR(gpu[i], cpu[i], 1e-3 * cpu[i]) << "step " << i;
}

TEST_F(CnnBenchmarksOnGpu, ResumesBitIdenticalAndEvaluates) {
  const Arguments fp16{"--use_fp16", "--fp16_enable_auto_loss_scale", "--gradient_accumulation=2",
                       "--save_model_steps=4"};
  const ProgramResult unbroken = train(lenet("unbroken") + fp16 + Arguments{"--train_dir=" + path("unbroken")});
  ASSERT_EQ(unbroken.code, 0) << unbroken.err;
  const Arguments broken = lenet("broken") + fp16 + Arguments{"--train_dir=" + path("broken")};
  ASSERT_EQ(train(broken + Arguments{"--num_batches=3"}).code, 0);
  const ProgramResult resumed = train(broken);
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_TRUE(contains(resumed.out, "Restored step 4")) << resumed.out;
  for (const char* file : {"/model.safetensors", "/state.safetensors", "/state.json"})
    EXPECT_TRUE(read_file(checkpoint("unbroken", 8) + file) == read_file(checkpoint("broken", 8) + file)) << file;

  const Arguments evaluation{"--eval", "--train_dir=" + path("unbroken"), "--num_eval_batches=5"};
  const auto accuracy = [](const ProgramResult& run) {
    std::smatch match;
    return std::regex_search(run.out, match, std::regex("Accuracy @ 1 = .*examples")) ? match.str() : run.out + run.err;
  };
  const std::string on_gpu = accuracy(train(lenet("eval") + evaluation));
  EXPECT_TRUE(contains(on_gpu, "[10 examples")) << on_gpu;
  EXPECT_EQ(on_gpu, accuracy(train(lenet("eval") + evaluation + Arguments{"--device=cpu"})));
}

// JPEGs and a few PNGs. Of the 12 training JPEGs two are damaged: one is truncated, which its markers show; one has
// flipped bits, which only decoding shows.
std::string mixed_images(const std::filesystem::path& folder) {
  const auto make = [](uint64_t record) {
    const data::Image picture = smooth_picture(40, 30, static_cast<int>(record));
    std::vector<std::byte> bytes =
        record % 5 == 4 ? data::encode_png(picture.view()) : data::encode_jpeg(picture.view());
    if (record == 3) bytes.resize(bytes.size() - 30);
    if (record == 7) std::fill(bytes.end() - 120, bytes.end() - 60, std::byte{0x55});
    if (record == 11) bytes.resize(10);
    return data::image_example(
        {.encoded = bytes, .format = "JPEG", .width = 40, .height = 30, .label = static_cast<int64_t>(record % 3)});
  };
  data::write_shards({.directory = folder.string(), .threads = 1},
                     {{.name = "train", .count = 15, .make = make}, {.name = "validation", .count = 15, .make = make}});
  return folder.string();
}

// With torchvision's preset, where the host's transform is exact, GPU rounding differs little.
TEST_F(CnnBenchmarksOnGpu, DecodesJpegsToTheSamples) {
  const TempDirectory folder;
  const Arguments more{"--data_dir=" + mixed_images(folder / "data"),
                       "--preprocessing=torchvision",
                       "--image_size=10",
                       "--on_bad_record=skip",
                       "--gradient_accumulation=2",
                       "--num_batches=9"};
  const ProgramResult host = train(lenet("host") + more);
  ASSERT_EQ(host.code, 0) << host.err;
  const Arguments on_gpu = more + Arguments{"--jpeg_decoder=gpu"};
  const ProgramResult gpu = train(lenet("gpu") + on_gpu);
  if (contains(gpu.err, "nvJPEG") && contains(gpu.err, "cannot be loaded")) GTEST_SKIP() << "SKIPPED: " << gpu.err;
  ASSERT_EQ(gpu.code, 0) << gpu.err;
  const std::vector<double> expected = column("host", "loss"), found = column("gpu", "loss");
  ASSERT_EQ(found.size(), 9u);
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 0.02 * expected[i]) << "step " << i;
  EXPECT_TRUE(contains(host.err, "note: 1 bad records skipped")) << host.err;
  EXPECT_TRUE(contains(gpu.err, "note: 1 bad records skipped")) << gpu.err;
  // The truncated one, the PNGs, and, unless nvJPEG decodes it, the one with flipped bits.
  std::smatch match;
  ASSERT_TRUE(std::regex_search(gpu.err, match, std::regex("(\\d+) of 40 images were decoded by the host"))) << gpu.err;
  EXPECT_GE(std::stoi(match.str(1)), 8);
  EXPECT_LE(std::stoi(match.str(1)), 20);

  const Arguments eager{"--cuda_graph=false"};
  ASSERT_EQ(train(lenet("eager") + on_gpu + eager).code, 0);
  EXPECT_EQ(column("eager", "loss"), found);
}

TEST_F(CnnBenchmarksOnGpu, EvaluatesGpuDecodedImages) {
  const TempDirectory folder;
  const Arguments common{"--data_dir=" + mixed_images(folder / "data"), "--preprocessing=torchvision",
                         "--image_size=10", "--on_bad_record=skip"};
  ASSERT_EQ(train(lenet("run") + common + Arguments{"--train_dir=" + path("run")}).code, 0);
  const Arguments evaluation{"--eval", "--train_dir=" + path("run"), "--num_eval_epochs=1"};
  const ProgramResult host = train(lenet("eval") + common + evaluation);
  ASSERT_EQ(host.code, 0) << host.err;
  const ProgramResult gpu = train(lenet("eval") + common + evaluation + Arguments{"--jpeg_decoder=gpu"});
  if (contains(gpu.err, "nvJPEG") && contains(gpu.err, "cannot be loaded")) GTEST_SKIP() << "SKIPPED: " << gpu.err;
  for (const ProgramResult* run : {&host, &gpu})
    EXPECT_TRUE(contains(run->out, "[14 examples]")) << run->out << run->err;
}

TEST_F(CnnBenchmarksOnGpu, ReportsHostDecodedImages) {
  const Arguments gpu{"--jpeg_decoder=gpu"};
  const ProgramResult colours = train(lenet("a") + gpu + Arguments{"--distortions"});
  EXPECT_EQ(colours.code, 1);
  EXPECT_TRUE(contains(colours.err, "--distortions run on the host and need --jpeg_decoder=host\n")) << colours.err;
  const ProgramResult cifar = train(lenet("b") + gpu + Arguments{"--data_name=cifar10"});
  EXPECT_EQ(cifar.code, 1);
  EXPECT_TRUE(contains(cifar.err, "CIFAR-10's images are PNGs")) << cifar.err;
}

TEST_F(CnnBenchmarksOnGpu, InfersOnly) {
  const ProgramResult run = train({"--device=gpu", "--model=trivial", "--image_size=8", "--batch_size=2",
                                   "--num_batches=2", "--num_warmup_batches=0", "--forward_only", "--precision=bf16"});
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_TRUE(contains(run.out, "\ttop_1_accuracy\t")) << run.out;
}

TEST_F(CnnBenchmarksOnGpu, NamesABatchThatWouldFit) {
  const double share = 80.0 * (1 << 20) / static_cast<double>(gpu_info(0).memory);
  const Arguments arguments{"--device=gpu",
                            "--model=lenet",
                            "--image_size=28",
                            "--num_batches=1",
                            "--num_warmup_batches=4",
                            "--batch_size=300",
                            "--gpu_memory_frac_for_testing=" + std::to_string(share)};
  const ProgramResult refused = train(arguments);
  EXPECT_EQ(refused.code, 6) << refused.err;
  std::smatch match;
  ASSERT_TRUE(std::regex_search(refused.err, match,
                                std::regex("error: out of memory: .* MiB requested, .* MiB in use of "
                                           "a limit of 80 MiB, .*the largest in use: .* MiB.*"
                                           "--batch_size=(\\d+) would fit, about\n")))
      << refused.err;
  const int batch = std::stoi(match.str(1));
  EXPECT_GE(batch, 20);
  EXPECT_EQ(train(arguments + Arguments{"--batch_size=" + std::to_string(batch)}).code, 0) << batch;
}

}  // namespace
}  // namespace dtrain
