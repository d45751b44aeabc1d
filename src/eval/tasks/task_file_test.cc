#include "eval/tasks/task_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <algorithm>

#include "base/file.h"
#include "base/status.h"
#include "base/test_util.h"
#include "eval/tasks/task_formats.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

constexpr char kGsm8kRow[] = R"({"question": "2 and 3 eggs?", "answer": "2+3=<<2+3=5>>5 eggs\n#### 1,005"})";

TaskFile Parse(absl::string_view content, const TaskReadOptions& options = {}) {
  auto file = ParseTaskFile("f", content, options);
  EXPECT_TRUE(file.ok()) << file.status();
  return file.ok() ? *std::move(file) : TaskFile{.items = {TaskItem{}, TaskItem{}}};
}

std::string Refusal(absl::string_view content, const TaskReadOptions& options = {}) {
  return std::string(ParseTaskFile("f", content, options).status().message());
}

TEST(TaskFileTest, Gsm8k) {
  const TaskFile file = Parse(kGsm8kRow);
  EXPECT_EQ(file.format, "gsm8k");
  EXPECT_EQ(file.source, "f");
  const TaskItem& item = file.items[0];
  EXPECT_EQ(item.id, "gsm8k/0");
  EXPECT_EQ(item.slice, "math");
  EXPECT_EQ(item.match, MatchKind::kNumber);
  EXPECT_THAT(item.answers, ElementsAre("1005"));
  EXPECT_EQ(item.prompt, "Question: 2 and 3 eggs?\nAnswer:");
  ASSERT_THAT(item.messages, SizeIs(1));
  EXPECT_THAT(item.messages[0].content, StartsWith("2 and 3 eggs?\n\nSolve"));
  EXPECT_THAT(item.messages[0].content, HasSubstr("####"));
}

TEST(TaskFileTest, SolvedExamplesComeBeforeEveryQuestion) {
  const std::string rows = std::string(kGsm8kRow) + "\n" + R"({"question": "b?", "answer": "#### 2"})" + "\n" +
                           R"({"question": "c?", "answer": "#### 3"})";
  const TaskFile file = Parse(rows, {.limit = 1, .shots = 1});
  ASSERT_THAT(file.items, SizeIs(1));
  EXPECT_EQ(file.items[0].id, "gsm8k/1");
  EXPECT_EQ(file.items[0].prompt, "Question: 2 and 3 eggs?\nAnswer: 2+3=5 eggs\n#### 1,005\n\nQuestion: b?\nAnswer:");
  ASSERT_THAT(file.items[0].messages, SizeIs(3));
  EXPECT_EQ(file.items[0].messages[1], (ChatMessage{"assistant", "2+3=5 eggs\n#### 1,005"}));
  EXPECT_THAT(Refusal(rows, {.shots = 3}), HasSubstr("expected more rows than the 3 solved examples, found 3"));
  EXPECT_THAT(Parse(rows, {.limit = 2}).items, SizeIs(2));
}

TEST(TaskFileTest, MgsmIsAskedInItsLanguage) {
  const TaskFile file = Parse("Wie viele Eier hat sie und was ist der Gewinn?\t2,125\nUnd die?\t-3\n");
  EXPECT_EQ(file.format, "mgsm");
  ASSERT_THAT(file.items, SizeIs(2));
  EXPECT_EQ(file.items[0].slice, "multilingual");
  EXPECT_EQ(file.items[0].language, "de");
  EXPECT_EQ(file.items[0].prompt, "Frage: Wie viele Eier hat sie und was ist der Gewinn?\nAntwort:");
  EXPECT_THAT(file.items[0].messages[0].content, HasSubstr("\"Antwort: \""));
  EXPECT_THAT(file.items[0].answers, ElementsAre("2125"));
  EXPECT_THAT(file.items[1].answers, ElementsAre("-3"));
  const TaskFile shots = Parse("Wie viel ist das und die?\t2\nWie viel ist der?\t3\n", {.shots = 1});
  EXPECT_EQ(shots.items[0].prompt, "Frage: Wie viel ist das und die?\nAntwort: 2\n\nFrage: Wie viel ist der?\nAntwort:");
  EXPECT_EQ(shots.items[0].messages[1], (ChatMessage{"assistant", "Antwort: 2"}));
  EXPECT_THAT(Refusal("a\t1\nb\tc\td\n"), StartsWith("f:2: expected a question and a number, found 3 fields"));
  EXPECT_THAT(Refusal("a\t1\n\nb\tten\n"), StartsWith("f:3: answer: expected a number, found \"ten\""));
}

TEST(TaskFileTest, HumanEvalInGzip) {
  const std::string row = R"({"task_id": "HumanEval/0", "prompt": "def f(x):\n    \"\"\" doc \"\"\"\n", "entry_point": "f",)"
                          R"( "canonical_solution": "    return x\n", "test": "def check(candidate): pass\n"})";
  std::string zipped(1024, '\0');
  z_stream stream{};
  ASSERT_EQ(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(row.data()));
  stream.avail_in = static_cast<uInt>(row.size());
  stream.next_out = reinterpret_cast<Bytef*>(zipped.data());
  stream.avail_out = static_cast<uInt>(zipped.size());
  ASSERT_EQ(deflate(&stream, Z_FINISH), Z_STREAM_END);
  zipped.resize(stream.total_out);
  deflateEnd(&stream);
  const TaskFile file = Parse(zipped);
  EXPECT_EQ(file.format, "humaneval");
  const TaskItem& item = file.items[0];
  EXPECT_EQ(item.id, "HumanEval/0");
  EXPECT_EQ(item.match, MatchKind::kCode);
  EXPECT_EQ(item.unit_test->entry_point, "f");
  EXPECT_EQ(item.prompt, item.unit_test->prompt);
  EXPECT_THAT(item.messages[0].content, HasSubstr("```python\ndef f(x):\n    \"\"\" doc \"\"\"\n```"));
  EXPECT_THAT(item.stop, ::testing::Contains("\ndef "));
  EXPECT_THAT(Refusal(zipped.substr(0, zipped.size() - 5)), StartsWith("f: gzip: "));
}

TEST(TaskFileTest, MmluIsAskedByLetter) {
  const TaskFile file = Parse(
      R"({"question": " Which? ", "subject": "high_school_physics", "choices": ["a", "b", "c", "d"], "answer": 2})");
  EXPECT_EQ(file.format, "mmlu");
  EXPECT_EQ(file.items[0].prompt,
            "The following are multiple choice questions (with answers) about high school physics.\n\n"
            "Which?\nA. a\nB. b\nC. c\nD. d\nAnswer:");
  EXPECT_THAT(file.items[0].choices, ElementsAre("A", "B", "C", "D"));
  EXPECT_EQ(file.items[0].gold, 2);
  EXPECT_EQ(file.items[0].delimiter, " ");
  EXPECT_THAT(file.items[0].messages, IsEmpty());

  const TaskFile csv = Parse("\"Which, then?\",a,b,c,d,C\nNext?,1,2,3,4,A\n");
  EXPECT_EQ(csv.format, "mmlu_csv");
  EXPECT_EQ(csv.items[0].prompt, "Which, then?\nA. a\nB. b\nC. c\nD. d\nAnswer:");
  EXPECT_EQ(csv.items[0].gold, 2);
  EXPECT_THAT(Refusal("q,a,b,c,d,C\nq,a,b,c,d,E\n"), StartsWith("f:2: expected a question, four choices and a letter A to D"));
}

TEST(TaskFileTest, ArcInEveryShapeItIsPublishedIn) {
  for (const char* row :
       {R"({"id": "q1", "question": "Why?", "choices": ["x", "yy"], "gold": 1})",
        R"({"id": "q1", "question": "Why?", "choices": {"text": ["x", "yy"], "label": ["A", "B"]}, "answerKey": "B"})",
        R"({"id": "q1", "question": {"stem": "Why?", "choices": [{"text": "x", "label": "1"}, {"text": "yy", "label": "2"}]},
              "answerKey": "2"})"}) {
    std::string line(row);
    std::replace(line.begin(), line.end(), '\n', ' ');
    const TaskFile file = Parse(line);
    EXPECT_EQ(file.format, "arc") << row;
    EXPECT_EQ(file.items[0].id, "q1");
    EXPECT_EQ(file.items[0].prompt, "Question: Why?\nAnswer:");
    EXPECT_THAT(file.items[0].choices, ElementsAre("x", "yy"));
    EXPECT_EQ(file.items[0].gold, 1);
  }
  EXPECT_THAT(Refusal(R"({"question": "Why?", "choices": ["x", "yy"], "gold": 2})"), HasSubstr("\"gold\": expected "));
  EXPECT_THAT(Refusal(R"({"question": "Why?", "choices": ["x", ""], "gold": 0})"), HasSubstr("choices: expected texts"));
  EXPECT_THAT(Refusal(R"({"question": "Why?", "choices": ["x"], "gold": 0})"), HasSubstr("expected 2 to 26 texts, found 1"));
  EXPECT_THAT(Refusal(R"({"question": "W?", "choices": {"text": ["x", "y"], "label": ["A", "B"]}, "answerKey": "C"})"),
              HasSubstr("answerKey: expected the label of a choice, found \"C\""));
  EXPECT_THAT(Refusal(R"({"question": "W?", "choices": ["x", "y"], "answerKey": "A"})"), HasSubstr("choices: expected"));
}

TEST(TaskFileTest, HellaSwagIsCleanedOfItsLayout) {
  const TaskFile published = Parse(
      R"({"ind": 4, "activity_label": "Roof", "ctx_a": "A man sits.", "ctx_b": "he", "ctx": "A man sits. he", "label": "1",)"
      R"( "endings": ["falls.", "[substeps] Climbs  up. [title] Then rests."]})");
  EXPECT_EQ(published.format, "hellaswag");
  EXPECT_EQ(published.items[0].prompt, "Roof: A man sits. He");
  EXPECT_THAT(published.items[0].choices, ElementsAre("falls.", " Climbs up.. Then rests."));
  EXPECT_EQ(published.items[0].gold, 1);
  const TaskFile rows = Parse(R"({"activity": "Roof", "ctx": "[header] How to [title] Sit", "choices": ["a", "b"], "gold": 0})");
  EXPECT_EQ(rows.items[0].prompt, "Roof: How to. Sit");
}

TEST(TaskFileTest, LambadaAsksForTheLastWord) {
  const TaskFile file = Parse(R"({"text": "I don't care about signs"})");
  EXPECT_EQ(file.format, "lambada");
  EXPECT_EQ(file.items[0].prompt, "I don't care about");
  EXPECT_THAT(file.items[0].answers, ElementsAre("signs"));
  EXPECT_EQ(file.items[0].match, MatchKind::kContinuation);
  EXPECT_THAT(file.items[0].messages, IsEmpty());
  // Documents for perplexity are no questions, unless somebody says so.
  EXPECT_EQ(RecognizeTaskFormat(R"({"text": "A whole sentence."})"), "");
  EXPECT_EQ(RecognizeTaskFormat(R"({"text": "words", "title": "x y"})"), "");
  EXPECT_THAT(Parse(R"({"text": "A whole sentence."})", {.format = "lambada"}).items[0].answers, ElementsAre("sentence."));
}

TEST(TaskFileTest, UserRowsOfEveryKind) {
  const TaskFile file = Parse(
      R"({"prompt": "Capital of France?", "answer": "Paris", "match": "contains", "slice": "geo", "id": "paris", "max_tokens": 5,)"
      R"( "stop": "\n", "ignore_case": true})"
      "\n"
      R"({"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}], "answer": [1, "2,000"], "match": "number"})"
      "\n"
      R"({"prompt": "Pick:", "choices": ["red", "blue"], "answer": "blue", "match": "choice"})"
      "\n"
      R"({"prompt": "Pick: ", "choices": ["red", "blue"], "answer": "b", "match": "choice"})"
      "\n"
      R"({"prompt": "Write f", "match": "code", "test": "assert f() == 1"})"
      "\n"
      R"({"prompt": "A word", "answer": "^a.c$", "match": "regex", "language": "fr"})");
  EXPECT_EQ(file.format, "user");
  ASSERT_THAT(file.items, SizeIs(6));
  const TaskItem& first = file.items[0];
  EXPECT_EQ(first.id, "paris");
  EXPECT_EQ(first.slice, "geo");
  EXPECT_EQ(first.max_tokens, 5);
  EXPECT_THAT(first.stop, ElementsAre("\n"));
  EXPECT_TRUE(first.ignore_case);
  EXPECT_THAT(first.messages, ElementsAre(ChatMessage{"user", "Capital of France?"}));
  EXPECT_THAT(file.items[1].answers, ElementsAre("1", "2000"));
  EXPECT_EQ(file.items[1].prompt, "S\n\nU");
  EXPECT_EQ(file.items[1].id, "user/1");
  EXPECT_EQ(file.items[1].slice, "user");
  EXPECT_EQ(file.items[2].gold, 1);
  EXPECT_EQ(file.items[2].delimiter, " ");
  EXPECT_EQ(file.items[3].gold, 1);
  EXPECT_EQ(file.items[3].delimiter, "");
  EXPECT_EQ(file.items[4].unit_test->test, "assert f() == 1");
  EXPECT_EQ(file.items[5].language, "fr");
}

TEST(TaskFileTest, SlipsInUserRowsAreNamed) {
  EXPECT_EQ(Refusal(R"({"prompt": "p", "awnser": "a", "match": "exact"})"), "f:1: unknown key \"awnser\": did you mean \"answer\"?");
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "a", "temperature": 1})"),
              HasSubstr("unknown key \"temperature\": expected one of prompt"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "a", "match": "contain"})"), HasSubstr("did you mean \"contains\"?"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "a"})"), HasSubstr("\"match\": expected"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "a", "match": "number"})"), HasSubstr("expected a number, found \"a\""));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "(", "match": "regex"})"), HasSubstr("expected a regular expression"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": " ", "match": "exact"})"), HasSubstr("found an empty one"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": [], "match": "exact"})"), HasSubstr("found none"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": {}, "match": "exact"})"), HasSubstr("expected a text or a number"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "match": "exact"})"), HasSubstr("found none"));
  EXPECT_THAT(Refusal(R"({"answer": "p", "match": "exact"})"), HasSubstr("expected one of \"prompt\" and \"messages\", found none"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "messages": [], "answer": "a", "match": "exact"})"), HasSubstr("found both"));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "bot", "content": ""}], "answer": "a", "match": "exact"})"), HasSubstr("found \"bot\""));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "system", "content": ""}], "answer": "a", "match": "exact"})"), HasSubstr("from the user"));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "user", "content": ""}], "answer": "a", "match": "continuation"})"),
              HasSubstr("expected \"prompt\""));
  EXPECT_THAT(Refusal(R"({"messages": [{"role": "user", "content": ""}], "answer": "a", "match": "exact"})"),
              HasSubstr("found an empty one"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "c", "choices": ["x", "y"], "match": "choice"})"), HasSubstr("found \"c\""));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": 2, "choices": ["x", "y"], "match": "choice"})"), HasSubstr("\"answer\": expected"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "choices": ["x"], "match": "choice"})"), HasSubstr("at least 2"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "choices": ["x", "y"], "match": "exact"})"),
              HasSubstr("\"choices\": expected with"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "test": "y", "match": "exact"})"), HasSubstr("\"test\" and"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "test": "y", "match": "code"})"), HasSubstr("expected none with"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "match": "code"})"), HasSubstr("\"test\": expected"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "match": "exact", "stop": [""]})"), HasSubstr("\"stop\": expected texts"));
  EXPECT_THAT(Refusal(R"({"prompt": "p", "answer": "x", "match": "exact", "max_tokens": 0})"), HasSubstr("max_tokens"));
}

TEST(TaskFileTest, FaultsNameFileAndLine) {
  EXPECT_THAT(Refusal(std::string(kGsm8kRow) + "\n{\"question\": \"q\"}\n"), StartsWith("f:2: \"answer\": expected"));
  EXPECT_THAT(Refusal(std::string(kGsm8kRow) + "\n\n{\"question\": }\n"), StartsWith("f:3: JSON"));
  EXPECT_THAT(Refusal(std::string(kGsm8kRow) + "\n\xff\n"), StartsWith("f:2: expected UTF-8"));
  EXPECT_THAT(Refusal(""), StartsWith("f: expected questions, found an empty file"));
  EXPECT_THAT(Refusal("{\"a\": 1}\n"), HasSubstr("f:1: expected questions in a known format (gsm8k"));
  EXPECT_THAT(Refusal("{\"a\": 1}\n"), HasSubstr("found {a}"));
  EXPECT_THAT(Refusal("just text\n"), HasSubstr("found 1 fields"));
  EXPECT_THAT(Refusal("a\t1\n", {.format = "gsm8k"}), HasSubstr("f:1: expected {\"question\""));
  EXPECT_THAT(Refusal("{\"prompt\": \"p\", \"answer\": \"a\", \"match\": \"exact\", \"id\": \"x\"}\n"
                      "{\"prompt\": \"p\", \"answer\": \"a\", \"match\": \"exact\", \"id\": \"x\"}\n"),
              StartsWith("f:2: expected an id of its own, found \"x\" again"));
  EXPECT_TRUE(absl::IsNotFound(ReadTaskFile("/nowhere.jsonl").status()));
  EXPECT_EQ(Parse("\xEF\xBB\xBF" + std::string(kGsm8kRow)).format, "gsm8k");
}

TEST(TaskFileTest, OptionsAreChecked) {
  const auto field = [](const TaskReadOptions& options, absl::string_view content = kGsm8kRow) {
    return ErrorField(ParseTaskFile("f", content, options).status());
  };
  EXPECT_EQ(field({.limit = -1}), "limit");
  EXPECT_EQ(field({.shots = -1}), "shots");
  EXPECT_EQ(field({.format = "gsm"}), "format");
  EXPECT_EQ(field({.shots = 2}, R"({"text": "two words"})"), "shots");
}

TEST(TaskFileTest, FormatsHaveNamesOfTheirOwn) {
  std::vector<std::string> names = TaskFormatNames();
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
  EXPECT_THAT(names, SizeIs(TaskFormats().size()));
}

TEST(TaskFileTest, PublishedFilesAreReadWhole) {
  struct Published {
    const char* file;
    const char* format;
    size_t items;
  };
  for (const Published& published : {Published{"gsm8k/test_a.jsonl", "gsm8k", 660},
                                     {"humaneval/HumanEval.jsonl.gz", "humaneval", 164},
                                     {"mgsm/mgsm_en.tsv", "mgsm", 250},
                                     {"mgsm/mgsm_de.tsv", "mgsm", 250},
                                     {"mgsm/mgsm_es.tsv", "mgsm", 250},
                                     {"mgsm/mgsm_fr.tsv", "mgsm", 250},
                                     {"mgsm/mgsm_ja.tsv", "mgsm", 250},
                                     {"mgsm/mgsm_zh.tsv", "mgsm", 250},
                                     {"mc/mmlu_test_600.jsonl", "mmlu", 600},
                                     {"mc/hellaswag_val_600.jsonl", "hellaswag", 600},
                                     {"mc/arc_easy_val_600.jsonl", "arc", 570},
                                     {"mc/arc_challenge_val_600.jsonl", "arc", 299},
                                     {"lambada/lambada_test_1200.jsonl", "lambada", 1200}}) {
    const auto file = ReadTaskFile(SharedPath(absl::StrCat("data/", published.file)));
    if (absl::IsNotFound(file.status())) GTEST_SKIP() << "needs the shared evaluation data (set PITH_SHARED_DIR)";
    ASSERT_TRUE(file.ok()) << file.status();
    EXPECT_EQ(file->format, published.format) << published.file;
    EXPECT_EQ(file->items.size(), published.items) << published.file;
  }
  // Other files beside them are no questions.
  for (const char* other : {"wikitext2/wiki.test.raw", "longtext/war-and-peace.txt", "calib/c4.utf8", "mtbench/question.jsonl"}) {
    const auto content = ReadFile(SharedPath(absl::StrCat("data/", other)));
    EXPECT_EQ(content.ok() ? RecognizeTaskFormat(*content) : "", "") << other;
  }
}

}  // namespace
}  // namespace pith
