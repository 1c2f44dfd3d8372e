// Manual page and completion list, generated from flag declarations.
#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "apps/cli/flags.h"
#include "apps/cli/man_page.h"

namespace dtrain::cli {
namespace {

constexpr std::string_view kCodesOf = "Exit codes: ";

// "Reads, and writes: ..." becomes "reads, and writes".
std::string first_phrase(const std::string& about) {
  std::string phrase = about.substr(0, about.find_first_of(":\n"));
  phrase = phrase.substr(0, phrase.find(". "));
  if (phrase.ends_with('.')) phrase.pop_back();
  if (!phrase.empty()) phrase[0] = static_cast<char>(std::tolower(static_cast<unsigned char>(phrase[0])));
  return phrase;
}

// The usage lines of the help text; from the second on they begin with the program's name.
std::vector<std::string> forms_of(const std::string& usage, const std::string& program) {
  std::vector<std::string> forms;
  std::istringstream lines(usage);
  for (std::string line; std::getline(lines, line);) {
    const size_t name = line.find(program + ' ');
    forms.push_back(name == std::string::npos ? line : line.substr(name + program.size() + 1));
  }
  return forms;
}

}  // namespace

std::string FlagSet::list() const {
  std::string out;
  for (const auto& [name, meaning] : commands_) out += fmt::format("{}\tcommand\t{}\n", name, meaning);
  for (const Flag& flag : flags_)
    if (flag.fate_ != Flag::Fate::refused) out += fmt::format("--{}\t{}\t{}\n", flag.name_, flag.type_, flag.meaning_);
  return out + "--help\tasks\tevery flag\n--version\tasks\tthe version\n";
}

std::string FlagSet::man_page(const std::string& meaning) const {
  ManPage page(program_, meaning.empty() ? first_phrase(about_) : meaning, forms_of(usage_, program_));
  std::string about, codes;
  std::istringstream lines(about_);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with(kCodesOf))
      codes = line.substr(kCodesOf.size());
    else
      about += line + '\n';
  page.section("DESCRIPTION");
  page.paragraphs(about);
  page.section("OPTIONS");
  std::vector<Variable> variables;
  for (const std::string& group : supported_groups()) {
    if (!group.empty()) page.group(group);
    for (const Flag& flag : flags_) {
      if (flag.group_ != group || flag.fate_ == Flag::Fate::refused) continue;
      const std::string initial = flag.initial_.empty() ? "" : fmt::format(" (default {})", flag.initial_);
      const std::string fate = flag.fate_ == Flag::Fate::supported ? "" : "; " + flag.fate();
      page.item("--" + flag.name_, flag.type_, flag.description() + fate + initial);
      for (const Flag::Source& variable : flag.variables_)
        variables.push_back({variable.name, fmt::format("sets --{}, unless the command line does", flag.name_)});
    }
  }
  page.group("Any");
  page.item("--help", "", "prints every flag");
  page.item("--version", "", "prints the version");
  const size_t command = program_.find(' ');
  std::vector<std::string> related{command == std::string::npos ? "dtrain-mpirun" : program_.substr(0, command)};
  if (!commands_.empty()) page.section("COMMANDS");
  for (const auto& [name, about_command] : commands_) {
    page.item(name, "", about_command);
    related.push_back(page_name(fmt::format("{} {}", program_, name)));
  }
  return page.finish(codes, variables, related);
}

}  // namespace dtrain::cli
