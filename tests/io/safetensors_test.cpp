// safetensors: malformed files, and round trips with the writer.
#include "dtrain/io/safetensors.h"

#include <cstring>
#include <random>

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

std::string with_prefix(uint64_t size, const std::string& rest) {
  return std::string(reinterpret_cast<const char*>(&size), 8) + rest;
}

std::string file_of(const std::string& header, size_t data_bytes) {
  return with_prefix(header.size(), header + std::string(data_bytes, '\1'));
}

std::string tensor(const std::string& name, const std::string& dtype, const std::string& shape,
                   const std::string& offsets) {
  return "\"" + name + R"(":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

struct Attack {
  const char* what;
  std::string bytes;
  const char* message;  // substring
};

std::vector<Attack> attacks() {
  const auto one = [](const std::string& dtype, const std::string& shape, const std::string& offsets, size_t bytes) {
    return file_of("{" + tensor("a", dtype, shape, offsets) + "}", bytes);
  };
  const std::string a = tensor("a", "F32", "[2]", "[0,8]");
  return {
      {"empty file", "", "0 bytes"},
      {"prefix only", std::string(7, '\0'), "7 bytes"},
      {"header of 2^63", with_prefix(uint64_t{1} << 63, "{}"), "header of 9223372036854775808"},
      {"header of 2^64 - 1", with_prefix(UINT64_MAX, "{}"), "header of 18446744073709551615"},
      {"header beyond the file", with_prefix(3, "{}"), "header of 3 bytes, 2 bytes left"},
      {"empty header", with_prefix(0, ""), "does not begin with {"},
      {"header that begins with a space", file_of(" {}", 0), "does not begin with {"},
      {"array instead of object", file_of("[]", 0), "does not begin with {"},
      {"cut JSON", file_of("{" + a, 8), "invalid JSON"},
      {"two JSON values", file_of("{}{}", 0), "invalid JSON"},
      {"not UTF-8", file_of("{" + tensor("\xff", "F32", "[2]", "[0,8]") + "}", 8), "invalid JSON or UTF-8"},
      {"duplicate tensor", file_of("{" + a + "," + a + "}", 8), "duplicate tensor \"a\""},
      {"duplicate key", file_of(R"({"a":{"dtype":"F32","dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8),
       "duplicate key \"dtype\""},
      {"duplicate metadata", file_of(R"({"__metadata__":{"x":"1","x":"2"}})", 0), "duplicate metadata \"x\""},
      {"unknown key", file_of(R"({"a":{"dtype":"F32","size":1}})", 8), "unknown key \"size\""},
      {"missing key", file_of(R"({"a":{"dtype":"F32","shape":[2]}})", 8), "needs dtype, shape"},
      {"one offset", one("F32", "[2]", "[0]", 8), "needs dtype, shape and two"},
      {"three offsets", one("F32", "[2]", "[0,8,8]", 8), "more than two"},
      {"unknown dtype", one("F31", "[2]", "[0,8]", 8), "unknown dtype \"F31\""},
      {"dtype as number", file_of(R"({"a":{"dtype":1,"shape":[2],"data_offsets":[0,8]}})", 8),
       "unexpected the number 1"},
      {"negative extent", one("F32", "[-2]", "[0,8]", 8), "negative number -2"},
      {"negative offset", one("F32", "[2]", "[-8,0]", 8), "negative number -8"},
      {"fractional extent", one("F32", "[2.0]", "[0,8]", 8), "unexpected the number 2.0"},
      {"null extent", one("F32", "[null]", "[0,8]", 8), "unexpected null"},
      {"nested extent", one("F32", "[[2]]", "[0,8]", 8), "unexpected an array"},
      {"extent beyond int64", one("F32", "[9223372036854775808]", "[0,8]", 8), "too large"},
      {"product that overflows", one("F32", "[4294967296,4294967296,1]", "[0,0]", 0), "is too large"},
      {"too many dimensions", one("F32", "[1,1,1,1,1,1,2]", "[0,8]", 8), "more than 6 dimensions"},
      {"size and shape differ", one("F32", "[3]", "[0,8]", 8), "F32 [3] does not take the 8 bytes"},
      {"size and dtype differ", one("F16", "[2]", "[0,8]", 8), "F16 [2] does not take the 8 bytes"},
      {"offsets backwards", one("F32", "[2]", "[8,0]", 8), "run backwards"},
      {"gap at the beginning", one("F32", "[2]", "[8,16]", 16), "(gap)"},
      {"gap", file_of("{" + a + "," + tensor("b", "U8", "[1]", "[9,10]") + "}", 10), "(gap)"},
      {"overlap", file_of("{" + a + "," + tensor("b", "F32", "[2]", "[4,12]") + "}", 12), "(overlap)"},
      {"same bytes twice", file_of("{" + a + "," + tensor("b", "F32", "[2]", "[0,8]") + "}", 8), "(overlap)"},
      {"truncated data", one("F32", "[2]", "[0,8]", 7), "(truncated)"},
      {"trailing data", one("F32", "[2]", "[0,8]", 9), "(trailing bytes)"},
      {"claim of 2^62 bytes", one("U8", "[4611686018427387904]", "[0,4611686018427387904]", 8), "is too large"},
      {"claim of 2^59 bytes", one("U8", "[576460752303423488]", "[0,576460752303423488]", 8), "(truncated)"},
      {"metadata with a number", file_of(R"({"__metadata__":{"x":1}})", 0), "unexpected the number 1"},
      {"deep nesting", file_of("{\"a\":" + std::string(100000, '['), 0), "unexpected an array"},
  };
}

TEST(Safetensors, EveryAttackIsRefusedWithItsReason) {
  const TempDirectory directory;
  const std::string path = directory / "a.safetensors";
  for (const Attack& attack : attacks()) {
    write_file(path, attack.bytes);
    try {
      const SafetensorsFile file(path);
      ADD_FAILURE() << attack.what << ": accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data) << attack.what;
      EXPECT_TRUE(std::string(error.what()).starts_with(path)) << error.what();
      EXPECT_NE(std::string(error.what()).find(attack.message), std::string::npos)
          << attack.what << ": " << error.what();
    }
  }
}

// Sparse file with a header of 101 MB: rejected by the limit before it is read.
TEST(Safetensors, HeaderLimit) {
  const TempDirectory directory;
  const std::string path = directory / "a.safetensors";
  write_file(path, with_prefix(101'000'000, "{"));
  std::filesystem::resize_file(path, 101'000'008);
  try {
    const SafetensorsFile file(path);
    ADD_FAILURE() << "accepted";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("at most 100000000"), std::string::npos) << error.what();
  }
}

// Random corruption must neither crash nor be misread: accepted headers cover the data exactly.
TEST(Safetensors, RandomDamage) {
  const TempDirectory directory;
  const std::string path = directory / "a.safetensors";
  const std::string whole = file_of("{\"__metadata__\":{\"k\":\"v\"}," + tensor("a", "F32", "[2,1]", "[0,8]") + "," +
                                        tensor("b", "I64", "[]", "[8,16]") + "}",
                                    16);
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    std::string bytes = whole;
    for (uint32_t i = 0; i <= random() % 3; ++i) bytes[random() % bytes.size()] = static_cast<char>(random());
    write_file(path, bytes);
    try {
      const SafetensorsFile file(path);
      uint64_t end = file.entries().empty() ? bytes.size() : file.entries().front().offset;
      for (const SafetensorsEntry& entry : file.entries()) {
        ASSERT_EQ(entry.offset, end);
        end += entry.bytes;
      }
      ASSERT_EQ(end, bytes.size());
    } catch (const Error&) {
    }
  }
}

TEST(Safetensors, RoundTrip) {
  const TempDirectory directory;
  const std::string path = directory / "a.safetensors";
  const std::vector<TensorSpec> plan = {{"count", DType::i64, {}},
                                        {"a.weight", DType::f32, {2, 3}},
                                        {"nothing \"quoted\" \u00e9", DType::f32, {0, 7}},
                                        {"bytes", DType::u8, {3}}};
  const int64_t count = -5;
  const float weight[6] = {1, -2, 3.5f, 1e-30f, 0, -0.0f};
  std::string bytes = safetensors_header(plan, {{"format", "pt"}});
  EXPECT_EQ(bytes.size() % 8, 0u);
  bytes.append(reinterpret_cast<const char*>(&count), 8)
      .append(reinterpret_cast<const char*>(weight), 24)
      .append("xyz");
  write_file(path, bytes);

  const SafetensorsFile file(path);
  ASSERT_EQ(file.entries().size(), 4u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  for (const TensorSpec& spec : plan) {
    const SafetensorsEntry* entry = file.find(spec.name);
    ASSERT_TRUE(entry) << spec.name;
    EXPECT_EQ(entry->shape, spec.shape);
    EXPECT_EQ(entry->dtype, safetensors_dtype(spec.dtype));
  }
  EXPECT_FALSE(file.find("other"));
  int64_t read_count = 0;
  float read_weight[6];
  file.read(*file.find("count"), &read_count);
  file.read(*file.find("a.weight"), read_weight);
  EXPECT_EQ(read_count, count);
  EXPECT_EQ(std::memcmp(read_weight, weight, sizeof weight), 0);
  EXPECT_THROW(safetensors_header(std::vector<TensorSpec>{plan[0], plan[0]}), Error);
  expect_error(
      [] {
        safetensors_header(std::vector<TensorSpec>{{"a\xff", DType::f32, {1}}});
      },
      Fault::checkpoint, "is not UTF-8");
}

}  // namespace
}  // namespace dtrain
