// dtrain-mask-rcnn convert and export: round trips of weights, equal detections, and errors.
#include <algorithm>

#include "apps/mask_rcnn/canvas.h"
#include "dtrain/io/array_file.h"
#include "dtrain/models/detection/detector.h"
#include "dtrain/models/detection/presets.h"
#include "dtrain/train/weights.h"
#include "tests/apps/program.h"
#include "tests/files.h"
#include "tests/npz_writer.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

using Arguments = std::vector<std::string>;

const Arguments kTinyDetector = {"--config",
                                 "BACKBONE.BOTTLENECK=False",
                                 "BACKBONE.RESNET_NUM_BLOCKS=[1,1,1,1]",
                                 "FPN.NUM_CHANNEL=16",
                                 "FPN.FRCNN_FC_HEAD_DIM=32",
                                 "MRCNN.HEAD_DIM=16",
                                 "PREPROC.TRAIN_SHORT_EDGE_SIZE=64",
                                 "PREPROC.TEST_SHORT_EDGE_SIZE=64",
                                 "PREPROC.MAX_SIZE=96"};

class MaskRcnnConvert : public testing::Test {
 protected:
  void SetUp() override {
    models::DetectorOptions options = models::detector_preset("torchvision").options;
    options.backbone.bottleneck = false;
    options.backbone.blocks = {1, 1, 1, 1};
    options.classes = 4;
    options.channels = options.mask.channels = 16;
    options.box.features = 32;
    const auto context = make_cpu_context();
    ParameterStore store(*context);
    const models::Detector detector(store, options);
    store.allocate(3);
    // Tensors without an equivalent in other programs, which are not read.
    for (const char* name :
         {"roi_heads.box_predictor.bbox_pred.weight", "roi_heads.mask_predictor.mask_fcn_logits.weight"}) {
      const auto values = store.find(name)->value.span<float>();
      std::ranges::fill(values.first(values.size() / 4), 0.0f);
    }
    save_weights(store, path("w.safetensors"));
    mask_rcnn::Canvas canvas(90, 64, {120, 120, 120});
    canvas.fill({20, 10, 30, 40}, {250, 20, 20});
    mask_rcnn::write_png(path("p.png"), canvas.image().view());
  }

  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }
  static ProgramResult run(const std::string& command, Arguments words) {
    words.insert(words.begin(), command);
    words.insert(words.end(), kTinyDetector.begin(), kTinyDetector.end());
    return run_program("dtrain-mask-rcnn", words);
  }
  ProgramResult convert(const std::string& from, const std::string& to, const Arguments& more = {}) const {
    Arguments words = {"--from=" + path(from), "--to=" + path(to)};
    words.insert(words.end(), more.begin(), more.end());
    return run("convert", words);
  }
  std::string found_with(const std::string& weights) const {
    const ProgramResult found = run("predict", {"--load=" + path(weights), "--device=cpu", "--json", path("p.png")});
    EXPECT_EQ(found.code, 0) << found.err;
    return found.out;
  }

  TempDirectory folder_;
};

TEST_F(MaskRcnnConvert, RoundTripIsBitIdentical) {
  const std::string expected = found_with("w.safetensors"), whole = read_file(path("w.safetensors"));
  EXPECT_NE(expected.find("\"segmentation\""), std::string::npos) << expected;
  struct Way {
    std::string file, option, program;
  };
  for (const Way& way : {Way{"tp.npz", "", "TensorPack"}, Way{"d2.safetensors", "--names=detectron2", "detectron2"},
                         Way{"d2.npz", "--names=detectron2", "detectron2"}}) {
    const ProgramResult there =
        convert("w.safetensors", way.file, way.option.empty() ? Arguments{} : Arguments{way.option});
    ASSERT_EQ(there.code, 0) << there.err;
    EXPECT_NE(there.out.find("torchvision's names"), std::string::npos) << there.out;
    EXPECT_NE(there.out.find(way.file + ", " + way.program + "'s names"), std::string::npos) << there.out;
    EXPECT_NE(there.out.find("Missing:     0\nLeft over:   0\nOther shape: 0\n"), std::string::npos) << there.out;
    const ProgramResult back = convert(way.file, "back.safetensors");
    ASSERT_EQ(back.code, 0) << back.err;
    EXPECT_TRUE(read_file(path("back.safetensors")) == whole) << way.file;
    EXPECT_EQ(found_with(way.file), expected);
  }
  ASSERT_EQ(convert("d2.npz", "again.npz").code, 0);
  EXPECT_TRUE(read_file(path("again.npz")) == read_file(path("tp.npz")));
}

TEST_F(MaskRcnnConvert, RecordsTheConventionsThatAreKnown) {
  const auto record_of = [&](const std::string& file) {
    return SafetensorsFile(path(file), Fault::checkpoint).metadata();
  };
  const ProgramResult unknown = convert("w.safetensors", "unknown.safetensors");
  EXPECT_NE(unknown.out.find("Recorded:    none; set the conventions with --preset"), std::string::npos) << unknown.out;
  const ProgramResult known = convert("w.safetensors", "known.safetensors", {"--preset=tensorpack"});
  ASSERT_EQ(known.code, 0) << known.err;
  EXPECT_NE(known.out.find("Recorded:    conventions of the preset tensorpack\n"), std::string::npos) << known.out;
  const auto record = record_of("known.safetensors");
  EXPECT_NE(record, record_of("unknown.safetensors"));
  ASSERT_EQ(convert("known.safetensors", "again.safetensors").code, 0);
  EXPECT_EQ(record_of("again.safetensors"), record);
  const ProgramResult other = convert("known.safetensors", "other.safetensors", {"--preset=aws"});
  EXPECT_EQ(other.code, 1) << other.out;
  EXPECT_NE(other.err.find("was trained with the preset tensorpack"), std::string::npos) << other.err;
}

TEST_F(MaskRcnnConvert, ReportsMismatchedTensors) {
  NpzWriter writer;
  writer.add("rpn/conv0/b", "(16,)", std::vector<float>(16, 1));
  writer.add("rpn/class/b", "(5,)", std::vector<float>(5));
  writer.add("maskrcnn/other", "(1,)", {1});
  write_file(path("part.npz"), writer.archive());
  const ProgramResult part = convert("part.npz", "part.safetensors");
  ASSERT_EQ(part.code, 0) << part.err;
  EXPECT_NE(part.out.find("Taken:       1 tensors\n"), std::string::npos) << part.out;
  EXPECT_NE(part.out.find("  backbone.body.conv1.weight (conv0/W)\n"), std::string::npos) << part.out;
  EXPECT_NE(part.out.find("Left over:   1, not part of the model\n  maskrcnn/other\n"), std::string::npos);
  EXPECT_NE(part.out.find("  rpn/class/b: file [5], model [3]\n"), std::string::npos) << part.out;
  const ArrayFile file(path("part.safetensors"));
  ASSERT_EQ(file.entries().size(), 1u);
  EXPECT_EQ(file.read(file.entries()[0]), std::vector<float>(16, 1));
}

TEST_F(MaskRcnnConvert, ReportsErrors) {
  const auto expect_line = [](const ProgramResult& result, int code, const std::string& part) {
    EXPECT_EQ(result.code, code) << result.err;
    EXPECT_NE(result.err.find(part), std::string::npos) << result.err;
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  };
  NpzWriter other;
  other.add("something/else", "(1,)", {1});
  write_file(path("other.npz"), other.archive());
  expect_line(convert("other.npz", "x.safetensors"), 5, "other.npz: does not fit the model: 0 tensors loaded");
  write_file(path("model.pkl"), "\x80\2cposix\nsystem\n.");
  expect_line(convert("model.pkl", "x.safetensors"), 5, "it names posix.system");
  write_file(path("cut.npz"), other.archive().substr(0, 60));
  expect_line(convert("cut.npz", "x.safetensors"), 5, "cut.npz: no ZIP archive, or a truncated one");
  expect_line(convert("missing", "x.safetensors"), 5, "missing");
  expect_line(convert("w.safetensors", "x.pth"), 1, "expected .safetensors or .npz");
  expect_line(convert("w.safetensors", "x.npz", {"--names=caffe2"}), 1, "--names");
  expect_line(run("convert", {"--from=x"}), 1, "expected --from and --to");
  expect_line(run("export", {"--onnx=x"}), 1, "expected --onnx and --load");
  expect_line(run("export", {"--onnx=x", "--preset=torchvision", "--load=" + path("other.npz")}), 5, "does not fit");
  expect_line(run("export", {"--onnx=x", "--load=x", "--height=0"}), 1, "--height");
  EXPECT_FALSE(std::filesystem::exists(path("x.safetensors")));
}

TEST_F(MaskRcnnConvert, DtrainConvertWritesTheSame) {
  const auto by_dtrain_convert = [&](const std::string& from, const std::string& to, const Arguments& more) {
    Arguments words = {path(from), path(to)};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), kTinyDetector.begin(), kTinyDetector.end());
    const ProgramResult done = run_program("dtrain-convert", words);
    EXPECT_EQ(done.code, 0) << done.err;
    return done.out;
  };
  ASSERT_EQ(convert("w.safetensors", "tp.npz").code, 0);
  ASSERT_EQ(convert("w.safetensors", "d2.safetensors", {"--names=detectron2"}).code, 0);
  const std::string listed = by_dtrain_convert("w.safetensors", "a.npz", {"--names=tensorpack"});
  EXPECT_NE(listed.find("conv0/W  F32 [7, 7, 3, 64]\n"), std::string::npos) << listed;
  EXPECT_TRUE(read_file(path("a.npz")) == read_file(path("tp.npz")));
  by_dtrain_convert("tp.npz", "b.safetensors", {"--names=detectron2", "--summary"});
  EXPECT_TRUE(read_file(path("b.safetensors")) == read_file(path("d2.safetensors")));
  by_dtrain_convert("b.safetensors", "c.safetensors", {"--model=mask_rcnn"});
  EXPECT_TRUE(read_file(path("c.safetensors")) == read_file(path("w.safetensors")));
  by_dtrain_convert("d2.safetensors", "m.onnx", {"--height=50", "--width=60"});  // recognised by its tensors
  ASSERT_EQ(
      run("export", {"--load=" + path("w.safetensors"), "--onnx=" + path("e.onnx"), "--height=50", "--width=60"}).code,
      0);
  EXPECT_TRUE(read_file(path("m.onnx")) == read_file(path("e.onnx")));
}

TEST_F(MaskRcnnConvert, ExportsTheSameModelFromAllForms) {
  ASSERT_EQ(convert("w.safetensors", "d2.safetensors", {"--names=detectron2"}).code, 0);
  std::string first;
  for (const char* weights : {"w.safetensors", "d2.safetensors"}) {
    const ProgramResult exported =
        run("export", {"--load=" + path(weights), "--onnx=" + path("m.onnx"), "--height=50", "--width=60"});
    ASSERT_EQ(exported.code, 0) << exported.err;
    EXPECT_NE(exported.out.find("4 classes, images of 50 x 60, resized to 64 x 76"), std::string::npos) << exported.out;
    const std::string bytes = read_file(path("m.onnx"));
    EXPECT_NE(bytes.find("NonMaxSuppression"), std::string::npos);
    EXPECT_TRUE(first.empty() || bytes == first);
    first = bytes;
  }
}

}  // namespace
}  // namespace dtrain
