// Help, version, and notices about the command line.
#include "apps/cli/command_line.h"

#include <fmt/format.h>

#include "apps/cli/environment.h"
#include "apps/cli/messages.h"
#include "apps/cli/run_main.h"
#include "dtrain/core/error.h"
#include "dtrain/distributed/group.h"

namespace dtrain::cli {
namespace {

std::string help_of(const FlagSet& flags) {
  const std::string& form = flags.help_form();
  if (flags.wants_markdown()) return flags.markdown();
  if (form == "list") return flags.list();
  if (form == "man" || form.starts_with(kManForm))
    return flags.man_page(form == "man" ? "" : form.substr(kManForm.size()));
  return flags.help();
}

// Invalid launcher variables are reported when the ranks connect.
bool speaks() {
  try {
    return launcher_rank(environment()).rank <= 0;
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

std::optional<std::vector<std::string>> read_command_line(FlagSet& flags, const std::vector<std::string>& argv) {
  std::vector<std::string> positional = flags.parse(argv);
  if (flags.wants_help() || flags.wants_version()) {
    // "dtrain-data 0.1.0", also for its commands.
    const std::string& program = flags.program();
    fmt::print("{}", flags.wants_help() ? help_of(flags)
                                        : fmt::format("{} {}\n", program.substr(0, program.find(' ')), version()));
    return std::nullopt;
  }
  if (speaks()) print_notes(flags.notices());
  return positional;
}

bool read_flags(FlagSet& flags, const std::vector<std::string>& argv, const std::function<void()>& settle) {
  const auto positional = read_command_line(flags, argv);
  if (!positional) return false;
  DT_CHECK(positional->empty(), "unexpected argument '", positional->front(), "': all arguments are flags; see --help");
  if (settle) settle();
  if (flags.wants_config() && speaks()) fmt::print("{}", flags.config_text());
  return !flags.wants_config();
}

}  // namespace dtrain::cli
