#include "compression/model_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tokenizer/test_byte_tokenizer.h"

namespace pith {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Optional;

ChatTemplate Template(absl::string_view source) {
  auto parsed = ChatTemplate::Parse(source);
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return *std::move(parsed);
}

const OrderedJson kMessages = {{{"role", "user"}, {"content", "<s>"}}};

TEST(ModelTextTest, BosIsThatWhichTheTokenizerAdds) {
  EXPECT_THAT(AddedBos(ByteTokenizer(true)), Optional(ByteTokenizer::kBos));
  EXPECT_EQ(AddedBos(ByteTokenizer(false)), std::nullopt);
}

TEST(ModelTextTest, TextsGetNoBosAndMustBeUtf8) {
  const ByteTokenizer tokenizer(true);
  EXPECT_THAT(*EncodeText({.tokenizer = tokenizer}, "<s>"), ElementsAre('<', 's', '>'));
  const absl::Status status = EncodeText({.tokenizer = tokenizer}, "a\xff").status();
  EXPECT_TRUE(absl::IsDataLoss(status)) << status;
}

// Special tokens are those of the template, never those of a message.
TEST(ModelTextTest, ConversationsAreRendered) {
  const ByteTokenizer tokenizer(true);
  const ChatTemplate chat = Template("{{ bos_token }}{{ messages[0].content }}{{ eos_token }}{% if add_generation_prompt %}>{% endif %}");
  const ModelText text{.tokenizer = tokenizer, .chat_template = &chat, .bos_token = "<s>", .eos_token = "</s>"};
  EXPECT_THAT(*EncodeConversation(text, kMessages, false), ElementsAre(256, '<', 's', '>', 257));
  EXPECT_THAT(*EncodeConversation(text, kMessages, true), ElementsAre(256, '<', 's', '>', 257, '>'));
}

TEST(ModelTextTest, TemplatesAreToldOneDateForEver) {
  const ByteTokenizer tokenizer(false);
  const ChatTemplate chat = Template("{{ strftime_now('%Y-%m-%d') }}");
  const auto ids = EncodeConversation({.tokenizer = tokenizer, .chat_template = &chat}, kMessages, false);
  ASSERT_TRUE(ids.ok()) << ids.status();
  EXPECT_EQ(tokenizer.Decode(*ids, true), "2025-01-01");
}

TEST(ModelTextTest, RefusalsSayWhoRefused) {
  const ByteTokenizer tokenizer(false);
  const absl::Status none = EncodeConversation({.tokenizer = tokenizer}, kMessages, false).status();
  EXPECT_TRUE(absl::IsUnimplemented(none)) << none;
  EXPECT_THAT(none.message(), HasSubstr("expected a model with a chat template, found none"));
  const ChatTemplate chat = Template("{{ raise_exception('roles must alternate') }}");
  const absl::Status refused = EncodeConversation({.tokenizer = tokenizer, .chat_template = &chat}, kMessages, false).status();
  EXPECT_TRUE(absl::IsDataLoss(refused)) << refused;
  EXPECT_THAT(refused.message(), HasSubstr("chat template: "));
  EXPECT_THAT(refused.message(), HasSubstr("roles must alternate"));
}

}  // namespace
}  // namespace pith
