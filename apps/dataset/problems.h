// Problems found by `dtrain-data check`, and their report formats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::dataset {

struct Problem {
  std::string kind{};  // "damaged image"
  std::string file{};  // file, record of a file, or member of an archive
  std::string reason{};
  uint64_t count = 1;                  // problems of this kind; the reason is the first one's
  bool is_fault = true;                // else a remark, without exit code 2
  std::vector<std::byte> thumbnail{};  // thumbnail (JPEG) of some damaged images
};

// Contents of one file.
struct FileProblems {
  uint64_t images = 0, records = 0;
  std::vector<Problem> problems{};

  void add(const std::string& kind, const std::string& file, std::string reason, bool is_fault = true);
};

struct CheckResult {
  uint64_t files = 0, images = 0, records = 0;
  struct Kind {
    std::string name{};
    bool is_fault = true;
    uint64_t count = 0;
    std::vector<Problem> examples{};  // the first ones
  };
  std::vector<Kind> kinds{};  // faults first, by descending count

  uint64_t faults() const;
};

// `examples`: maximum per kind.
CheckResult summarize(const std::vector<FileProblems>& findings, size_t files, size_t examples);

std::string as_text(const CheckResult& result);
// {"files", "images", "records", "faults", "kinds": [{"kind", "fault", "count", "examples": [{"file", "reason"}]}]}
std::string as_json(const CheckResult& result);
// Self-contained HTML report with thumbnails of damaged images.
std::string as_html(const CheckResult& result, const std::string& title);

}  // namespace dtrain::dataset
