// Command-line flags in the forms of absl: --flag=value, --flag value, --switch, --switch=false, --noswitch.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace dtrain::cli {

// Limits of a number, both included.
struct Range {
  double low = std::numeric_limits<double>::lowest(), high = std::numeric_limits<double>::max();
};
inline constexpr Range kNotNegative{0};
inline constexpr Range kPositive{1};

// The flags of one program. Each is bound to a variable, whose value at the time of declaration is its default. The
// last occurrence on the command line wins.
class FlagSet {
 public:
  // `usage` follows the program's name on the first line of the help; `about`, a paragraph per line, is printed
  // below it.
  FlagSet(std::string program, std::string usage, std::string about);

  // Flags declared from now on are listed under `title`.
  void group(std::string title) { group_ = std::move(title); }
  void add(const std::string& name, bool& value, std::string meaning);
  void add(const std::string& name, int64_t& value, std::string meaning, Range range = {});
  void add(const std::string& name, std::optional<int64_t>& value, std::string meaning, Range range = {});
  void add(const std::string& name, double& value, std::string meaning, Range range = {});
  void add(const std::string& name, std::optional<double>& value, std::string meaning, Range range = {});
  void add(const std::string& name, std::string& value, std::string meaning);
  void add(const std::string& name, std::vector<std::string>& value, std::string meaning);  // comma-separated
  void add_choice(const std::string& name, std::string& value, std::vector<std::string> choices, std::string meaning);
  // A flag of another program that this one knows and does not serve: it may be given with the value `initial`.
  void add_unserved(const std::string& name, std::string type, std::string initial, std::string meaning);

  // Reads argv, whose first entry is the program. Returns the positional arguments. Throws Error naming the flag, what
  // was expected and what was found; for an unknown flag, the nearest known one.
  std::vector<std::string> parse(const std::vector<std::string>& argv);
  // Throws Error for the first flag declared by add_unserved that was set to anything but its default.
  void refuse_unserved() const;

  // Sets a flag as the command line would, which does not make it given().
  void preset(const std::string& name, const std::string& text);
  // All flags of this program with their texts, those that were not given as well.
  std::vector<std::pair<std::string, std::string>> texts() const;
  // The text that a flag was last given, or its default.
  const std::string& text(const std::string& name) const;
  bool given(const std::string& name) const;
  bool wants_help() const { return wants_help_; }
  bool wants_version() const { return wants_version_; }
  // Every flag by group, with type, default and meaning.
  std::string help() const;

 private:
  struct Flag {
    std::string name, group, type, initial, meaning;
    std::function<void(const std::string&)> set;  // throws Error without the flag's name
    bool served = true, given = false;
    std::string text;  // as last given
  };

  void declare(const std::string& name, std::string type, std::string initial, std::string meaning,
               std::function<void(const std::string&)> set);
  Flag* find(std::string_view name);
  const Flag& at(const std::string& name) const;
  void set(Flag& flag, const std::string& text);
  // Handles argument `i` of `argv`, a flag, and returns how many arguments it took.
  size_t read(const std::vector<std::string>& argv, size_t i);

  std::string program_, usage_, about_, group_;
  std::vector<Flag> flags_;
  bool wants_help_ = false, wants_version_ = false;
};

}  // namespace dtrain::cli
