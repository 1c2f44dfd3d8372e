// The subset of YAML in data.yaml files.
#include "data/annotations/yaml.h"

#include "tests/testing.h"

namespace dtrain::data::annotations {
namespace {

// One line: {a: x, b: [y, z]}.
std::string text_of(const YamlValue& value) {
  std::string text;
  if (value.kind == YamlValue::Kind::scalar) return value.text;
  for (const YamlValue& item : value.items) text += (text.empty() ? "" : "|") + text_of(item);
  for (const auto& [key, inner] : value.entries) text += concat(text.empty() ? "" : "|", key, "=", text_of(inner));
  return value.kind == YamlValue::Kind::list ? "[" + text + "]" : "{" + text + "}";
}

std::string parsed(const std::string& text) { return text_of(parse_yaml(text, "data.yaml")); }

void refuses(const std::string& text, const std::string& message) {
  expect_error([&] { parse_yaml(text, "data.yaml"); }, Fault::data, "data.yaml: line " + message);
}

TEST(Yaml, ReadsFilesOfUltralytics) {
  EXPECT_EQ(parsed("# COCO8 by Ultralytics\n"
                   "path: ../datasets/coco8 # root\n"
                   "train: images/train\r\n"
                   "val:   images/val\n"
                   "test: # optional\n"
                   "\n"
                   "# Classes\n"
                   "names:\n"
                   "  0: person\n"
                   "  1: traffic light  # two words\n"
                   "\n"
                   "  2: 'hair ''drier'''\n"
                   "# Download\n"
                   "download: |\n"
                   "  from x import y  # Python: {[\n"
                   "\n"
                   "    z: 1\n"
                   "nc: 3\n"),
            "{path=../datasets/coco8|train=images/train|val=images/val|test=|"
            "names={0=person|1=traffic light|2=hair 'drier'}|download=|nc=3}");
}

TEST(Yaml, ReadsFilesOfRoboflow) {
  EXPECT_EQ(parsed("\xef\xbb\xbftrain: ../train/images\n"
                   "nc: 2\n"
                   "names: ['a, b', \"c\\\"\\u00e9\\x41\"]\n"
                   "roboflow:\n"
                   "  workspace: me\n"
                   "  url: https://universe/x/2\n"),
            "{train=../train/images|nc=2|names=[a, b|c\"éA]|roboflow={workspace=me|url=https://universe/x/2}}");
}

TEST(Yaml, ReadsBlockAndFlowLists) {
  EXPECT_EQ(parsed("---\nnames:\n- a\n-   b\nlast: 1\n"), "{names=[a|b]|last=1}");
  EXPECT_EQ(parsed("names:\n  - a\n  -\n    - b\n    - c\n"), "{names=[a|[b|c]]}");
  EXPECT_EQ(parsed("names: [person,\n  'b',  # comment\n        c d ]\nx: {0: a, \"1\":b, 2: [c, {d: e}], f}\n"),
            "{names=[person|b|c d]|x={0=a|1=b|2=[c|{d=e}]|f=}}");
  EXPECT_EQ(parsed("a: []\nb: {}\nc: x#y\nd: http://e\n"), "{a=[]|b={}|c=x#y|d=http://e}");
  EXPECT_EQ(parsed("{a: 1,\n b: [c]}  # JSON\n"), "{a=1|b=[c]}");
  EXPECT_EQ(parsed(""), "{}");
  EXPECT_EQ(parsed("# only\n\n"), "{}");
}

TEST(Yaml, RefusesWhatItDoesNotRead) {
  refuses("a: &x 1\n", "1: an anchor, alias or tag");
  refuses("a: 1\nb: *x\n", "2: an anchor, alias or tag");
  refuses("a: !!python/object:os.system x\n", "1: an anchor, alias or tag");
  refuses("a: 1\na: 2\n", "2: the key 'a' a second time");
  refuses("a: {b: 1, b: 2}\n", "1: the key 'b' a second time");
  refuses("a: 1\n  b: 2\n", "2: a line that is indented more");
  refuses("  a: 1\nb: 2\n", "2: a line that is indented less");
  refuses("a:\n\tb: 2\n", "2: a tab in the indentation");
  refuses("a: b: c\n", "1: a second ': '");
  refuses("a\n", "1: a line without 'key: value'");
  refuses("- a\n", "1: a list, expected keys");
  refuses("a:\n- b: c\n", "2: a second ': '");
  refuses("a: [b\n", "2: a '[' or '{' without its end");
  refuses("a: [b}\n", "1: '}', expected ',' or ']'");
  refuses("a: 'b\n", "1: a quoted text without an end");
  refuses("a: \"\\q\"\n", "1: an escape that is not supported");
  refuses("a: \"\\ud800\"\n", "1: an escape that is not supported");
  refuses("a: 'b' c\n", "1: text after a value");
  refuses("a: 1\n---\nb: 2\n", "2: several documents");
  refuses(std::string("a: \0", 4), "1: a NUL byte");
}

TEST(Yaml, HasLimits) {
  refuses("a: " + std::string(17, '['), "1: values nested more than 16 deep");
  std::string deep;
  for (int i = 0; i < 17; ++i) deep += std::string(static_cast<size_t>(i), ' ') + "a:\n";
  refuses(deep, "17: values nested more than 16 deep");
  std::string many = "a: [";
  for (size_t i = 0; i < kMaxYamlValues; ++i) many += "1,";
  refuses(many + "]\n", "1: more than 100000 values");
  refuses(std::string(kMaxYamlBytes + 1, '\n'), "1: a file of 1048577 bytes");
}

}  // namespace
}  // namespace dtrain::data::annotations
