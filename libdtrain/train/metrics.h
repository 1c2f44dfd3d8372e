// What a run tells about itself: speed statistics, and the metrics file.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "libdtrain/train/metrics_csv.h"

namespace dtrain {

// The middle one of `values`; where their number is even, the mean of the middle two, as in numpy. Throws Error where
// there is none.
double median(std::vector<double> values);

// Speed of timed steps in samples per second, by tf_cnn_benchmarks' definitions.
class Throughput {
 public:
  // `batch`: samples per step. `ewma`: the weight of the newest step in speed(), in (0, 1]; none: all weigh the same.
  explicit Throughput(double batch, std::optional<double> ewma = std::nullopt);
  void add(double seconds);
  size_t steps() const { return seconds_.size(); }

  // batch / mean step time; 0 before the first step, as are the others.
  double speed() const;
  // Standard deviation of the steps' speeds over the square root of their number.
  double uncertainty() const;
  // 1.4826 * median |speed - median speed|: the standard deviation, if normal, untouched by outliers.
  double jitter() const;

 private:
  std::vector<double> speeds() const;

  double batch_;
  std::optional<double> ewma_;
  std::vector<double> seconds_;
};

// A file of JSON lines, one per displayed step: {"step":20,"loss":2.3,...}. A number that is not finite is null. Where
// the path ends in .csv the same numbers are comma-separated values below a header line: step,loss,... A figure that
// comes up later, such as an evaluation's, makes a column at the end: a regular file is then replaced by one whose
// earlier lines have an empty field for it, and what is written through gets another header line.
class MetricsFile {
 public:
  using Fields = std::vector<std::pair<std::string, double>>;

  // Opens `path`, keeps what it holds of steps up to `last_step` and cuts the rest off, a cut last line included: 0
  // starts afresh. A file with any other line is somebody else's: Error(Fault::data), and it stays as it is. A FIFO or
  // a device is written through; a FIFO's reader may come later. Throws Error(Fault::config) on a directory and
  // Error(Fault::resource) where the file cannot be read or written.
  MetricsFile(std::string path, uint64_t last_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;
  // Appends a line, complete in the file on return. Throws Error(Fault::resource) where it cannot be written, or where
  // nobody has taken anything out of a full FIFO for some seconds.
  void append(uint64_t step, const Fields& fields);

 private:
  void write_through(const std::string& line) const;
  void write(uint64_t step, const std::string& lines) const;
  void append_csv(uint64_t step, const Fields& fields);

  std::string path_;
  std::optional<CsvColumns> columns_{};  // of a file of comma-separated values
  int fd_ = -1;                          // of what is no regular file, which is opened for each line
};

}  // namespace dtrain
