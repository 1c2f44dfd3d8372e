#include "libdtrain/io/xml.h"

#include <algorithm>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "dtrain/core/error.h"

namespace dtrain {
namespace {

constexpr std::string_view kXmlSpaces = " \t\r\n";

// Finds elements exactly as the parser does, to limit its recursion: a tag that only one of them sees would hide
// others.
class XmlChecker {
 public:
  XmlChecker(std::string_view text, const std::string& where, const XmlOptions& options)
      : text_(text), where_(where), options_(options) {}

  void check() {
    if (text_.size() > options_.most_bytes)
      fail(concat("a file of ", text_.size(), " bytes, expected at most ", options_.most_bytes));
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) fail("UTF-16, expected UTF-8");
    if (const size_t nul = text_.find('\0'); nul != text_.npos) at_ = nul, fail("a NUL byte, expected text");
    while ((at_ = text_.find('<', at_)) != text_.npos) tag();
  }

 private:
  void tag() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("<!--")) return skip("<!--", "-->");
    if (rest.starts_with("<![CDATA[")) return skip("<![CDATA[", "]]>");
    if (rest.starts_with("<?")) return skip("<?", "?>");
    if (rest.starts_with("<!")) return doctype();
    if (++tags_ > 2 * options_.most_elements) fail(concat("more than ", options_.most_elements, " elements"));
    if (rest.starts_with("</")) {
      if (--depth_ < 0) fail("an end tag without its start tag");
      return skip("</", ">");
    }
    start_tag();
  }

  // An internal DTD may define entities that expand to a multiple of the file.
  void doctype() {
    const size_t end = text_.find_first_of(">[", at_);
    if (end == text_.npos) fail("a declaration without an end");
    if (text_[end] == '[') fail("an internal DTD, which is not supported; remove it");
    at_ = end + 1;
  }

  void skip(std::string_view begin, std::string_view end) {
    const size_t found = text_.find(end, at_ + begin.size());
    if (found == text_.npos) fail(concat("a tag without '", end, "'"));
    at_ = found + end.size();
  }

  // <NAME ATTRIBUTE="value">. A value may contain '>', and a name quotes.
  void start_tag() {
    size_t end = next_of(" \t\r\n/>?", at_ + 1);
    while (text_[end = next_but_space(end)] != '>' && text_[end] != '/') {
      end = next_but_space(next_of(" \t\r\n/<>=?!", end));
      if (text_[end] != '=') fail("an attribute without a value");
      end = next_but_space(end + 1);
      if (text_[end] != '"' && text_[end] != '\'') fail("the value of an attribute without quotes");
      end = next_of(text_.substr(end, 1), end + 1) + 1;
    }
    const bool is_empty = text_[end] == '/';
    if (is_empty && !text_.substr(end).starts_with("/>")) fail("'/' in a tag, expected '/>'");
    at_ = end + (is_empty ? 2 : 1);
    if (!is_empty && ++depth_ > options_.most_depth)
      fail(concat("elements nested more than ", options_.most_depth, " deep"));
  }

  size_t next_of(std::string_view characters, size_t from) const {
    return inside_tag(text_.find_first_of(characters, from));
  }
  size_t next_but_space(size_t from) const { return inside_tag(text_.find_first_not_of(kXmlSpaces, from)); }
  size_t inside_tag(size_t found) const {
    if (found == text_.npos) fail("a tag without '>'");
    return found;
  }

  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    throw Error(Fault::data, concat(where_, ": line ", line, ": ", problem));
  }

  std::string_view text_;
  const std::string& where_;
  const XmlOptions& options_;
  size_t at_ = 0, tags_ = 0;
  int depth_ = 0;
};

}  // namespace

boost::property_tree::ptree parse_xml(std::string_view text, const std::string& where, const XmlOptions& options) {
  XmlChecker(text, where, options).check();
  std::istringstream stream{std::string(text)};
  boost::property_tree::ptree tree;
  try {
    read_xml(stream, tree, options.trims ? boost::property_tree::xml_parser::trim_whitespace : 0);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw Error(Fault::data, concat(where, ": line ", error.line(), ": ", error.message(), ", expected XML"));
  }
  return tree;
}

}  // namespace dtrain
