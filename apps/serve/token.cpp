#include "apps/serve/token.h"

#include <sys/stat.h>

#include <algorithm>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::serve {
namespace {

constexpr uint64_t kMostBytes = 4096;
constexpr size_t kFewestCharacters = 16;

std::string text_of(const std::string& path) {
  const InputFile file(path, Fault::config);
  struct stat status {};
  DT_CHECK(stat(path.c_str(), &status) == 0 && (status.st_mode & S_IROTH) == 0, "--token_file=", path,
           ": every user of this machine may read it; chmod o-r it");
  DT_CHECK(file.size() <= kMostBytes, "--token_file=", path, ": too large for a token");
  std::string text(file.size(), '\0');
  file.read(0, text.data(), text.size());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r')) text.pop_back();
  return text;
}

}  // namespace

std::string read_token(const std::string& file, const Environment& environment) {
  const std::string origin = file.empty() ? "DTRAIN_SERVE_TOKEN" : "--token_file=" + file;
  std::string token;
  if (!file.empty()) {
    token = text_of(file);
  } else {
    const char* value = environment("DTRAIN_SERVE_TOKEN");
    if (value == nullptr) return {};
    token = value;
  }
  DT_CHECK(token.size() >= kFewestCharacters && std::ranges::all_of(token, [](char c) { return c > ' ' && c < 127; }),
           origin, ": expected a token of at least ", kFewestCharacters, " printable characters without spaces");
  return token;
}

}  // namespace dtrain::serve
