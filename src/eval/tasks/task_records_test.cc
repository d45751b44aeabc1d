#include "eval/tasks/task_records.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<TaskRecord> ReadAll(absl::string_view content) {
  RecordReader reader(content);
  std::vector<TaskRecord> records;
  while (true) {
    auto record = reader.Next();
    EXPECT_TRUE(record.ok()) << record.status();
    if (!record.ok() || !record->has_value()) return records;
    records.push_back(**std::move(record));
  }
}

TEST(TaskRecordsTest, ObjectsOneALineWithBlankLinesBetween) {
  const auto records = ReadAll("\n{\"a\":1}\r\n  \n{\"a\":2}");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_EQ(records[0].line, 2);
  EXPECT_EQ(records[1].line, 4);
  EXPECT_EQ(records[1].object["a"], 2);
  EXPECT_EQ(RecordReader("  {\"a\"").container(), RecordContainer::kJsonLines);
}

TEST(TaskRecordsTest, FieldsSeparatedByTabs) {
  const auto records = ReadAll("a \"b\", c\t1\r\nd\t2\n");
  ASSERT_EQ(records.size(), 2u);
  EXPECT_THAT(records[0].fields, ElementsAre("a \"b\", c", "1"));
  EXPECT_THAT(records[1].fields, ElementsAre("d", "2"));
}

TEST(TaskRecordsTest, FieldsSeparatedByCommasWithQuotes) {
  const auto records = ReadAll("a,b\r\n\"x, \"\"y\"\"\nz\",,c\"d\n\nlast");
  ASSERT_EQ(records.size(), 3u);
  EXPECT_THAT(records[0].fields, ElementsAre("a", "b"));
  EXPECT_THAT(records[1].fields, ElementsAre("x, \"y\"\nz", "", "c\"d"));
  EXPECT_EQ(records[1].line, 2);
  EXPECT_THAT(records[2].fields, ElementsAre("last"));
  EXPECT_EQ(records[2].line, 5);
}

TEST(TaskRecordsTest, FaultsNameTheLine) {
  const auto fault = [](absl::string_view content) {
    RecordReader reader(content);
    while (true) {
      const auto record = reader.Next();
      if (!record.ok()) return std::string(record.status().message());
      if (!record->has_value()) return std::string("none");
    }
  };
  EXPECT_THAT(fault("{\"a\":1}\n{\"a\":}\n"), HasSubstr("line 2: "));
  EXPECT_THAT(fault("{\"a\":1}\n[1]\n"), HasSubstr("line 2: expected a JSON object, found array"));
  EXPECT_THAT(fault("a,b\nc,\"d\n"), HasSubstr("line 2: expected a closing quote"));
  EXPECT_EQ(fault(" \n\n"), "none");
  EXPECT_EQ(fault(""), "none");
}

}  // namespace
}  // namespace pith
