#include "eval/result_store.h"

#include <signal.h>
#include <sqlite3.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "base/file.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::HasSubstr;

TEST(ResultStore, GivesBackWhatWasPutAlsoAfterReopening) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("results.db");
  const Json value = {{"text", "a\nb \"quoted\" \xC3\xA9"}, {"tokens", 3}};
  {
    auto store = ResultStore::Open(path);
    ASSERT_TRUE(store.ok()) << store.status();
    EXPECT_FALSE((*store)->Find("absent")->has_value());
    ASSERT_TRUE((*store)->Put("an answer", value).ok());
  }
  auto store = ResultStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(**(*store)->Find("an answer"), value);
}

TEST(ResultStore, KeepsTheLastValueOfAKey) {
  auto store = ResultStore::Open(":memory:");
  ASSERT_TRUE(store.ok()) << store.status();
  ASSERT_TRUE((*store)->Put("a", 1).ok());
  ASSERT_TRUE((*store)->Put("b", {2, 3}).ok());
  ASSERT_TRUE((*store)->Put("a", 4).ok());
  EXPECT_EQ(**(*store)->Find("a"), Json(4));
  EXPECT_EQ(**(*store)->Find("b"), Json({2, 3}));
  EXPECT_EQ(*(*store)->Size(), 2);
}

TEST(ResultStore, WhatWasPutSurvivesAKill) {
  const ScratchDirectory scratch;
  const std::string path = scratch.File("results.db");
  const pid_t child = fork();
  if (child == 0) {
    auto store = ResultStore::Open(path);
    for (int i = 0; i < 50; ++i) {
      if (!(*store)->Put(absl::StrCat("key ", i), i).ok()) _exit(1);
    }
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto store = ResultStore::Open(path);
  ASSERT_TRUE(store.ok()) << store.status();
  EXPECT_EQ(*(*store)->Size(), 50);
  EXPECT_EQ(**(*store)->Find("key 49"), Json(49));
}

TEST(ResultStore, TwoMayShareAFile) {
  const ScratchDirectory scratch;
  auto one = ResultStore::Open(scratch.File("results.db")), other = ResultStore::Open(scratch.File("results.db"));
  ASSERT_TRUE(one.ok() && other.ok());
  ASSERT_TRUE((*one)->Put("a", 1).ok());
  ASSERT_TRUE((*other)->Put("b", 2).ok());
  EXPECT_EQ(**(*other)->Find("a"), Json(1));
  EXPECT_EQ(**(*one)->Find("b"), Json(2));
}

TEST(ResultStore, RefusesOtherFiles) {
  const ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("text"), std::string(4096, 'x')).ok());
  EXPECT_EQ(ResultStore::Open(scratch.File("text")).status().code(), absl::StatusCode::kDataLoss);
  sqlite3* db = nullptr;
  ASSERT_EQ(sqlite3_open(scratch.File("foreign.db").c_str(), &db), SQLITE_OK);
  ASSERT_EQ(sqlite3_exec(db, "CREATE TABLE results (other TEXT)", nullptr, nullptr, nullptr), SQLITE_OK);
  sqlite3_close(db);
  const absl::Status foreign = ResultStore::Open(scratch.File("foreign.db")).status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("another program"));
  EXPECT_EQ(ResultStore::Open(scratch.File("no/such/folder.db")).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace pith
