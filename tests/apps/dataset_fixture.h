// Runs dtrain-data, and creates its input files.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "data/shards.h"
#include "data/synthetic.h"
#include "dtrain/data/jpeg.h"
#include "dtrain/io/record_file.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {

inline std::string contents(const std::filesystem::path& path) { return read_file(path.string()); }

// Creates parent folders.
inline void place_file(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  write_file(path.string(), bytes);
}

inline std::string text_of(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

inline std::string small_jpeg(int drawn_class = 0) {
  return text_of(data::encode_jpeg(data::draw_image(drawn_class, 10, 16, 1, 2).view()));
}

// A record in the ImageNet schema.
inline std::string image_record(const std::string& encoded, int64_t label = 1) {
  return data::image_example({.encoded = std::as_bytes(std::span(encoded)),
                              .format = "JPEG",
                              .width = 16,
                              .height = 16,
                              .label = label,
                              .synset = "n1",
                              .text = "",
                              .filename = "a.jpg"});
}

inline void write_records(const std::filesystem::path& path, const std::vector<std::string>& records,
                          Compression compression = Compression::none) {
  std::filesystem::create_directories(path.parent_path());
  RecordWriter writer(path.string(), compression);
  for (const std::string& record : records) writer.append(record);
  writer.finish();
}

// Sorted names in a folder, including hidden files.
inline std::vector<std::string> listing(const std::filesystem::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

// Working folder of dtrain-data, with its own cache.
class DatasetProgram : public testing::Test {
 protected:
  struct Outcome {
    int code = -1;  // 128 + signal if killed
    std::string out, err;
  };

  // Runs `dtrain-data <arguments>` in a shell in `root`, with a timeout of four minutes. `before` is prepended.
  Outcome run(const std::string& arguments, const std::string& before = "") const {
    const std::string program = (bin_dir() / "dtrain-data").string();
    const std::string command =
        concat("cd '", root.path().string(), "'; export XDG_CACHE_HOME=\"$PWD/cache\"; ", before,
               " timeout --foreground --preserve-status -s KILL 240 '", program, "' >.out 2>.err ", arguments);
    const int status = std::system(command.c_str());
    Outcome outcome{WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status), contents(root / ".out"),
                    contents(root / ".err")};
    EXPECT_EQ(outcome.err.find("internal error"), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find("Sanitizer"), std::string::npos) << outcome.err;
    return outcome;
  }

  // Expects exit code `code`, and `part` on stdout or stderr.
  void expect(const std::string& arguments, int code, const std::string& part, const std::string& before = "") const {
    const Outcome outcome = run(arguments, before);
    EXPECT_EQ(outcome.code, code) << arguments << "\n" << outcome.out << outcome.err;
    EXPECT_NE((outcome.out + outcome.err).find(part), std::string::npos) << arguments << ": no \"" << part << "\" in\n"
                                                                         << outcome.out << outcome.err;
  }

  TempDirectory root;
};

}  // namespace dtrain
