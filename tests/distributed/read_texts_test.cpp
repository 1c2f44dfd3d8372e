// Invalid texts from other ranks.
#include "libdtrain/distributed/read_texts.h"

#include <new>

#include "tests/testing.h"

namespace dtrain {
namespace {

TEST(ReadTexts, NamesWhatAndWhoWhereATextIsRefused) {
  const auto group = make_single_group();
  const std::string rank = group->name(0);
  int64_t read = 0;
  read_texts(*group, "17", "numbers", [&](int, const std::string& text) { read = number_in<int64_t>(text); });
  EXPECT_EQ(read, 17);
  expect_error([&] { read_text(*group, 0, "17 ", "numbers", [](const std::string& text) { number_in<int>(text); }); },
               Fault::communication, "numbers: " + rank + " sent an invalid message: '17 ', expected a number");
  // Exceptions of other libraries, and long ones.
  expect_error(
      [&] { read_text(*group, 0, "", "texts", [](const std::string& text) { static_cast<void>(text.at(7)); }); },
      Fault::communication, "texts: " + rank);
  const auto repeats = [](const std::string& text) { throw Error(text); };
  try {
    read_text(*group, 0, std::string(100'000, 'a'), "texts", repeats);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 1000U);
  }
  EXPECT_THROW(read_text(*group, 0, "", "texts", [](const std::string&) { throw std::bad_alloc(); }), std::bad_alloc);
}

TEST(ReadTexts, NumbersFillTheWholeText) {
  EXPECT_EQ(number_in<double>("0.5"), 0.5);
  for (const char* text : {"", " 1", "1 ", "1x", "x", "99999999999999999999", "0x10"})
    EXPECT_THROW(number_in<int64_t>(text), Error) << text;
  EXPECT_THROW(number_in<uint16_t>("65536"), Error);
  EXPECT_THROW(number_in<uint16_t>("-1"), Error);
}

}  // namespace
}  // namespace dtrain
