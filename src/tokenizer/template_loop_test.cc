#include "tokenizer/template_loop.h"

#include "gtest/gtest.h"
#include "tokenizer/template_function.h"
#include "tokenizer/template_repr.h"

namespace pith::jinja {
namespace {

// Gives 1, 2, ..., count, and counts how often it was asked.
class Counter : public IteratorObject {
 public:
  explicit Counter(int64_t count) : IteratorObject(1), count_(count) {}
  absl::StatusOr<bool> Next(Runtime&, Value* value) override {
    ++asked;
    if (given_ == count_) return false;
    *value = Value(++given_);
    return true;
  }
  int asked = 0;

 private:
  const int64_t count_;
  int64_t given_ = 0;
};

std::string Show(Runtime& runtime, const absl::StatusOr<std::optional<Value>>& attribute) {
  if (!attribute.ok()) return std::string(attribute.status().message());
  return attribute->has_value() ? (*Repr(runtime.budget(), **attribute))->bytes() : "no such attribute";
}

TEST(TemplateLoop, LooksAheadOnlyWhenAsked) {
  Runtime runtime({}, 0);
  const auto counter = std::make_shared<Counter>(3);
  const auto loop = std::make_shared<LoopObject>(counter, -1);
  Value item;
  ASSERT_TRUE(*loop->Advance(runtime, &item));
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "index")), "1");
  EXPECT_EQ(counter->asked, 1);
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "last")), "False");
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "nextitem")), "2");
  EXPECT_EQ(counter->asked, 2);
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "length")), "3");
  EXPECT_EQ(counter->asked, 4);
  ASSERT_TRUE(*loop->Advance(runtime, &item));
  ASSERT_TRUE(*loop->Advance(runtime, &item));
  EXPECT_EQ(*item.As<int64_t>(), 3);
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "revindex")), "1");
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "revindex0")), "0");
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "previtem")), "2");
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "nextitem")), "Undefined");
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "nope")), "no such attribute");
  EXPECT_FALSE(*loop->Advance(runtime, &item));
}

TEST(TemplateLoop, KnownLengthsAreNotCounted) {
  Runtime runtime({}, 0);
  const auto counter = std::make_shared<Counter>(3);
  const auto loop = std::make_shared<LoopObject>(counter, 3);
  EXPECT_EQ(Show(runtime, loop->Attribute(runtime, "length")), "3");
  EXPECT_EQ(counter->asked, 0);
}

TEST(TemplateLoop, ChangedComparesWithThePreviousCall) {
  Runtime runtime({}, 0);
  const auto loop = std::make_shared<LoopObject>(std::make_shared<Counter>(3), 3);
  EXPECT_TRUE(*loop->Changed(runtime, MakeString("a")));
  EXPECT_FALSE(*loop->Changed(runtime, MakeString("a")));
  EXPECT_TRUE(*loop->Changed(runtime, MakeString("b")));
}

TEST(TemplateLoop, IteratesWhatPythonIterates) {
  Runtime runtime({}, 0);
  Budget& budget = runtime.budget();
  const auto collect = [&](const Value& value) {
    const absl::StatusOr<ValueList> items = Collect(runtime, value);
    return items.ok() ? (*Repr(budget, *MakeList(budget, *items)))->bytes() : "ERROR";
  };
  DictItems items;
  ASSERT_TRUE(items.Set(budget, MakeString("k"), Value(int64_t{1})).ok());
  const Value dict = *MakeDict(budget, std::move(items));
  EXPECT_EQ(collect(MakeString("hé")), "['h', 'é']");
  EXPECT_EQ(collect(dict), "['k']");
  EXPECT_EQ(collect(Value(ViewPtr(std::make_shared<const ViewObject>(ViewObject{ViewObject::Type::kItems, *dict.As<DictPtr>()})))),
            "[('k', 1)]");
  EXPECT_EQ(collect(Value(RangePtr(std::make_shared<const RangeObject>(RangeObject{5, 0, -2, 3})))), "[5, 3, 1]");
  EXPECT_EQ(collect(Value(IteratorPtr(std::make_shared<Counter>(2)))), "[1, 2]");
  EXPECT_EQ(collect(Value()), "[]");
  EXPECT_EQ(collect(Value(None{})), "ERROR");
  EXPECT_EQ(collect(Value(int64_t{5})), "ERROR");
}

TEST(TemplateLoop, CollectingCostsSteps) {
  Runtime runtime({.steps = 10}, 0);
  EXPECT_FALSE(Collect(runtime, Value(IteratorPtr(std::make_shared<Counter>(1000)))).ok());
}

TEST(TemplateLoop, MethodsAreKnownByName) {
  EXPECT_NE(FindLoopMethod("cycle"), nullptr);
  EXPECT_NE(FindLoopMethod("changed"), nullptr);
  EXPECT_EQ(FindLoopMethod("index"), nullptr);
}

}  // namespace
}  // namespace pith::jinja
