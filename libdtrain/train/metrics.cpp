#include "dtrain/train/metrics.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"
#include "libdtrain/io/json_limits.h"
#include "libdtrain/io/result_file.h"
#include "libdtrain/io/text_lines.h"
#include "libdtrain/train/metrics_csv.h"

namespace dtrain {
namespace {

[[noreturn]] void fail(const std::string& what, const std::string& path) {
  throw Error(Fault::resource, concat("metrics file ", path, ": cannot ", what, ": ", std::strerror(errno)));
}

constexpr std::string_view kRow = "{\"step\":";  // start of each line

bool begins_as_row(std::string_view text) { return text.starts_with(kRow) || kRow.starts_with(text); }

[[noreturn]] void refuse_line(const std::string& path, size_t number) {
  throw Error(Fault::data, concat("metrics file ", path, ", line ", number,
                                  ": not a JSON object with a \"step\"; move the file away to start a new one"));
}

uint64_t step_of(const std::string& line, const std::string& path, size_t number) {
  const auto row = parse_json_line<nlohmann::json>(line);
  if (!row.is_object() || !row.contains("step") || !row["step"].is_number_unsigned()) refuse_line(path, number);
  return row["step"].get<uint64_t>();
}

// Size of the leading lines with steps up to `last_step`.
uintmax_t length_to_keep(const std::string& path, uint64_t last_step) {
  uintmax_t kept = 0;
  bool keeps = true;
  const auto take = [&](const TextLine& line) {
    // The last line may be partial, e.g. after a full disk.
    if (line.is_long || (line.is_cut && !begins_as_row(line.text))) refuse_line(path, line.number);
    if (line.is_cut) return;
    keeps = step_of(line.text, path, line.number) <= last_step && keeps;
    if (keeps) kept += line.text.size() + 1;
  };
  for_each_line(path, take, Fault::resource);
  return kept;
}

}  // namespace

double median(std::vector<double> values) {
  DT_CHECK(!values.empty(), "median: there are no values");
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  if (values.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(values.begin(), middle)) / 2;
}

Throughput::Throughput(double batch, std::optional<double> ewma) : batch_(batch), ewma_(ewma) {
  DT_CHECK(!ewma || (*ewma > 0 && *ewma <= 1), "moving average of the speed: weight ", *ewma, " is not within (0, 1]");
}

void Throughput::add(double seconds) { seconds_.push_back(seconds); }

std::vector<double> Throughput::speeds() const {
  std::vector<double> result;
  result.reserve(seconds_.size());
  for (double seconds : seconds_) result.push_back(batch_ / seconds);
  return result;
}

double Throughput::speed() const {
  double sum = 0, weights = 0;
  for (double seconds : seconds_) {
    const double fade = ewma_ ? 1 - *ewma_ : 1;
    sum = sum * fade + seconds;
    weights = weights * fade + 1;
  }
  return seconds_.empty() ? 0 : batch_ * weights / sum;
}

double Throughput::uncertainty() const {
  if (seconds_.empty()) return 0;
  const std::vector<double> values = speeds();
  const double n = static_cast<double>(values.size());
  double mean = 0, squares = 0;
  for (double value : values) mean += value / n;
  for (double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / n) / std::sqrt(n);
}

double Throughput::jitter() const {
  if (seconds_.empty()) return 0;
  std::vector<double> deviations = speeds();
  const double middle = median(deviations);
  for (double& value : deviations) value = std::abs(value - middle);
  return 1.4826 * median(std::move(deviations));
}

MetricsFile::MetricsFile(std::string path, uint64_t last_step) : path_(std::move(path)) {
  if (path_.ends_with(".csv")) columns_ = std::make_unique<CsvColumns>();
  struct stat info;
  const bool exists = ::stat(path_.c_str(), &info) == 0;
  DT_CHECK(!exists || !S_ISDIR(info.st_mode), "metrics file ", path_, ": is a directory; choose another name");
  if (exists && !S_ISREG(info.st_mode)) {
    // O_RDWR on a FIFO: open() does not wait for a reader, and no SIGPIPE is raised when it leaves.
    fd_ = ::open(path_.c_str(), (S_ISFIFO(info.st_mode) ? O_RDWR : O_WRONLY) | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd_ < 0) fail("open it for writing", path_);
    return;
  }
  uintmax_t kept = 0;
  if (exists) kept = columns_ ? csv_length_to_keep(path_, last_step, *columns_) : length_to_keep(path_, last_step);
  if (!std::ofstream(path_, std::ios::binary | std::ios::app)) fail("open it for writing", path_);
  std::error_code error;
  std::filesystem::resize_file(path_, kept, error);
  if (error) throw Error(Fault::resource, concat("metrics file ", path_, ": cannot cut it: ", error.message()));
}

MetricsFile::~MetricsFile() {
  if (fd_ >= 0) ::close(fd_);
}

void MetricsFile::write_through(const std::string& line) const {
  constexpr int kPatience = 5000;  // milliseconds that a run may be blocked
  for (size_t done = 0; done < line.size();) {
    pollfd ready{fd_, POLLOUT, 0};
    if (::poll(&ready, 1, kPatience) == 0)
      throw Error(Fault::resource, concat("metrics file ", path_, ": the FIFO is full and has no reader"));
    const ssize_t written = ::write(fd_, line.data() + done, line.size() - done);
    if (written >= 0)
      done += static_cast<size_t>(written);
    else if (errno != EINTR && errno != EAGAIN)
      fail("write to it", path_);
  }
}

void MetricsFile::write(uint64_t step, const std::string& lines) const {
  if (fd_ >= 0) return write_through(lines);
  std::ofstream out(path_, std::ios::binary | std::ios::app);
  if (!out) fail("open it for writing", path_);
  out << lines;
  out.close();
  if (!out) fail(concat("write the line of step ", step), path_);
}

void MetricsFile::append_csv(uint64_t step, const Fields& fields) {
  const bool first = columns_->empty();
  const size_t more = columns_->add(fields);
  const std::string header = columns_->header(), line = columns_->line(step, fields) + "\n";
  if (more == 0) return write(step, line);
  if (first || fd_ >= 0) return write(step, header + "\n" + line);
  constexpr size_t kMostBytes = size_t{1} << 30;
  ResultFile wide(path_);  // at the target of a link
  wide.write(widened_csv(read_text(path_, kMostBytes), header, more) + line);
  wide.commit();
}

void MetricsFile::append(uint64_t step, const Fields& fields) {
  if (columns_) return append_csv(step, fields);
  nlohmann::ordered_json row;
  row["step"] = step;
  for (const auto& [name, value] : fields) row[name] = value;
  write(step, row.dump() + "\n");
}

}  // namespace dtrain
