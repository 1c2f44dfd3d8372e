#include "apps/observers/aws_log.h"

#include <filesystem>
#include <system_error>

#include <sys/stat.h>

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "libdtrain/train/checkpoint_files.h"

namespace dtrain::observers {
namespace {

using Clock = std::chrono::steady_clock;

std::string time_of(const std::string& path) {
  struct stat info {};
  return stat(path.c_str(), &info) == 0 ? fmt::format("{:%Y-%m-%d %H:%M:%S}", fmt::gmtime(info.st_mtime)) : "unknown";
}

}  // namespace

AwsLog::AwsLog(cli::Log& log, AwsLogOptions options) : log_(log), options_(std::move(options)) { log_.copy_to(file_); }

AwsLog::~AwsLog() { log_.end_copy(); }

// The folder exists and is locked by this run once there are events.
void AwsLog::open() {
  if (std::exchange(opened_, true)) return;
  std::error_code ignored;  // writing reports the error
  if (options_.new_file) std::filesystem::remove(options_.log_file, ignored);
  log_.open_copy(options_.log_file);
}

void AwsLog::begun(const Begun& event) {
  open();
  began_ = Clock::now();
  log_.line(fmt::format("Horovod size: {}", options_.ranks));
  if (!event.restored_from.empty()) log_.line(fmt::format("Restored step {} from {}", event.step, event.restored_from));
  log_.line("  Step Epoch Speed   Loss  FinLoss   LR");
}

void AwsLog::stepped(const Stepped& event) {
  interval_.add(event);
  if (!event.shown) return;
  log_.line(fmt::format("{:6} {:5.1f} {:7.1f} {:6.3f} {:6.3f} {:7.5f}", event.step,
                        static_cast<double>(event.step) * options_.global_batch / options_.samples,
                        interval_.take() * options_.global_batch, event.loss, event.loss + event.l2_loss,
                        event.learning_rate));
}

void AwsLog::evaluating(const Evaluating& event) {
  if (opened_ || event.batches > 0) return;
  open();
  log_.line("Evaluating");
  log_.line(" step  epoch  top1    top5     loss   checkpoint_time");
}

void AwsLog::evaluated(const Evaluated& event) {
  const auto percent = [&](const char* name) { return 100 * find_metric(event.result.values, name).value_or(0); };
  log_.line(fmt::format("{:5}  {:5.1f}  {:5.3f}  {:6.2f}  {:6.2f}  UTC:{}", event.step,
                        static_cast<double>(event.step) * options_.trained_batch / options_.samples,
                        percent("top_1_accuracy"), percent("top_5_accuracy"),
                        find_metric(event.result.values, "loss").value_or(0),
                        time_of(checkpoint_path(options_.checkpoints, event.step))));
}

void AwsLog::ended(const Ended&) {
  log_.line(fmt::format("Finished in {}", std::chrono::duration<double>(Clock::now() - began_).count()));
}

}  // namespace dtrain::observers
