#include "apps/cli/log.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/messages.h"
#include "dtrain/core/error.h"

namespace dtrain::cli {

void Log::line(const std::string& text) {
  if (!speaks_ || !has_lines_) return;
  copy(text);
  print([&] { out_ << escaped(text) << std::endl; });
  if (out_) return;
  const int cause = errno;
  out_.clear();
  std::clearerr(stdout);  // the block may be below it
  if (!std::exchange(lost_, true))
    notice(fmt::format("the log: {}; the run goes on, lines may be missing", std::generic_category().message(cause)));
}

void Log::notice(const std::string& message) {
  if (!speaks_) return;
  const std::string text = translate_ ? translate_(message) : message;
  copy("note: " + text);
  print([&] { notices_ << "note: " << escaped(text) << std::endl; });
}

void Log::print(const std::function<void()>& write) {
  if (block_ != nullptr)
    block_->print_above(write);
  else
    write();
}

void Log::write_copy(const std::function<void(LineFile&)>& write) {
  if (!speaks_ || copy_ == nullptr) return;
  try {
    write(*copy_);
  } catch (const Error& error) {
    if (error.fault() != Fault::resource) throw;
    copy_ = nullptr;
    notice(fmt::format("{}; the run goes on without a copy of the log", error.what()));
  }
}

void Log::open_copy(const std::string& path) {
  write_copy([&](LineFile& file) { file.open(path); });
}

void Log::copy(const std::string& line) {
  write_copy([&](LineFile& file) { file.append(escaped(line)); });
}

}  // namespace dtrain::cli
