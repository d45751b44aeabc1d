#include "eval/builtin_slices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/json.h"
#include "base/test_util.h"
#include "eval/tasks/task_file.h"

namespace pith {
namespace {

using ::testing::ElementsAre;

TEST(BuiltinSlicesTest, AreTheFilesByteByByte) {
  std::vector<absl::string_view> files;
  for (const BuiltinSlice& slice : BuiltinSlices()) {
    files.push_back(slice.file);
    const auto file = MappedFile::Open(absl::StrCat(PITH_SOURCE_DIR, "/data/slices/", slice.file));
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_TRUE(file->text() == slice.rows) << slice.file;
    EXPECT_EQ(slice.name, slice.file.substr(0, slice.file.find('.')));
  }
  EXPECT_THAT(files, ElementsAre("code.jsonl", "math.jsonl", "math.text.jsonl", "multilingual.jsonl", "multilingual.text.jsonl",
                                 "prose.text.jsonl"));
}

TEST(BuiltinSlicesTest, EverySliceHasSixtyRowsOrMoreAndEveryRowIsJson) {
  std::map<absl::string_view, int> count;
  for (const BuiltinSlice& slice : BuiltinSlices()) {
    EXPECT_EQ(slice.rows.back(), '\n') << slice.file;
    for (const absl::string_view line : absl::StrSplit(slice.rows, '\n', absl::SkipEmpty())) {
      const auto row = ParseJson(line);
      ASSERT_TRUE(row.ok()) << slice.file << ": " << row.status() << "\n" << line;
      EXPECT_TRUE(FindMember(*row, "text") != nullptr || FindMember(*row, "prompt") != nullptr) << line;
      ++count[slice.name];
    }
  }
  ASSERT_EQ(count.size(), 4u);
  for (const auto& [name, rows] : count) EXPECT_GE(rows, 60) << name;
}

TEST(BuiltinSlicesTest, WhatIsNoTextIsATaskOfItsSlice) {
  std::map<absl::string_view, std::string> format;
  for (const BuiltinSlice& slice : BuiltinSlices()) {
    if (absl::EndsWith(slice.file, ".text.jsonl")) {
      EXPECT_EQ(RecognizeTaskFormat(slice.rows), "") << slice.file;
      continue;
    }
    const auto task = ParseTaskFile(std::string(slice.file), slice.rows);
    ASSERT_TRUE(task.ok()) << task.status();
    format[slice.file] = task->format;
    EXPECT_GE(task->items.size(), 60u) << slice.file;
    for (const TaskItem& item : task->items) {
      EXPECT_EQ(item.slice, slice.name) << item.id;
      EXPECT_EQ(item.language.empty(), slice.name != "multilingual") << item.id;
    }
  }
  EXPECT_EQ(format["code.jsonl"], "humaneval");
  EXPECT_EQ(format["math.jsonl"], "user");
  EXPECT_EQ(format["multilingual.jsonl"], "user");
}

}  // namespace
}  // namespace pith
