#include "base/json.h"

#include <rapidcheck/gtest.h>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string ErrorOf(absl::string_view text, const JsonLimits& limits = {}) {
  const auto parsed = ParseJson(text, limits);
  EXPECT_EQ(parsed.status().code(), absl::StatusCode::kDataLoss) << text;
  return std::string(parsed.status().message());
}

std::string Nested(int depth) { return std::string(depth, '[') + std::string(depth, ']'); }

TEST(ParseJson, ValuesOfEveryKind) {
  const auto parsed = ParseJson(
      R"({"n":null,"t":true,"i":-3,"u":18446744073709551615,"d":2.5,"s":"a\u00e9\n","a":[1,[2,{"x":3}],4],"o":{}})");
  ASSERT_TRUE(parsed.ok()) << parsed.status();
  EXPECT_EQ(*parsed, Json({{"n", nullptr},
                           {"t", true},
                           {"i", -3},
                           {"u", 18446744073709551615u},
                           {"d", 2.5},
                           {"s", "a\xC3\xA9\n"},
                           {"a", {1, {2, {{"x", 3}}}, 4}},
                           {"o", Json::object()}}));
  EXPECT_EQ(*ParseJson(" 7 "), Json(7));
}

// The handler keeps pointers into the growing document: deep and wide ones exercise every reallocation.
TEST(ParseJson, MatchesTheDomParserOnWideAndDeepDocuments) {
  std::string wide = "[";
  for (int i = 0; i < 3000; ++i) absl::StrAppend(&wide, i == 0 ? "" : ",", R"({"k)", i, R"(":[)", i, R"(,{"x":[[],{}]}],"z":"v"})");
  wide += "]";
  EXPECT_EQ(*ParseJson(wide), Json::parse(wide));
  const std::string deep = Nested(64);
  EXPECT_EQ(*ParseJson(deep), Json::parse(deep));
}

TEST(ParseJson, BadSyntaxNamesLineAndColumn) {
  EXPECT_THAT(ErrorOf("{\"a\": 1,\n  \"b\": }"), AllOf(HasSubstr("line 2"), HasSubstr("column 8")));
  for (const char* text : {"", " ", "{", "[1,]", "{\"a\":1,}", "{'a':1}", "nul", "01", "1.", "[1] 2", "{\"a\" 1}", "\"\t\"", "// c\n1",
                           "NaN", "Infinity", "1e999", "\"\\ud800\"", "\"\\x\""}) {
    EXPECT_THAT(ErrorOf(text), HasSubstr("JSON: ")) << text;
  }
}

TEST(ParseJson, RefusesWhatIsNotUtf8AndEscapesItInTheMessage) {
  for (const char* text : {"\"\xFF\"", "\"\xC0\x80\"", "\"\xED\xA0\x80\"", "{\"\x80\":1}"}) {
    const std::string message = ErrorOf(text);
    for (const char c : message) EXPECT_TRUE(static_cast<unsigned char>(c) >= 0x20 && static_cast<unsigned char>(c) < 0x7F) << message;
  }
}

TEST(ParseJson, RefusesDuplicateKeysAtEveryLevel) {
  EXPECT_THAT(ErrorOf(R"({"a":1,"b":2,"a":1})"), HasSubstr("duplicate key \"a\""));
  EXPECT_THAT(ErrorOf(R"([{"x":{"y":[],"y":[]}}])"), HasSubstr("duplicate key \"y\""));
  EXPECT_THAT(ErrorOf(R"({"a":1,"\u0061":1})"), HasSubstr("duplicate key \"a\""));  // the same key, spelled with an escape
  EXPECT_TRUE(ParseJson(R"({"a":{"a":1},"b":{"a":1}})").ok());
}

TEST(ParseJson, BoundsDepthAndSize) {
  EXPECT_TRUE(ParseJson(Nested(64)).ok());
  EXPECT_THAT(ErrorOf(Nested(65)), HasSubstr("deeper than 64"));
  EXPECT_THAT(ErrorOf(std::string(1'000'000, '[')), HasSubstr("deeper than 64"));
  EXPECT_TRUE(ParseJson("[[1]]", {.max_depth = 2}).ok());
  EXPECT_THAT(ErrorOf("[[{}]]", {.max_depth = 2}), HasSubstr("deeper than 2"));
  EXPECT_TRUE(ParseJson("[1]", {.max_bytes = 3}).ok());
  EXPECT_THAT(ErrorOf("[12]", {.max_bytes = 3}), AllOf(HasSubstr("at most 3"), HasSubstr("found 4")));
}

TEST(GetInt, RangesTypesAndAbsence) {
  const Json object = *ParseJson(
      R"({"i":5,"min":-9223372036854775808,"max":9223372036854775807,"big":9223372036854775808,"huge":1e30,"f":5.0,"s":"5","n":null,"b":true})");
  EXPECT_EQ(*GetInt(object, "i", 5, 5), 5);
  EXPECT_EQ(*GetInt(object, "min", INT64_MIN, INT64_MAX), INT64_MIN);
  EXPECT_EQ(*GetInt(object, "max", INT64_MIN, INT64_MAX), INT64_MAX);
  for (const char* key : {"big", "huge", "f", "s", "b", "n", "absent"}) {
    EXPECT_EQ(GetInt(object, key, INT64_MIN, INT64_MAX).status().code(), absl::StatusCode::kDataLoss) << key;
  }
  EXPECT_THAT(std::string(GetInt(object, "i", 6, 9).status().message()),
              AllOf(HasSubstr("\"i\""), HasSubstr("[6, 9]"), HasSubstr("found 5")));
  EXPECT_FALSE(GetInt(object, "i", 1, 4).ok());
  EXPECT_EQ(*GetInt(object, "absent", 0, 9, -7), -7);
  EXPECT_EQ(*GetInt(object, "n", 0, 9, -7), -7);
  EXPECT_FALSE(GetInt(object, "s", 0, 9, -7).ok());
}

TEST(GetDouble, AcceptsIntegersAndChecksTheRange) {
  const Json object = *ParseJson(R"({"i":5,"d":0.25,"s":"x","n":null})");
  EXPECT_EQ(*GetDouble(object, "i", 0, 5), 5.0);
  EXPECT_EQ(*GetDouble(object, "d", 0.25, 0.25), 0.25);
  EXPECT_FALSE(GetDouble(object, "d", 0.26, 1).ok());
  EXPECT_FALSE(GetDouble(object, "s", 0, 1).ok());
  EXPECT_FALSE(GetDouble(object, "n", 0, 1).ok());
  EXPECT_EQ(*GetDouble(object, "n", 0, 1, 0.5), 0.5);
  EXPECT_FALSE(GetDouble(object, "i", 0, 1, 0.5).ok());
}

TEST(GetBoolAndGetString, TypesAndDefaults) {
  const Json object = *ParseJson(R"({"t":true,"s":"x","n":null,"i":1})");
  EXPECT_TRUE(*GetBool(object, "t", false));
  EXPECT_TRUE(*GetBool(object, "n", true));
  EXPECT_FALSE(GetBool(object, "i", true).ok());
  EXPECT_EQ(*GetString(object, "s"), "x");
  EXPECT_FALSE(GetString(object, "t").ok());
  EXPECT_FALSE(GetString(object, "absent").ok());
  EXPECT_EQ(*GetString(object, "absent", "y"), "y");
  EXPECT_FALSE(GetString(object, "i", "y").ok());
}

TEST(FindMember, IsNullForAbsentNullAndForNonObjects) {
  const Json object = *ParseJson(R"({"a":1,"n":null})");
  ASSERT_NE(FindMember(object, "a"), nullptr);
  EXPECT_EQ(*FindMember(object, "a"), 1);
  EXPECT_EQ(FindMember(object, "n"), nullptr);
  EXPECT_EQ(FindMember(object, "b"), nullptr);
  EXPECT_EQ(FindMember(Json(3), "a"), nullptr);
  EXPECT_EQ(FindMember(Json::array({1}), "a"), nullptr);
}

TEST(Errors, ShowHostileValuesEscapedAndShort) {
  const Json object = {{"k", std::string("\x1B[2J") + std::string(1000, 'x')}};
  const std::string message(GetInt(object, "k", 0, 1).status().message());
  EXPECT_LT(message.size(), 160u);
  EXPECT_EQ(message.find('\x1B'), std::string::npos);
}

TEST(DumpJson, ReplacesInvalidUtf8AndKeepsOrder) {
  EXPECT_EQ(DumpJson(Json("a\xFFz")), "\"a\xEF\xBF\xBDz\"");
  EXPECT_EQ(DumpJson(Json({{"b", 1}, {"a", 2}})), R"({"a":2,"b":1})");
  OrderedJson ordered;
  ordered["b"] = 1;
  ordered["a"] = 2;
  EXPECT_EQ(DumpJson(ordered), R"({"b":1,"a":2})");
  EXPECT_EQ(DumpJson(Json::array({1}), 2), "[\n  1\n]");
}

Json ArbitraryJson(int depth) {
  switch (*rc::gen::inRange(0, depth > 0 ? 7 : 5)) {
    case 0: return nullptr;
    case 1: return *rc::gen::arbitrary<bool>();
    case 2: return *rc::gen::arbitrary<int64_t>();
    case 3: return *rc::gen::arbitrary<uint64_t>();
    case 4: return *rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127));
    case 5: {
      Json array = Json::array();
      for (int i = *rc::gen::inRange(0, 6); i > 0; --i) array.push_back(ArbitraryJson(depth - 1));
      return array;
    }
    default: {
      Json object = Json::object();
      for (int i = *rc::gen::inRange(0, 6); i > 0; --i)
        object[*rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127))] = ArbitraryJson(depth - 1);
      return object;
    }
  }
}

RC_GTEST_PROP(JsonProperty, ParseUndoesDump, ()) {
  const Json value = ArbitraryJson(4);
  const auto parsed = ParseJson(DumpJson(value, *rc::gen::element(-1, 0, 3)));
  RC_ASSERT(parsed.ok());
  RC_ASSERT(*parsed == value);
}

RC_GTEST_PROP(JsonProperty, NoTextMakesItThrow, ()) {
  const auto pieces = *rc::gen::container<std::vector<std::string>>(rc::gen::element<std::string>(
      "{", "}", "[", "]", ",", ":", "\"a\"", "\"b", "\\", "1", "-", "e9", "true", "null", " ", "\xFF", "\"\\ud800\""));
  std::string text;
  for (const std::string& piece : pieces) text += piece;
  const auto parsed = ParseJson(text, {.max_depth = 3});
  RC_ASSERT(parsed.ok() || parsed.status().code() == absl::StatusCode::kDataLoss);
}

}  // namespace
}  // namespace pith
