// Class-name files beside shards.
#include "dtrain/data/class_names.h"

#include "tests/files.h"
#include "tests/testing.h"

namespace dtrain::data {
namespace {

TEST(ClassNames, RoundTrip) {
  const ClassNames names = {{1, "n01440764"},
                            {2, "great white shark"},
                            {1000,
                             "Stra\xc3\x9f"
                             "e"}};
  EXPECT_EQ(to_text(names),
            "1 n01440764\n2 great white shark\n1000 Stra\xc3\x9f"
            "e\n");
  EXPECT_EQ(class_names_from(to_text(names), "x"), names);
  EXPECT_EQ(class_names_from("\xef\xbb\xbf"
                             "1 a\r\n\r\n  \n2\tb b \r\n",
                             "x"),
            (ClassNames{{1, "a"}, {2, "b b"}}));
  const TempDirectory folder;
  EXPECT_TRUE(read_class_names(folder.path().string()).empty());
  write_file((folder / kClassNamesFile).string(), to_text(names));
  EXPECT_EQ(read_class_names(folder.path().string()), names);
}

TEST(ClassNames, AreMappedToOutputs) {
  const ClassNames names = {{1, "a"}, {3, "c"}};
  EXPECT_EQ(names_by_output(names, 4, 0), (std::vector<std::string>{"", "a", "", "c"}));
  EXPECT_EQ(names_by_output(names, 2, -1), (std::vector<std::string>{"a", ""}));
  EXPECT_TRUE(names_by_output({}, 4, 0).empty());
}

TEST(ClassNames, ReportsTheInvalidLine) {
  const TempDirectory folder;
  const std::string path = (folder / kClassNamesFile).string();
  for (const std::string line : {"tench", "7", "7 ", "-1 a", "7a b", "99999999 a", "99999999999999999999 a"}) {
    write_file(path, "1 a\n\n" + line + "\n");
    expect_error([&] { read_class_names(folder.path().string()); }, Fault::data, path + ": line 3: expected a label");
  }
  expect_error([&] { class_names_from("1 a\n1 b", "x"); }, Fault::data, "x: line 2: duplicate label 1");
}

}  // namespace
}  // namespace dtrain::data
