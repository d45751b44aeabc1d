#include "artifact/fingerprint.h"

#include "artifact/test_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

std::string Number(uint64_t value) { return RawBytes(value); }
std::string Text(absl::string_view text) { return absl::StrCat(Number(text.size()), text); }

// The recipe of the header, written out by hand.
TEST(Fingerprint, FollowsTheRecipe) {
  const std::vector<uint8_t> data = {1, 2, 3, 4};
  FingerprintBuilder builder("{\"a\":1}");
  builder.AddTensor("m.bias", "BF16", {2}, data);
  builder.AddTensor("m.weight", "I8", {2, 2}, data);
  const std::string content = absl::StrCat("pith fingerprint 1\n", Text("{\"a\":1}"), Text("m.bias"), Text("BF16"), Number(1), Number(2),
                                           Text("\1\2\3\4"), Text("m.weight"), Text("I8"), Number(2), Number(2), Number(2),
                                           Text("\1\2\3\4"));
  EXPECT_EQ(builder.Finish(), Sha256Hex(content));
}

TEST(Fingerprint, DependsOnEveryPart) {
  const auto of = [](absl::string_view config, absl::string_view name, absl::string_view type, const std::vector<int64_t>& shape,
                     uint8_t byte) {
    FingerprintBuilder builder(config);
    builder.AddTensor(name, type, shape, std::vector<uint8_t>{byte, 0});
    return builder.Finish();
  };
  const std::string base = of("{}", "a", "I8", {2}, 1);
  EXPECT_EQ(base, of("{}", "a", "I8", {2}, 1));
  EXPECT_NE(base, of("{ }", "a", "I8", {2}, 1));
  EXPECT_NE(base, of("{}", "b", "I8", {2}, 1));
  EXPECT_NE(base, of("{}", "a", "U8", {2}, 1));
  EXPECT_NE(base, of("{}", "a", "I8", {2, 1}, 1));
  EXPECT_NE(base, of("{}", "a", "I8", {2}, 2));
}

TEST(FingerprintDeathTest, NamesMustAscend) {
  FingerprintBuilder builder("{}");
  builder.AddTensor("b", "I8", {0}, {});
  EXPECT_DEATH(builder.AddTensor("a", "I8", {0}, {}), "CHECK failed");
  EXPECT_DEATH(builder.AddTensor("b", "I8", {0}, {}), "CHECK failed");
}

}  // namespace
}  // namespace pith
