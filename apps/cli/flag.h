// A command-line flag and its attributes.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace dtrain::cli {

// A declared flag. Attributes are chained to the declaration:
//   flags.add("data_dir", data_dir, "folder of TFRecord files").may_differ_per_rank();
class Flag {
 public:
  using Text = std::function<std::string()>;
  // Converts another text, such as an environment variable's, to a value of the flag; none: does not set it.
  using Translation = std::function<std::optional<std::string>(const std::string&)>;

  // Allows different values on the ranks of a job; all other flags must be equal.
  Flag& may_differ_per_rank();
  // Checkpoints record the flag's value, or `text()`, under `key`, unless empty; a run resumes only checkpoints with
  // the same value.
  Flag& identity(std::string key, Text text = {});
  // The same for a value that depends on the model and the data: the code that resolves it records it.
  Flag& identity_once_resolved(std::string key);
  // Recorded too, but a resumed run with another value only prints a notice.
  Flag& setting(std::string key, Text text = {});
  // A deprecated name, which still works, with a notice. Without `translate` it has the same values.
  Flag& former_name(std::string name, Translation translate = {});
  // A permanent alias, such as `b` for `-b 256`; one or two dashes are equivalent.
  Flag& short_name(std::string name);
  // An environment variable that sets the flag; the command line takes precedence.
  Flag& set_by(std::string variable, Translation translate);
  // Allows the addresses s3://BUCKET/KEY and https://HOST/PATH, which InputFile reads.
  Flag& may_be_remote();
  // A flag that only tunes internals of another program: a value other than the default has no effect, and a notice
  // gives the reason.
  Flag& no_effect(std::string reason);
  // A flag that would change results and is not supported: a value other than the default is an error with the reason.
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

  enum class Fate : uint8_t { supported, no_effect, refused };
  bool has_default() const { return text_ == initial_; }
  std::string description() const;  // meaning, and variables that set it
  std::string fate() const;         // support, with the reason

  std::string name_, group_, type_, initial_, meaning_, reason_;
  Fate fate_ = Fate::supported;
  std::function<void(const std::string&)> set_;  // throws Error without the flag's name
  bool given_ = false, implied_ = false, differs_ = false, may_be_remote_ = false;
  std::string text_;    // current value
  std::string origin_;  // origin: "command line", "run.toml:12", "recipe aws"; empty: default
  std::vector<Recorded> recorded_;
  std::vector<Source> former_names_, variables_;
  std::vector<std::string> short_names_;
};

// A rule for combinations of flags, with the error message for violations.
struct Rule {
  bool broken;
  const char* message;
};
// Throws Error with the message of the first violated rule.
void refuse(std::initializer_list<Rule> rules);

}  // namespace dtrain::cli
