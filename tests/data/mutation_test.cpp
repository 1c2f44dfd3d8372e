// Mutation tests: readers, parsers and decoders return a result or throw Error for any input. Mutations are seeded;
// DTRAIN_MUTATIONS sets their number per test, for long runs. Most useful with sanitizers.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>

#include "data/detection_masks.h"
#include "data/detection_record.h"
#include "data/shards.h"
#include "data/synthetic.h"
#include "dtrain/core/rng.h"
#include "dtrain/data/example.h"
#include "dtrain/data/image.h"
#include "dtrain/data/imagenet.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/data/png.h"
#include "dtrain/data/record_index.h"
#include "dtrain/io/record_file.h"
#include "dtrain/io/safetensors.h"
#include "libdtrain/io/crc32c.h"
#include "tests/checksums.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

uint64_t rounds(uint64_t otherwise) {
  const char* text = std::getenv("DTRAIN_MUTATIONS");
  return text ? std::strtoull(text, nullptr, 10) : otherwise;
}

std::string text_of(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::span<const std::byte> bytes_of(const std::string& text) { return std::as_bytes(std::span(text)); }

class Mutator {
 public:
  explicit Mutator(uint64_t round) : random_(20240131, round) {}

  uint32_t below(uint64_t bound) { return random_.below(static_cast<uint32_t>(std::max<uint64_t>(bound, 1))); }
  uint64_t number() {
    constexpr std::array<uint64_t, 14> kOdd = {0,          1,         0x7f,       0x80,       0xff,
                                               0x7fff,     0xffff,    0x7fffffff, 0x80000000, 0xffffffff,
                                               1ull << 40, INT64_MAX, 1ull << 63, UINT64_MAX};
    return below(3) ? kOdd[below(kOdd.size())] : random_.next64() >> below(64);
  }

  // One to four changes; may splice bytes of `other`.
  std::string mutate(std::string bytes, const std::string& other) {
    for (uint32_t changes = 1 + below(4); changes > 0; --changes) change(bytes, other);
    return bytes;
  }

 private:
  void change(std::string& bytes, const std::string& other) {
    const size_t at = below(bytes.size() + 1);
    const size_t length = std::min<size_t>(bytes.size() - at, 1 + below(below(8) ? 8 : bytes.size()));
    switch (below(7)) {
      case 0:
        if (length) bytes[at] = static_cast<char>(bytes[at] ^ 1 << below(8));
        break;
      case 1:
        for (size_t i = at; i < at + length; ++i) bytes[i] = static_cast<char>(random_.next());
        break;
      case 2: {
        uint64_t value = number();
        if (below(2)) value = __builtin_bswap64(value) >> 8 * below(8);
        std::memcpy(bytes.data() + at, &value, std::min<size_t>(length, 8));
        break;
      }
      case 3:
        bytes.erase(at, length);
        break;
      case 4:
        bytes.insert(at, bytes.substr(below(bytes.size() + 1), length));
        break;
      case 5:
        bytes.insert(at, other.substr(below(other.size()), length));
        break;
      default:
        if (below(4) == 0) bytes.resize(at);
    }
  }

  RandomStream random_;
};

// Calls read(mutated, mutator) for `count` mutations of the seeds. Each call must return or throw Error(Fault::data),
// and both must occur. `repair` fixes the checksums of every second mutation.
void check_mutations(const std::vector<std::string>& seeds, uint64_t count,
                     const std::function<void(const std::string&, Mutator&)>& read,
                     const std::function<void(std::string&)>& repair = nullptr) {
  uint64_t good = 0, bad = 0;
  for (uint64_t round = 0; round < count; ++round) {
    Mutator mutator(round);
    const std::string& seed = seeds[mutator.below(seeds.size())];
    std::string bytes = mutator.mutate(seed, seeds[mutator.below(seeds.size())]);
    if (repair && round % 2) repair(bytes);
    try {
      read(bytes, mutator);
      ++good;
    } catch (const Error& error) {
      ++bad;
      EXPECT_EQ(error.fault(), Fault::data) << "round " << round << ": " << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "round " << round << ": " << typeid(error).name() << ": " << error.what();
    }
  }
  EXPECT_GT(good, 0u);
  EXPECT_GT(bad, 0u);
}

std::string small_jpeg(const data::JpegEncodeOptions& options = {}) {
  return text_of(data::encode_jpeg(data::draw_image(3, 10, 40, 1, 2).view(), options));
}

std::string small_png() { return text_of(data::encode_png(data::draw_image(3, 10, 40, 1, 2).view())); }

std::string image_record(const std::string& encoded, int64_t label) {
  return data::image_example({.encoded = bytes_of(encoded),
                              .format = "JPEG",
                              .width = 24,
                              .height = 24,
                              .label = label,
                              .synset = "n1",
                              .text = "a",
                              .filename = "b"});
}

std::string record_file(const TempDirectory& directory, Compression compression) {
  const std::string path = (directory / "seed").string();
  RecordWriter writer(path, compression);
  for (const int64_t label : {1, 2, 3}) writer.append(image_record(small_jpeg(), label));
  writer.append(std::string_view());
  writer.finish();
  return read_file(path);
}

TEST(Mutation, RecordFiles) {
  const TempDirectory directory;
  const std::string path = (directory / "mutated").string();
  const std::vector<std::string> seeds = {record_file(directory, Compression::none),
                                          record_file(directory, Compression::gzip)};
  check_mutations(
      seeds, rounds(3000),
      [&](const std::string& bytes, Mutator&) {
        write_file(path, bytes);
        std::string first_error;
        RecordReader reader(path, 1 << 20);
        uint64_t calls = 0;
        for (;;) {
          ASSERT_LE(++calls, bytes.size() + 2) << "the reader does not come to an end";
          try {
            if (!reader.next()) break;
          } catch (const RecordError& error) {
            if (first_error.empty()) first_error = error.what();
          }
        }
        const RecordFile file(path, 1 << 20);
        const data::RecordIndex index = data::RecordIndex::scan(file);
        std::vector<std::byte> buffer;
        for (uint64_t i = 0; i < index.size(); ++i) file.read_record_at(index.offset(i), index.length(i), i, buffer);
        if (!first_error.empty()) throw Error(Fault::data, first_error);
      },
      repair_record_headers);
}

TEST(Mutation, StoredIndices) {
  const TempDirectory directory;
  const std::string path = (directory / "records").string();
  write_file(path, record_file(directory, Compression::none));
  const RecordFile file(path);
  data::RecordIndex::open(file, "");
  const std::string kept = (directory / ".records.dtidx").string();
  const auto repair = [](std::string& bytes) {
    if (bytes.size() < 4) return;
    const uint32_t crc = crc32c(bytes.data(), bytes.size() - 4);
    std::memcpy(bytes.data() + bytes.size() - 4, &crc, sizeof crc);
  };
  check_mutations(
      {read_file(kept)}, rounds(150),
      [&](const std::string& bytes, Mutator&) {
        write_file(kept, bytes);
        const data::RecordIndex index = data::RecordIndex::open(file, "");
        std::vector<std::byte> buffer;
        for (uint64_t i = 0; i < index.size(); ++i) file.read_record_at(index.offset(i), index.length(i), i, buffer);
      },
      repair);
}

TEST(Mutation, Examples) {
  data::ExampleWriter writer;
  const std::vector<float> floats = {0.25f, 0.5f};
  const std::vector<int64_t> numbers = {-1, 300, INT64_MAX};
  for (const char* side : {"xmin", "xmax", "ymin", "ymax"}) writer.floats(concat("image/object/bbox/", side), floats);
  writer.int64s("numbers", numbers);
  writer.bytes("image/encoded", "x");
  data::Example example;
  data::BoxReader boxes;
  check_mutations({writer.take(), image_record("abcdefgh", 7)}, rounds(20000), [&](const std::string& bytes, Mutator&) {
    example.parse(bytes_of(bytes));
    std::vector<std::string_view> texts;
    std::vector<float> values;
    std::vector<int64_t> integers;
    for (const auto& [key, feature] : example.entries()) {
      if (feature.kind == data::FeatureKind::bytes) feature.read(texts);
      if (feature.kind == data::FeatureKind::float32) feature.read(values);
      if (feature.kind == data::FeatureKind::int64) feature.read(integers);
    }
    boxes.read(example);
    example.int64("image/class/label");
    example.bytes("image/encoded");
  });
}

TEST(Mutation, DetectionRecords) {
  const std::vector<std::byte> png = data::encode_png(data::draw_image(2, 10, 16, 1, 2).view());
  const std::vector<data::coco::Annotation> objects = {
      {.area = 9, .box = {1, 2, 3, 4}, .segmentation = data::coco::Polygons{{1, 2, 4, 2, 4, 6, 1, 6}}},
      {.is_crowd = true, .area = 16, .box = {0, 0, 16, 1}, .segmentation = data::coco::Rle{16, 16, {0, 200, 56}}}};
  const std::vector<data::coco::Category> categories = {{7, "dog"}};
  const auto record = [&](bool masks) {
    return data::detection_example({.encoded = png,
                                    .format = "png",
                                    .filename = "a.png",
                                    .id = 5,
                                    .size = {16, 16},
                                    .objects = objects,
                                    .categories = categories},
                                   masks);
  };
  data::DetectionRecordReader reader;
  check_mutations({record(true), record(false)}, rounds(5000), [&](const std::string& bytes, Mutator&) {
    const data::DetectionRecord& image = reader.read(bytes_of(bytes));
    std::vector<int32_t> ends;
    for (data::DetectionRecord::Object object : image.objects)
      for (int form = 0; form < 2; ++form, object.segmentation = {})
        data::append_runs({.box = object.box, .segmentation = data::segmentation_of(object, image.height, image.width)},
                          {{image.height, image.width}, {20, 24}, true}, ends);
  });
}

TEST(Mutation, Safetensors) {
  const TempDirectory directory;
  const std::string path = (directory / "mutated").string();
  const std::vector<TensorSpec> tensors = {
      {"fc.weight", DType::f32, {3, 5}}, {"step", DType::i64, {}}, {"empty", DType::bf16, {0, 7}}};
  const std::string seed = safetensors_header(tensors, {{"format", "pt"}}) + std::string(68, '\1');
  check_mutations({seed}, rounds(6000), [&](const std::string& bytes, Mutator&) {
    write_file(path, bytes);
    const SafetensorsFile file(path);
    for (const SafetensorsEntry& entry : file.entries()) {
      std::vector<char> values(entry.bytes);
      file.read(entry, values.data());
    }
  });
}

// Opens and decodes as a worker does, all or a window, and reads every accessible byte.
class Decoding {
 public:
  void operator()(const std::string& bytes, Mutator& mutator) {
    // Exact size on the heap, for AddressSanitizer.
    const std::vector<std::byte> encoded(bytes_of(bytes).begin(), bytes_of(bytes).end());
    const data::ImageInfo info = decoder_.open(encoded);
    data::Window window{0, 0, info.width, info.height};
    if (mutator.below(2)) {
      window.x = static_cast<int>(mutator.below(static_cast<uint64_t>(info.width)));
      window.y = static_cast<int>(mutator.below(static_cast<uint64_t>(info.height)));
      window.width = 1 + static_cast<int>(mutator.below(static_cast<uint64_t>(info.width - window.x)));
      window.height = 1 + static_cast<int>(mutator.below(static_cast<uint64_t>(info.height - window.y)));
    }
    const data::ImageView view = decoder_.decode(window);
    ASSERT_EQ(view.width, window.width);
    ASSERT_EQ(view.height, window.height);
    for (int y = 0; y < view.height; ++y)
      for (int i = 0; i < 3 * view.width + data::ImageView::kRowPadding; ++i) sum_ += view.row(y)[i];
  }

 private:
  data::ImageDecoder decoder_{{.limits = {.max_pixels = 1 << 17, .max_scans = 20}}};
  uint64_t sum_ = 0;
};

TEST(Mutation, Jpegs) {
  const std::vector<std::string> seeds = {small_jpeg(), small_jpeg({.sampling = data::Sampling::s444}),
                                          small_jpeg({.progressive = true}), small_jpeg({.grey = true}),
                                          small_jpeg({.sampling = data::Sampling::s411, .progressive = true})};
  Decoding decode;
  check_mutations(seeds, rounds(6000), std::ref(decode));
}

TEST(Mutation, Pngs) {
  Decoding decode;
  check_mutations({small_png(), small_jpeg()}, rounds(6000), std::ref(decode), repair_png_chunks);
}

}  // namespace
}  // namespace dtrain
