#include "tokenizer/template_function.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<Value> ShowArguments(Runtime&, const Value& self, const BoundArguments& arguments) {
  std::string shown = absl::StrCat(*self.As<int64_t>());
  for (size_t i = 0; i < 3; ++i) {
    const Value* value = arguments.At(i);
    absl::StrAppend(&shown, ",", value == nullptr ? "_" : value->Is<None>() ? "none" : absl::StrCat(*value->As<int64_t>()));
  }
  return MakeString(shown);
}

absl::StatusOr<Value> CountArguments(Runtime&, const Value&, Arguments arguments) {
  return Value(static_cast<int64_t>(arguments.positional.size() * 10 + arguments.keyword.size()));
}

constexpr NativeFunction kTable[] = {{.name = "show", .parameters = {"a", "?b", "?c"}, .run = ShowArguments},
                                     {.name = "strict", .parameters = {"a"}, .run = ShowArguments, .positional_only = true},
                                     {.name = "count", .run_variadic = CountArguments}};

Value Int(int64_t number) { return Value(number); }

std::string Call(absl::string_view name, Arguments arguments) {
  Runtime runtime({}, 0);
  const absl::StatusOr<Value> result = CallNative(runtime, *FindFunction(kTable, name), Int(9), std::move(arguments));
  if (!result.ok()) return std::string(result.status().message());
  const TextPtr* text = result->As<TextPtr>();
  return text != nullptr ? (*text)->bytes() : absl::StrCat(*result->As<int64_t>());
}

TEST(TemplateFunction, ArgumentsMeetParameters) {
  EXPECT_EQ(Call("show", {.positional = {Int(1)}}), "9,1,_,_");
  EXPECT_EQ(Call("show", {.positional = {Int(1), Int(2), Int(3)}}), "9,1,2,3");
  EXPECT_EQ(Call("show", {.positional = {Int(1)}, .keyword = {{"c", Int(3)}}}), "9,1,_,3");
  EXPECT_EQ(Call("show", {.keyword = {{"b", Value(None{})}, {"a", Int(1)}}}), "9,1,none,_");
  EXPECT_EQ(Call("count", {.positional = {Int(1)}, .keyword = {{"x", Int(3)}, {"y", Int(3)}}}), "12");
}

TEST(TemplateFunction, ArgumentsThatDoNotFit) {
  EXPECT_THAT(Call("show", {}), HasSubstr("show() misses the argument 'a'"));
  EXPECT_THAT(Call("show", {.positional = {Int(1), Int(2), Int(3), Int(4)}}), HasSubstr("at most 3 arguments, found 4"));
  EXPECT_THAT(Call("show", {.positional = {Int(1)}, .keyword = {{"a", Int(1)}}}), HasSubstr("two values for argument 'a'"));
  EXPECT_THAT(Call("show", {.positional = {Int(1)}, .keyword = {{"z", Int(1)}}}), HasSubstr("no keyword argument 'z'"));
  EXPECT_THAT(Call("strict", {.keyword = {{"a", Int(1)}}}), HasSubstr("no keyword argument 'a'"));
  EXPECT_EQ(FindFunction(kTable, "nope"), nullptr);
}

TEST(TemplateFunction, BoundArgumentsConvert) {
  const BoundArguments arguments({Int(5), Value(true), MakeString("x"), Value(None{}), std::nullopt});
  EXPECT_EQ(*arguments.Integer(0, 7), 5);
  EXPECT_EQ(*arguments.Integer(1, 7), 1);
  EXPECT_EQ(*arguments.Integer(4, 7), 7);
  EXPECT_FALSE(arguments.Integer(2, 7).ok());
  EXPECT_EQ((*arguments.String(2))->bytes(), "x");
  EXPECT_FALSE(arguments.String(0).ok());
  EXPECT_FALSE(arguments.String(4).ok());
  EXPECT_TRUE(arguments.Boolean(0, false));
  EXPECT_FALSE(arguments.Boolean(3, true));
  EXPECT_TRUE(arguments.Boolean(9, true));
  EXPECT_EQ(arguments.NotNone(3), nullptr);
  EXPECT_NE(arguments.At(3), nullptr);
}

TEST(TemplateFunction, KeywordsAreTakenOnce) {
  Arguments arguments{.keyword = {{"a", Int(1)}, {"b", Int(2)}}};
  bool found = false;
  EXPECT_EQ(*arguments.TakeKeyword("b", &found).As<int64_t>(), 2);
  EXPECT_TRUE(found);
  EXPECT_TRUE(arguments.TakeKeyword("b", &found).Is<Undefined>());
  EXPECT_FALSE(found);
  EXPECT_EQ(arguments.keyword.size(), 1u);
}

}  // namespace
}  // namespace pith::jinja
