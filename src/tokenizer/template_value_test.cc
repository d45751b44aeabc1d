#include "tokenizer/template_value.h"

#include <limits>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tokenizer/template_repr.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

Value List(Budget& budget, ValueList items) { return *MakeList(budget, std::move(items)); }

TEST(TemplateValue, TruthLengthAndTypeName) {
  Budget budget({});
  DictItems items;
  ASSERT_TRUE(items.Set(budget, MakeString("a"), Value(int64_t{1})).ok());
  const Value dict = *MakeDict(budget, std::move(items));
  const struct {
    Value value;
    bool truth;
    int64_t length;
    const char* type;
  } kCases[] = {
      {Value(), false, 0, "Undefined"},
      {Value(None{}), false, -1, "NoneType"},
      {Value(true), true, -1, "bool"},
      {Value(int64_t{0}), false, -1, "int"},
      {Value(0.5), true, -1, "float"},
      {MakeString("hé"), true, 2, "str"},
      {MakeString(""), false, 0, "str"},
      {List(budget, {}), false, 0, "list"},
      {*MakeList(budget, {Value()}, ListObject::Type::kTuple), true, 1, "tuple"},
      {dict, true, 1, "dict"},
      {Value(RangePtr(std::make_shared<const RangeObject>(RangeObject{0, 9, 3, 3}))), true, 3, "range"},
      {Value(ViewPtr(std::make_shared<const ViewObject>(ViewObject{ViewObject::Type::kItems, *dict.As<DictPtr>()}))), true, 1,
       "dict_items"},
      {Value(std::make_shared<NamespaceObject>()), true, -1, "namespace"},
  };
  for (const auto& [value, truth, length, type] : kCases) {
    EXPECT_EQ(Truth(value), truth) << type;
    EXPECT_EQ(Length(value), length) << type;
    EXPECT_EQ(TypeName(value), type);
  }
}

TEST(TemplateValue, NestingIsCountedAndLimited) {
  Budget budget({.depth = 3});
  Value value = List(budget, {});
  EXPECT_EQ(Depth(value), 1);
  value = List(budget, {value, Value(int64_t{1})});
  DictItems items;
  ASSERT_TRUE(items.Set(budget, MakeString("k"), value).ok());
  const absl::StatusOr<Value> dict = MakeDict(budget, items);
  ASSERT_TRUE(dict.ok());
  EXPECT_EQ(Depth(*dict), 3);
  EXPECT_THAT(std::string(MakeList(budget, {*dict}).status().message()), HasSubstr("limit depth of 3"));
}

TEST(TemplateValue, EqualKeysAreOneKey) {
  Budget budget({});
  DictItems items;
  const Value tuple = *MakeList(budget, {Value(int64_t{1}), MakeString("x")}, ListObject::Type::kTuple);
  const Value same_tuple = *MakeList(budget, {Value(1.0), MakeString("x")}, ListObject::Type::kTuple);
  ASSERT_TRUE(items.Set(budget, Value(int64_t{1}), MakeString("int")).ok());
  ASSERT_TRUE(items.Set(budget, Value(true), MakeString("bool")).ok());
  ASSERT_TRUE(items.Set(budget, Value(1.5), MakeString("float")).ok());
  ASSERT_TRUE(items.Set(budget, MakeString("1"), MakeString("str")).ok());
  ASSERT_TRUE(items.Set(budget, tuple, MakeString("tuple")).ok());
  EXPECT_EQ(items.size(), 4);
  EXPECT_EQ((*(*items.Find(budget, Value(1.0)))->As<TextPtr>())->bytes(), "bool");
  EXPECT_EQ((*(*items.Find(budget, same_tuple))->As<TextPtr>())->bytes(), "tuple");
  EXPECT_EQ((*items.Find("1")->As<TextPtr>())->bytes(), "str");
  EXPECT_EQ(items.Find("2"), nullptr);
  EXPECT_EQ(*items.Find(budget, Value(None{})), nullptr);
  EXPECT_THAT(std::string(items.Set(budget, *MakeList(budget, {}), Value()).message()), HasSubstr("unhashable type: 'list'"));
}

TEST(TemplateValue, LargeDictsFindEveryKey) {
  Budget budget({});
  DictItems items;
  for (int64_t i = 0; i < 100; ++i) ASSERT_TRUE(items.Set(budget, MakeString(absl::StrCat("k", i)), Value(i)).ok());
  for (int64_t i = 0; i < 100; ++i) ASSERT_TRUE(items.Set(budget, MakeString(absl::StrCat("k", i)), Value(2 * i)).ok());
  EXPECT_EQ(items.size(), 100);
  for (int64_t i = 0; i < 100; ++i) {
    EXPECT_EQ(*items.Find(absl::StrCat("k", i))->As<int64_t>(), 2 * i);
    EXPECT_EQ(*(*items.Find(budget, MakeString(absl::StrCat("k", i))))->As<int64_t>(), 2 * i);
  }
  EXPECT_EQ(items.Find("k100"), nullptr);
  EXPECT_EQ(items.Find("s"), nullptr);
}

TEST(TemplateValue, JsonInputsAreTheUsers) {
  Budget budget({});
  const absl::StatusOr<Value> value = ValueFromJson(budget, OrderedJson::parse(R"({"b": [1, -2, 2.5, null, true, "é"], "a": {}})"));
  ASSERT_TRUE(value.ok());
  EXPECT_EQ((*Repr(budget, *value))->bytes(), "{'b': [1, -2, 2.5, None, True, 'é'], 'a': {}}");
  EXPECT_TRUE(*HasUserText(budget, *value));
  EXPECT_TRUE((*(*value->As<DictPtr>())->items.items()[0].first.As<TextPtr>())->has_user_text());
  EXPECT_EQ(Depth(*value), 2);
}

TEST(TemplateValue, BadJsonInputsAreRefused) {
  Budget budget({.depth = 4});
  const auto error = [&](const OrderedJson& json) { return std::string(ValueFromJson(budget, json).status().message()); };
  EXPECT_THAT(error(OrderedJson("\xFF")), HasSubstr("expected UTF-8 text"));
  EXPECT_THAT(error(OrderedJson{{"\xC0", 1}}), HasSubstr("expected UTF-8 text"));
  EXPECT_THAT(error(OrderedJson(uint64_t{9223372036854775808u})), HasSubstr("integers of 64 bits"));
  EXPECT_THAT(error(OrderedJson::binary({1})), HasSubstr("expected JSON"));
  EXPECT_THAT(error(OrderedJson::parse("[[[[1]]]]")), HasSubstr("limit depth"));
  EXPECT_TRUE(ValueFromJson(budget, OrderedJson::parse("[[[1]]]")).ok());
}

TEST(TemplateValue, RangesReachTheEndsOfTheIntegers) {
  const RangeObject range{.start = std::numeric_limits<int64_t>::min(), .step = int64_t{1} << 62, .length = 4};
  EXPECT_EQ(range.At(3), int64_t{1} << 62);
}

}  // namespace
}  // namespace pith::jinja
