// Command-line flags in absl's syntax: --flag=value, --flag value, --switch, --switch=false, --noswitch; and declared
// short names: -f value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "apps/cli/flag.h"
#include "apps/cli/range.h"

namespace dtrain::cli {

// Prefix of --help=FORM for a manual page; the rest is its NAME phrase, if not empty.
inline constexpr std::string_view kManForm = "man:";
struct ConfigEntry;

// The flags of a program. Each is bound to a variable, whose value at declaration is the default. The last occurrence
// on the command line takes precedence. String values may be paths: parse_path() handles ~ and URLs.
class FlagSet {
 public:
  // `usage` follows the program's name on the first line of the help; `about`, a paragraph per line, is printed
  // below it.
  FlagSet(std::string program, std::string usage, std::string about);

  // Flags declared from now on are listed under `title`.
  void group(std::string title) { group_ = std::move(title); }
  Flag& add(const std::string& name, bool& value, std::string meaning);
  Flag& add(const std::string& name, int64_t& value, std::string meaning, Range<int64_t> range);
  Flag& add(const std::string& name, std::optional<int64_t>& value, std::string meaning, Range<int64_t> range);
  Flag& add(const std::string& name, double& value, std::string meaning, Range<double> range);
  Flag& add(const std::string& name, std::optional<double>& value, std::string meaning, Range<double> range);
  Flag& add(const std::string& name, std::string& value, std::string meaning);
  Flag& add(const std::string& name, std::vector<std::string>& value, std::string meaning);  // comma-separated
  Flag& add_choice(const std::string& name, std::string& value, std::vector<std::string> choices, std::string meaning);
  // Declares a flag of another program that is accepted and not read: the caller marks it no_effect() or refused().
  // `type` is bool, int (0 to 10^12), float, string or choices as in "fast|slow"; other values are errors.
  Flag& add_unread(const std::string& name, std::string type, std::string initial, std::string meaning);

  // A declared flag, for further attributes.
  Flag& declared(const std::string& name);

  // Adds a subcommand with its own flags to the help text.
  void add_command(std::string name, std::string meaning) {
    commands_.emplace_back(std::move(name), std::move(meaning));
  }

  // Declares --config, a TOML file of flags that the command line does not give, and --print_config.
  void add_config_file();

  // Reads argv, whose first entry is the program, and the file of --config. Returns the positional arguments. Throws
  // Error naming the flag, what was expected and what was found; for an unknown flag, the nearest known one.
  std::vector<std::string> parse(const std::vector<std::string>& argv);
  // Notices: former names used on the command line, and flags without effect.
  std::vector<std::string> notices() const;
  // Throws Error for the first flag declared as refused that was set to anything but its default.
  void check_refused() const;
  // Sets a flag that was not given, because of another flag; messages name `origin`.
  void imply(const std::string& name, const std::string& text, const std::string& origin);
  // Sets the flag whose set_by() names `variable`, unless the command line sets it. The flag does not become given().
  // Returns a notice (empty if the text sets nothing), or none if no flag has that variable.
  std::optional<std::string> take_variable(const std::string& variable, const std::string& text);

  // "--flag" and value of all flags, given or not, that must be equal on all ranks of a job.
  std::vector<std::pair<std::string, std::string>> settings_that_must_agree() const;
  // Values that checkpoints record, by key, except those that are resolved later.
  std::map<std::string, std::string> recorded_identity() const { return recorded(true); }
  std::map<std::string, std::string> recorded_settings() const { return recorded(false); }
  // All keys of the identity.
  std::set<std::string> identity_keys() const;

  // The current value of a flag as text.
  const std::string& text(const std::string& name) const { return at(name).text_; }
  bool given(const std::string& name) const { return at(name).given_; }
  bool declares(const std::string& name) const { return std::ranges::find(flags_, name, &Flag::name_) != flags_.end(); }
  // Flag names by group title.
  std::map<std::string, std::vector<std::string>> names() const;
  const std::string& program() const { return program_; }
  bool wants_help() const { return wants_help_; }
  bool wants_version() const { return wants_version_; }
  // The flags by group, with type, default, meaning and support: for a terminal, without flags that are always refused;
  // and all flags as Markdown tables.
  std::string help() const;
  std::string markdown() const;
  bool wants_markdown() const { return wants_markdown_; }
  // FORM of --help=FORM: "list" or "man:MEANING" for tools, else any text.
  const std::string& help_form() const { return help_form_; }
  // For shell completion: one tab-separated line per command and flag: name, type and meaning. The type of a command is
  // "command", of --help and --version "asks".
  std::string list() const;
  // The manual page. `meaning`: its NAME phrase; empty: the beginning of the description.
  std::string man_page(const std::string& meaning) const;
  // All flags that are set, with their origins, as a file for --config. Flags implied by others are comments.
  std::string config_text() const;
  bool wants_config() const { return wants_config_; }

 private:
  Flag& declare(const std::string& name, std::string type, std::string initial, std::string meaning,
                std::function<void(const std::string&)> set);
  // Finds a flag by its name, short name or former name; null if there is none.
  struct Spelling {
    Flag* flag = nullptr;
    const Flag::Source* former = nullptr;
  };
  Spelling find(std::string_view name);
  // Handles --help and similar, unless a flag of that name is declared; false for any other name.
  bool read_request(const std::string& name);
  const Flag& at(const std::string& name) const;
  std::vector<std::string> groups() const;            // in order of declaration
  std::vector<std::string> supported_groups() const;  // groups with a flag that is not always refused
  void set(Flag& flag, const std::string& text);
  void set(const Spelling& spelling, const std::string& text, const std::string& origin = "command line");
  void read_config_file();
  void take(const ConfigEntry& entry);
  // Handles argument `i` of `argv`, a flag. Returns the number of arguments consumed.
  size_t read(const std::vector<std::string>& argv, size_t i);
  // Throws Error for an unknown flag, prefixed with `dashes`.
  [[noreturn]] void refuse_unknown(const std::string& name, const char* dashes = "--") const;
  std::map<std::string, std::string> recorded(bool identity) const;

  std::string program_, usage_, about_, group_, help_form_, config_file_;
  std::vector<std::pair<std::string, std::string>> commands_;  // and their descriptions
  std::deque<Flag> flags_;                                     // add() returns references
  std::vector<std::string> notices_;
  bool wants_help_ = false, wants_markdown_ = false, wants_version_ = false, wants_config_ = false;
};

}  // namespace dtrain::cli
