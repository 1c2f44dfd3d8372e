// A manual page, written in the man(7) macros of troff.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/environment.h"

namespace dtrain::cli {

class ManPage {
 public:
  // `program` may include a command: "dtrain-data verify" becomes dtrain-data-verify(1). `meaning`: the NAME phrase;
  // `usage`: one line per form, without the program's name.
  ManPage(const std::string& program, const std::string& meaning, const std::vector<std::string>& usage);

  void section(const std::string& title);
  void group(const std::string& title);  // heading of items within a section
  // A paragraph per line of `text`.
  void paragraphs(const std::string& text);
  // `type`: the type of the term's value, in italics; may be empty.
  void item(const std::string& term, const std::string& type, const std::string& text);

  // Adds the common sections and returns the page. `codes`: meanings of the exit codes, as in "0 done, 1 usage.";
  // empty: the common ones. `variables`: environment variables of this program. `related`: pages of section 1.
  std::string finish(const std::string& codes, const std::vector<Variable>& variables,
                     const std::vector<std::string>& related);

 private:
  std::string text_;
};

// The page of "dtrain-data verify" is "dtrain-data-verify".
std::string page_name(const std::string& program);

}  // namespace dtrain::cli
