#include "server/http_types.h"

#include <gtest/gtest.h>

namespace pith {
namespace {

TEST(SplitTargetTest, BothFormsAndEscapes) {
  const auto split = [](absl::string_view target) {
    std::string path, query;
    SplitTarget(target, &path, &query);
    return std::pair(path, query);
  };
  using Parts = std::pair<std::string, std::string>;
  EXPECT_EQ(split("/health"), Parts("/health", ""));
  EXPECT_EQ(split("/health?a=%41&b"), Parts("/health", "a=%41&b"));
  EXPECT_EQ(split("http://host:8080/v1/models?x"), Parts("/v1/models", "x"));
  EXPECT_EQ(split("HTTPS://host"), Parts("/", ""));
  EXPECT_EQ(split("http://host?x"), Parts("/", "x"));
  EXPECT_EQ(split("/v1/models/my%20model%2Fa"), Parts("/v1/models/my model/a", ""));
  EXPECT_EQ(split("/%zz/%4"), Parts("/%zz/%4", ""));
  EXPECT_EQ(split("/100%"), Parts("/100%", ""));
  EXPECT_EQ(split(""), Parts("/", ""));
  EXPECT_EQ(split("*"), Parts("*", ""));
}

TEST(HttpRequestTest, HeadersAreFoundInAnyCase) {
  const HttpRequest request{.headers = {{"X-Request-Id", "7"}}};
  EXPECT_EQ(*request.FindHeader("x-request-id"), "7");
  EXPECT_EQ(request.FindHeader("x-request"), nullptr);
}

}  // namespace
}  // namespace pith
