// Metrics as comma-separated values (RFC 4180): a header line, then a line per step, evaluation or checkpoint.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain {

// The columns of a file: `step`, then one for each name, in the order in which the names came up.
class CsvColumns {
 public:
  using Fields = std::vector<std::pair<std::string, double>>;

  // Those of a header line; returns false where it is none.
  bool read(std::string_view header);
  // Returns the number of columns that are new.
  size_t add(const Fields& fields);
  void clear() { names_.clear(); }
  bool empty() const { return names_.empty(); }

  // Both without the end of the line.
  std::string header() const;
  // Numbers as JSON has them; nothing where there is none, or it is not finite. All fields have columns.
  std::string line(uint64_t step, const Fields& fields) const;

 private:
  std::vector<std::string> names_;
};

// The text of a file with another header, whose columns are `more` than before: lines end with as many empty ones.
std::string widened_csv(std::string_view text, const std::string& header, size_t more);

// Bytes of the header and the leading lines of `path` whose step is at most `last_step`, and its columns: 0, and none,
// where that is 0. Throws Error(Fault::data) where the file is another one, Error(Fault::resource) where it cannot be
// read.
uintmax_t csv_length_to_keep(const std::string& path, uint64_t last_step, CsvColumns& columns);

}  // namespace dtrain
