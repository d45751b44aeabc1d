// Ranges and refusals of every architecture's fields: decoder_config_test.cc.
#include "model/config_fields.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

TEST(ConfigFields, DefaultsFillWhatIsAbsentOrNull) {
  const Json config = {{"a", 1}, {"b", nullptr}, {"c", false}};
  const Json merged = WithDefaults(config, {{"a", 10}, {"b", 20}, {"c", true}, {"d", 40}});
  EXPECT_EQ(merged, (Json{{"a", 1}, {"b", 20}, {"c", false}, {"d", 40}}));
}

TEST(ConfigFields, RequirementsNameFieldAndValue) {
  const Json config = {{"act", "relu"}, {"cap", 30.0}, {"flag", true}, {"off", false}, {"none", nullptr}};
  EXPECT_EQ(RequireString(config, "act", "silu").message(), "act: expected \"silu\", found \"relu\"");
  EXPECT_EQ(RequireNull(config, "cap").message(), "cap: expected null, found 30.0");
  EXPECT_EQ(RequireFalse(config, "flag").message(), "flag: expected false, found true");
  EXPECT_EQ(RequireFalse(config, "cap").code(), absl::StatusCode::kUnimplemented);
  EXPECT_TRUE(RequireString(config, "act", "relu").ok());
  EXPECT_TRUE(RequireFalse(config, "off").ok());
  for (const char* key : {"none", "absent"}) {
    EXPECT_TRUE(RequireString(config, key, "silu").ok() && RequireNull(config, key).ok() && RequireFalse(config, key).ok());
  }
}

TEST(ConfigFields, LayerTypesFollowTheRuleOrTheList) {
  DecoderConfig out;
  out.num_layers = 3;
  out.layer_window.assign(3, 0);
  const auto odd = [](const Json&, int64_t layer) { return layer % 2 == 1; };
  ASSERT_TRUE(ParseLayerTypes(Json::object(), 7, odd, out).ok());
  EXPECT_THAT(out.layer_window, testing::ElementsAre(0, 7, 0));
  ASSERT_TRUE(ParseLayerTypes(Json::object(), 0, odd, out).ok());
  EXPECT_THAT(out.layer_window, testing::ElementsAre(0, 0, 0));
  ASSERT_TRUE(ParseLayerTypes({{"layer_types", {"sliding_attention", "full_attention", "full_attention"}}}, 7, odd, out).ok());
  EXPECT_THAT(out.layer_window, testing::ElementsAre(7, 0, 0));
}

}  // namespace
}  // namespace pith
