#include "eval/corpus.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/file.h"
#include "base/test_util.h"
#include "tokenizer/test_byte_tokenizer.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string Text(const TokenWindow& window) { return {window.tokens.begin(), window.tokens.end()}; }

TEST(CorpusTest, TextIsCutIntoWholeWindowsThatAreTheirOwnDocuments) {
  ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("prose.txt"), "abcdefghij").ok());
  const auto corpus = LoadCorpus(scratch.File("prose.txt"), ByteTokenizer(false), {.context = 4});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  ASSERT_EQ(corpus->windows.size(), 2u);
  EXPECT_EQ(Text(corpus->windows[0]), "abcd");
  EXPECT_EQ(Text(corpus->windows[1]), "efgh");
  EXPECT_EQ(corpus->windows[1].document, 1);
  EXPECT_EQ(corpus->windows[0].slice, "prose");
  EXPECT_EQ(LoadCorpus(scratch.File("prose.txt"), ByteTokenizer(false), {.context = 4, .limit = 1})->windows.size(), 1u);
}

TEST(CorpusTest, BosReplacesTheFirstTokenOfEveryWindow) {
  ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("a.raw"), "abcdefgh").ok());
  const auto corpus = LoadCorpus(scratch.File("a.raw"), ByteTokenizer(true), {.context = 4});
  ASSERT_TRUE(corpus.ok());
  EXPECT_TRUE(corpus->bos);
  EXPECT_THAT(corpus->windows[1].tokens, ElementsAre(256, 'f', 'g', 'h'));
}

TEST(CorpusTest, LinesAreDocumentsAndShortOnesAreKept) {
  ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("b.jsonl"),
                                  "{\"text\":\"abcdefghi\"}\n\n{\"content\":\"xy\"}\n{\"text\":\"z\"}\n{\"text\":\"pqrst\"}\n")
                  .ok());
  const auto corpus = LoadCorpus(scratch.File("b.jsonl"), ByteTokenizer(false), {.context = 4});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  std::vector<std::pair<std::string, int64_t>> windows;
  for (const TokenWindow& window : corpus->windows) windows.emplace_back(Text(window), window.document);
  EXPECT_THAT(windows, ElementsAre(std::pair("abcd", 0), std::pair("efgh", 0), std::pair("xy", 1), std::pair("pqrs", 2)));
  EXPECT_EQ(corpus->num_documents, 3);
  EXPECT_EQ(LoadCorpus(scratch.File("b.jsonl"), ByteTokenizer(false), {.context = 4, .limit = 1})->windows.size(), 1u);
}

TEST(CorpusTest, AFolderGivesASlicePerFile) {
  ScratchDirectory scratch;
  ASSERT_TRUE(WriteFileAtomically(scratch.File("math.txt"), "abcdefgh").ok());
  ASSERT_TRUE(WriteFileAtomically(scratch.File("code.utf8"), "abcd").ok());
  ASSERT_TRUE(WriteFileAtomically(scratch.File("README.md"), "abcdefgh").ok());
  const auto corpus = LoadCorpus(scratch.path(), ByteTokenizer(false), {.context = 4});
  ASSERT_TRUE(corpus.ok());
  EXPECT_THAT(corpus->slices(), ElementsAre("code", "math"));
}

TEST(CorpusTest, RowsOfTasksAreReadAsPromptAndAnswer) {
  ScratchDirectory scratch;
  ASSERT_TRUE(
      WriteFileAtomically(scratch.File("t.jsonl"),
                          "{\"prompt\":\"ab\",\"answer\":\"7\"}\n{\"prompt\":\"cd\",\"answer\":8}\n"
                          "{\"prompt\":\"g\\n\",\"canonical_solution\":\" h\",\"test\":\"t\"}\n{\"prompt\":\"ij\",\"answer\":[\"k\"]}\n")
          .ok());
  const auto corpus = LoadCorpus(scratch.File("t.jsonl"), ByteTokenizer(false), {.context = 16});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  std::vector<std::string> texts;
  for (const TokenWindow& window : corpus->windows) texts.push_back(Text(window));
  EXPECT_THAT(texts, ElementsAre("ab\n7", "cd", "g\n h", "ij"));
}

TEST(CorpusTest, TheBuiltInSlicesAreACorpus) {
  const auto corpus = LoadBuiltinCorpus(ByteTokenizer(false), {.context = 4096, .limit = 70});
  ASSERT_TRUE(corpus.ok()) << corpus.status();
  EXPECT_EQ(corpus->source, "built-in slices");
  EXPECT_THAT(corpus->slices(), ElementsAre("code", "math", "multilingual", "prose"));
  EXPECT_EQ(corpus->num_documents, static_cast<int64_t>(corpus->windows.size()));  // no text is longer than the window
  EXPECT_FALSE(LoadBuiltinCorpus(ByteTokenizer(false), {.context = 1}).ok());
}

TEST(CorpusTest, RefusalsNameTheFileAndTheLine) {
  ScratchDirectory scratch;
  const auto message = [&](const std::string& name, const std::string& content, int64_t context = 4) {
    EXPECT_TRUE(WriteFileAtomically(scratch.File(name), content).ok());
    return std::string(LoadCorpus(scratch.File(name), ByteTokenizer(false), {.context = context}).status().message());
  };
  EXPECT_THAT(message("a.txt", "abc"), HasSubstr("at least one text of 4 tokens"));
  EXPECT_THAT(message("b.txt", "ab\xff\xffgh"), HasSubstr("b.txt: "));
  EXPECT_THAT(message("c.jsonl", "{\"text\":\"abcd\"}\n{\"txt\":1}\n"), HasSubstr("c.jsonl: line 2"));
  EXPECT_THAT(message("h.jsonl", "{\"prompt\":3}\n"), HasSubstr("\"text\", \"content\" or \"prompt\""));
  EXPECT_THAT(message("i.jsonl", "{\"text\":3}\n"), HasSubstr("text"));
  EXPECT_THAT(message("d.jsonl", "{\"text\":\"abcd\"}\n{bad\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("g.jsonl", "\n{\"text\":\"abcd\"}\n \r\n{bad\n"), HasSubstr("line 4"));
  EXPECT_THAT(message("e.pdf", "abcdefgh"), HasSubstr("another extension"));
  EXPECT_THAT(message("f.txt", "abcd", 1), HasSubstr("at least 2"));
  EXPECT_TRUE(absl::IsNotFound(LoadCorpus(scratch.File("none.txt"), ByteTokenizer(false), {}).status()));
}

}  // namespace
}  // namespace pith
