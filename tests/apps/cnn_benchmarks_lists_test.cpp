// dtrain-cnn-benchmarks on lists of images: single-label as class folders, multi-label training, evaluation and resume.
#include <cmath>

#include <nlohmann/json.hpp>

#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/apps/dataset_fixture.h"

namespace dtrain {
namespace {

// 30 training images and 12 validation images of 3 classes.
class CnnBenchmarksLists : public CnnBenchmarks {
 protected:
  CnnBenchmarksLists() {
    std::string training = "file,label\r\n", validation;
    for (int i = 0; i < 30; ++i) training += place(concat("images/", i, ".jpg"), i);
    for (int i = 0; i < 12; ++i) validation += place(concat("images/v", i, ".jpg"), 100 + i);
    place_file(path("data") + "/train.csv", training);
    place_file(path("data") + "/val.csv", validation);
  }
  // Returns its row.
  std::string place(const std::string& name, int number) const {
    const auto key = static_cast<uint64_t>(number);
    place_file(path("data") + "/" + name,
               text_of(data::encode_jpeg(data::draw_image(number % 3, 3, 24, 5, key).view())));
    return concat(name, ",", kClasses[number % 3], "\n");
  }
  // Every third image has no label, every third one, every third two.
  void make_multi_label() const {
    std::string training, validation;
    for (int i = 0; i < 30; ++i) training += concat("images/", i, ".jpg", kLabels[i % 3], "\n");
    for (int i = 0; i < 12; ++i) validation += concat("images/v", i, ".jpg", kLabels[(100 + i) % 3], "\n");
    place_file(path("data") + "/train.csv", training);
    place_file(path("data") + "/val.csv", validation);
  }
  // 12 steps; 30 images are 7.5 steps.
  Arguments lists(const std::string& train_dir, const Arguments& more = {}) const {
    return Arguments{"--model=resnet20",
                     "--data_name=imagenet",
                     "--image_size=16",
                     "--data_dir=" + path("data"),
                     "--num_batches=12",
                     "--num_warmup_batches=0",
                     "--display_every=1",
                     "--init_learning_rate=.1",
                     "--optimizer=momentum",
                     "--num_intra_threads=1",
                     "--device=cpu",
                     "--save_model_steps=5",
                     "--train_dir=" + path(train_dir)} +
           more;
  }
  ProgramResult evaluate(const std::string& train_dir, const Arguments& more = {}) const {
    return train(Arguments{"--eval", "--batch_size=5", "--num_eval_epochs=1", "--device=cpu",
                           "--data_dir=" + path("data"), "--train_dir=" + path(train_dir)} +
                 more);
  }
  static std::string line_with(const std::string& text, const std::string& part) {
    const size_t begin = std::min(text.find(part), text.size());
    return text.substr(begin, text.find('\n', begin) - begin);
  }
  void expect_equal_weights(const std::string& a, const std::string& b) const {
    EXPECT_TRUE(read_file(checkpoint(a, 12) + "/model.safetensors") ==
                read_file(checkpoint(b, 12) + "/model.safetensors"))
        << a << " and " << b;
  }

  static constexpr const char* kClasses[] = {"ant", "bee", "cow"};
  static constexpr const char* kLabels[] = {"", ",bee", ",ant,cow"};
};

TEST_F(CnnBenchmarksLists, TrainsEvaluatesAndResumes) {
  const ProgramResult trained = train(lists("run", {"--batch_size=4", "--datasets_num_private_threads=1"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, path("data/train.csv") + ": 30 images in 3 classes")) << trained.err;
  EXPECT_TRUE(contains(trained.err, "header row in line 1: paths in column file, labels in label")) << trained.err;
  const ProgramResult evaluated = evaluate("run");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_TRUE(contains(evaluated.out, "[12 examples]")) << evaluated.out;
  EXPECT_TRUE(contains(read_file(checkpoint("run", 12) + "/model.safetensors"), R"([\"ant\",\"bee\",\"cow\"])"));
  ASSERT_EQ(train(lists("half", {"--batch_size=4", "--num_batches=5"})).code, 0);
  ASSERT_EQ(train(lists("half", {"--batch_size=4", "--datasets_num_private_threads=5"})).code, 0);
  expect_equal_weights("run", "half");
  // Another label is another data set.
  ASSERT_EQ(train(lists("changed", {"--batch_size=4", "--num_batches=5"})).code, 0);
  std::string text = contents(path("data") + "/train.csv");
  text.replace(text.find("1.jpg,bee"), 9, "1.jpg,cow");
  place_file(path("data") + "/train.csv", text);
  const ProgramResult changed = train(lists("changed", {"--batch_size=4"}));
  EXPECT_EQ(changed.code, 5) << changed.err;
  EXPECT_TRUE(contains(changed.err, "list of images: 30 images, 3 classes")) << changed.err;
}

TEST_F(CnnBenchmarksLists, TrainsAsClassFolders) {
  std::string rows;
  for (const char* name : kClasses)
    for (int i = 0; i < 8; ++i) {
      const std::string image = concat("train/", name, "/", i, ".jpg");
      place(image, 10 * i + name[0] % 3);
      rows += concat(image, ",", name, "\n");
    }
  place_file(path("data") + "/train.csv", rows);
  const ProgramResult folders = train(lists("folders", {"--batch_size=4"}));
  ASSERT_EQ(folders.code, 0) << folders.err;
  EXPECT_TRUE(contains(folders.err, "train.csv: is not read, because there are class folders; --data_dir="))
      << folders.err;
  ASSERT_EQ(train(lists("list", {"--batch_size=4", "--data_dir=" + path("data/train.csv")})).code, 0);
  EXPECT_TRUE(read_file(checkpoint("folders", 12) + "/state.safetensors") ==
              read_file(checkpoint("list", 12) + "/state.safetensors"));
}

TEST_F(CnnBenchmarksLists, MultiLabel) {
  make_multi_label();
  const ProgramResult trained =
      train(lists("run", {"--batch_size=4", "--eval_during_training_every_n_steps=6", "--metrics_file=" + path("m")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, path("data/train.csv") + ":3: several labels of an image: multi-label training"))
      << trained.err;
  EXPECT_TRUE(contains(trained.err, "train.csv: 30 images with 30 labels of 3 classes")) << trained.err;
  EXPECT_TRUE(contains(trained.out, "mAP = ")) << trained.out;
  EXPECT_TRUE(contains(read_file(path("m")), "\"eval_mean_average_precision\":")) << read_file(path("m"));
  // The checkpoint records the loss, and an evaluation takes it.
  const ProgramResult evaluated = evaluate("run");
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_TRUE(contains(evaluated.err, "--loss=bce")) << evaluated.err;
  const std::string line = line_with(evaluated.out, "mAP = ");
  EXPECT_TRUE(contains(line, "[12 examples]")) << evaluated.out;
  EXPECT_EQ(line_with(evaluate("run", {"--num_gpus=2", "--batch_size=1"}).out, "mAP = "), line);
  // Bit-equal after a resume, and on several ranks.
  ASSERT_EQ(train(lists("half", {"--batch_size=4", "--num_batches=5"})).code, 0);
  ASSERT_EQ(train(lists("half", {"--batch_size=4", "--datasets_num_private_threads=3"})).code, 0);
  expect_equal_weights("run", "half");
  for (const char* name : {"ranks", "ranks2"})
    ASSERT_EQ(train(lists(name, {"--batch_size=2", "--num_gpus=2"})).code, 0);
  expect_equal_weights("ranks", "ranks2");
}

TEST_F(CnnBenchmarksLists, LossIsPartOfTheRun) {
  // Of images with one label each, by the flag.
  const Arguments bce{"--batch_size=4", "--loss=bce"};
  ASSERT_EQ(train(lists("run", bce + Arguments{"--num_batches=5"})).code, 0);
  const ProgramResult other = train(lists("run", {"--batch_size=4"}));
  EXPECT_EQ(other.code, 5) << other.err;
  EXPECT_TRUE(contains(other.err, "loss: checkpoint bce, this run (not set)")) << other.err;
  EXPECT_EQ(train(lists("run", bce)).code, 0);
  const ProgramResult contradiction = evaluate("run", {"--loss=softmax"});
  EXPECT_EQ(contradiction.code, 1) << contradiction.err;
  EXPECT_TRUE(contains(contradiction.err, "was trained with bce")) << contradiction.err;
  make_multi_label();
  const ProgramResult one = train(lists("one", {"--batch_size=4", "--loss=softmax"}));
  EXPECT_EQ(one.code, 2) << one.err;
  EXPECT_TRUE(contains(one.err, "train.csv:3: 2 labels, expected one; train with --loss=bce")) << one.err;
  const ProgramResult smoothed = train(lists("smoothed", {"--batch_size=4", "--label_smoothing=0.1"}));
  EXPECT_EQ(smoothed.code, 1) << smoothed.err;
  EXPECT_TRUE(contains(smoothed.err, "--label_smoothing and --loss=bce")) << smoothed.err;
  const ProgramResult shards = train(real("shards") + Arguments{"--loss=bce"});
  EXPECT_EQ(shards.code, 1) << shards.err;
  EXPECT_TRUE(contains(shards.err, "--loss=bce takes class folders, archives and lists")) << shards.err;
}

TEST_F(CnnBenchmarksLists, ClassifyPrintsSigmoids) {
  make_multi_label();
  ASSERT_EQ(train(lists("run", {"--batch_size=4"})).code, 0);
  const ProgramResult classified = run_program(
      "dtrain-classify",
      {"--weights=" + path("run"), "--device=cpu", "--logits", "--json", "--top=3", path("data/images/0.jpg")});
  ASSERT_EQ(classified.code, 0) << classified.err;
  const auto row = nlohmann::json::parse(classified.out);
  for (const auto& guess : row["top"]) {
    const double logit = row["logits"][guess["class"].get<size_t>()];
    EXPECT_NEAR(guess["probability"].get<double>(), 1 / (1 + std::exp(-logit)), 1e-6) << classified.out;
  }
}

TEST_F(CnnBenchmarksLists, OneClassHasANotice) {
  place_file(path("data") + "/one.csv", "images/0.jpg,ant\nimages/1.jpg,ant\n");
  const ProgramResult trained =
      train(lists("run", {"--batch_size=2", "--num_batches=1", "--data_dir=" + path("data/one.csv")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, "one.csv: has one class; the model has two outputs")) << trained.err;
  const ProgramResult both =
      train(lists("both", {"--data_dir=" + path("data/one.csv"), "--eval_during_training_every_n_steps=5"}));
  EXPECT_EQ(both.code, 1) << both.err;
  EXPECT_TRUE(contains(both.err, "one.csv: a list of one split; an evaluation during training needs")) << both.err;
}

TEST_F(CnnBenchmarksLists, BadRowsAreNamedOrSkipped) {
  place_file(path("data") + "/train.csv", contents(path("data") + "/train.csv") + "images/none.jpg,ant\n");
  const ProgramResult failed = train(lists("run", {"--batch_size=4"}));
  EXPECT_EQ(failed.code, 2) << failed.err;
  EXPECT_TRUE(contains(failed.err, path("data/train.csv") + ":32: stat ")) << failed.err;
  const ProgramResult skipped = train(lists("run", {"--batch_size=4", "--on_bad_record=skip"}));
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_TRUE(contains(skipped.err, "1 bad records skipped")) << skipped.err;
}

}  // namespace
}  // namespace dtrain
