// dtrain-cnn-benchmarks on class folders and WebDataset archives: classes, notices, bit-equal training and resume,
// evaluation as of shards.
#include <algorithm>

#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/tar_files.h"

namespace dtrain {
namespace {

// 30 training images and 12 validation images of 3 classes.
class CnnBenchmarksFolders : public CnnBenchmarks {
 protected:
  CnnBenchmarksFolders() {
    for (int i = 0; i < 30; ++i) place(concat("train/", kClasses[i % 3], "/", i, ".jpg"), i);
    for (int i = 0; i < 12; ++i) place(concat("val/", kClasses[i % 3], "/", i, ".jpg"), 100 + i);
  }
  void place(const std::string& name, int number) const {
    const int drawn_class = number % 3;
    place_file(
        path("data") + "/" + name,
        text_of(data::encode_jpeg(data::draw_image(drawn_class, 3, 24, 5, static_cast<uint64_t>(number)).view())));
  }
  // 12 steps; 30 images are 7.5 steps.
  Arguments folders(const std::string& train_dir, const Arguments& more = {}) const {
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
    return train(
        Arguments{"--eval", "--batch_size=4", "--num_eval_epochs=1", "--device=cpu", "--train_dir=" + path(train_dir)} +
        more);
  }
  static std::string accuracy(const ProgramResult& run) {
    const size_t begin = std::min(run.out.find("Accuracy @ 1 = "), run.out.size());
    return run.out.substr(begin, run.out.find('\n', begin) - begin);
  }
  void expect_equal_weights(const std::string& a, const std::string& b) const {
    EXPECT_TRUE(read_file(checkpoint(a, 12) + "/model.safetensors") ==
                read_file(checkpoint(b, 12) + "/model.safetensors"))
        << a << " and " << b;
  }

  static constexpr const char* kClasses[] = {"ant", "bee", "cow"};
};

TEST_F(CnnBenchmarksFolders, TrainsAndEvaluates) {
  const ProgramResult trained = train(folders("run", {"--batch_size=4"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, path("data/train") + ": 30 images in 3 class folders")) << trained.err;
  const ProgramResult evaluated = evaluate("run", {"--data_dir=" + path("data")});
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  EXPECT_TRUE(contains(evaluated.out, "[12 examples]")) << evaluated.out;
  // The checkpoint records the classes.
  const std::string weights = read_file(checkpoint("run", 12) + "/model.safetensors");
  EXPECT_TRUE(contains(weights, R"([\"ant\",\"bee\",\"cow\"])"));
}

TEST_F(CnnBenchmarksFolders, TrainingIsBitEqualForThreadsRanksAndResume) {
  ASSERT_EQ(train(folders("one", {"--batch_size=4", "--datasets_num_private_threads=1"})).code, 0);
  ASSERT_EQ(
      train(folders("many", {"--batch_size=4", "--datasets_num_private_threads=5", "--datasets_use_caching"})).code, 0);
  expect_equal_weights("one", "many");
  ASSERT_EQ(train(folders("half", {"--batch_size=4", "--num_batches=5"})).code, 0);
  const ProgramResult resumed = train(folders("half", {"--batch_size=4"}));
  ASSERT_EQ(resumed.code, 0) << resumed.err;
  expect_equal_weights("one", "half");
  const ProgramResult ranks = train(folders("ranks", {"--batch_size=2", "--num_gpus=2"}));
  ASSERT_EQ(ranks.code, 0) << ranks.err;
  const ProgramResult again =
      train(folders("ranks2", {"--batch_size=2", "--num_gpus=2", "--datasets_num_private_threads=3"}));
  ASSERT_EQ(again.code, 0) << again.err;
  expect_equal_weights("ranks", "ranks2");
}

// WebDataset archives with the images of the folders in the same order.
TEST_F(CnnBenchmarksFolders, ArchivesTrainAsFolders) {
  for (const char* split : {"train", "val"}) {
    std::vector<std::pair<std::string, std::string>> members;
    for (int label = 0; label < 3; ++label) {
      const std::string folder = path("data") + "/" + split + "/" + kClasses[label];
      for (const std::string& name : listing(folder)) {
        const std::string key = std::to_string(label) + "/" + name.substr(0, name.size() - 4);
        members.emplace_back(key + ".jpg", contents(folder + "/" + name));
        members.emplace_back(key + ".cls", std::to_string(label));
      }
    }
    const ptrdiff_t half = static_cast<ptrdiff_t>(members.size()) / 4 * 2;
    place_file(path("tars") + "/" + split + "/0.tar", tar_of({members.begin(), members.begin() + half}));
    place_file(path("tars") + "/" + split + "/1.tar", tar_of({members.begin() + half, members.end()}));
  }
  const Arguments every{"--batch_size=4", "--num_classes=3"};
  ASSERT_EQ(train(folders("run", every)).code, 0);
  const ProgramResult trained = train(folders("tars_run", every + Arguments{"--data_dir=" + path("tars")}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  EXPECT_TRUE(contains(trained.err, path("tars/train") + ": 30 samples in 2 archives")) << trained.err;
  EXPECT_TRUE(read_file(checkpoint("run", 12) + "/state.safetensors") ==
              read_file(checkpoint("tars_run", 12) + "/state.safetensors"));
  const std::string pattern = path("tars") + "/val/{0..1}.tar";
  const ProgramResult of_pattern = evaluate("tars_run", {"--data_dir=" + pattern});
  EXPECT_EQ(of_pattern.code, 0) << of_pattern.err;
  const ProgramResult of_folder = evaluate("tars_run", {"--data_dir=" + path("tars")});
  EXPECT_TRUE(contains(of_folder.out, "[12 examples]")) << of_folder.out << of_folder.err;
  EXPECT_EQ(accuracy(of_folder), accuracy(of_pattern));
  const ProgramResult both =
      train(folders("both", every + Arguments{"--data_dir=" + pattern, "--eval_during_training_every_n_steps=5"}));
  EXPECT_EQ(both.code, 1) << both.err;
  EXPECT_TRUE(contains(both.err, "{0..1}.tar: archives of one split; an evaluation during training needs a folder"))
      << both.err;
}

TEST_F(CnnBenchmarksFolders, ChangedDataIsAnotherDataSet) {
  ASSERT_EQ(train(folders("run", {"--batch_size=4", "--num_batches=5"})).code, 0);
  place("train/ant/new.jpg", 1);
  const ProgramResult resumed = train(folders("run", {"--batch_size=4"}));
  EXPECT_EQ(resumed.code, 5) << resumed.err;
  EXPECT_TRUE(contains(resumed.err, "image folder: 31 images, 3 classes")) << resumed.err;
}

TEST_F(CnnBenchmarksFolders, OtherClassesAreRefused) {
  ASSERT_EQ(train(folders("run", {"--batch_size=4", "--num_batches=5"})).code, 0);
  for (const char* split : {"train", "val"})
    std::filesystem::rename(path("data") + "/" + split + "/bee", path("data") + "/" + split + "/wasp");
  const ProgramResult other = evaluate("run", {"--data_dir=" + path("data")});
  EXPECT_EQ(other.code, 2) << other.out;
  EXPECT_TRUE(contains(other.err, "data: class 1 is 'cow', and 'bee' in ")) << other.err;
  const ProgramResult meant = evaluate("run", {"--data_dir=" + path("data"), "--nocheck_class_names"});
  EXPECT_EQ(meant.code, 0) << meant.err;
  std::filesystem::rename(path("data/val/wasp"), path("data/val/bee"));
  const ProgramResult mixed = evaluate("run", {"--data_dir=" + path("data")});
  EXPECT_EQ(mixed.code, 2) << mixed.out;
  EXPECT_TRUE(contains(mixed.err, "val: class folders that " + path("data/train") + " does not have: bee"))
      << mixed.err;
  const ProgramResult few = train(folders("few", {"--num_classes=2"}));
  EXPECT_EQ(few.code, 2) << few.err;
  EXPECT_TRUE(contains(few.err, "3 class folders, labelled from 0, and label offset 0 do not fit a model of 2 classes"))
      << few.err;
}

TEST_F(CnnBenchmarksFolders, BadFilesAreNamedOrSkipped) {
  place_file(path("data") + "/train/ant/page.jpg", "<html>");
  const ProgramResult failed = train(folders("run", {"--batch_size=4"}));
  EXPECT_EQ(failed.code, 2) << failed.err;
  EXPECT_TRUE(contains(failed.err, "train/ant/page.jpg: image of 6 bytes is no JPEG")) << failed.err;
  const ProgramResult skipped = train(folders("run", {"--batch_size=4", "--on_bad_record=skip"}));
  EXPECT_EQ(skipped.code, 0) << skipped.err;
  EXPECT_TRUE(contains(skipped.err, "1 bad records skipped")) << skipped.err;
}

}  // namespace
}  // namespace dtrain
