#include "apps/cli/log.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include <fmt/format.h>

namespace dtrain::cli {

void Log::line(const std::string& text) {
  if (!speaks_) return;
  out_ << text << std::endl;
  if (out_) return;
  const int cause = errno;
  out_.clear();
  if (!std::exchange(lost_, true))
    notice(fmt::format("the log: {}; the run goes on, lines may be missing", std::generic_category().message(cause)));
}

void Log::notice(const std::string& text) {
  if (speaks_) notices_ << "note: " << text << std::endl;
}

}  // namespace dtrain::cli
