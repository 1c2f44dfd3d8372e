#include "libdtrain/io/file_format.h"

#include <charconv>

#include "dtrain/version.h"

namespace dtrain {

void require_readable(const FileFormat& format, uint64_t number, const std::string& path, const std::string& writer) {
  if (format.reads(number)) return;
  const int oldest = format.oldest, newest = format.newest;
  throw FormatError(format.fault,
                    concat(path, ": ", format.what, " format ", number,
                           writer.empty() ? "" : concat(", written by dtrain ", writer), "; dtrain ", DTRAIN_VERSION,
                           " reads ", oldest, oldest == newest ? "" : concat(" to ", newest), ": ", format.way_out));
}

std::optional<uint64_t> format_number(std::string_view line, std::string_view prefix) {
  if (!line.starts_with(prefix)) return std::nullopt;
  line.remove_prefix(prefix.size());
  if (!line.starts_with(' ')) return std::nullopt;
  uint64_t number = 0;
  const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
  return error == std::errc() && end == line.data() + line.size() ? std::optional(number) : std::nullopt;
}

}  // namespace dtrain
