// Run metrics: throughput statistics and the metrics file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dtrain {

class CsvColumns;

// Median; the mean of the middle two for an even count, as in numpy. Throws Error if `values` is empty.
double median(std::vector<double> values);

// Throughput of timed steps in samples per second, by tf_cnn_benchmarks' definitions.
class Throughput {
 public:
  // `batch`: samples per step. `ewma`: weight of the newest step in speed(), in (0, 1]; none: plain mean.
  explicit Throughput(double batch, std::optional<double> ewma = std::nullopt);
  void add(double seconds);
  size_t steps() const { return seconds_.size(); }

  // batch / mean step time; 0 before the first step, as the others.
  double speed() const;
  // Standard error: standard deviation of step speeds over the square root of their number.
  double uncertainty() const;
  // 1.4826 * median |speed - median speed| (MAD): robust estimate of the standard deviation.
  double jitter() const;

 private:
  std::vector<double> speeds() const;

  double batch_;
  std::optional<double> ewma_;
  std::vector<double> seconds_;
};

// JSON lines, one per displayed step: {"step":20,"loss":2.3,...}; non-finite numbers are null. A path ending in .csv
// gets comma-separated values with a header line: step,loss,... A field that appears later, e.g. of an evaluation, adds
// a column at the end: a regular file is rewritten with empty cells in earlier lines, a stream gets another header
// line.
class MetricsFile {
 public:
  using Fields = std::vector<std::pair<std::string, double>>;

  // Opens `path`, keeps lines of steps up to `last_step` and truncates the rest, including a partial last line; 0
  // starts afresh. A file with other lines is foreign: Error(Fault::data), unchanged. FIFOs and devices are streams; a
  // FIFO's reader may come later. Throws Error(Fault::config) for a directory, Error(Fault::resource) if the file
  // cannot be read or written.
  MetricsFile(std::string path, uint64_t last_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  // Appends a line, complete in the file on return. Throws Error(Fault::resource) if it cannot be written, or if a full
  // FIFO is not read for some seconds.
  void append(uint64_t step, const Fields& fields);

 private:
  void write_through(const std::string& line) const;
  void write(uint64_t step, const std::string& lines) const;
  void append_csv(uint64_t step, const Fields& fields);

  std::string path_;
  std::unique_ptr<CsvColumns> columns_{};  // of a .csv file
  int fd_ = -1;                            // of a stream; regular files are opened per line
};

}  // namespace dtrain
