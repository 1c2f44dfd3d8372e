// Parses flag values.
#include "apps/cli/values.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include <pwd.h>
#include <unistd.h>

#include <fmt/format.h>

#include "dtrain/core/error.h"
#include "dtrain/io/remote_path.h"

namespace dtrain::cli {
namespace {

std::string lower(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return text;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

bool is_url(const std::string& text) {
  const size_t colon = text.find("://");
  if (colon == std::string::npos || colon == 0) return false;
  return std::isalpha(static_cast<unsigned char>(text[0])) != 0 &&
         std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon),
                     [](unsigned char c) { return std::isalnum(c) != 0 || c == '+' || c == '-' || c == '.'; });
}

std::string home_folder() {
  const char* home = std::getenv("HOME");
  if (home != nullptr && *home != '\0') return home;
  const passwd* user = getpwuid(getuid());
  DT_CHECK(user != nullptr && user->pw_dir != nullptr && *user->pw_dir != '\0',
           "cannot expand ~: HOME is not set, and the system knows no home folder");
  return user->pw_dir;
}

}  // namespace

bool parse_bool(const std::string& text) {
  const std::string value = lower(text);
  if (value == "true" || value == "t" || value == "1") return true;
  if (value == "false" || value == "f" || value == "0") return false;
  throw Error(fmt::format("expected true or false, found '{}'", text));
}

template <class T>
T parse_number(const std::string& text, Range<T> range) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const char* kind = std::is_integral_v<T> ? "an integer" : "a number";
  DT_CHECK(error == std::errc() && end == text.data() + text.size() && std::isfinite(static_cast<double>(value)),
           "expected ", kind, ", found '", text, "'");
  DT_CHECK(value >= range.low, "expected ", kind, fmt::format(" of at least {}, found {}", range.low, text));
  DT_CHECK(value <= range.high, "expected ", kind, fmt::format(" of at most {}, found {}", range.high, text));
  return value;
}

template int64_t parse_number<int64_t>(const std::string&, Range<int64_t>);
template double parse_number<double>(const std::string&, Range<double>);

std::string parse_choice(const std::string& text, const std::vector<std::string>& choices) {
  const auto found = std::ranges::find(choices, lower(text), lower);
  DT_CHECK(found != choices.end(), "expected one of ", fmt::format("{}", fmt::join(choices, "|")), ", found '", text,
           "'");
  return *found;
}

std::string parse_path(const std::string& text, bool may_be_remote) {
  if (may_be_remote && is_remote(text)) return text;
  DT_CHECK(!is_url(text), "expected a local path, found the URL ", text,
           ": mount the bucket or share and give its folder, or give a local path and copy from or to the URL");
  if (!text.starts_with('~')) return text;
  const size_t slash = std::min(text.find('/'), text.size());
  const std::string name = text.substr(1, slash - 1);
  if (name.empty()) return home_folder() + text.substr(slash);
  const passwd* const user = getpwnam(name.c_str());
  if (user != nullptr && user->pw_dir != nullptr) return user->pw_dir + text.substr(slash);
  DT_CHECK(slash == text.size(), "~", name, "/ is the home folder of a user, but there is no user ", name,
           "; give the whole path, or ./", text, " for a folder of that name");
  return text;
}

std::vector<std::string> split_list(const std::string& text) {
  std::vector<std::string> parts = split(text, ',');
  std::erase(parts, "");
  return parts;
}

std::vector<std::string> split_words(const std::string& text) {
  std::vector<std::string> words = split(text, ' ');
  std::erase(words, "");
  return words;
}

std::string with_paths(const std::string& type, const std::string& text, bool may_be_remote) {
  if (type == "string") return parse_path(text, may_be_remote);
  if (type != "list") return text;
  std::vector<std::string> parts = split_list(text);
  for (std::string& part : parts) part = parse_path(part, may_be_remote);
  return fmt::format("{}", fmt::join(parts, ","));
}

std::string normalised(const std::string& type, const std::string& text) {
  if (type == "bool") return parse_bool(text) ? "true" : "false";
  if (type == "int") return fmt::format("{}", parse_number<int64_t>(text));
  if (type == "float") return fmt::format("{}", parse_number<double>(text));
  return type.find('|') == type.npos ? text : parse_choice(text, split(type, '|'));
}

}  // namespace dtrain::cli
