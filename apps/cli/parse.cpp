// Parses the command line and environment variables into flag values.
#include <fmt/format.h>

#include "apps/cli/config_file.h"
#include "apps/cli/flags.h"
#include "apps/cli/values.h"
#include "dtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::cli {

void FlagSet::set(Flag& flag, const std::string& text) {
  try {
    const std::string value =
        flag.fate_ == Flag::Fate::supported ? with_paths(flag.type_, text, flag.may_be_remote_) : text;
    flag.set_(value);
    flag.text_ = normalised(flag.type_, value);
  } catch (const Error& error) {
    throw Error(fmt::format("--{}: {}", flag.name_, error.what()));
  }
}

void FlagSet::set(const Spelling& spelling, const std::string& text, const std::string& origin) {
  Flag& flag = *spelling.flag;
  flag.given_ = true;
  flag.origin_ = origin;
  if (spelling.former == nullptr) return set(flag, text);
  const std::string& former = spelling.former->name;
  try {
    const auto& translate = spelling.former->translate;
    set(flag, translate ? translate(text).value_or(flag.initial_) : text);
  } catch (const Error& error) {
    throw Error(fmt::format("--{}={}: {}", former, text, error.what()));
  }
  notices_.push_back(fmt::format("--{} has been renamed: taken as --{}={}", former, flag.name_, flag.text_));
}

std::optional<std::string> FlagSet::take_variable(const std::string& variable, const std::string& text) {
  for (Flag& flag : flags_) {
    for (const Flag::Source& source : flag.variables_) {
      if (source.name != variable) continue;
      try {
        const std::optional<std::string> value = source.translate(text);
        if (!value) return "";
        if (flag.given_) return fmt::format("{}: ignored, because --{}={} is given", variable, flag.name_, flag.text_);
        set(flag, *value);
        flag.origin_ = variable;
      } catch (const Error& error) {
        throw Error(fmt::format("{}={}: {}", variable, text, error.what()));
      }
      return fmt::format("{}: taken as --{}={}", variable, flag.name_, flag.text_);
    }
  }
  return std::nullopt;
}

void FlagSet::imply(const std::string& name, const std::string& text, const std::string& origin) {
  Flag& flag = *find(name).flag;
  if (flag.given_) return;
  set(flag, text);
  flag.origin_ = origin;
  flag.implied_ = true;
}

void FlagSet::take(const ConfigEntry& entry) {
  DT_CHECK(entry.name != "config" && entry.name != "print_config", "a configuration cannot set --", entry.name);
  const Spelling spelling = find(entry.name);
  if (spelling.flag == nullptr) refuse_unknown(entry.name, "");
  require_kind(entry, spelling.flag->type_);
  if (!spelling.flag->given_) return set(spelling, entry.text, entry.where);
  DT_CHECK(spelling.flag->origin_ == "command line", entry.name, " is set twice; first at ", spelling.flag->origin_);
}

void FlagSet::read_config_file() {
  for (const ConfigEntry& entry : read_config_entries(config_file_)) {
    try {
      take(entry);
    } catch (const Error& error) {
      throw Error(fmt::format("{}: {}", entry.where, error.what()));
    }
  }
}

void FlagSet::refuse_unknown(const std::string& name, const char* dashes) const {
  std::vector<std::string> names;
  for (const Flag& known : flags_) {
    names.push_back(known.name_);
    if (known.type_ == "bool" && *dashes != '\0') names.push_back("no" + known.name_);
  }
  const auto meant = nearest(name, names);
  throw Error(fmt::format("unknown flag {}{}{}; --help lists all flags", dashes, name,
                          meant ? fmt::format(", did you mean {}{}?", dashes, *meant) : ""));
}

bool FlagSet::read_request(const std::string& name) {
  if (find(name).flag != nullptr) return false;
  const bool markdown = name == "helpmarkdown", version = name == "version";
  const bool help = markdown || name == "help" || name == "helpfull" || name == "helpshort" || name == "h";
  wants_help_ |= help;
  wants_markdown_ |= markdown;
  wants_version_ |= version;
  return help || version;
}

size_t FlagSet::read(const std::vector<std::string>& argv, size_t i) {
  const std::string& argument = argv[i];
  const std::string body = argument.substr(argument.starts_with("--") ? 2 : 1);
  const size_t equals = body.find('=');
  const std::string name = body.substr(0, equals);
  if (read_request(name)) {
    if (wants_help_ && equals != std::string::npos) help_form_ = body.substr(equals + 1);
    return 1;
  }
  const Spelling spelling = find(name);
  if (spelling.flag == nullptr && name.starts_with("no")) {
    const Spelling negated = find(std::string_view(name).substr(2));
    if (negated.flag != nullptr && negated.flag->type_ == "bool") {
      DT_CHECK(equals == std::string::npos, "--", name, " takes no value: it stands for --", negated.flag->name_,
               "=false");
      return set(negated, "false"), 1;
    }
  }
  if (spelling.flag == nullptr) refuse_unknown(name);
  if (equals != std::string::npos) return set(spelling, body.substr(equals + 1)), 1;
  if (spelling.flag->type_ == "bool") return set(spelling, "true"), 1;
  DT_CHECK(i + 1 < argv.size(), "--", name, ": expected a value of type ", spelling.flag->type_,
           ", found the end of the line");
  return set(spelling, argv[i + 1]), 2;
}

std::vector<std::string> FlagSet::parse(const std::vector<std::string>& argv) {
  std::vector<std::string> positional;
  for (size_t i = 1; i < argv.size();) {
    if (argv[i] == "--") {
      positional.insert(positional.end(), argv.begin() + static_cast<std::ptrdiff_t>(i) + 1, argv.end());
      break;
    }
    if (argv[i].size() > 1 && argv[i][0] == '-') {
      i += read(argv, i);
    } else {
      positional.push_back(argv[i++]);
    }
  }
  if (!config_file_.empty()) read_config_file();
  return positional;
}

}  // namespace dtrain::cli
