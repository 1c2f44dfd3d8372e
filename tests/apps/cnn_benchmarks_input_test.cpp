// Input notices of dtrain-cnn-benchmarks: images of all ranks, in training and in evaluation.
#include "tests/apps/cnn_benchmarks_fixture.h"
#include "tests/apps/dataset_fixture.h"
#include "tests/data/exif.h"

namespace dtrain {
namespace {

// Each split has four images, including a truncated one and one with an EXIF orientation.
class CnnBenchmarksInput : public CnnBenchmarks {
 protected:
  CnnBenchmarksInput() {
    const std::vector<std::byte> jpeg = data::encode_jpeg(data::draw_image(1, 10, 120, 3, 4).view());
    const std::string sound = text_of(jpeg), cut = sound.substr(0, sound.size() * 9 / 10);
    for (const char* half : {"train", "validation"})
      write_records(path("data") + "/" + half + "-00000-of-00001",
                    {image_record(sound), image_record(cut), image_record(text_of(with_orientation(jpeg, 6))),
                     image_record(sound, 2)});
  }
  Arguments with_data(const Arguments& more) const {
    return Arguments{"--data_dir=" + path("data"), "--train_dir=" + path("run"), "--device=cpu",
                     "--num_intra_threads=1"} +
           more;
  }
};

constexpr char kCounts[] = "note: 0 bad records skipped, 1 damaged images used\n";
constexpr char kOriented[] = "1 of the 4 images read have an EXIF orientation other than 1: rotated";

TEST_F(CnnBenchmarksInput, IsReportedOfAllRanksAndEvaluations) {
  const ProgramResult trained =
      train(with_data({"--model=resnet20", "--data_name=imagenet", "--image_size=16", "--num_classes=4",
                       "--label_offset=1", "--resnet_padding=same_pool", "--exif_orientation=apply", "--num_gpus=2",
                       "--batch_size=2", "--num_batches=1", "--num_warmup_batches=0"}));
  ASSERT_EQ(trained.code, 0) << trained.err;
  for (const std::string& line :
       {std::string(kCounts), std::string(kOriented), path("data/train-00000-of-00001") + ": record 1 at byte "})
    EXPECT_TRUE(contains(trained.err, line)) << line << "\n" << trained.err;
  // The checkpoint records preprocessing, labels and model.
  const ProgramResult evaluated = train(with_data({"--eval", "--batch_size=4"}));
  ASSERT_EQ(evaluated.code, 0) << evaluated.err;
  for (const std::string& line :
       {std::string(kCounts), std::string(kOriented), path("data/validation-00000-of-00001") + ": record 1 at byte ",
        std::string("--resnet_padding=same_pool: taken")})
    EXPECT_TRUE(contains(evaluated.err, line)) << line << "\n" << evaluated.err;
  for (const auto& [flag, value] : {std::pair{"--label_offset=0", "1"}, {"--resnet_padding=same", "same_pool"}}) {
    const ProgramResult refused = train(with_data({"--eval", "--batch_size=4", flag}));
    EXPECT_EQ(refused.code, 1) << flag;
    EXPECT_TRUE(contains(refused.err, concat(" was trained with ", value, "; leave the flag out"))) << refused.err;
  }
}

}  // namespace
}  // namespace dtrain
