#include "libdtrain/io/remote/aws_config.h"

#include <filesystem>

#include "dtrain/core/error.h"
#include "dtrain/io/input_file.h"

namespace dtrain::remote {
namespace {

constexpr size_t kMostBytes = size_t{1} << 20;

std::string_view without_spaces(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r");
  return first == text.npos ? std::string_view() : text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

IniSections sections_of(const std::string& variable, const std::string& home, const char* file) {
  const std::string path = !variable.empty() ? variable : home.empty() ? "" : concat(home, "/.aws/", file);
  std::error_code unknown;
  // /dev/null stands for no file in scripts.
  if (path.empty() || !std::filesystem::is_regular_file(path, unknown)) return {};
  return parse_ini(read_text(path, kMostBytes, Fault::config), path);
}

}  // namespace

IniSections parse_ini(std::string_view text, const std::string& where) {
  IniSections sections;
  std::string section, parent;
  for (size_t number = 1; !text.empty(); ++number) {
    const size_t length = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, length), line = without_spaces(whole);
    text.remove_prefix(std::min(length + 1, text.size()));
    if (line.empty() || line[0] == '#' || line[0] == ';') continue;
    const auto fail = [&](const char* expected) {
      throw Error(Fault::config, concat(where, ": line ", number, ": expected ", expected));
    };
    if (line[0] == '[') {
      const size_t end = line.find(']');
      if (end == line.npos) fail("']' after the name of the section");
      section = without_spaces(line.substr(1, end - 1));
      sections[section];
      parent.clear();
      continue;
    }
    const size_t equal = line.find('=');
    if (equal == line.npos || equal == 0) fail("NAME = VALUE or [SECTION]");
    if (section.empty()) fail("a section, such as [default], before the first value");
    const std::string key(without_spaces(line.substr(0, equal))), value(without_spaces(line.substr(equal + 1)));
    const bool nested = (whole[0] == ' ' || whole[0] == '\t') && !parent.empty();
    sections[section][nested ? concat(parent, ".", key) : key] = value;
    if (!nested) parent = value.empty() ? key : "";
  }
  return sections;
}

AwsProfile AwsProfile::read(const Variables& variables) {
  AwsProfile profile;
  profile.name_ = value_of(variables, "AWS_PROFILE");
  const bool chosen = !profile.name_.empty();
  if (!chosen) profile.name_ = "default";
  const std::string home = value_of(variables, "HOME");
  const IniSections config = sections_of(value_of(variables, "AWS_CONFIG_FILE"), home, "config"),
                    secrets = sections_of(value_of(variables, "AWS_SHARED_CREDENTIALS_FILE"), home, "credentials");
  bool found = false;
  const auto add = [&](const IniSections& sections, const std::string& section) {
    const auto at = sections.find(section);
    if (at == sections.end()) return;
    found = true;
    for (const auto& [key, value] : at->second) profile.values_[key] = value;
  };
  add(config, profile.name_);  // only "default" may lack the word, but some files have it so
  add(config, "profile " + profile.name_);
  add(secrets, profile.name_);
  if (chosen && !found)
    throw Error(Fault::config, concat("AWS_PROFILE is ", profile.name_,
                                      ": there is no such profile in ~/.aws/credentials or ~/.aws/config"));
  return profile;
}

ConfiguredEndpoint configured_endpoint(const Variables& variables, const AwsProfile& profile,
                                       const std::string& service) {
  const std::string ignored = value_of(variables, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS");
  if (ignored == "true" || ignored == "True" || ignored == "TRUE") return {};
  for (const std::string& name : {"AWS_ENDPOINT_URL_" + service, std::string("AWS_ENDPOINT_URL")})
    if (const std::string url = value_of(variables, name.c_str()); !url.empty()) return {url, name};
  if (!profile.get("services").empty())
    throw Error(Fault::config,
                concat("profile ", profile.name(), " has services, which is not supported; set AWS_ENDPOINT_URL_",
                       service, " to the endpoint"));
  return {profile.get("endpoint_url"), concat("endpoint_url of profile ", profile.name())};
}

const std::string& AwsProfile::get(const std::string& key) const {
  static const std::string none;
  const auto found = values_.find(key);
  return found == values_.end() ? none : found->second;
}

}  // namespace dtrain::remote
