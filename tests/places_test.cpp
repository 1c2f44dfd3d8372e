// Which files a new op, flag, observer, program, model or data set takes, as CONTRIBUTING.md says for an example of
// each.
#include <algorithm>
#include <fstream>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include "tests/testing.h"

namespace dtrain {
namespace {

namespace fs = std::filesystem;

// The lines of a section of CONTRIBUTING.md that match, each by its groups.
std::vector<std::smatch> rows_of(const std::string& section, const std::regex& row, std::vector<std::string>& lines) {
  std::ifstream in(source_dir() / "CONTRIBUTING.md");
  bool here = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) here = line == "## " + section;
    if (here) lines.push_back(line);
  }
  std::vector<std::smatch> rows;
  for (const std::string& line : lines)
    if (std::smatch match; std::regex_match(line, match, row)) rows.push_back(match);
  return rows;
}

// What stands between backquotes.
std::set<std::string> quoted(const std::string& text) {
  static const std::regex kQuoted("`([^`]+)`");
  std::set<std::string> words;
  for (std::sregex_iterator at(text.begin(), text.end(), kQuoted), end; at != end; ++at) words.insert((*at)[1]);
  return words;
}

bool names(const fs::path& path, const std::string& word) {
  const std::regex whole(R"(\b)" + word + R"(\b)");
  std::ifstream in(path);
  for (std::string line; std::getline(in, line);)
    if (line.find(word) != std::string::npos && std::regex_search(line, whole)) return true;
  return false;
}

// Layers, models, benchmarks and programs may use the op, but it does not need them.
TEST(Places, AnOpTakesTheFilesOfItsTable) {
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
  std::set<std::string> promised;
  std::vector<std::string> lines;
  for (const std::smatch& row : rows_of("One op", std::regex(R"(\| `([^`]+)` \|.*)"), lines)) promised.insert(row[1]);
  EXPECT_EQ(found, promised);
}

// A file or, with a slash at its end, a folder.
bool holds(const std::set<std::string>& places, const std::string& path) {
  return std::ranges::any_of(
      places, [&](const std::string& place) { return place.ends_with('/') ? path.starts_with(place) : path == place; });
}

TEST(Places, WhatElseIsAddedTakesTheFilesOfTheTable) {
  const fs::path root = source_dir();
  std::vector<std::string> lines;
  const auto rows = rows_of("What takes which files", std::regex(R"(\| an? .* \| `([^`]+)` \| (.*) \|)"), lines);
  ASSERT_EQ(rows.size(), 8u);
  for (const std::smatch& row : rows) {
    const std::set<std::string> promised = quoted(row[2]);
    std::set<std::string> missing = promised;
    for (const char* folder : {"libdtrain", "models", "data", "apps", "cmake"})
      for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
        const std::string path = fs::relative(entry.path(), root).string();
        if (!entry.is_regular_file() || !names(entry.path(), row[1])) continue;
        EXPECT_TRUE(holds(promised, path)) << path << " names " << row[1];
        std::erase_if(missing, [&](const std::string& place) { return holds({place}, path); });
      }
    EXPECT_TRUE(missing.empty()) << *missing.begin() << " does not name " << row[1];
  }
}

}  // namespace
}  // namespace dtrain
