#include "artifact/huggingface_files.h"

#include "artifact/test_files.h"
#include "base/status.h"
#include "base/test_util.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class HuggingFaceFiles : public testing::Test {
 protected:
  void Write(const std::string& name, const std::string& content) { WriteTestFile(scratch_.File(name), content); }
  std::string ConfigError() { return std::string(ReadModelConfig(scratch_.path()).status().message()); }
  ScratchDirectory scratch_;
};

TEST_F(HuggingFaceFiles, Config) {
  Write("config.json", R"({"model_type": "llama", "hidden_size": 8})");
  EXPECT_EQ((*ReadModelConfig(scratch_.path()))["hidden_size"], 8);
  Write("config.json", R"({"hidden_size": 8})");
  EXPECT_THAT(ConfigError(), HasSubstr("config.json: \"model_type\": expected a string, found nothing"));
  Write("config.json", R"({"model_type": "llama", "model_type": "qwen2"})");
  EXPECT_THAT(ConfigError(), HasSubstr("duplicate key"));
  Write("config.json", "[]");
  EXPECT_THAT(ConfigError(), HasSubstr("expected an object, found []"));
  Write("config.json", "version https://git-lfs.github.com/spec/v1\n");
  EXPECT_THAT(ConfigError(), HasSubstr("Git LFS pointer"));
  Write("config.json", R"({"model_type": "llama", "auto_map": {"AutoModel": "x.y"}})");
  EXPECT_TRUE(ReadModelConfig(scratch_.path()).ok());  // ignored, with a warning
}

TEST_F(HuggingFaceFiles, MissingConfigSaysWhatIsThere) {
  EXPECT_EQ(ReadModelConfig(scratch_.path()).status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(ConfigError(), HasSubstr("config.json: expected a model's config.json, found none"));
  Write("model-q4.gguf", "x");
  EXPECT_THAT(ConfigError(), HasSubstr("for model-q4.gguf give the path of that file"));
}

TEST_F(HuggingFaceFiles, GenerationConfig) {
  const Json config = {{"eos_token_id", {1, 2}}, {"bos_token_id", 0}, {"hidden_size", 8}};
  EXPECT_EQ(*ReadGenerationConfig(scratch_.path(), config), *ParseJson(R"({"eos_token_id": [1, 2], "bos_token_id": 0})"));
  EXPECT_EQ(*ReadGenerationConfig(scratch_.path(), Json::object()), Json::object());
  Write("generation_config.json", R"({"temperature": 0.6})");
  EXPECT_EQ(*ReadGenerationConfig(scratch_.path(), config), *ParseJson(R"({"temperature": 0.6})"));
  Write("generation_config.json", "7");
  EXPECT_FALSE(ReadGenerationConfig(scratch_.path(), config).ok());
}

TEST_F(HuggingFaceFiles, Tokenizer) {
  EXPECT_TRUE(ReadTokenizerFiles(scratch_.path())->tokenizer_json.empty());
  Write("tokenizer.json", "\n{\"version\": \"1.0\"}");
  Write("tokenizer_config.json", "{}");
  Write("special_tokens_map.json", "{\"a\": 1}");
  Write("chat_template.jinja", "{{ messages }}");
  const auto files = ReadTokenizerFiles(scratch_.path());
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ(files->tokenizer_json, "\n{\"version\": \"1.0\"}");
  EXPECT_EQ(files->tokenizer_config_json, "{}");
  EXPECT_EQ(files->special_tokens_map_json, "{\"a\": 1}");
  EXPECT_EQ(files->chat_template_jinja, "{{ messages }}");
  Write("tokenizer.json", "<!DOCTYPE html>");
  EXPECT_THAT(ReadTokenizerFiles(scratch_.path()).status().message(),
              HasSubstr("tokenizer.json: expected a JSON object, found an HTML page"));
  Write("tokenizer.json", "x");
  EXPECT_THAT(ReadTokenizerFiles(scratch_.path()).status().message(), HasSubstr("found other text"));
}

TEST_F(HuggingFaceFiles, SideFiles) {
  for (const char* name : {"config.json", "model.safetensors", "README.md", "tokenizer.json", "vocab.json", "LICENSE.txt", "USE_POLICY.md",
                           "generation_config.json", "tokenizer.json.bak", ".gitattributes", "modeling_llama.py"}) {
    Write(name, "x");
  }
  std::filesystem::create_directory(scratch_.File("NOTICE"));
  EXPECT_THAT(*SideFileNames(scratch_.path()),
              ElementsAre("LICENSE.txt", "USE_POLICY.md", "generation_config.json", "tokenizer.json", "vocab.json"));
  EXPECT_EQ(SideFileNames(scratch_.File("absent")).status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace pith
