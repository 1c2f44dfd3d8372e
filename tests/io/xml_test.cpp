#include "libdtrain/io/xml.h"

#include <boost/property_tree/ptree.hpp>

#include "tests/testing.h"

namespace dtrain {
namespace {

constexpr XmlOptions kLimits;

void refuses(const std::string& text, const std::string& message) {
  expect_error([&] { parse_xml(text, "a.xml"); }, Fault::data, "a.xml: line " + message);
}

std::string repeated(const std::string& text, size_t times) {
  std::string all;
  for (size_t i = 0; i < times; ++i) all += text;
  return all;
}

TEST(Xml, HasLimits) {
  const std::string too_deep = "1: elements nested more than 32 deep";
  refuses(repeated("<a b=\"/>\">", 33), too_deep);
  // Comments and data that look like ends of elements.
  refuses(repeated("<a><!-- </a> --><![CDATA[</a>]]>", 33), too_deep);
  refuses(repeated("<a/>", 2 * kLimits.most_elements + 1), "1: more than 1000000 elements");
  refuses(std::string(kLimits.most_bytes + 1, ' '), "1: a file of 16777217 bytes");
  refuses("\xff\xfe<", "1: UTF-16");
  refuses(std::string("<a>\n\0", 5), "2: a NUL byte");
  refuses("<a>\n<!-- ", "2: a tag without '-->'");
  EXPECT_EQ(parse_xml("<!DOCTYPE a SYSTEM \"x.dtd\"><a b='>'>&lt;&#65;&unknown;</a>", "a.xml").get<std::string>("a"),
            "<A&unknown;");
}

// The parser recurses into elements: each of these overflowed the stack while the check took other tags for them.
TEST(Xml, FindsTheElementsThatTheParserFinds) {
  const std::string deep = repeated("<b>", 1'000'000);
  refuses("<a'>" + deep + "'>", "1: elements nested more than 32 deep");   // a quote in a name
  refuses("<a='>" + deep + "'>", "1: elements nested more than 32 deep");  // likewise
  refuses("<a c'='d'>" + deep + "'>", "1: elements nested more than 32 deep");
  refuses("<a><!-->" + repeated("</b>", 1000) + "-->" + deep, "1: elements nested more than 32 deep");
  refuses("<a></a></a>", "1: an end tag without its start tag");
  refuses("<a><?>" + repeated("</b>", 1000) + "?>" + deep, "1: elements nested more than 32 deep");
  refuses("<a b>", "1: an attribute without a value");
  refuses("<a b=c>", "1: the value of an attribute without quotes");
  refuses("<a b='c", "1: a tag without '>'");
  refuses("<a / >", "1: '/' in a tag, expected '/>'");
}

TEST(Xml, KeepsSpacesIfAsked) {
  EXPECT_EQ(parse_xml("<a> b  c </a>", "a.xml").get<std::string>("a"), "b c");
  EXPECT_EQ(parse_xml("<a> b  c </a>", "a.xml", {.trims = false}).get<std::string>("a"), " b  c ");
}

}  // namespace
}  // namespace dtrain
