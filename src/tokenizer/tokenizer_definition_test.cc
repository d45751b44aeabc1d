#include "tokenizer/tokenizer_definition.h"

#include "gtest/gtest.h"

namespace pith {
namespace {

TokenizerDefinition Small() {
  TokenizerDefinition definition;
  EXPECT_TRUE(definition.vocabulary.Add("a", 0).ok());
  EXPECT_TRUE(definition.vocabulary.Add("b", 1).ok());
  definition.added_tokens = {{.id = 1, .content = "b"}, {.id = 7, .content = "<s>", .special = true}};
  return definition;
}

TEST(TokenizerDefinitionTest, AcceptsWhatAgrees) {
  TokenizerDefinition definition = Small();
  definition.bos_id = 7;
  definition.eos_id = 0;
  definition.prefix_ids = {7};
  definition.unk_id = 0;
  EXPECT_TRUE(CheckDefinition(definition).ok());
  EXPECT_EQ(DefinitionTokenText(definition, 0), "a");
  EXPECT_EQ(DefinitionTokenText(definition, 7), "<s>");
  EXPECT_EQ(DefinitionTokenText(definition, 3), "");
}

TEST(TokenizerDefinitionTest, RefusesAddedTokensThatContradict) {
  const AddedToken bad[] = {
      {.id = 9, .content = ""},    {.id = 0, .content = "b2"},  // the id of "a"
      {.id = 5, .content = "a"},                                // another id than in the vocabulary
      {.id = 7, .content = "<t>"},                              // the id of "<s>"
      {.id = 8, .content = "<s>"},                              // twice
      {.id = -1, .content = "x"},  {.id = kMaxTokenId + 1, .content = "y"},
  };
  for (const AddedToken& token : bad) {
    TokenizerDefinition definition = Small();
    definition.added_tokens.push_back(token);
    EXPECT_EQ(CheckDefinition(definition).code(), absl::StatusCode::kDataLoss) << token.content << " " << token.id;
  }
}

TEST(TokenizerDefinitionTest, RefusesIdsOfNothing) {
  for (int field = 0; field < 5; ++field) {
    TokenizerDefinition definition = Small();
    if (field == 0) definition.bos_id = 2;
    if (field == 1) definition.eos_id = 2;
    if (field == 2) definition.pad_id = 2;
    if (field == 3) definition.suffix_ids = {2};
    if (field == 4) definition.unk_id = 7;  // an added token the model cannot give
    EXPECT_EQ(CheckDefinition(definition).code(), absl::StatusCode::kDataLoss) << field;
  }
}

}  // namespace
}  // namespace pith
