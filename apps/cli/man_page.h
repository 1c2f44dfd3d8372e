// A manual page, written in the man(7) macros of troff.
#pragma once

#include <string>
#include <vector>

#include "apps/cli/environment.h"

namespace dtrain::cli {

class ManPage {
 public:
  // `program` may have a command: "dtrain-data verify" becomes the page dtrain-data-verify(1). `meaning` is a phrase;
  // `usage` has a line for each form of the command line, without the program's name.
  ManPage(const std::string& program, const std::string& meaning, const std::vector<std::string>& usage);

  void section(const std::string& title);
  void group(const std::string& title);  // of items within a section
  // A paragraph per line of `text`.
  void paragraphs(const std::string& text);
  // `type` is what the term takes, in italics; empty: nothing.
  void item(const std::string& term, const std::string& type, const std::string& text);

  // Adds what is the same for every program, and returns the page. `codes`: what the exit codes mean, as in "0 done,
  // 1 usage."; empty: those of all programs. `variables`: those of this program alone. `related`: pages of section 1.
  std::string finish(const std::string& codes, const std::vector<Variable>& variables,
                     const std::vector<std::string>& related);

 private:
  std::string text_;
};

// The page of "dtrain-data verify" is "dtrain-data-verify".
std::string page_name(const std::string& program);

}  // namespace dtrain::cli
