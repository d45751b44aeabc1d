#include "tokenizer/template_runtime.h"

#include <memory>

#include "gtest/gtest.h"

namespace pith::jinja {
namespace {

TEST(TemplateRuntime, EmptiesWhatItRetains) {
  std::weak_ptr<NamespaceObject> watched;
  {
    Runtime runtime({}, 42);
    EXPECT_EQ(runtime.now_unix_seconds(), 42);
    const auto first = std::make_shared<NamespaceObject>(), second = std::make_shared<NamespaceObject>();
    watched = first;
    ASSERT_TRUE(first->attributes.Set(runtime.budget(), MakeString("other"), Value(second)).ok());
    ASSERT_TRUE(second->attributes.Set(runtime.budget(), MakeString("other"), Value(first)).ok());
    runtime.Retain(first);
    runtime.Retain(second);
  }
  EXPECT_TRUE(watched.expired());
}

}  // namespace
}  // namespace pith::jinja
