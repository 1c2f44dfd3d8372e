#include "data/foreign_file.h"

#include <algorithm>
#include <array>
#include <cctype>

namespace dtrain::data {
namespace {

struct Beginning {
  std::string_view bytes;
  const char* kind;
};

constexpr std::array kBeginnings = {
    Beginning{"version https://git-lfs", "a Git LFS pointer; fetch the file itself by git lfs pull"},
    Beginning{"PK\x03\x04", "a zip archive; unpack it with unzip first"},
    Beginning{"\x1f\x8b", "packed by gzip; unpack it with gunzip first"},
    Beginning{"BZh", "packed by bzip2; unpack it with bunzip2 first"},
    Beginning{"\xfd"
              "7zXZ",
              "packed by xz; unpack it with unxz first"},
    Beginning{"\x28\xb5\x2f\xfd", "packed by zstd; unpack it with unzstd first"},
    Beginning{"Rar!", "a RAR archive; unpack it first"},
    Beginning{"\x89HDF\r\n", "an HDF5 file"},
    Beginning{"\x80\x02", "a Python pickle"},
    Beginning{"\x80\x03", "a Python pickle"},
    Beginning{"\x80\x04", "a Python pickle"},
    Beginning{"\x80\x05", "a Python pickle"},
    Beginning{"\xff\xfe", "text in UTF-16; save it as UTF-8"},
    Beginning{"\xfe\xff", "text in UTF-16; save it as UTF-8"},
};

bool is_html(std::string_view head) {
  if (head.starts_with("\xef\xbb\xbf")) head.remove_prefix(3);
  head.remove_prefix(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
  std::string lower(head.substr(0, 16));
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return lower.starts_with("<!doctype") || lower.starts_with("<html") || lower.starts_with("<head");
}

}  // namespace

std::string foreign_kind(std::string_view head) {
  if (is_html(head)) return "an HTML page, as a failed download leaves it; download the file again";
  for (const Beginning& beginning : kBeginnings)
    if (head.starts_with(beginning.bytes)) return beginning.kind;
  return "";
}

}  // namespace dtrain::data
