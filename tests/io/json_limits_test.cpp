// JSON limits, each met exactly and exceeded by one.
#include "libdtrain/io/json_limits.h"

#include <nlohmann/json.hpp>

#include "tests/testing.h"

namespace dtrain {
namespace {

void parse(const std::string& text, const JsonLimits& limits = {}) {
  parse_json<nlohmann::json>(text, "file", Fault::data, limits);
}

std::string nested(int depth) {
  return std::string(static_cast<size_t>(depth), '[') + std::string(static_cast<size_t>(depth), ']');
}

std::string many(int values) {  // the array counts too
  std::string text = "[1";
  for (int i = 2; i < values; ++i) text += ",1";
  return text + "]";
}

TEST(JsonLimits, TextAtALimitPassesAndOneBeyondDoesNot) {
  const JsonLimits limits{.bytes = 100, .depth = 3, .values = 8};
  const auto check = [&](const std::string& text) { parse(text, limits); };
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
    expect_error([&] { parse_json<nlohmann::json>(text, "file", Fault::checkpoint); }, Fault::checkpoint,
                 "file: invalid JSON or UTF-8 at byte ");
}

std::string object_of(int keys) {
  std::string text = "{";
  for (int i = 0; i < keys; ++i) text += concat(i > 0 ? "," : "", "\"k", i, "\":", i);
  return text + "}";
}

TEST(JsonLimits, KeysAreThoseOfOneObject) {
  const JsonLimits limits{.keys = 3};
  const std::string three = object_of(3);
  parse("[" + three + "," + three + "]", limits);
  parse(R"({"a":{"b":1,"c":2,"d":3},"e":4,"f":5})", limits);
  expect_error([&] { parse(object_of(4), limits); }, Fault::data, "file: JSON object of more than 3 keys");
  expect_error([&] { parse(R"({"a":{"b":1,"c":2},"e":4,"f":5,"g":6})", limits); }, Fault::data, "more than 3 keys");
}

TEST(JsonLimits, TheTreeIsThatOfTheText) {
  const std::string text = R"({"b": [1, -2, 1.5, "\u00e4"], "a": {"c": null, "d": true}})";
  EXPECT_EQ(parse_json<nlohmann::json>(text, "file", Fault::data), nlohmann::json::parse(text));
  expect_error([] { parse_json<nlohmann::json>("[1", "file", Fault::config); }, Fault::config, "file: invalid JSON");
  EXPECT_EQ(parse_json_line<nlohmann::json>("[1]"), nlohmann::json::array({1}));
  EXPECT_TRUE(parse_json_line<nlohmann::json>("[1").is_discarded());
  EXPECT_TRUE(parse_json_line<nlohmann::json>(nested(17)).is_discarded());
}

TEST(JsonLimits, ReadingEndsInTimeAndOnRequest) {
  const std::string text = many(100'000);
  JsonLimits limits{.values = 1'000'000, .seconds = 0};
  expect_error([&] { parse_json<nlohmann::json>(text, "file", Fault::data, limits); }, Fault::data,
               "file: JSON that takes more than 0 s to read");
  EXPECT_TRUE(parse_json_line<nlohmann::json>(text, limits).is_discarded());
  static int calls;
  calls = 0;
  limits.seconds = 60;
  limits.stop = [] { return ++calls == 40; };  // during the check, which polls every 4096 bytes
  expect_error([&] { parse_json<nlohmann::json>(text, "file", Fault::data, limits); }, Fault::resource,
               "file: the reading of its JSON was stopped");
  calls = -40;  // while the tree is built
  expect_error([&] { parse_json<nlohmann::json>(text, "file", Fault::data, limits); }, Fault::resource, "was stopped");
}

TEST(JsonLimits, ManyBracketsCostNoTree) {
  expect_error([] { parse(std::string(16'000'000, '[')); }, Fault::data, "nested more than 16 deep");
}

}  // namespace
}  // namespace dtrain
