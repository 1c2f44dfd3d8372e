// Limits on JSON, each met exactly and exceeded by one.
#include "libdtrain/io/json_limits.h"

#include "tests/testing.h"

namespace dtrain {
namespace {

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

std::string many(int values) {  // the array counts as well
  std::string text = "[1";
  for (int i = 2; i < values; ++i) text += ",1";
  return text + "]";
}

TEST(JsonLimits, TextAtALimitPassesAndOneBeyondDoesNot) {
  const JsonLimits limits{.bytes = 100, .depth = 3, .values = 8};
  const auto check = [&](const std::string& text) { check_json(text, "file", Fault::data, limits); };
  check(nested(3));
  expect_error([&] { check(nested(4)); }, Fault::data, "file: JSON nested more than 3 deep");
  check(R"({"a":{"b":[1]},"c":[[null]]})");
  expect_error([&] { check(R"({"a":{"b":[{}]}})"); }, Fault::data, "nested more than 3 deep");
  check(many(8));
  expect_error([&] { check(many(9)); }, Fault::data, "file: JSON of more than 8 values");
  expect_error([&] { check(R"([1,-1,1.5,"s",null,true,{"k":{}}])"); }, Fault::data, "more than 8 values");
  check("\"" + std::string(98, 'x') + "\"");
  expect_error([&] { check("\"" + std::string(99, 'x') + "\""); }, Fault::data,
               "file: JSON of 101 bytes, expected at most 100");
}

TEST(JsonLimits, WhatIsNotJsonIsRefused) {
  for (const char* text : {"", "{", "[1,]", "{}{}", "\"\xff\"", "nul", "[1e999]"})
    expect_error([&] { check_json(text, "file", Fault::checkpoint); }, Fault::checkpoint,
                 "file: invalid JSON or UTF-8 at byte ");
}

TEST(JsonLimits, ManyBracketsCostNoTree) {
  expect_error([] { check_json(std::string(16'000'000, '['), "file", Fault::data); }, Fault::data,
               "nested more than 16 deep");
}

}  // namespace
}  // namespace dtrain
