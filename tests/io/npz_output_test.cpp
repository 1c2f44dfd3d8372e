// NpzOutput: exact bytes, round trip, and rejected input.
#include "dtrain/io/npz_output.h"

#include "dtrain/io/npz.h"
#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain {
namespace {

class NpzWritten : public testing::Test {
 protected:
  std::string path() const { return (folder_.path() / "x.npz").string(); }
  std::string bytes_of(const std::vector<TensorSpec>& arrays, const void* data) const {
    AtomicFile file(path());
    NpzOutput output(file.output());
    for (const TensorSpec& array : arrays) output.add(array, data);
    output.finish();
    file.commit();
    return read_file(path());
  }

  TempDirectory folder_;
};

TEST_F(NpzWritten, IsReadBack) {
  const float values[] = {1, -2.5f, 3e-40f, 4, 5, 6};
  bytes_of(
      {{"a/W", DType::f32, {2, 3}}, {"b", DType::f32, {3}}, {"empty", DType::f32, {0, 7}}, {"one", DType::f32, {}}},
      values);
  const NpzFile file(path());
  ASSERT_EQ(file.entries().size(), 4u);
  EXPECT_EQ(file.entries()[0].name, "a/W");
  EXPECT_EQ(file.entries()[0].array.shape, (Shape{2, 3}));
  EXPECT_EQ(file.entries()[0].array.dtype, "f4");
  EXPECT_EQ(file.read(file.entries()[0]), std::vector<float>(values, values + 6));
  EXPECT_EQ(file.read(*file.find("b")), std::vector<float>(values, values + 3));
  EXPECT_EQ(file.find("empty")->array.shape, (Shape{0, 7}));
  EXPECT_EQ(file.read(*file.find("one")), std::vector<float>{1});
  const int64_t count = 7;
  bytes_of({{"n", DType::i64, {}}}, &count);
  const NpzFile counts(path());
  EXPECT_EQ(counts.read(counts.entries()[0]), std::vector<float>{7});
}

// As numpy.lib.format writes it, with elements at a multiple of 64 bytes in the member.
TEST_F(NpzWritten, HasNumpysHeader) {
  const float value = 1;
  const std::string bytes = bytes_of({{"w", DType::f32, {1}}}, &value),
                    again = bytes_of({{"w", DType::f32, {1}}}, &value);
  EXPECT_EQ(bytes, again);
  const size_t begin = bytes.find("\x93NUMPY");
  std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }";
  header.append(128 - 10 - 1 - header.size(), ' ');
  EXPECT_EQ(bytes.substr(begin, 128), std::string("\x93NUMPY\x01\x00\x76\x00", 10) + header + '\n');
}

TEST_F(NpzWritten, RefusesWhatItCannotHold) {
  const int64_t zero = 0;
  AtomicFile file(path());
  NpzOutput output(file.output());
  output.add({"a", DType::i64, {}}, &zero);
  expect_error([&] { output.add({"a", DType::i64, {}}, &zero); }, Fault::config, "expected another name");
  expect_error([&] { output.add({"", DType::i64, {}}, &zero); }, Fault::config, "expected another name");
  expect_error([&] { output.add({std::string(1001, 'n'), DType::i64, {}}, &zero); }, Fault::config, "1000");
  expect_error([&] { output.add({"half", DType::f16, {}}, &zero); }, Fault::config, "expected f32 or i64");
  expect_error([&] { output.add({"large", DType::i64, {1 << 29}}, &zero); }, Fault::config, "4 GiB");
}

}  // namespace
}  // namespace dtrain
