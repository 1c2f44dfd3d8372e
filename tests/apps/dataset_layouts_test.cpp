// Other data set layouts in dtrain-data and training: shards in folders per split or numbered from 1, MNIST's files.
#include <nlohmann/json.hpp>

#include "tests/apps/dataset_fixture.h"
#include "tests/apps/program.h"
#include "tests/data/idx_files.h"

namespace dtrain {
namespace {

class DatasetLayouts : public DatasetProgram {
 protected:
  ProgramResult train(const std::vector<std::string>& more) const {
    std::vector<std::string> arguments = {"--device=cpu", "--num_warmup_batches=0", "--batch_size=4", "--num_batches=2",
                                          "--num_intra_threads=1"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run_program("dtrain-cnn-benchmarks", arguments);
  }
};

TEST_F(DatasetLayouts, ShardsMayLieInFoldersAndCountFromOne) {
  for (const char* name : {"train/train-00001-of-00002", "train/train-00002-of-00002", "val/validation-1-of-1"})
    write_records(root / "set" / name, {image_record(small_jpeg()), image_record(small_jpeg(1))});
  expect("verify set", 0, "3 files, 6 records, 0 faults");
  expect("inspect set", 0, "{\"file\":\"set/val/validation-1-of-1\",\"records\":2");
  expect("index set", 0, "3 files, 6 records, 0 files with errors");
  expect("throughput set --seconds 0.1 --image_size 8", 0, "images/s");
  const std::string data = "--data_dir=" + (root / "set").string();
  const ProgramResult trained = train({data, "--model=lenet", "--image_size=8"});
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(train({data, "--model=trivial", "--image_size=8", "--eval_during_training_every_n_steps=1"}).code, 0);

  std::filesystem::remove(root / "set/train/train-00001-of-00002");
  const std::string gap = "set/train: train-00001-of-00002 is missing (1 of 2 shards found)";
  expect("verify set", 2, gap);
  expect("verify set", 2, "2 files, 4 records, 1 faults");
  const ProgramResult refused = train({data, "--model=lenet", "--image_size=8"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, gap)) << refused.err;
}

TEST_F(DatasetLayouts, MnistIsReadFromItsFiles) {
  write_mnist(root / "mnist", 40, 20);
  using nlohmann::json;
  const Outcome outcome = run("inspect mnist --threads 1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  std::istringstream lines(outcome.out);
  std::string images, labels;
  std::getline(lines, images);
  std::getline(lines, labels);
  EXPECT_EQ(json::parse(images), (json{{"file", "mnist/t10k-images-idx3-ubyte.gz"},
                                       {"items", 20},
                                       {"bytes", std::filesystem::file_size(root / "mnist/t10k-images-idx3-ubyte.gz")},
                                       {"compression", "gzip"},
                                       {"type", "uint8"},
                                       {"shape", {20, 28, 28}}}));
  EXPECT_EQ(json::parse(labels)["labels"]["7"], 2);
  expect("verify mnist", 0, "4 files, 60 records, 0 faults");

  const std::string data = "--data_dir=" + (root / "mnist").string();
  for (const char* model : {"lenet", "small_cnn"}) {
    const ProgramResult trained =
        train({data, concat("--model=", model), "--eval_during_training_every_n_steps=2", "--num_eval_batches=5"});
    EXPECT_EQ(trained.code, 0) << trained.err;
    EXPECT_TRUE(contains(trained.out, "Dataset:     mnist")) << trained.out;
  }
  EXPECT_EQ(train({"--data_name=fashion_mnist", "--model=lenet"}).code, 0) << "made-up images";

  place_file(root / "mnist/train-labels-idx1-ubyte", idx_labels(39));
  const std::string fault = "mnist/train-labels-idx1-ubyte: 39 labels by its header, expected 40";
  expect("verify mnist", 2, fault);
  const ProgramResult refused = train({data, "--model=lenet"});
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, fault)) << refused.err;
  place_file(root / "mnist/train-labels-idx1-ubyte", idx_labels(40).replace(20, 1, "\x0c"));
  expect("verify mnist", 2, "mnist/train-labels-idx1-ubyte: label 12 at byte 20, expected 0 to 9");
  place_file(root / "mnist/train-images-idx3-ubyte", idx_images(40).substr(0, 1000));
  expect("inspect mnist", 2, "mnist/train-images-idx3-ubyte: ends at byte 1000, expected 31376");
  expect("index mnist", 2, "mnist: no TFRecord files in it");
}

}  // namespace
}  // namespace dtrain
