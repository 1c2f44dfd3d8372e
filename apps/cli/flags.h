// Command-line flags in the forms of absl: --flag=value, --flag value, --switch, --switch=false, --noswitch; and, where
// they are declared, short names: -f value.
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

// What --help=FORM begins with where a manual page is asked for; what follows is its phrase, if it is not empty.
inline constexpr std::string_view kManForm = "man:";
struct ConfigEntry;

// The flags of one program. Each is bound to a variable, whose value at the time of declaration is its default. The
// last occurrence on the command line wins. Texts may be paths: see parse_path(), for ~ and URLs.
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
  // A flag of another program whose value nothing here reads: the caller adds why it has no effect or is refused.
  // `type` is bool, int (0 to 10^12), float, string or choices as in "fast|slow"; what is no such value is an error all
  // the same.
  Flag& add_unread(const std::string& name, std::string type, std::string initial, std::string meaning);

  // A flag that has been declared, to say more of it than others do that declare it, too.
  Flag& declared(const std::string& name);

  // A command beside what the flags do, which has flags of its own. Help names it.
  void add_command(std::string name, std::string meaning) {
    commands_.emplace_back(std::move(name), std::move(meaning));
  }

  // Declares --config, a TOML file of flags that the command line does not give, and --print_config.
  void add_config_file();

  // Reads argv, whose first entry is the program, and the file of --config. Returns the positional arguments. Throws
  // Error naming the flag, what was expected and what was found; for an unknown flag, the nearest known one.
  std::vector<std::string> parse(const std::vector<std::string>& argv);
  // For people: which former names the command line has used, and which flags have no effect.
  std::vector<std::string> notices() const;
  // Throws Error for the first flag declared as refused that was set to anything but its default.
  void check_refused() const;
  // Sets a flag that was not given, because of another one, which `origin` names for people.
  void imply(const std::string& name, const std::string& text, const std::string& origin);
  // Sets the flag that declares to be set by `variable`, unless the command line has, which does not make it given().
  // Returns a notice, empty where the text sets nothing; none where no flag is set by that variable.
  std::optional<std::string> take_variable(const std::string& variable, const std::string& text);

  // "--flag" and text of all flags, given or not, that the ranks of a job must have in common.
  std::vector<std::pair<std::string, std::string>> settings_that_must_agree() const;
  // What checkpoints record, by key, as far as it does not have to be resolved first.
  std::map<std::string, std::string> recorded_identity() const { return recorded(true); }
  std::map<std::string, std::string> recorded_settings() const { return recorded(false); }
  // All keys of the identity.
  std::set<std::string> identity_keys() const;

  // The text that a flag was last given, or its default.
  const std::string& text(const std::string& name) const { return at(name).text_; }
  bool given(const std::string& name) const { return at(name).given_; }
  bool declares(const std::string& name) const { return std::ranges::find(flags_, name, &Flag::name_) != flags_.end(); }
  // The names of the flags by the titles of their groups.
  std::map<std::string, std::vector<std::string>> names() const;
  const std::string& program() const { return program_; }
  bool wants_help() const { return wants_help_; }
  bool wants_version() const { return wants_version_; }
  // The flags by group, with type, default, meaning and what becomes of them: for a terminal, without those that are
  // always refused, and all of them as tables of Markdown.
  std::string help() const;
  std::string markdown() const;
  bool wants_markdown() const { return wants_markdown_; }
  // What --help=FORM was given: "list" or "man:MEANING" where programs ask, else anything.
  const std::string& help_form() const { return help_form_; }
  // For programs that complete command lines: a line for each command and flag with its name, type and meaning, by
  // tabs; the type of a command is "command", that of --help and --version is "asks".
  std::string list() const;
  // The manual page. `meaning` is a phrase; empty: the beginning of what the program is about.
  std::string man_page(const std::string& meaning) const;
  // All flags that something has set, as a file for --config, each with its origin. What others imply is in comments:
  // it follows again.
  std::string config_text() const;
  bool wants_config() const { return wants_config_; }

 private:
  Flag& declare(const std::string& name, std::string type, std::string initial, std::string meaning,
                std::function<void(const std::string&)> set);
  // A flag by its name, a short or a former one; null where there is none.
  struct Spelling {
    Flag* flag = nullptr;
    const Flag::Source* former = nullptr;
  };
  Spelling find(std::string_view name);
  // --help and the like, which a flag of that name takes the place of; false for any other name.
  bool read_request(const std::string& name);
  const Flag& at(const std::string& name) const;
  std::vector<std::string> groups() const;         // in order of declaration
  std::vector<std::string> served_groups() const;  // those that have a flag which is not always refused
  void set(Flag& flag, const std::string& text);
  void set(const Spelling& spelling, const std::string& text, const std::string& origin = "command line");
  void read_config_file();
  void take(const ConfigEntry& entry);
  // Handles argument `i` of `argv`, a flag, and returns how many arguments it took.
  size_t read(const std::vector<std::string>& argv, size_t i);
  // Throws Error of an unknown name, which begins with `dashes`.
  [[noreturn]] void refuse_unknown(const std::string& name, const char* dashes = "--") const;
  std::map<std::string, std::string> recorded(bool identity) const;

  std::string program_, usage_, about_, group_, help_form_, config_file_;
  std::vector<std::pair<std::string, std::string>> commands_;  // and their meanings
  std::deque<Flag> flags_;                                     // add() returns references
  std::vector<std::string> notices_;
  bool wants_help_ = false, wants_markdown_ = false, wants_version_ = false, wants_config_ = false;
};

}  // namespace dtrain::cli
