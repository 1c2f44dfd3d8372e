// What was left out of a file, or read otherwise than it stands there, counted by kind.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain::data::coco {

struct Finding {
  std::string kind{};    // "boxes of negative size"
  std::string action{};  // "left out"
  uint64_t count = 0;
  std::string first{};   // "annotation 123"
  bool is_fault = true;  // else the file may well mean it
};

class Findings {
 public:
  // Counts one more of the kind; `first` is kept of the first.
  void add(std::string_view kind, std::string_view action, const std::string& first, bool is_fault = true);

  const std::vector<Finding>& all() const { return all_; }  // in the order in which they were met
  uint64_t count(std::string_view kind) const;
  // "boxes of negative size: 3 left out (first: annotation 7); ..."; empty where there are none.
  std::string summary() const;
  // Throws Error(Fault::data), "FILE: " and the summary of the faults, where there is one.
  void refuse(const std::string& where) const;

 private:
  std::vector<Finding> all_;
};

}  // namespace dtrain::data::coco
