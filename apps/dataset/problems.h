// What `dtrain-data check` finds, and the forms in which it is shown.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace dtrain::dataset {

struct Problem {
  std::string kind{};  // "damaged image"
  std::string file{};  // or the record of a file, or the member of an archive
  std::string reason{};
  uint64_t count = 1;                  // of this kind, of which the reason names the first
  bool is_fault = true;                // else worth knowing, and no reason for exit code 2
  std::vector<std::byte> thumbnail{};  // a JPEG, of some damaged images
};

// What one file holds.
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
  std::vector<Kind> kinds{};  // faults first, the most frequent ones first

  uint64_t faults() const;
};

// `examples`: most of a kind.
CheckResult summarize(const std::vector<FileProblems>& findings, size_t files, size_t examples);

std::string as_text(const CheckResult& result);
// {"files", "images", "records", "faults", "kinds": [{"kind", "fault", "count", "examples": [{"file", "reason"}]}]}
std::string as_json(const CheckResult& result);
// A page that needs no other file, with thumbnails of damaged images.
std::string as_html(const CheckResult& result, const std::string& title);

}  // namespace dtrain::dataset
