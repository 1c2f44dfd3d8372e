#include "apps/cli/log.h"

#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "apps/cli/messages.h"

namespace dtrain::cli {

void Log::line(const std::string& text) {
  if (!speaks_) return;
  out_ << escaped(text) << std::endl;
  if (out_) return;
  const int cause = errno;
  out_.clear();
  std::clearerr(stdout);  // which may be below it
  if (!std::exchange(lost_, true))
    notice(fmt::format("the log: {}; the run goes on, lines may be missing", std::generic_category().message(cause)));
}

void Log::notice(const std::string& text) {
  if (speaks_) notices_ << "note: " << escaped(text) << std::endl;
}

}  // namespace dtrain::cli
