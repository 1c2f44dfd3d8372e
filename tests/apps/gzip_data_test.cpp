// gzip data: cache contents, and stop requests while unpacking.
#include <chrono>
#include <csignal>
#include <thread>

#include "dtrain/io/record_file.h"
#include "libdtrain/io/digest.h"
#include "libdtrain/io/file_lock.h"
#include "libdtrain/io/gzip.h"
#include "tests/apps/cnn_benchmarks_fixture.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

class GzipData : public CnnBenchmarks {
 protected:
  ProgramOptions options() const { return {.variables = {{"XDG_CACHE_HOME", path("cache")}}}; }
  std::string unpacked() const { return path("cache") + "/dtrain/unpacked"; }
  ProgramResult index(const std::string& name) const {
    return Program("dtrain-data", {"index", path(name)}, options()).finish();
  }
  int copies() const {
    int count = 0;
    std::error_code none;
    for (const auto& entry : fs::directory_iterator(unpacked(), none))
      count += entry.path().filename().string().find(".tfrecord") != std::string::npos &&
               entry.path().filename().string()[0] != '.';
    return count;
  }

  // The generated data with gzip shards.
  Arguments run() const {
    fs::create_directory(path("packed"));
    for (const auto& entry : fs::directory_iterator(data())) {
      const std::string name = entry.path().filename();
      if (name.starts_with('.')) continue;
      RecordReader reader(entry.path());
      RecordWriter writer(path("packed/" + name), Compression::gzip);
      while (const auto record = reader.next()) writer.append(record->bytes);
      writer.finish();
    }
    return real("run") + Arguments{"--data_dir=" + path("packed"), "--num_batches=2"};
  }
  // The lock held while unpacking a file.
  std::string lock_of(const std::string& file) const {
    const std::string bytes = read_file(file);
    Digest digest;
    digest.add(bytes.data(), bytes.size());
    return unpacked() + "/" + digest.hex() + ".lock";
  }
};

TEST_F(GzipData, StopRequestEndsUnpacking) {
  const Arguments arguments = run();
  fs::create_directories(unpacked());
  {
    const FileLock other(lock_of(path("packed/train-00001-of-00002")));
    Program waiting(kProgram, arguments, options());
    for (int i = 0; i < 60'000 && copies() < 1; ++i)  // of the other shard
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    waiting.signal(SIGTERM);
    const ProgramResult stopped = waiting.finish();
    EXPECT_EQ(stopped.code, 75) << stopped.err;
    EXPECT_TRUE(contains(stopped.err, "note: stopped on request while opening the data\n")) << stopped.err;
  }
  const ProgramResult trained = Program(kProgram, arguments, options()).finish();
  EXPECT_EQ(trained.code, 0) << trained.err;
  EXPECT_EQ(copies(), 2);
}

TEST_F(GzipData, TouchingAFileAddsNoCopy) {
  run();
  for (int i = 0; i < 3; ++i) {
    for (const char* name : {"train-00000-of-00002", "train-00001-of-00002"})
      fs::last_write_time(path("packed/" + std::string(name)), fs::file_time_type::clock::now());
    EXPECT_EQ(index("packed").code, 0);
  }
  EXPECT_EQ(copies(), 3) << "one of each shard, that of the validation split among them";
}

TEST_F(GzipData, ZerosLeaveNothingInTheCache) {
  AtomicFile file(path("zeros.tfrecord"));
  GzipWriter zeros(file);
  const std::string piece(1 << 20, '\0');
  for (int i = 0; i < 200; ++i) zeros.write(piece.data(), piece.size());
  zeros.finish();
  file.commit();
  const ProgramResult refused = index("zeros.tfrecord");
  EXPECT_EQ(refused.code, 2);
  EXPECT_TRUE(contains(refused.err, "not a TFRecord (its first 12 bytes fail their checksum)")) << refused.err;
  EXPECT_EQ(copies(), 0);
}

TEST_F(GzipData, TheFlagLimitsAllCopiesTogether) {
  const Arguments arguments = run();
  fs::create_directories(unpacked());
  write_file(unpacked() + "/other.tfrecord", "");
  fs::resize_file(unpacked() + "/other.tfrecord", uint64_t{2} << 30);  // sparse
  const ProgramResult refused = Program(kProgram, arguments + Arguments{"--max_unpacked_gb=2"}, options()).finish();
  EXPECT_EQ(refused.code, 6);
  EXPECT_TRUE(contains(refused.err, "would take more than the 2147483648 bytes they may")) << refused.err;
  EXPECT_EQ(copies(), 1);
  EXPECT_EQ(Program(kProgram, arguments + Arguments{"--max_unpacked_gb=3"}, options()).finish().code, 0);
}

}  // namespace
}  // namespace dtrain
