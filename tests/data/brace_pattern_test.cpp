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
  EXPECT_EQ(expand_braces("{000..5..2}"), (Paths{"000", "002", "004"}));
  EXPECT_EQ(expand_braces("{5..0..3}"), (Paths{"5", "2"}));
  EXPECT_EQ(expand_braces("{0..2..0}"), (Paths{"0", "1", "2"}));
  EXPECT_EQ(expand_braces("{a..c}{F..B..2}"), (Paths{"aF", "aD", "aB", "bF", "bD", "bB", "cF", "cD", "cB"}));
  EXPECT_EQ(expand_braces("{a..b,c}"), (Paths{"a..b", "c"}));
  for (const char* literal : {"{one}", "{a..B}", "{a..1}", "{aa..bb}", "{1..2..x}", "{1..2..}", "{..}", "{1..2..3..4}"})
    EXPECT_EQ(expand_braces(literal), Paths{literal}) << "no list and no range";
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
