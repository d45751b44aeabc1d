// The same ids and texts as the Python `tokenizers` package, for the tokenizers of real models read from GGUF files.
// Needs Python with the packages tokenizers and gguf ($PITH_TEST_PYTHON, build/venv, or python3) and the models; skips without.
#include <cctype>

#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/json.h"
#include "base/python_process.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gtest/gtest.h"
#include "tokenizer/tokenizer.h"
#include "tokenizer/tokenizer_test_data.h"

namespace pith {
namespace {

// Runs tests/oracles/tokenizer_oracle.py; true when it succeeds.
bool RunOracle(const std::vector<std::string>& arguments) {
  std::string quoted;
  for (const std::string& argument : arguments) absl::StrAppend(&quoted, " '", argument, "'");
  return RunPythonFile(absl::StrCat(PITH_SOURCE_DIR, "/tests/oracles/tokenizer_oracle.py"), quoted).exit_code == 0;
}

Json ReadJsonFile(const std::string& path) {
  const absl::StatusOr<std::string> text = ReadFile(path);
  EXPECT_TRUE(text.ok()) << text.status();
  absl::StatusOr<Json> json = ParseJson(*text);
  EXPECT_TRUE(json.ok()) << json.status();
  return json.ok() ? *std::move(json) : Json();
}

GgufVocabulary ToVocabulary(const Json& json) {
  const auto flag = [&](const char* key) {
    return json.at(key).is_null() ? std::optional<bool>() : std::optional<bool>(json.at(key).get<bool>());
  };
  GgufVocabulary gguf;
  gguf.model = json.at("model");
  gguf.pre = json.at("pre");
  gguf.tokens = json.at("tokens").get<std::vector<std::string>>();
  gguf.scores = json.at("scores").get<std::vector<float>>();
  gguf.token_types = json.at("token_types").get<std::vector<int32_t>>();
  gguf.merges = json.at("merges").get<std::vector<std::string>>();
  gguf.bos_id = json.at("bos_id");
  gguf.eos_id = json.at("eos_id");
  gguf.unk_id = json.at("unk_id");
  gguf.pad_id = json.at("pad_id");
  gguf.eot_id = json.at("eot_id");
  gguf.add_bos = flag("add_bos");
  gguf.add_eos = flag("add_eos");
  gguf.add_space_prefix = flag("add_space_prefix");
  gguf.chat_template = json.at("chat_template");
  return gguf;
}

// The texts of tests/oracles/tokenizer_texts.json, each as user text and with special tokens parsed, and random ones. Combining marks
// are left out of the random ones: the Python package orders those that are new since Unicode 9 as if they were letters.
Json MakeCases() {
  Json cases = Json::array();
  for (const Json& text : ReadJsonFile(absl::StrCat(PITH_SOURCE_DIR, "/tests/oracles/tokenizer_texts.json"))) {
    cases.push_back(text);
    if (text.value("repeat", 1) > 10000) continue;
    cases.push_back(text);
    cases.back()["parse_special"] = true;
    cases.back()["add_special_tokens"] = true;
  }
  RandomStream random(3);
  for (int i = 0; i < 500; ++i) {
    std::string text;
    for (uint64_t length = 1 + random.Below(100); length > 0; --length) {
      const char32_t c = RandomCodePoint(&random);
      if (!HasUnicodeClass(c, kClassMark)) AppendUtf8(c, &text);
    }
    cases.push_back({{"text", text}});
  }
  return cases;
}

std::string RepeatText(const Json& item) {
  std::string text;
  const std::string unit = item.at("text");
  for (int i = item.value("repeat", 1); i > 0; --i) text += unit;
  return text;
}

void ExpectSame(const Tokenizer& tokenizer, const Json& item, const Json& expected) {
  const std::string text = RepeatText(item);
  const std::string shown = Printable(text, 100);
  const absl::StatusOr<std::vector<TokenId>> ids = tokenizer.Encode(
      text, {item.value("add_special_tokens", false), item.value("parse_special", false)});
  ASSERT_TRUE(ids.ok()) << ids.status();
  // Not EXPECT_EQ of the vectors: it would print a megabyte.
  EXPECT_TRUE(*ids == expected.at("ids").get<std::vector<TokenId>>()) << shown;
  EXPECT_TRUE(tokenizer.Decode(*ids) == expected.at("decoded").get<std::string>()) << shown;
  EXPECT_TRUE(tokenizer.Decode(*ids, /*skip_special=*/false) == expected.at("decoded_special").get<std::string>()) << shown;
  StreamDetokenizer stream(tokenizer);
  std::string streamed;
  for (const TokenId id : *ids) streamed += stream.Append(id);
  EXPECT_TRUE(streamed + stream.Finish() == expected.at("decoded").get<std::string>()) << shown;
}

class TokenizerOracleTest : public testing::TestWithParam<const char*> {};

TEST_P(TokenizerOracleTest, SameAsPythonTokenizers) {
  const std::string model = ModelPath(GetParam());
  if (!FileExists(model)) GTEST_SKIP() << model << " is not there";
  if (!PythonHas("tokenizers, gguf")) GTEST_SKIP() << PythonPath() << " has no packages tokenizers and gguf";
  const ScratchDirectory scratch;
  ASSERT_TRUE(RunOracle({"vocabulary", model, scratch.File("vocabulary.json")}));
  const GgufVocabulary gguf = ToVocabulary(ReadJsonFile(scratch.File("vocabulary.json")));
  const absl::StatusOr<TokenizerJsonFiles> files = TokenizerJsonFromGguf(gguf);
  ASSERT_TRUE(files.ok()) << files.status();
  const Json cases = MakeCases();
  ASSERT_TRUE(WriteFileAtomically(scratch.File("tokenizer.json"), files->tokenizer_json).ok());
  ASSERT_TRUE(WriteFileAtomically(scratch.File("in.json"), DumpJson(cases)).ok());
  ASSERT_TRUE(RunOracle({"encode", scratch.File("tokenizer.json"), scratch.File("in.json"), scratch.File("out.json")}));
  const Json expected = ReadJsonFile(scratch.File("out.json"));
  ASSERT_EQ(expected.size(), cases.size());
  const auto from_gguf = Tokenizer::FromGguf(gguf);
  const auto from_json = Tokenizer::FromJson(files->tokenizer_json, files->tokenizer_config_json);
  ASSERT_TRUE(from_gguf.ok()) << from_gguf.status();
  ASSERT_TRUE(from_json.ok()) << from_json.status();
  for (size_t i = 0; i < cases.size(); ++i) {
    ExpectSame(**from_gguf, cases[i], expected[i]);
    ExpectSame(**from_json, cases[i], expected[i]);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, TokenizerOracleTest,
                         testing::Values("smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf",
                                         "qwen2.5-coder-0.5b-instruct/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                                         "qwen2.5-coder-1.5b-instruct/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
                                         "gemma-3-270m/gemma-3-270m-q4_k_m.gguf"),
                         [](const testing::TestParamInfo<const char*>& info) {
                           const std::vector<std::string> parts = absl::StrSplit(info.param, '/');
                           std::string name;
                           for (const char c : parts[0]) name += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
                           return name;
                         });

}  // namespace
}  // namespace pith
