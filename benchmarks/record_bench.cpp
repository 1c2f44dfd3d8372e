// TFRecord throughput of one core from the page cache: framing, both checksums and parsing of the Example, at the size
// of an ImageNet record.
#include <benchmark/benchmark.h>
#include <unistd.h>

#include <filesystem>
#include <vector>

#include "data/permutation.h"
#include "dtrain/core/rng.h"
#include "dtrain/data/example.h"
#include "dtrain/data/record_index.h"

namespace {

using namespace dtrain;
using namespace dtrain::data;

constexpr int kRecords = 1000;
constexpr size_t kImageBytes = 110'000;

// Shard of records with the full ImageNet schema and random image bytes.
class Shard {
 public:
  Shard() : path_(std::filesystem::temp_directory_path() / ("dtrain-record-bench-" + std::to_string(getpid()))) {
    RandomStream random(1, 0);
    RecordWriter writer(path_.string());
    for (int i = 0; i < kRecords; ++i) {
      std::string image(kImageBytes / 2 + random.below(kImageBytes), '\0');
      for (char& c : image) c = static_cast<char>(random.next());
      const std::vector<float> boxes{0.25f, 0.5f};
      const std::vector<int64_t> labels{1, 1};
      ExampleWriter example;
      for (const char* key : {"image/height", "image/width", "image/channels", "image/class/label"})
        example.int64(key, i);
      for (const char* key :
           {"image/colorspace", "image/class/synset", "image/class/text", "image/format", "image/filename"})
        example.bytes(key, "n01440764_10026.JPEG");
      for (const char* key : {"xmin", "ymin", "xmax", "ymax"})
        example.floats(std::string("image/object/bbox/") + key, boxes);
      example.int64s("image/object/bbox/label", labels);
      example.bytes("image/encoded", image);
      writer.append(example.take());
    }
    writer.finish();
  }
  ~Shard() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

const Shard& shard() {
  static const Shard made;
  return made;
}

// Accesses the features that training needs before the image is decoded.
size_t parse(Example& example, std::span<const std::byte> record) {
  example.parse(record);
  benchmark::DoNotOptimize(example.int64("image/class/label"));
  return example.bytes("image/encoded").size();
}

void read_sequentially(benchmark::State& state) {
  const std::string path = shard().path();
  Example example;
  size_t bytes = 0;
  for (auto _ : state) {
    RecordReader reader(path);
    while (const auto record = reader.next()) bytes += parse(example, record->bytes);
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(read_sequentially)->Unit(benchmark::kMillisecond);

// Shuffled reads by index, as in the loader.
void read_at_random(benchmark::State& state) {
  const RecordFile file(shard().path());
  const RecordIndex index = RecordIndex::scan(file);
  std::vector<std::byte> buffer;
  Example example;
  size_t bytes = 0;
  uint64_t epoch = 0;
  for (auto _ : state) {
    const Permutation order(index.size(), 1, epoch++);
    for (uint64_t i = 0; i < index.size(); ++i) {
      const uint64_t record = order(i);
      bytes += parse(example, file.read_record_at(index.offset(record), index.length(record), record, buffer));
    }
  }
  state.SetBytesProcessed(static_cast<int64_t>(bytes));
}
BENCHMARK(read_at_random)->Unit(benchmark::kMillisecond);

void parse_only(benchmark::State& state) {
  RecordReader reader(shard().path());
  const auto record = reader.next();
  Example example;
  for (auto _ : state) parse(example, record->bytes);
}
BENCHMARK(parse_only);

}  // namespace

BENCHMARK_MAIN();
