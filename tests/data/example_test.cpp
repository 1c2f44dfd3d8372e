#include "dtrain/data/example.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <bit>
#include <map>

#include "data/tf_example.pb.h"
#include "dtrain/core/error.h"
#include "dtrain/core/rng.h"
#include "dtrain/io/record_file.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

std::span<const std::byte> as_record(std::string_view text) { return std::as_bytes(std::span(text)); }

// Complete, comparable contents of a record.
struct Values {
  FeatureKind kind = FeatureKind::unset;
  std::vector<std::string> bytes;
  std::vector<uint32_t> floats;  // as bits, so that NaN equals itself
  std::vector<int64_t> ints;
  bool operator==(const Values&) const = default;
};
using Contents = std::map<std::string, Values>;

Contents contents_of(const Example& example) {
  Contents contents;
  std::vector<std::string_view> bytes;
  std::vector<float> floats;
  for (const Example::Entry& entry : example.entries()) {
    const Feature& feature = *example.find(entry.key);
    Values values{feature.kind, {}, {}, {}};
    if (feature.kind == FeatureKind::bytes) {
      feature.read(bytes);
      values.bytes.assign(bytes.begin(), bytes.end());
    } else if (feature.kind == FeatureKind::float32) {
      feature.read(floats);
      for (float value : floats) values.floats.push_back(std::bit_cast<uint32_t>(value));
    } else if (feature.kind == FeatureKind::int64) {
      feature.read(values.ints);
    }
    EXPECT_EQ(feature.count, values.bytes.size() + values.floats.size() + values.ints.size());
    contents[std::string(entry.key)] = std::move(values);
  }
  return contents;
}

Contents contents_of(const test::Example& example) {
  Contents contents;
  for (const auto& [key, feature] : example.features().feature()) {
    Values values{static_cast<FeatureKind>(feature.kind_case()), {}, {}, {}};
    for (const auto& value : feature.bytes_list().value()) values.bytes.push_back(value);
    for (float value : feature.float_list().value()) values.floats.push_back(std::bit_cast<uint32_t>(value));
    for (int64_t value : feature.int64_list().value()) values.ints.push_back(value);
    contents[key] = std::move(values);
  }
  return contents;
}

// Sorted by key; protobuf's map order is random.
std::string serialize(const test::Example& example) {
  std::string record;
  google::protobuf::io::StringOutputStream stream(&record);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  example.SerializeToCodedStream(&coded);
  coded.Trim();
  return record;
}

std::string random_text(RandomStream& random, uint32_t limit) {
  std::string text(random.below(limit), '\0');
  for (char& c : text) c = static_cast<char>(random.next());
  return text;
}

int64_t random_int(RandomStream& random) { return static_cast<int64_t>(random.next64() >> random.below(64)); }

test::Example random_example(RandomStream& random) {
  test::Example example;
  auto& features = *example.mutable_features()->mutable_feature();
  for (uint32_t f = random.below(6); f > 0; --f) {
    test::Feature& feature =
        features[concat("image/", random.below(4), random.below(2) ? "\u00e9\u4e2d\U0001F600" : "")];
    const uint32_t count = random.below(4);
    switch (random.below(4)) {
      case 0:
        feature.mutable_bytes_list();
        for (uint32_t i = 0; i < count; ++i) feature.mutable_bytes_list()->add_value(random_text(random, 200));
        break;
      case 1:
        feature.mutable_float_list();
        for (uint32_t i = 0; i < count; ++i) feature.mutable_float_list()->add_value(random.normal());
        break;
      case 2:
        feature.mutable_int64_list();
        for (uint32_t i = 0; i < count; ++i) feature.mutable_int64_list()->add_value(random_int(random));
        break;
      default:
        break;
    }
  }
  return example;
}

// Field of a message, for records that protobuf would not write.
std::string field(int number, std::string_view body) {
  std::string bytes(1, static_cast<char>(number << 3 | 2));
  for (size_t size = body.size();; size >>= 7) {
    bytes += static_cast<char>((size & 0x7f) | (size >= 0x80 ? 0x80 : 0));
    if (size < 0x80) return bytes.append(body);
  }
}
std::string entry(std::string_view key, std::string_view feature) {
  return field(1, field(1, key) + field(2, feature));
}

std::string error_of(std::string_view record) {
  Example example;
  try {
    example.parse(as_record(record));
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
  ADD_FAILURE() << "accepted";
  return "";
}

TEST(Example, ReadsProtobufOutput) {
  RandomStream random(1, 0);
  Example example;
  for (int round = 0; round < 3000; ++round) {
    const test::Example expected = random_example(random);
    const std::string record = serialize(expected);
    example.parse(as_record(record));
    ASSERT_EQ(contents_of(example), contents_of(expected)) << "round " << round;
  }
}

TEST(Example, AgreesWithProtobufOnMutations) {
  RandomStream random(2, 0);
  int accepted = 0, refused = 0;
  Example example;
  for (int round = 0; round < 40000; ++round) {
    std::string record = serialize(random_example(random));
    for (uint32_t m = 1 + random.below(3); m > 0 && !record.empty(); --m) {
      const uint32_t at = random.below(static_cast<uint32_t>(record.size()));
      switch (random.below(4)) {
        case 0:
          record[at] = static_cast<char>(record[at] ^ 1 << random.below(8));
          break;
        case 1:
          record[at] = static_cast<char>(random.next());
          break;
        case 2:
          record.resize(at);
          break;
        default:
          record.insert(at, random_text(random, 6));
      }
    }
    try {
      example.parse(as_record(record));
    } catch (const Error& error) {
      ASSERT_EQ(error.fault(), Fault::data);
      ++refused;
      continue;
    }
    ++accepted;
    test::Example oracle;
    ASSERT_TRUE(oracle.ParseFromString(record)) << "round " << round;
    ASSERT_EQ(contents_of(example), contents_of(oracle)) << "round " << round;
  }
  EXPECT_GT(accepted, 5000);
  EXPECT_GT(refused, 5000);
}

TEST(Example, WriterAgreesWithProtobuf) {
  RandomStream random(3, 0);
  for (int round = 0; round < 2000; ++round) {
    const test::Example expected = random_example(random);
    ExampleWriter writer;
    const std::map<std::string, test::Feature> sorted(expected.features().feature().begin(),
                                                      expected.features().feature().end());
    bool writable = true;
    for (const auto& [key, feature] : sorted) {
      const auto& texts = feature.bytes_list().value();
      const auto& floats = feature.float_list().value();
      const auto& ints = feature.int64_list().value();
      if (feature.has_bytes_list())
        writer.bytes(key, std::vector<std::string_view>(texts.begin(), texts.end()));
      else if (feature.has_float_list())
        writer.floats(key, {floats.data(), static_cast<size_t>(floats.size())});
      else if (feature.has_int64_list())
        writer.int64s(key, {ints.data(), static_cast<size_t>(ints.size())});
      else
        writable = false;
    }
    const std::string record = writer.take();
    if (!writable) continue;
    test::Example read;
    ASSERT_TRUE(read.ParseFromString(record));
    ASSERT_EQ(contents_of(read), contents_of(expected));
    read.mutable_features();
    ASSERT_EQ(record, serialize(read));
  }
}

TEST(Example, ReadsPackedAndUnpackedValuesMixed) {
  const std::string one_float("\x0d\x00\x00\x80\x3f", 5), two_floats("\x0a\x08\x00\x00\x00\x40\x00\x00\x40\x40", 10);
  const std::string record = field(1, entry("f", field(2, one_float + two_floats + one_float)) +
                                          entry("i", field(3, std::string("\x08\x05\x0a\x03\x06\xac\x02\x08\x07", 9))));
  Example example;
  example.parse(as_record(record));
  std::vector<float> floats;
  std::vector<int64_t> ints;
  example.find("f")->read(floats);
  example.find("i")->read(ints);
  EXPECT_EQ(floats, (std::vector<float>{1, 2, 3, 1}));
  EXPECT_EQ(ints, (std::vector<int64_t>{5, 6, 300, 7}));
}

TEST(Example, LastOfTwoEqualKeysWinsAlsoAcrossFeaturesMessages) {
  const std::string five("\x0a\x01\x05", 3), six("\x0a\x01\x06", 3), seven("\x0a\x01\x07", 3);
  Example example;
  const std::string twice = field(1, entry("k", field(3, five)) + entry("k", field(3, six)));
  example.parse(as_record(twice));
  EXPECT_EQ(example.int64("k"), 6);
  const std::string merged = twice + field(1, entry("k", field(3, seven)));
  example.parse(as_record(merged));
  EXPECT_EQ(example.int64("k"), 7);
}

TEST(Example, DistinguishesMissingUnsetKindAndCount) {
  ExampleWriter writer;
  writer.bytes("text", "abc");
  writer.int64("label", -3);
  writer.int64s("two", std::vector<int64_t>{1, 2});
  writer.int64s("none", {});
  writer.floats("floats", std::vector<float>{0.5f});
  std::string record = writer.take();
  record += field(1, entry("unset", ""));
  Example example;
  example.parse(as_record(record));
  EXPECT_EQ(example.bytes("text"), "abc");
  EXPECT_EQ(example.int64("label"), -3);
  const auto problem = [&](std::string_view key) -> std::string {
    try {
      example.int64(key);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(problem("absent"), "feature absent is missing");
  EXPECT_EQ(problem("unset"), "feature unset is there, but has no value list");
  EXPECT_EQ(problem("text"), "feature text holds bytes values, expected int64");
  EXPECT_EQ(problem("none"), "feature none holds 0 values, expected 1");
  EXPECT_EQ(problem("two"), "feature two holds 2 values, expected 1");
  std::vector<float> floats{9};
  example.floats("absent", floats);
  EXPECT_TRUE(floats.empty());
  example.floats("floats", floats);
  EXPECT_EQ(floats, std::vector<float>{0.5f});
  EXPECT_THROW(example.floats("label", floats), Error);
}

TEST(Example, RejectsASequenceExampleByName) {
  test::SequenceExample sequence;
  (*sequence.mutable_feature_lists()->mutable_feature_list())["frames"].add_feature();
  EXPECT_NE(error_of(sequence.SerializeAsString()).find("SequenceExample"), std::string::npos);
}

TEST(Example, RejectsMalformedBytesWithTheReason) {
  const auto has = [](const std::string& message, const char* part) { return message.find(part) != std::string::npos; };
  EXPECT_PRED2(has, error_of(std::string("\x0a\x05\x00", 3)), "a field of 5 bytes in a message with 1 bytes left");
  EXPECT_PRED2(has, error_of("\x0a\xff\xff\xff\xff\x07"), "a field of 2147483647 bytes");
  EXPECT_PRED2(has, error_of("\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), "a field of 18446744073709551615 bytes");
  EXPECT_PRED2(has, error_of("\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"), "more than 64 bits");
  EXPECT_PRED2(has, error_of("\x08\xff"), "runs past the end");
  EXPECT_PRED2(has, error_of("\x0b\x0c"), "wire type 3");
  EXPECT_PRED2(has, error_of("\x0f"), "wire type 7");
  EXPECT_PRED2(has, error_of(std::string("\x00\x00", 2)), "field tag 0");
  EXPECT_PRED2(has, error_of(field(1, entry("f", field(2, field(1, "abc"))))), "packed floats of 3 bytes");
  EXPECT_PRED2(has, error_of(field(1, field(1, field(1, "\xff") + field(1, "k")))), "not UTF-8");
  EXPECT_PRED2(has, error_of(field(1, entry("f", field(1, "") + field(1, "")))), "two value lists");
}

TEST(Example, AcceptsFeatureNamesOfProtobuf) {
  test::Example oracle;
  for (const char* name : {"\xc0\x80", "\xff", "\x80", "\xe4\xb8", "\xe0\x80\x80", "\xed\xa0\x80", "\xf0\x80\x80\x80",
                           "\xf4\x90\x80\x80", "\xf5\x80\x80\x80"}) {
    const std::string record = field(1, entry(name, ""));
    EXPECT_FALSE(oracle.ParseFromString(record));
    EXPECT_NE(error_of(record).find("not UTF-8"), std::string::npos);
  }
  Example example;
  for (const char* name :
       {"", "a", "\xc2\x80", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    const std::string record = field(1, entry(name, ""));
    EXPECT_TRUE(oracle.ParseFromString(record));
    EXPECT_NO_THROW(example.parse(as_record(record)));
  }
}

TEST(Example, SkipsUnknownFieldsAndIsEmptyForAnEmptyRecord) {
  const std::string unknown = std::string("\x28\x96\x01", 3) + field(7, "xyz") +
                              std::string("\x35\x01\x02\x03\x04", 5) +
                              std::string("\x39\x01\x02\x03\x04\x05\x06\x07\x08", 9);
  const std::string record =
      unknown +
      field(1, unknown + field(1, unknown + field(1, "k") + field(2, unknown + field(3, unknown + "\x08\x05"))));
  Example example;
  example.parse(as_record(record));
  EXPECT_EQ(example.int64("k"), 5);
  example.parse({});
  EXPECT_TRUE(example.entries().empty());
}

// Deeply nested unknown and known fields are skipped without recursion.
TEST(Example, SkipsAnyNestingDepth) {
  for (const int number : {1, 2, 3, 7}) {
    std::string nested;
    for (int depth = 0; depth < 5000; ++depth) nested = field(number, nested);
    Example example;
    try {
      example.parse(as_record(field(1, entry("k", nested))));
      EXPECT_EQ(example.entries().size(), 1u);
    } catch (const Error& error) {
      EXPECT_EQ(error.fault(), Fault::data);
    }
  }
  EXPECT_NE(error_of(std::string(100000, '\x3b')).find("wire type 3"), std::string::npos) << "groups";
}

TEST(Example, LimitsItsTable) {
  std::string features;
  for (int i = 0; i < 70000; ++i) features += std::string("\x0a\x00", 2);
  EXPECT_NE(error_of(field(1, features)).find("more than 65536 features"), std::string::npos);
}

TEST(Example, ReadsADetectionRecord) {
  const std::filesystem::path path = test_data("tfrecord/object_detection/pets_examples.record");
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "SKIPPED: " << path;
  RecordReader reader(path.string());
  Example example;
  int records = 0;
  while (const auto bytes = reader.next()) {
    example.parse(bytes->bytes);
    EXPECT_EQ(example.bytes("image/encoded").substr(0, 2), "\xff\xd8");
    EXPECT_GT(example.int64("image/width"), 0);
    std::vector<float> xmin, xmax;
    example.floats("image/object/bbox/xmin", xmin);
    example.floats("image/object/bbox/xmax", xmax);
    ASSERT_EQ(xmin.size(), xmax.size());
    for (size_t i = 0; i < xmin.size(); ++i) EXPECT_LT(xmin[i], xmax[i]);
    ++records;
  }
  EXPECT_EQ(records, 10);
}

}  // namespace
}  // namespace dtrain::data
