// Which files an op takes, as CONTRIBUTING.md says of its example.
#include <fstream>
#include <regex>
#include <set>
#include <string>

#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// The files of the table in the section "One op".
std::set<std::string> promised_files() {
  std::ifstream in(source_dir() / "CONTRIBUTING.md");
  static const std::regex kRow(R"(\| `([^`]+)` \|.*)");
  std::set<std::string> files;
  bool here = false;
  std::smatch row;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) here = line == "## One op";
    if (here && std::regex_match(line, row, kRow)) files.insert(row[1]);
  }
  return files;
}

bool names(const fs::path& path, const std::string& word) {
  const std::regex whole(R"(\b)" + word + R"(\b)");
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.find(word) != std::string::npos && std::regex_search(line, whole)) return true;
  return false;
}

// Layers, models, benchmarks and programs may use the op, but it does not need them.
TEST(OneOp, TakesTheFilesOfTheTable) {
  const fs::path root = source_dir();
  std::set<std::string> found;
  for (const char* folder : {"libdtrain", "cmake", "tests/ops", "tests/parity", "scripts"})
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const std::string path = fs::relative(entry.path(), root).string();
      if (entry.is_regular_file() && !path.starts_with("libdtrain/layers.") && !path.ends_with(".pyc") &&
          names(entry.path(), "average_pool"))
        found.insert(path);
    }
  for (const char* file : {"CMakeLists.txt", "models/CMakeLists.txt", "tests/CMakeLists.txt"})
    if (names(root / file, "average_pool")) found.insert(file);
  EXPECT_EQ(found, promised_files());
}

}  // namespace
}  // namespace dtrain
