// Metrics as CSV (RFC 4180): a header line, then a line per step, evaluation or checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

// Columns of a file: `step`, then the names in order of appearance.
class CsvColumns {
 public:
  using Fields = std::vector<std::pair<std::string, double>>;

  // Parses a header line; returns false if it is malformed.
  bool read(std::string_view header);
  // Returns the number of new columns.
  size_t add(const Fields& fields);
  void clear() { names_.clear(); }
  bool empty() const { return names_.empty(); }

  // Both without line terminator.
  std::string header() const;
  // Numbers as in JSON; empty for missing or non-finite values. All fields must have columns.
  std::string line(uint64_t step, const Fields& fields) const;

 private:
  std::vector<std::string> names_;
};

// Text of a file with a new header of `more` additional columns: appends empty cells to all lines.
std::string widened_csv(std::string_view text, const std::string& header, size_t more);

// Size of the header and leading lines of `path` with steps up to `last_step`, and its columns; 0 and none for
// last_step 0. Throws Error(Fault::data) for a foreign file, Error(Fault::resource) if it cannot be read.
uintmax_t csv_length_to_keep(const std::string& path, uint64_t last_step, CsvColumns& columns);

}  // namespace dtrain
