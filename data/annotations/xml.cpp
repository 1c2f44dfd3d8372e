#include "data/annotations/xml.h"

#include <algorithm>
#include <sstream>

#include <boost/property_tree/ptree.hpp>
#include <boost/property_tree/xml_parser.hpp>

#include "dtrain/core/error.h"

namespace dtrain::data::annotations {
namespace {

// Finds elements as the parser does, to limit its recursion.
class XmlChecker {
 public:
  XmlChecker(std::string_view text, const std::string& where) : text_(text), where_(where) {}

  void check() {
    if (text_.size() > kMaxXmlBytes)
      fail(concat("a file of ", text_.size(), " bytes, expected at most ", kMaxXmlBytes));
    if (text_.starts_with("\xff\xfe") || text_.starts_with("\xfe\xff")) fail("UTF-16, expected UTF-8");
    if (const size_t nul = text_.find('\0'); nul != text_.npos) at_ = nul, fail("a NUL byte, expected text");
    while ((at_ = text_.find('<', at_)) != text_.npos) tag();
  }

 private:
  void tag() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("<!--")) return skip("-->");
    if (rest.starts_with("<![CDATA[")) return skip("]]>");
    if (rest.starts_with("<?")) return skip("?>");
    if (rest.starts_with("<!")) return doctype();
    if (++tags_ > 2 * kMaxXmlElements) fail(concat("more than ", kMaxXmlElements, " elements"));
    if (rest.starts_with("</")) {
      --depth_;
      return skip(">");
    }
    skip_attributes();
    if (text_[at_ - 2] == '/') return;
    if (++depth_ > kMaxXmlDepth) fail(concat("elements nested more than ", kMaxXmlDepth, " deep"));
  }

  // An internal DTD may define entities that expand to a multiple of the file.
  void doctype() {
    const size_t end = text_.find_first_of(">[", at_);
    if (end == text_.npos) fail("a declaration without an end");
    if (text_[end] == '[') fail("an internal DTD, which is not supported; remove it");
    at_ = end + 1;
  }

  void skip(std::string_view end) {
    const size_t found = text_.find(end, at_ + 1);
    if (found == text_.npos) fail(concat("a tag without '", end, "'"));
    at_ = found + end.size();
  }

  // A quoted value may contain '>'.
  void skip_attributes() {
    char quote = 0;
    for (size_t i = at_ + 1; i < text_.size(); ++i) {
      const char c = text_[i];
      if (quote == 0 && c == '>') {
        at_ = i + 1;
        return;
      }
      if (quote == 0 && (c == '"' || c == '\''))
        quote = c;
      else if (c == quote)
        quote = 0;
    }
    fail("a tag without '>'");
  }

  [[noreturn]] void fail(const std::string& problem) const {
    const auto line = std::count(text_.begin(), text_.begin() + static_cast<std::ptrdiff_t>(at_), '\n') + 1;
    throw Error(Fault::data, concat(where_, ": line ", line, ": ", problem));
  }

  std::string_view text_;
  const std::string& where_;
  size_t at_ = 0, tags_ = 0;
  int depth_ = 0;
};

}  // namespace

boost::property_tree::ptree parse_xml(std::string_view text, const std::string& where) {
  XmlChecker(text, where).check();
  std::istringstream stream{std::string(text)};
  boost::property_tree::ptree tree;
  try {
    read_xml(stream, tree, boost::property_tree::xml_parser::trim_whitespace);
  } catch (const boost::property_tree::xml_parser_error& error) {
    throw Error(Fault::data, concat(where, ": line ", error.line(), ": ", error.message(), ", expected XML"));
  }
  return tree;
}

}  // namespace dtrain::data::annotations
