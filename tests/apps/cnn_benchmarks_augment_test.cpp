// Augmentation in dtrain-cnn-benchmarks: learning, exact resumption, refused combinations.
#include <nlohmann/json.hpp>

#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

// All augmentations together: the image size grows after the first epoch, 40 of the run's 96 images.
Arguments augmentation() {
  return {"--mixup_alpha=0.2",         "--cutmix_alpha=1",
          "--label_smoothing=0.1",     "--auto_augment=ra",
          "--ra_magnitude=5",          "--color_jitter=0.4,0.4,0.4,0.1",
          "--random_erase=0.5",        "--random_erase_value=random",
          "--repeated_augmentation=2", "--progressive_resizing=12:0,16:1"};
}

TEST_F(CnnBenchmarks, AugmentsAndResumesBitIdentical) {
  const ProgramResult unbroken = train(real("unbroken") + augmentation());
  ASSERT_EQ(unbroken.code, 0) << unbroken.err;
  const ProgramResult first = train(real("resumed") + augmentation() + Arguments{"--num_batches=12"});
  ASSERT_EQ(first.code, 0) << first.err;
  const ProgramResult second = train(real("resumed") + augmentation() +
                                     Arguments{"--datasets_num_private_threads=3", "--print_training_accuracy"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_TRUE(contains(second.out, "Restored step 14 ")) << second.out;
  for (const char* file : {"/model.safetensors", "/state.safetensors"})
    EXPECT_TRUE(read_file(checkpoint("unbroken", 24) + file) == read_file(checkpoint("resumed", 24) + file)) << file;

  const auto state = nlohmann::json::parse(read_file(checkpoint("unbroken", 24) + "/state.json"));
  EXPECT_EQ(state["identity"]["repeated augmentation"], "2");
  EXPECT_EQ(state["identity"]["image size"], "16");
  EXPECT_EQ(state["settings"]["auto augment"], "ra 2 x 5");
  EXPECT_EQ(state["settings"]["color jitter"], "0.4,0.4,0.4,0.1");
  EXPECT_EQ(state["settings"]["mixing"], "mixup 0.2, cutmix 1, probability 1, cutmix's share 0.5");
  EXPECT_EQ(state["settings"]["random erasing"], "0.5, area 0.02-0.33, aspect 0.3-3.3, random");
  EXPECT_EQ(state["settings"]["progressive resizing"], "12:0,16:1");

  // Evaluation does not augment images.
  const Arguments evaluate = real("unbroken") + Arguments{"--eval", "--num_eval_batches=2"};
  const ProgramResult plain = train(evaluate), same = train(evaluate + augmentation());
  ASSERT_EQ(plain.code, 0) << plain.err;
  ASSERT_EQ(same.code, 0) << same.err;
  const auto accuracy = [](const ProgramResult& run) {
    return run.out.substr(run.out.find("Accuracy @ 1")).substr(0, 60);
  };
  EXPECT_EQ(accuracy(plain), accuracy(same));

  EXPECT_EQ(train(real("unbroken") + Arguments{"--num_batches=30"}).code, 5) << "the stream is another one";
}

TEST_F(CnnBenchmarks, EachAugmentationChangesTheRun) {
  ASSERT_EQ(train(real("plain") + Arguments{"--num_batches=2"}).code, 0);
  const std::string plain = read_file(checkpoint("plain", 4) + "/model.safetensors");
  int number = 0;
  for (const char* flag : {"--mixup_alpha=1", "--cutmix_alpha=1", "--random_erase=1", "--auto_augment=ta_wide",
                           "--color_jitter=0.9,0,0,0", "--repeated_augmentation=4"}) {
    const std::string name = "run" + std::to_string(number++);
    const ProgramResult run = train(real(name) + Arguments{"--num_batches=2", flag});
    ASSERT_EQ(run.code, 0) << run.err;
    EXPECT_NE(read_file(checkpoint(name, 4) + "/model.safetensors"), plain) << flag;
  }
}

TEST_F(CnnBenchmarks, RefusesInvalidAugmentation) {
  const auto refuses = [&](const Arguments& arguments, const std::string& line) {
    const ProgramResult run = train(arguments);
    EXPECT_EQ(run.code, 1) << line;
    EXPECT_TRUE(contains(run.err, line)) << run.err;
  };
  refuses(synthetic() + Arguments{"--mixup_alpha=0.2"}, "flags of the group Augmentation need --data_dir");
  refuses(real("run") + Arguments{"--color_jitter=0.4,0.4"}, "--color_jitter=0.4,0.4: expected 4 numbers");
  refuses(real("run") + Arguments{"--color_jitter=1,1,1,0.6"}, "--color_jitter: a hue of 0.6");
  refuses(real("run") + Arguments{"--random_erase=2"}, "--random_erase");
  refuses(real("run") + Arguments{"--random_erase_area=0.4,0.2"}, "random erasing");
  refuses(real("run") + Arguments{"--ra_ops=3"}, "need --auto_augment=ra");
  refuses(real("run") + Arguments{"--progressive_resizing=12:1,16:2"}, "epochs that begin with 0 and rise");
  refuses(real("run") + Arguments{"--progressive_resizing=12"}, "expected SIZE:EPOCH, found '12'");
  refuses(real("run") + Arguments{"--progressive_resizing=12:0,24:1"},
          "ends with images of 24 pixels, --image_size is 16");
  refuses(real("run") + Arguments{"--model=lenet", "--progressive_resizing=28:0,16:1"},
          "--progressive_resizing: lenet has other weights for images of 28 pixels");
}

}  // namespace
}  // namespace dtrain
