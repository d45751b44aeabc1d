#include "tokenizer/component_json.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

Json Parse(absl::string_view text) {
  absl::StatusOr<Json> json = ParseJson(text);
  EXPECT_TRUE(json.ok()) << json.status() << text;
  return *std::move(json);
}

std::string Written(const OrderedJson& json) { return DumpJson(json); }

// Reads and writes again; what is written must read as the same.
TEST(ComponentJsonTest, NormalizersRoundTrip) {
  for (const char* text : {
           "null",
           R"({"type":"NFC"})",
           R"({"type":"Replace","pattern":{"String":" "},"content":"\u2581"})",
           R"({"type":"Sequence","normalizers":[{"type":"NFD"},{"type":"NFKC"},{"type":"NFKD"},{"type":"Lowercase"},
               {"type":"Strip","strip_left":true,"strip_right":false},
               {"type":"Prepend","prepend":"x"},{"type":"Replace","pattern":{"Regex":"a+"},"content":""}]})",
       }) {
    const auto steps = ReadNormalizer(Parse(text));
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_EQ(Parse(Written(WriteNormalizer(*steps))), Parse(text));
  }
}

TEST(ComponentJsonTest, PreTokenizersRoundTrip) {
  for (const char* text : {
           "null",
           R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":false})",
           R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"first","split":false})",
           R"({"type":"Sequence","pretokenizers":[{"type":"Digits","individual_digits":true},
               {"type":"Split","pattern":{"Regex":"a"},"behavior":"MergedWithNext","invert":true},
               {"type":"Split","pattern":{"String":"b"},"behavior":"Contiguous","invert":false},
               {"type":"Whitespace"},{"type":"WhitespaceSplit"}]})",
       }) {
    const auto steps = ReadPreTokenizer(Parse(text));
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_EQ(Parse(Written(WritePreTokenizer(*steps))), Parse(text));
  }
}

TEST(ComponentJsonTest, DecodersRoundTrip) {
  for (const char* text : {
           "null",
           R"({"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true})",
           R"({"type":"Metaspace","replacement":"\u2581","prepend_scheme":"never","split":true})",
           R"({"type":"Sequence","decoders":[{"type":"Replace","pattern":{"String":"\u2581"},"content":" "},
               {"type":"ByteFallback"},{"type":"Fuse"},{"type":"Strip","content":" ","start":1,"stop":0}]})",
       }) {
    const auto steps = ReadDecoder(Parse(text));
    ASSERT_TRUE(steps.ok()) << steps.status();
    EXPECT_EQ(Parse(Written(WriteDecoder(*steps))), Parse(text));
  }
}

TEST(ComponentJsonTest, NestedSequencesAndOldForms) {
  const auto nested = ReadNormalizer(
      Parse(R"({"type":"Sequence","normalizers":[{"type":"Sequence","normalizers":[{"type":"NFC"}]},{"type":"Lowercase"}]})"));
  ASSERT_TRUE(nested.ok());
  ASSERT_EQ(nested->size(), 2u);
  EXPECT_EQ((*nested)[0].kind, NormalizerStep::kNfc);
  const auto old = ReadPreTokenizer(Parse(R"({"type":"Metaspace","replacement":"_","add_prefix_space":false})"));
  ASSERT_TRUE(old.ok());
  EXPECT_EQ((*old)[0].prepend, PreTokenizerStep::kNever);
}

TEST(ComponentJsonTest, PostProcessor) {
  const auto around = ReadPostProcessor(Parse(R"({"type":"Sequence","processors":[{"type":"ByteLevel"},{"type":"TemplateProcessing",
      "single":[{"SpecialToken":{"id":"<s>","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
      "pair":[],"special_tokens":{"<s>":{"id":"<s>","ids":[1,2],"tokens":["a","b"]},"</s>":{"id":"</s>","ids":[3],"tokens":["c"]}}}]})"));
  ASSERT_TRUE(around.ok()) << around.status();
  EXPECT_EQ(around->prefix_ids, (std::vector<TokenId>{1, 2}));
  EXPECT_EQ(around->suffix_ids, std::vector<TokenId>{3});

  TokenizerDefinition definition;
  ASSERT_TRUE(definition.vocabulary.Add("<s>", 5).ok());
  EXPECT_TRUE(WritePostProcessor(definition).is_null());
  definition.prefix_ids = {5};
  const auto again = ReadPostProcessor(Parse(Written(WritePostProcessor(definition))));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(again->prefix_ids, std::vector<TokenId>{5});
  EXPECT_TRUE(again->suffix_ids.empty());
}

TEST(ComponentJsonTest, UnknownTypesAreNamedWithTheKnown) {
  const auto normalizer = ReadNormalizer(Parse(R"({"type":"Precompiled"})"));
  EXPECT_EQ(normalizer.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(normalizer.status().message(),
            "normalizer: type 'Precompiled' is not supported (NFC, NFD, NFKC, NFKD, Lowercase, Strip, Replace, Prepend, Sequence)");
  const auto pre = ReadPreTokenizer(Parse(R"({"type":"Sequence","pretokenizers":[{"type":"Digits"},{"type":"BertPreTokenizer"}]})"));
  EXPECT_EQ(pre.status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_NE(pre.status().message().find("pre_tokenizer.pretokenizers[1]: type 'BertPreTokenizer'"), absl::string_view::npos)
      << pre.status();
  EXPECT_EQ(ReadDecoder(Parse(R"({"type":"CTC"})")).status().code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(ReadPostProcessor(Parse(R"({"type":"BertProcessing"})")).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ComponentJsonTest, BadFieldsAreRefused) {
  for (const char* text : {"[]", "3", R"({})", R"({"type":7})", R"({"type":"Sequence"})", R"({"type":"Sequence","normalizers":{}})",
                           R"({"type":"Replace","content":"x"})", R"({"type":"Replace","pattern":{"String":""},"content":"x"})",
                           R"({"type":"Replace","pattern":{"Regex":1},"content":"x"})",
                           R"({"type":"Replace","pattern":{"String":"a","Regex":"b"},"content":"x"})", R"({"type":"Prepend"})",
                           R"({"type":"Strip","strip_left":1})"}) {
    EXPECT_EQ(ReadNormalizer(Parse(text)).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  for (const char* text :
       {R"({"type":"Split","pattern":{"String":"a"}})", R"({"type":"Split","pattern":{"String":"a"},"behavior":"Other"})",
        R"({"type":"Metaspace","replacement":"ab"})", R"({"type":"Metaspace","replacement":""})",
        R"({"type":"Metaspace","replacement":"a","prepend_scheme":"last"})", R"({"type":"Digits","individual_digits":"yes"})"}) {
    EXPECT_EQ(ReadPreTokenizer(Parse(text)).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  for (const char* text :
       {R"({"type":"Strip","content":" ","start":-1,"stop":0})", R"({"type":"Strip","content":"","start":1,"stop":0})"}) {
    EXPECT_EQ(ReadDecoder(Parse(text)).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  for (const char* text :
       {R"({"type":"TemplateProcessing"})", R"({"type":"TemplateProcessing","single":[{"Other":{}}]})",
        R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],"special_tokens":{}})",
        R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"x"}},{"Sequence":{"id":"A"}}],
           "special_tokens":{"x":{"ids":[-1]}}})"}) {
    EXPECT_EQ(ReadPostProcessor(Parse(text)).status().code(), absl::StatusCode::kDataLoss) << text;
  }
  EXPECT_EQ(ReadPostProcessor(Parse(R"({"type":"TemplateProcessing","single":[]})")).status().code(), absl::StatusCode::kUnimplemented);
}

TEST(ComponentJsonTest, DeepSequencesAreRefused) {
  std::string text = R"({"type":"NFC"})";
  for (int i = 0; i < 25; ++i) text = R"({"type":"Sequence","normalizers":[)" + text + "]}";
  EXPECT_EQ(ReadNormalizer(Parse(text)).status().code(), absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
