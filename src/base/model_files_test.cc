#include "base/model_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pith {
namespace {

using ::testing::Contains;
using ::testing::Not;

TEST(ModelFilesTest, TablesHoldWhatLoadersAskFor) {
  for (const char* name : {"tokenizer.json", "generation_config.json", "chat_template.jinja", "merges.txt"}) {
    EXPECT_THAT(SideFileTable(), Contains(name));
  }
  for (const char* name : {"config.json", "model.safetensors", "LICENSE"}) EXPECT_THAT(SideFileTable(), Not(Contains(name)));
  for (const QuantizationFile& file : QuantizationFileTable()) EXPECT_THAT(SideFileTable(), Not(Contains(file.name)));
  EXPECT_EQ(QuantizationFileTable()[0].method, "gptq");
}

TEST(ModelFilesTest, LegalTextsHaveManyEndings) {
  for (const char* name : {"LICENSE", "LICENSE.txt", "LICENCE.md", "NOTICE", "USE_POLICY.md", "COPYING"}) EXPECT_TRUE(IsLegalText(name));
  for (const char* name : {"license", "README.md", "", "MY_LICENSE"}) EXPECT_FALSE(IsLegalText(name));
}

}  // namespace
}  // namespace pith
