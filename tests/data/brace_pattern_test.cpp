// Brace expansion of paths: numbers with leading zeros, alternatives, limits.
#include "data/brace_pattern.h"

#include "tests/testing.h"

namespace dtrain::data {
namespace {

using Paths = std::vector<std::string>;

TEST(BracePattern, ExpandsAsShells) {
  EXPECT_EQ(expand_braces("a.tar"), Paths{"a.tar"});
  EXPECT_EQ(expand_braces(""), Paths{""});
  EXPECT_EQ(expand_braces("a-{08..11}.tar"), (Paths{"a-08.tar", "a-09.tar", "a-10.tar", "a-11.tar"}));
  EXPECT_EQ(expand_braces("{8..10}"), (Paths{"8", "9", "10"}));
  EXPECT_EQ(expand_braces("{8..010}"), (Paths{"008", "009", "010"}));
  EXPECT_EQ(expand_braces("{2..0}"), (Paths{"2", "1", "0"}));
  EXPECT_EQ(expand_braces("{b,a,}-{0..1}"), (Paths{"b-0", "b-1", "a-0", "a-1", "-0", "-1"}));
  EXPECT_EQ(expand_braces("{one}-{a..b}"), Paths{"{one}-{a..b}"}) << "no list and no numbers";
}

TEST(BracePattern, RefusesWhatItDoesNotExpand) {
  for (const char* pattern : {"{a,{b,c}}", "{0..1", "0..1}", "}{"})
    expect_error([&] { expand_braces(pattern); }, Fault::data,
                 concat(pattern, ": its braces are nested or have no partner"));
  for (const char* pattern : {"{0..1000000}", "{0..999}{0..999}{0..1}"})
    expect_error([&] { expand_braces(pattern); }, Fault::data, "more than 1000000 files");
  EXPECT_EQ(expand_braces("{0..99999999999999999999}").size(), 1u) << "too many digits for a number";
}

}  // namespace
}  // namespace dtrain::data
