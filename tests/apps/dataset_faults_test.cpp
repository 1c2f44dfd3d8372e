// dtrain-data on bad files and records: one clear line, the documented exit code, never a crash or a hang.
#include <algorithm>
#include <limits>

#include "dtrain/data/example.h"
#include "dtrain/data/png.h"
#include "tests/apps/dataset_fixture.h"

namespace dtrain {
namespace {

class DatasetFaults : public DatasetProgram {
 protected:
  // All three reading commands refuse it with `part`; verify lists it among others.
  void expect_bad_file(const std::string& name, const std::string& part) const {
    for (const char* command : {"inspect ", "verify ", "index "}) {
      SCOPED_TRACE(command + name);
      const Outcome outcome = run(command + name);
      EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
      const std::string said = outcome.out + outcome.err;
      const size_t at = said.find(part);
      ASSERT_NE(at, std::string::npos) << "no \"" << part << "\" in\n" << said;
      EXPECT_EQ(said.find(part, at + 1), std::string::npos) << "said twice:\n" << said;
      EXPECT_NE(said.find(name), std::string::npos) << "the file is not named:\n" << said;
    }
  }

  // Damage in a body: `index` reads headers only.
  void expect_bad_body(const std::string& name, const std::string& part) const {
    for (const char* command : {"inspect ", "verify "}) expect(command + name, 2, name + ": record " + part);
    expect("index " + name, 0, "1 files, 3 records, 0 files with errors");
  }

  // A file of three records, of which verify lists only the second, `record`, as faulty.
  void expect_bad_record(const std::string& record, const std::string& part) const {
    write_records(root / "bad.tfrecord", {image_record(small_jpeg()), record, image_record(small_jpeg(1))});
    const uint64_t offset = image_record(small_jpeg()).size() + kRecordHeader + kRecordFooter;
    const Outcome outcome = run("verify bad.tfrecord");
    EXPECT_EQ(outcome.code, 2) << outcome.out << outcome.err;
    const std::string line = concat("bad.tfrecord: record 1 at byte ", offset, ": ");
    EXPECT_EQ(outcome.out.find(line), 0u) << outcome.out;
    EXPECT_NE(outcome.out.find(part), std::string::npos) << "no \"" << part << "\" in\n" << outcome.out;
    EXPECT_NE(outcome.out.find("\n1 files, 3 records, 1 faults"), std::string::npos) << outcome.out;
  }
};

TEST_F(DatasetFaults, FilesThatAreNoTfRecords) {
  place_file(root / "json.record", "{\"this\": \"is not\", \"a\": \"TFRecord\"}");
  place_file(root / "short.record", "1234567");
  place_file(root / "zero.record", std::string(4096, '\0'));
  place_file(root / "ones.record", std::string(4096, '\xff'));
  place_file(root / "jpeg.record", small_jpeg());
  std::filesystem::create_directory(root / "folder");
  expect_bad_file("json.record", "not a TFRecord");
  expect_bad_file("short.record", "7 of the 12 bytes of its header");
  expect_bad_file("zero.record", "not a TFRecord");
  expect_bad_file("ones.record", "not a TFRecord");
  expect_bad_file("jpeg.record", "not a TFRecord");
  expect_bad_file("missing.record", "No such file");
  ASSERT_EQ(run("--version", "mkfifo fifo.record;").code, 0);
  expect_bad_file("fifo.record", "is a FIFO");
  expect_bad_file("/dev/null", "device, expected a regular file");
  for (const char* command : {"inspect ", "verify ", "index "})
    expect(concat(command, "folder"), 2, "folder: no TFRecord files");
}

TEST_F(DatasetFaults, EmptyFilesAreValid) {
  place_file(root / "empty.record", "");
  expect("inspect empty.record", 0, "\"records\":0,\"bytes\":0,\"compression\":\"none\",\"keys\":{}");
  expect("verify empty.record", 0, "empty.record: holds no record\n1 files, 0 records, 0 faults");
  expect("index empty.record", 0, "1 files, 0 records, 0 files with errors");
}

TEST_F(DatasetFaults, OneBadFileDoesNotHideTheOthers) {
  place_file(root / "set/a.record", "this is not a TFRecord");
  write_records(root / "set/b.record", {image_record(small_jpeg())});
  place_file(root / "set/c.record", "this is neither");
  const Outcome inspected = run("inspect set --threads 1");
  EXPECT_EQ(inspected.code, 2);
  EXPECT_EQ(inspected.out.find("{\"file\":\"set/b.record\",\"records\":1,"), 0u) << inspected.out;
  for (const char* command : {"inspect set", "verify set", "index set"}) {
    expect(command, 2, "set/a.record: record 0 at byte 0: not a TFRecord");
    expect(command, 2, "set/c.record: record 0 at byte 0: not a TFRecord");
  }
  expect("verify set", 2, "3 files, 3 records, 2 faults");
  expect("index set", 2, "3 files, 1 records, 2 files with errors");
}

class FramedFaults : public DatasetFaults {
 protected:
  FramedFaults() {
    const std::string record = image_record(small_jpeg());
    write_records(root / "good.record", {record, record, record});
    good = contents(root / "good.record");
    second = good.size() / 3;
  }
  void write(const std::string& name, const std::string& bytes) { place_file(root / name, bytes); }
  std::string flipped(uint64_t at) const {
    std::string bytes = good;
    bytes[at] = static_cast<char>(bytes[at] ^ 4);
    return bytes;
  }
  std::string good;
  uint64_t second = 0;  // offset of the second record
};

TEST_F(FramedFaults, TruncationIsReportedWithItsOffset) {
  const std::string place = concat(": record 1 at byte ", second, ": truncated record, ");
  for (const uint64_t kept : {1, 5, 8, 11}) {
    write("cut.record", good.substr(0, second + kept));
    expect_bad_file("cut.record", concat(place, kept, " of the 12 bytes of its header"));
  }
  for (const uint64_t kept : {uint64_t{12}, uint64_t{100}, second - 4, second - 1}) {
    write("cut.record", good.substr(0, second + kept));
    expect_bad_file("cut.record", concat(place, second - 16, " bytes and their checksum announced, ", kept - 12));
  }
  expect("verify cut.record", 2, "1 files, 2 records, 1 faults");
}

TEST_F(FramedFaults, FlippedBitsAreReportedWithTheirOffset) {
  for (const uint64_t at : {0, 3, 7, 8, 11}) {
    write("flip.record", flipped(second + at));
    expect_bad_file("flip.record", concat("flip.record: record 1 at byte ", second, ": corrupted header"));
  }
  for (const uint64_t at : {uint64_t{12}, second / 2, second - 5, second - 4, second - 1}) {
    write("flip.record", flipped(second + at));
    expect_bad_body("flip.record", concat("1 at byte ", second, ": corrupted body"));
    expect("verify flip.record", 2, "1 files, 3 records, 1 faults");
  }
}

TEST_F(FramedFaults, GzipFilesAreReadAndTheirDamageReported) {
  write_records(root / "good.gz", {image_record(small_jpeg()), image_record(small_jpeg(1))}, Compression::gzip);
  expect("inspect good.gz", 0, "\"records\":2");
  expect("verify good.gz", 0, "1 files, 2 records, 0 faults");
  expect("index good.gz", 0, "1 files, 2 records, 0 files with errors");
  const std::string packed = contents(root / "good.gz");
  write("cut.gz", packed.substr(0, packed.size() / 2));
  expect_bad_file("cut.gz", "truncated gzip stream");
  std::string damaged = packed;
  damaged[packed.size() - 6] = static_cast<char>(~damaged[packed.size() - 6]);  // in the checksum at its end
  write("damaged.gz", damaged);
  expect_bad_file("damaged.gz", "corrupted gzip stream");
  std::vector<std::string> kept = listing(root / "cache/dtrain/unpacked");
  std::erase_if(kept, [](const std::string& name) { return name.find(".tfrecord") == std::string::npos; });
  EXPECT_EQ(kept.size(), 2u) << "the copy of good.gz and its index";

  place_file(root / "file", "");
  expect("index good.gz", 6, "good.gz: is gzip-compressed, and a plain copy cannot be kept (",
         "export XDG_CACHE_HOME=$PWD/file;");
  expect("index good.gz", 6, "unpack it: zcat 'good.gz' > FILE", "export XDG_CACHE_HOME=$PWD/file;");
}

TEST_F(DatasetFaults, MalformedRecords) {
  const std::string good = image_record(small_jpeg());
  const auto changed = [&](size_t at, char value) {
    std::string record = good;
    record.at(at) = value;
    return record;
  };
  expect_bad_record(good.substr(0, good.size() - 10), "malformed tf.Example: a field of ");
  expect_bad_record(changed(0, '\x0b'), "malformed tf.Example: wire type 3");
  expect_bad_record(changed(0, '\0'), "malformed tf.Example: field tag 0");
  expect_bad_record("\x0a\xff\xff\xff\xff\x07", "malformed tf.Example: a field of 2147483647 bytes");
  expect_bad_record("\x0a\xff\xff", "malformed tf.Example: a number runs past the end");
  expect_bad_record(std::string("\x12\x02\x0a\x00", 4), "is a tf.SequenceExample");
  expect_bad_record("", "feature image/class/label is missing");
}

// An Example with an image and the features of `add`.
std::string record_with(const std::function<void(data::ExampleWriter&)>& add) {
  data::ExampleWriter example;
  const std::string encoded = small_jpeg();
  add(example);
  example.bytes("image/encoded", encoded);
  return example.take();
}

TEST_F(DatasetFaults, LabelsAndBoxes) {
  const std::vector<int64_t> two = {1, 2};
  expect_bad_record(record_with([](auto&) {}), "feature image/class/label is missing");
  expect_bad_record(record_with([&](auto& e) { e.int64s("image/class/label", two); }), "holds 2 values, expected 1");
  expect_bad_record(record_with([&](auto& e) { e.int64s("image/class/label", {}); }), "holds 0 values, expected 1");
  expect_bad_record(record_with([&](auto& e) { e.bytes("image/class/label", "1"); }), "holds bytes values");
  const auto boxed = [](std::vector<float> xmin, float xmax) {
    return record_with([&](auto& e) {
      const std::vector<float> low = {0.1f}, high = {0.9f}, right = {xmax};
      e.int64("image/class/label", 1);
      e.floats("image/object/bbox/xmin", xmin);
      e.floats("image/object/bbox/xmax", right);
      e.floats("image/object/bbox/ymin", low);
      e.floats("image/object/bbox/ymax", high);
    });
  };
  expect_bad_record(boxed({0.5f}, 0.4f), "bounding box 0 is ymin 0.1 xmin 0.5");
  expect_bad_record(boxed({0.5f}, 1.5f), "xmax 1.5, expected 0 <= min <= max <= 1");
  expect_bad_record(boxed({std::numeric_limits<float>::quiet_NaN()}, 0.5f), "xmin nan");
  expect_bad_record(boxed({0.1f, 0.2f}, 0.5f), "differ in length: 2 xmin, 1 ymin");
  expect_bad_record(record_with([&](auto& e) { e.int64s("image/object/class/label", two); }), "2 labels in");
}

TEST_F(DatasetFaults, Images) {
  expect_bad_record(image_record(""), "image of 0 bytes is no JPEG, PNG, BMP, GIF, WebP or TIFF: it is empty");
  expect_bad_record(image_record("GIF89a...."), "GIF cannot be decoded");
  const std::string jpeg = small_jpeg();
  expect_bad_record(image_record(jpeg.substr(0, 20)), "JPEG cannot be decoded");
  std::string huge = jpeg;
  const size_t frame = jpeg.find("\xff\xc0");
  for (const size_t at : {5, 7}) huge.replace(frame + at, 2, "\xff\xdc");
  expect_bad_record(image_record(huge), "image header claims 65500x65500 pixels");
  const std::string png = text_of(data::encode_png(data::draw_image(2, 10, 16, 1, 2).view()));
  expect_bad_record(image_record(png.substr(0, png.size() / 2)), "PNG cannot be decoded");

  // A decodable image with lost pixels is damaged; a PNG named .JPEG is valid.
  write_records(root / "odd.record", {image_record(jpeg.substr(0, jpeg.size() - 40)), image_record(png)});
  expect("verify odd.record", 2, "odd.record: record 0 at byte 0: damaged image: ");
  expect("verify odd.record", 2, "1 files, 2 records, 0 faults, 1 damaged images");
}

TEST_F(DatasetFaults, RealData) {
  const auto records = test_data("tfrecord");
  if (!std::filesystem::exists(records)) GTEST_SKIP() << "SKIPPED: " << records;
  for (const char* name : {"tf_cnn_benchmarks", "object_detection"})
    std::filesystem::create_symlink(records / name, root / name);
  expect("verify tf_cnn_benchmarks", 0, "10 files, 640 records, 0 faults, 0 damaged images");
  expect("verify object_detection", 0, "1 files, 10 records, 0 faults, 0 damaged images");
  expect("inspect object_detection", 0, "\"image/object/class/label\":{\"type\":\"int64\",\"count\":10,\"values\":10}");
  const Outcome outcome = run("inspect tf_cnn_benchmarks");
  EXPECT_EQ(std::count(outcome.out.begin(), outcome.out.end(), '\n'), 10);
}

}  // namespace
}  // namespace dtrain
