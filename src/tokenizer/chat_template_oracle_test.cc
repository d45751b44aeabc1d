// Compares chat templates with jinja2, when Python has it: the committed templates and conversations, random templates, and the templates
// of the models in the cache. PITH_TEST_PYTHON names the interpreter (default python3); PITH_JINJA_RANDOM_CASES how many random ones.
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "base/file.h"
#include "base/test_util.h"
#include "gtest/gtest.h"
#include "tokenizer/chat_template.h"

namespace pith {
namespace {

constexpr int kSkipped = 77;

std::string SourcePath(absl::string_view name) { return absl::StrCat(PITH_SOURCE_DIR, "/tests/", name); }

// The output of a Python script, or nullopt when Python or a package is missing.
std::optional<std::string> RunPython(const std::string& arguments) {
  const char* python = std::getenv("PITH_TEST_PYTHON");
  const std::string command = absl::StrCat(python != nullptr ? python : "python3", " ", arguments);
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return std::nullopt;
  std::string output;
  char buffer[65536];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, n);
  const int status = pclose(pipe);
  const int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  if (code == kSkipped || code == 127) return std::nullopt;
  EXPECT_EQ(code, 0) << command;
  return output;
}

// What the oracle says about each case, in order.
std::optional<std::vector<OrderedJson>> AskOracle(const std::vector<OrderedJson>& cases) {
  const ScratchDirectory scratch;
  std::ofstream file(scratch.File("cases.jsonl"));
  for (const OrderedJson& item : cases) file << item.dump() << "\n";
  file.close();
  const std::optional<std::string> output = RunPython(
      absl::StrCat(SourcePath("oracles/jinja_oracle.py"), " < ", scratch.File("cases.jsonl")));
  if (!output.has_value()) return std::nullopt;
  std::vector<OrderedJson> results;
  for (const absl::string_view line : absl::StrSplit(*output, '\n', absl::SkipEmpty()))
    results.push_back(OrderedJson::parse(line.begin(), line.end()));
  return results;
}

std::string Render(const OrderedJson& item) {
  const ChatTemplateInputs inputs = {.messages = item.value("messages", OrderedJson()),
                                     .tools = item.value("tools", OrderedJson()),
                                     .add_generation_prompt = item.value("add_generation_prompt", true),
                                     .bos_token = item.value("bos_token", ""),
                                     .eos_token = item.value("eos_token", ""),
                                     .extra = item.value("extra", OrderedJson::object()),
                                     .now_unix_seconds = item.value("now", int64_t{0})};
  const absl::StatusOr<ChatTemplate> parsed = ChatTemplate::Parse(item["template"].get_ref<const std::string&>(), {.wall_ms = 20'000});
  if (!parsed.ok()) return "ERROR";
  const absl::StatusOr<std::string> text = parsed->Render(inputs);
  return text.ok() ? *text : "ERROR";
}

std::string Expected(const OrderedJson& result) { return result["ok"].get<bool>() ? result["text"].get<std::string>() : "ERROR"; }

std::vector<OrderedJson> Conversations() {
  const absl::StatusOr<std::string> text = ReadFile(SourcePath("cases/chat_templates/inputs.json"));
  EXPECT_TRUE(text.ok()) << text.status();
  std::vector<OrderedJson> conversations;
  for (OrderedJson& item : OrderedJson::parse(*text)) {
    for (const auto& [key, value] : {std::pair<const char*, OrderedJson>{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"now", 1722467145}}) {
      if (!item.contains(key)) item[key] = value;
    }
    conversations.push_back(std::move(item));
  }
  return conversations;
}

// Name and text of every committed template.
std::vector<std::pair<std::string, std::string>> CommittedTemplates() {
  std::vector<std::pair<std::string, std::string>> templates;
  for (const auto& entry : std::filesystem::directory_iterator(SourcePath("cases/chat_templates"))) {
    if (entry.path().extension() != ".jinja") continue;
    const absl::StatusOr<std::string> text = ReadFile(entry.path().string());
    EXPECT_TRUE(text.ok()) << text.status();
    templates.emplace_back(entry.path().stem().string(), *text);
  }
  EXPECT_GE(templates.size(), 10u);
  return templates;
}

// Every template with every conversation, in one run of Python.
void ExpectAsJinja(const std::vector<std::pair<std::string, std::string>>& templates) {
  std::vector<OrderedJson> cases;
  std::vector<std::string> names;
  for (const auto& [name, source] : templates) {
    for (OrderedJson& item : Conversations()) {
      item["template"] = source;
      names.push_back(absl::StrCat(name, ": ", item["name"].get<std::string>()));
      cases.push_back(std::move(item));
    }
  }
  const std::optional<std::vector<OrderedJson>> results = AskOracle(cases);
  if (!results.has_value()) GTEST_SKIP() << "python3 with jinja2 is missing";
  ASSERT_EQ(results->size(), cases.size());
  for (size_t i = 0; i < cases.size(); ++i) EXPECT_EQ(Render(cases[i]), Expected((*results)[i])) << names[i];
}

// expected.json holds what jinja2 3.1.6 made of some of the conversations, for machines without it.
TEST(ChatTemplateOracle, CommittedExpectations) {
  const absl::StatusOr<std::string> text = ReadFile(SourcePath("cases/chat_templates/expected.json"));
  ASSERT_TRUE(text.ok()) << text.status();
  const OrderedJson expected = OrderedJson::parse(*text);
  const std::vector<OrderedJson> conversations = Conversations();
  int compared = 0;
  for (const auto& [name, source] : CommittedTemplates()) {
    for (OrderedJson item : conversations) {
      const OrderedJson& results = expected.value(name, OrderedJson::object());
      const auto result = results.find(item["name"].get<std::string>());
      if (result == results.end()) continue;
      item["template"] = source;
      EXPECT_EQ(Render(item), result->get<std::string>()) << name << ": " << item["name"];
      ++compared;
    }
  }
  EXPECT_GE(compared, 30);
}

TEST(ChatTemplateOracle, CommittedTemplatesAsJinja) { ExpectAsJinja(CommittedTemplates()); }

TEST(ChatTemplateOracle, RandomTemplatesAsJinja) {
  const char* count = std::getenv("PITH_JINJA_RANDOM_CASES");
  const std::optional<std::string> output = RunPython(
      absl::StrCat(SourcePath("oracles/jinja_random.py"), " 20240731 ", count != nullptr ? count : "600"));
  if (!output.has_value()) GTEST_SKIP() << "python3 with jinja2 is missing";
  int rendered = 0;
  for (const absl::string_view line : absl::StrSplit(*output, '\n', absl::SkipEmpty())) {
    const OrderedJson item = OrderedJson::parse(line.begin(), line.end());
    EXPECT_EQ(Render(item["case"]), Expected(item["result"])) << item["case"]["template"];
    rendered += item["result"]["ok"].get<bool>() ? 1 : 0;
  }
  EXPECT_GE(rendered, 250);
}

TEST(ChatTemplateOracle, TemplatesOfCachedModelsAsJinja) {
  std::vector<std::pair<std::string, std::string>> templates;
  for (const char* model : {"smollm2-135m-instruct/SmolLM2-135M-Instruct.Q4_1.gguf", "gemma-3-270m/gemma-3-270m-q4_k_m.gguf",
                            "qwen2.5-coder-0.5b-instruct/qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
                            "qwen2.5-coder-1.5b-instruct/qwen2.5-coder-1.5b-instruct-q4_k_m.gguf"}) {
    if (!FileExists(ModelPath(model))) continue;
    const std::optional<std::string> source = RunPython(absl::StrCat(SourcePath("oracles/gguf_chat_template.py"), " ", ModelPath(model)));
    if (source.has_value()) templates.emplace_back(model, *source);  // a base model has none
  }
  if (templates.empty()) GTEST_SKIP() << "no model with a chat template in " << ModelPath("");
  ExpectAsJinja(templates);
}

}  // namespace
}  // namespace pith
