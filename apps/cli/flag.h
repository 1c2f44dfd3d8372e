// A flag of the command line, and what is said of it where it is declared.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::cli {

// A declared flag. What else is to be known about it is said where it is declared:
//   flags.add("data_dir", data_dir, "folder of TFRecord files").may_differ_per_rank();
class Flag {
 public:
  using Text = std::function<std::string()>;
  // From a text of another kind, such as that of an environment variable, to that of the flag; none: it sets nothing.
  using Translation = std::function<std::optional<std::string>(const std::string&)>;

  // The ranks of a job may be given different values; of all other flags they must have been given the same.
  Flag& may_differ_per_rank();
  // Checkpoints record the flag's text, or `text()`, under `key`, unless it is empty; a run continues only checkpoints
  // that agree with it.
  Flag& identity(std::string key, Text text = {});
  // The same for what the flag comes to only with the model and the data: whoever resolves it records the text.
  Flag& identity_once_resolved(std::string key);
  // Recorded as well, but a run that continues with another value only announces the change.
  Flag& setting(std::string key, Text text = {});
  // An older spelling that goes on working, with a notice. Without `translate` its values are those of the flag.
  Flag& former_name(std::string name, Translation translate = {});
  // Another spelling for good, such as `b` for `-b 256`; one dash or two before a name are the same.
  Flag& short_name(std::string name);
  // An environment variable that sets the flag where the command line does not.
  Flag& set_by(std::string variable, Translation translate);
  // What only tunes another program's own machinery: given another value than its default it changes nothing, and a
  // notice says so, with the reason.
  Flag& no_effect(std::string reason);
  // What would have to change the results and does not: another value than the default is refused, with the reason.
  Flag& refused(std::string reason);

 private:
  friend class FlagSet;
  struct Recorded {
    std::string key;
    Text text;  // none: the flag's own
    bool identity = true, resolved_later = false;
  };
  struct Source {
    std::string name;
    Translation translate;
  };

  enum class Fate : uint8_t { served, no_effect, refused };
  bool has_default() const { return text_ == initial_; }
  std::string description() const;  // what it means, and what else sets it
  std::string fate() const;         // what becomes of it, with the reason

  std::string name_, group_, type_, initial_, meaning_, reason_;
  Fate fate_ = Fate::served;
  std::function<void(const std::string&)> set_;  // throws Error without the flag's name
  bool given_ = false, implied_ = false, differs_ = false;
  std::string text_;    // as last given
  std::string origin_;  // what gave it: "command line", "run.toml:12", "recipe aws"; empty: it has its default
  std::vector<Recorded> recorded_;
  std::vector<Source> former_names_, variables_;
  std::vector<std::string> short_names_;
};

// A combination of flags that is refused where it is broken, with a message that names them.
struct Rule {
  bool broken;
  const char* message;
};
// Throws Error with the message of the first broken rule.
void refuse(std::initializer_list<Rule> rules);

}  // namespace dtrain::cli
