// troff macros and escapes, and the sections that all pages share.
#include "apps/cli/man_page.h"

#include <algorithm>
#include <cctype>
#include <sstream>

#include <fmt/format.h>

#include "apps/cli/run_main.h"

namespace dtrain::cli {
namespace {

constexpr char kCodes[] =
    "0 done, 1 usage or configuration, 2 data, 3 NaN or Inf, 4 another rank or the network, 5 checkpoint or weights, 6 "
    "memory or disk, 75 stopped on request after a checkpoint: the same command resumes.";

// troff typesets plain quotes, hyphens and accents as other characters, and interprets a leading dot or quote as a
// macro.
std::string roff(const std::string& text) {
  std::string out = text.starts_with('.') ? R"(\&)" : "";
  for (const char c : text) {
    switch (c) {
      case '\\':
        out += R"(\e)";
        break;
      case '-':
        out += R"(\-)";
        break;
      case '\'':
        out += R"(\(aq)";
        break;
      case '`':
        out += R"(\(ga)";
        break;
      case '^':
        out += R"(\(ha)";
        break;
      case '~':
        out += R"(\(ti)";
        break;
      case '"':
        out += R"(\(dq)";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace

std::string page_name(const std::string& program) {
  std::string name = program;
  std::ranges::replace(name, ' ', '-');
  return name;
}

ManPage::ManPage(const std::string& program, const std::string& meaning, const std::vector<std::string>& usage) {
  const std::string name = page_name(program);
  std::string title = name;
  std::ranges::transform(title, title.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  text_ = fmt::format(".TH \"{}\" \"1\" \"\" \"dtrain {}\" \"User Commands\"\n", roff(title), version());
  text_ += ".ad l\n";  // long file names and choices look bad in justified lines
  section("NAME");
  text_ += fmt::format("{} \\- {}\n", roff(name), roff(meaning));
  section("SYNOPSIS");
  for (const std::string& form : usage) {
    if (&form != &usage.front()) text_ += ".br\n";
    text_ += fmt::format("\\fB{}\\fR {}\n", roff(program), roff(form));
  }
}

void ManPage::section(const std::string& title) { text_ += fmt::format(".SH \"{}\"\n", roff(title)); }

void ManPage::group(const std::string& title) { text_ += fmt::format(".SS \"{}\"\n", roff(title)); }

void ManPage::paragraphs(const std::string& text) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (!text_.ends_with("\"\n")) text_ += ".PP\n";  // the first one follows its heading
    text_ += roff(line) + '\n';
  }
}

void ManPage::item(const std::string& term, const std::string& type, const std::string& text) {
  text_ += fmt::format(".TP\n\\fB{}\\fR{}\n{}\n", roff(term),
                       type.empty() ? "" : fmt::format("=\\fI{}\\fR", roff(type)), roff(text));
}

std::string ManPage::finish(const std::string& codes, const std::vector<Variable>& variables,
                            const std::vector<std::string>& related) {
  section("EXIT STATUS");
  paragraphs(codes.empty() ? kCodes : codes);
  section("ENVIRONMENT");
  for (const Variable& variable : variables) item(variable.name, "", variable.meaning);
  for (const Variable& variable : documented_variables()) item(variable.name, "", variable.meaning);
  section("SEE ALSO");
  std::string pages;
  for (const std::string& page : related)
    pages += fmt::format("{}\\fB{}\\fR(1)", pages.empty() ? "" : ",\n", roff(page));
  return text_ + pages + '\n';
}

}  // namespace dtrain::cli
