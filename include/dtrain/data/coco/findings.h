// Findings: skipped or reinterpreted parts of a file, counted by kind.
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
  bool is_fault = true;  // false: may be intended
};

class Findings {
 public:
  // Counts a finding; keeps `first` of the first one of its kind.
  void add(std::string_view kind, std::string_view action, const std::string& first, bool is_fault = true);
  // Adds findings of another file.
  void merge(const Findings& others);

  const std::vector<Finding>& all() const { return all_; }  // in order of first occurrence
  uint64_t count(std::string_view kind) const;
  // "boxes of negative size: 3 left out (first: annotation 7); ..."; empty without findings.
  std::string summary() const;
  // Throws Error(Fault::data), "FILE: " and the summary of the faults, if there are any.
  void refuse(const std::string& where) const;

 private:
  std::vector<Finding> all_;
};

}  // namespace dtrain::data::coco
