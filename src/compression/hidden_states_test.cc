#include "compression/hidden_states.h"

#include <gtest/gtest.h>

#include "base/test_util.h"

namespace pith {
namespace {

TEST(HiddenStatesTest, SequencesComeBackAsTheyWereWritten) {
  ScratchDirectory scratch;
  const std::string path = scratch.File("hidden.f32");
  {
    auto writer = HiddenStatesWriter::Create(path);
    ASSERT_TRUE(writer.ok()) << writer.status();
    ASSERT_TRUE(writer->Append({1, 2, 3, 4}).ok());
    ASSERT_TRUE(writer->Append({5, 6}).ok());
    EXPECT_TRUE(absl::IsNotFound(HiddenStatesReader::Open(path, {2, 1}, 2).status()));  // not before it is whole
    ASSERT_TRUE(writer->Commit().ok());
  }
  const auto reader = HiddenStatesReader::Open(path, {2, 1}, 2);
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(reader->num_sequences(), 2);
  std::vector<float> out;
  ASSERT_TRUE(reader->Read(1, out).ok());
  EXPECT_EQ(out, (std::vector<float>{5, 6}));
  ASSERT_TRUE(reader->Read(0, out).ok());
  EXPECT_EQ(out, (std::vector<float>{1, 2, 3, 4}));
  EXPECT_TRUE(absl::IsDataLoss(HiddenStatesReader::Open(path, {2, 2}, 2).status()));
}

}  // namespace
}  // namespace pith
