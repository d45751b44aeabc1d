#include "compression/calibration_data.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/file.h"
#include "base/sha256.h"
#include "base/test_util.h"
#include "tokenizer/test_byte_tokenizer.h"

namespace pith {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::SizeIs;

class CalibrationDataTest : public testing::Test {
 protected:
  std::string Write(const std::string& name, absl::string_view content) {
    EXPECT_TRUE(WriteFileAtomically(scratch_.File(name), content).ok());
    return scratch_.File(name);
  }
  absl::StatusOr<CalibrationData> Load(const std::vector<std::string>& paths, const CalibrationOptions& options) const {
    return LoadCalibrationData(paths, {.tokenizer = *tokenizer_, .chat_template = chat_, .bos_token = "<s>", .eos_token = "</s>"}, options);
  }
  // The texts of the samples; special tokens by their names.
  std::vector<std::string> Texts(const std::vector<std::string>& paths, const CalibrationOptions& options) const {
    const auto data = Load(paths, options);
    EXPECT_TRUE(data.ok()) << data.status();
    std::vector<std::string> texts;
    if (data.ok()) {
      for (const auto& sequence : data->sequences) texts.push_back(tokenizer_->Decode(sequence, true));
    }
    return texts;
  }
  std::string Message(const std::vector<std::string>& paths) const {
    return std::string(Load(paths, {.sequence_length = 4}).status().message());
  }

  const ByteTokenizer plain_{false}, with_bos_{true};
  const ByteTokenizer* tokenizer_ = &plain_;
  const ChatTemplate template_ = *ChatTemplate::Parse(
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{{ eos_token }}{% endfor %}{% if add_generation_prompt %}!{% "
      "endif %}");
  const ChatTemplate* chat_ = nullptr;
  ScratchDirectory scratch_;
};

TEST_F(CalibrationDataTest, TextsAreCutIntoWholeSamples) {
  const std::string path = Write("prose.test.txt", "abcdefghij");
  EXPECT_THAT(Texts({path}, {.sequence_length = 4}), ElementsAre("abcd", "efgh"));
  tokenizer_ = &with_bos_;
  EXPECT_THAT(Texts({path}, {.sequence_length = 4}), ElementsAre("<s>abc", "<s>def", "<s>ghi"));
}

TEST_F(CalibrationDataTest, AByteOrderMarkIsNoText) {
  EXPECT_THAT(Texts({Write("a.raw",
                           "\xEF\xBB\xBF"
                           "abcd")},
                    {.sequence_length = 4}),
              ElementsAre("abcd"));
  EXPECT_THAT(Texts({Write("a.jsonl", "\xEF\xBB\xBF{\"text\":\"abcd\"}")}, {.sequence_length = 4}), ElementsAre("abcd"));
}

// More than a piece that is tokenized at once, with and without line breaks, in characters of three bytes that no piece may cut.
TEST_F(CalibrationDataTest, SamplesGoOverTheBordersOfPieces) {
  for (const int line : {0, 100}) {
    std::string text;
    for (int i = 0; text.size() < (size_t{5} << 19); ++i) text += line > 0 && i % line == 0 ? "\n" : "\xE4\xBB\x8A";
    const std::vector<std::string> samples = Texts({Write("a.txt", text)}, {.num_samples = 1 << 20, .sequence_length = 1000});
    ASSERT_EQ(samples.size(), text.size() / 1000);
    for (size_t i = 0; i < samples.size(); ++i) ASSERT_EQ(samples[i], text.substr(i * 1000, 1000)) << i;
  }
}

TEST_F(CalibrationDataTest, ShortLinesAreSamplesOfTheirOwn) {
  const std::string path = Write("b.jsonl",
                                 "{\"text\":\"abcdefghi\"}\n\n{\"content\":\"xy\",\"id\":3}\r\n{\"text\":\"z\"}\n{\"text\":\"\"}\n"
                                 "{\"messages\":null,\"content\":\"no\",\"text\":\"pqrs\"}");
  EXPECT_THAT(Texts({path}, {.sequence_length = 4}), ElementsAre("abcd", "efgh", "xy", "pqrs"));
  tokenizer_ = &with_bos_;
  EXPECT_THAT(Texts({path}, {.sequence_length = 4}), ElementsAre("<s>abc", "<s>def", "<s>ghi", "<s>xy", "<s>z", "<s>pqr"));
}

TEST_F(CalibrationDataTest, ConversationsGoThroughTheTemplate) {
  chat_ = &template_;
  const std::string path = Write(
      "chat.jsonl", R"({"messages":[{"role":"user","content":"<s>"},{"role":"assistant","content":"b","name":"x"}],"text":"no"})");
  EXPECT_THAT(Texts({path}, {.sequence_length = 64}), ElementsAre("<s>[user]<s></s>[assistant]b</s>"));
  const auto data = Load({path}, {.sequence_length = 64});
  EXPECT_EQ(data->sequences[0][0], 256);
  EXPECT_EQ(data->sequences[0][7], '<');  // of the user, no special token
  // The template writes BOS once; every sample begins with it when the tokenizer would add it.
  EXPECT_THAT(Texts({path}, {.sequence_length = 8}), ElementsAre("<s>[user]<", "s></s>[assi", "stant]b</s>"));
  tokenizer_ = &with_bos_;
  EXPECT_THAT(Texts({path}, {.sequence_length = 8}), ElementsAre("<s>[user]<", "<s>s></s>[ass", "<s>istant]"));
}

TEST_F(CalibrationDataTest, FilesAndFoldersAreReadInTheirOrder) {
  const std::string first = Write("z.jsonl", "{\"text\":\"zzzz\"}");
  ASSERT_TRUE(std::filesystem::create_directory(scratch_.File("folder")));
  Write("folder/math.txt", "abcdefgh");
  Write("folder/code.utf8", "ijkl");
  Write("folder/z.raw", "xxxx");
  Write("folder/README.md", "no");
  const auto data = Load({first, scratch_.File("folder")}, {.sequence_length = 4, .seed = 9});
  ASSERT_TRUE(data.ok()) << data.status();
  EXPECT_THAT(data->files, ElementsAre("z.jsonl", "code.utf8", "math.txt", "z.raw"));
  EXPECT_THAT(data->domain_tokens, ElementsAre(Pair("code", 4), Pair("math", 8), Pair("z", 8)));
  EXPECT_THAT(Texts({first, scratch_.File("folder")}, {.sequence_length = 4}), ElementsAre("zzzz", "ijkl", "abcd", "efgh", "xxxx"));
}

// 400 samples of which 100 are drawn: without replacement, in order, by the seed, and evenly from everywhere.
TEST_F(CalibrationDataTest, SamplesAreDrawnBySeedWithoutReplacement) {
  std::string text;
  for (int i = 0; i < 400; ++i) absl::StrAppend(&text, 1000 + i);
  const std::string path = Write("a.txt", text);
  const auto draw = [&](uint64_t seed) { return Texts({path}, {.num_samples = 100, .sequence_length = 4, .seed = seed}); };
  const std::vector<std::string> drawn = draw(1);
  EXPECT_THAT(drawn, SizeIs(100));
  EXPECT_TRUE(std::is_sorted(drawn.begin(), drawn.end()));
  EXPECT_THAT(std::set<std::string>(drawn.begin(), drawn.end()), SizeIs(100));
  EXPECT_EQ(draw(1), drawn);
  EXPECT_NE(draw(2), drawn);
  int first_half = 0, total = 0;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    for (const std::string& sample : draw(seed)) {
      first_half += sample < "1200" ? 1 : 0;
      ++total;
    }
  }
  EXPECT_NEAR(static_cast<double>(first_half) / total, 0.5, 0.03);  // 5000 draws: a standard deviation is 0.006
  EXPECT_THAT(Texts({path}, {.num_samples = 401, .sequence_length = 4}), SizeIs(400));
}

TEST_F(CalibrationDataTest, RefusalsNameTheFileAndTheLine) {
  const auto message = [&](const std::string& name, const std::string& content) { return Message({Write(name, content)}); };
  EXPECT_THAT(message("a.txt", "abc"), AllOf(HasSubstr("a.txt"), HasSubstr("at least 4 tokens, found none")));
  EXPECT_THAT(message("b.txt", "ab\xff\xffgh"), HasSubstr("b.txt: "));
  EXPECT_THAT(message("c.jsonl", "{\"text\":\"abcd\"}\n{\"txt\":1}\n"), AllOf(HasSubstr("c.jsonl: line 2: "), HasSubstr("\"content\"")));
  EXPECT_THAT(message("d.jsonl", "\n\r\n{\"text\":\"abcd\"}\n{bad\n"), HasSubstr("d.jsonl: line 4: "));
  EXPECT_THAT(message("e.jsonl", "[1]\n"), HasSubstr("line 1: "));
  EXPECT_THAT(message("f.jsonl", "{\"text\":7}\n"), AllOf(HasSubstr("line 1: "), HasSubstr("text")));
  EXPECT_THAT(message("g.jsonl", "{\"text\":\"ab\xff\"}\n"), HasSubstr("g.jsonl: line 1: "));
  EXPECT_THAT(message("h.pdf", "abcdefgh"), HasSubstr("another extension"));
  EXPECT_THAT(Message({scratch_.File("a.txt"), scratch_.File("./a.txt")}), HasSubstr("found it twice"));
  EXPECT_THAT(Message({scratch_.File("none.txt")}), HasSubstr("none.txt"));
  EXPECT_TRUE(absl::IsNotFound(Load({scratch_.File("none.txt")}, {}).status()));
  EXPECT_TRUE(absl::IsUnimplemented(Load({scratch_.File("h.pdf")}, {}).status()));
  EXPECT_TRUE(absl::IsDataLoss(Load({scratch_.File("c.jsonl")}, {}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Load({scratch_.File("a.txt")}, {.num_samples = 0}).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(Load({scratch_.File("a.txt")}, {.sequence_length = 1}).status()));
  ASSERT_TRUE(std::filesystem::create_directory(scratch_.File("empty")));
  EXPECT_THAT(Message({scratch_.File("empty")}), AllOf(HasSubstr("empty: "), HasSubstr("found none")));
}

TEST_F(CalibrationDataTest, BadConversationsAreRefused) {
  const auto message = [&](const std::string& line) { return Message({Write("chat.jsonl", "\n" + line)}); };
  const std::string good = R"({"messages":[{"role":"user","content":"a"}]})";
  EXPECT_THAT(message(good), AllOf(HasSubstr("chat.jsonl: line 2: "), HasSubstr("expected a model with a chat template, found none")));
  EXPECT_TRUE(absl::IsUnimplemented(Load({scratch_.File("chat.jsonl")}, {}).status()));
  chat_ = &template_;
  EXPECT_TRUE(Load({Write("good.jsonl", good)}, {}).ok());
  EXPECT_THAT(message(R"({"messages":[]})"), HasSubstr("line 2: messages: expected a list of messages"));
  EXPECT_THAT(message(R"({"messages":"hi"})"), HasSubstr("found string"));
  EXPECT_THAT(message(R"({"messages":[{"role":"user","content":"a"},{"role":"user"}]})"), HasSubstr("messages.1: "));
  EXPECT_THAT(message(R"({"messages":[{"role":"user","content":["a"]}]})"), AllOf(HasSubstr("messages.0: "), HasSubstr("content")));
  EXPECT_THAT(message(R"({"messages":["a"]})"), HasSubstr("messages.0: "));
  const ChatTemplate refusing = *ChatTemplate::Parse("{{ raise_exception('roles must alternate') }}");
  chat_ = &refusing;
  EXPECT_THAT(message(good), AllOf(HasSubstr("line 2: chat template: "), HasSubstr("roles must alternate")));
}

TEST(CalibrationDataHashTest, CoversLengthsAndIds) {
  const std::string bytes("\2\0\0\0\1\0\0\0\2\1\0\0\1\0\0\0\3\0\0\0", 20);
  EXPECT_EQ((CalibrationData{.sequences = {{1, 258}, {3}}}.Hash()), Sha256Hex(bytes));
  EXPECT_NE((CalibrationData{.sequences = {{1, 2}, {3, 4}}}.Hash()), (CalibrationData{.sequences = {{1, 2, 3}, {4}}}.Hash()));
}

TEST(CalibrationDataHashTest, TheManifestRecordsWhatWasRead) {
  const CalibrationData data{.files = {"a.txt"},
                             .options = {.num_samples = 9, .sequence_length = 3, .seed = 5},
                             .sequences = {{1, 2, 3}, {4, 5}},
                             .domain_tokens = {{"a", 5}}};
  EXPECT_EQ(data.num_tokens(), 5);
  EXPECT_EQ(data.longest(), 3);
  EXPECT_EQ(DumpJson(ToJson(data)), R"({"source":"files","files":["a.txt"],"seed":5,"sequence_length":3,"samples":2,"tokens":5,)"
                                    R"("domain_tokens":{"a":5},"ids_sha256":")" +
                                        data.Hash() + "\"}");
  EXPECT_EQ(ToJson(CalibrationData{.sequences = {{1, 2}}})["source"], "model");
}

}  // namespace
}  // namespace pith
