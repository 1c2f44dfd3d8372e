// Declaration and parsing of flags.
#include "apps/cli/flags.h"

#include <algorithm>

#include <fmt/format.h>

#include "apps/cli/values.h"
#include "libdtrain/core/error.h"
#include "libdtrain/core/nearest.h"

namespace dtrain::cli {
namespace {

template <class T>
std::string show(const std::optional<T>& value) {
  return value ? fmt::format("{}", *value) : "";
}

}  // namespace

FlagSet::FlagSet(std::string program, std::string usage, std::string about)
    : program_(std::move(program)), usage_(std::move(usage)), about_(std::move(about)) {}

void FlagSet::declare(const std::string& name, std::string type, std::string initial, std::string meaning,
                      std::function<void(const std::string&)> set) {
  DT_CHECK(find(name) == nullptr, "flag --", name, " is declared twice");
  flags_.push_back({name, group_, std::move(type), initial, std::move(meaning), std::move(set), true, false, initial});
}

void FlagSet::add(const std::string& name, bool& value, std::string meaning) {
  declare(name, "bool", value ? "true" : "false", std::move(meaning),
          [&value](const std::string& text) { value = parse_bool(text); });
}

void FlagSet::add(const std::string& name, int64_t& value, std::string meaning, Range range) {
  declare(name, "int", fmt::format("{}", value), std::move(meaning),
          [&value, range](const std::string& text) { value = parse_number<int64_t>(text, range); });
}

void FlagSet::add(const std::string& name, std::optional<int64_t>& value, std::string meaning, Range range) {
  declare(name, "int", show(value), std::move(meaning),
          [&value, range](const std::string& text) { value = parse_number<int64_t>(text, range); });
}

void FlagSet::add(const std::string& name, double& value, std::string meaning, Range range) {
  declare(name, "float", fmt::format("{}", value), std::move(meaning),
          [&value, range](const std::string& text) { value = parse_number<double>(text, range); });
}

void FlagSet::add(const std::string& name, std::optional<double>& value, std::string meaning, Range range) {
  declare(name, "float", show(value), std::move(meaning),
          [&value, range](const std::string& text) { value = parse_number<double>(text, range); });
}

void FlagSet::add(const std::string& name, std::string& value, std::string meaning) {
  declare(name, "string", value, std::move(meaning), [&value](const std::string& text) { value = text; });
}

void FlagSet::add(const std::string& name, std::vector<std::string>& value, std::string meaning) {
  declare(name, "list", fmt::format("{}", fmt::join(value, ",")), std::move(meaning),
          [&value](const std::string& text) { value = split_list(text); });
}

void FlagSet::add_choice(const std::string& name, std::string& value, std::vector<std::string> choices,
                         std::string meaning) {
  std::string type = fmt::format("{}", fmt::join(choices, "|"));
  declare(name, type, value, std::move(meaning), [&value, type, choices](const std::string& text) {
    DT_CHECK(std::find(choices.begin(), choices.end(), text) != choices.end(), "expected one of ", type, ", found '",
             text, "'");
    value = text;
  });
}

void FlagSet::add_unserved(const std::string& name, std::string type, std::string initial, std::string meaning) {
  std::function<void(const std::string&)> check = [](const std::string&) {};
  if (type == "bool") check = [](const std::string& text) { parse_bool(text); };
  if (type == "int") check = [](const std::string& text) { parse_number<int64_t>(text, {}); };
  if (type == "float") check = [](const std::string& text) { parse_number<double>(text, {}); };
  declare(name, std::move(type), std::move(initial), std::move(meaning), std::move(check));
  flags_.back().served = false;
}

FlagSet::Flag* FlagSet::find(std::string_view name) {
  const auto it = std::find_if(flags_.begin(), flags_.end(), [&](const Flag& flag) { return flag.name == name; });
  return it == flags_.end() ? nullptr : &*it;
}

const FlagSet::Flag& FlagSet::at(const std::string& name) const {
  const Flag* flag = const_cast<FlagSet*>(this)->find(name);
  DT_CHECK(flag != nullptr, "no flag --", name, " is declared");
  return *flag;
}

const std::string& FlagSet::text(const std::string& name) const { return at(name).text; }
bool FlagSet::given(const std::string& name) const { return at(name).given; }

void FlagSet::set(Flag& flag, const std::string& text) {
  try {
    flag.set(text);
  } catch (const Error& error) {
    throw Error(fmt::format("--{}: {}", flag.name, error.what()));
  }
  flag.text = normalised(flag.type, text);
  flag.given = true;
}

void FlagSet::preset(const std::string& name, const std::string& text) {
  Flag* flag = find(name);
  DT_CHECK(flag != nullptr, "no flag --", name, " is declared");
  const bool given = flag->given;
  set(*flag, text);
  flag->given = given;
}

std::vector<std::pair<std::string, std::string>> FlagSet::texts() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const Flag& flag : flags_) all.emplace_back(flag.name, flag.text);
  return all;
}

size_t FlagSet::read(const std::vector<std::string>& argv, size_t i) {
  const std::string& argument = argv[i];
  const std::string body = argument.substr(argument.starts_with("--") ? 2 : 1);
  const size_t equals = body.find('=');
  const std::string name = body.substr(0, equals);
  if (name == "help" || name == "helpfull" || name == "helpshort" || name == "h") return wants_help_ = true, 1;
  if (name == "version") return wants_version_ = true, 1;

  Flag* flag = find(name);
  if (flag == nullptr && name.starts_with("no") && equals == std::string::npos) {
    Flag* negated = find(std::string_view(name).substr(2));
    if (negated != nullptr && negated->type == "bool") return set(*negated, "false"), 1;
  }
  if (flag == nullptr) {
    std::vector<std::string> names;
    for (const Flag& known : flags_) {
      names.push_back(known.name);
      if (known.type == "bool") names.push_back("no" + known.name);
    }
    const auto meant = nearest(name, names);
    throw Error(fmt::format("unknown flag --{}{}; --help lists all flags", name,
                            meant ? fmt::format(", did you mean --{}?", *meant) : ""));
  }
  if (equals != std::string::npos) return set(*flag, body.substr(equals + 1)), 1;
  if (flag->type == "bool") return set(*flag, "true"), 1;
  DT_CHECK(i + 1 < argv.size(), "--", name, ": expected a value of type ", flag->type, ", found the end of the line");
  return set(*flag, argv[i + 1]), 2;
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
  return positional;
}

void FlagSet::refuse_unserved() const {
  for (const Flag& flag : flags_) {
    if (flag.served || !flag.given || flag.text == flag.initial) continue;
    throw Error(fmt::format("--{}={}: not served by this version of {} ({}); leave the flag out{}", flag.name,
                            flag.text, program_, flag.meaning,
                            flag.initial.empty() ? "" : fmt::format(" or set it to {}", flag.initial)));
  }
}

}  // namespace dtrain::cli
