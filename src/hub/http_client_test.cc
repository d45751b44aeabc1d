#include "hub/http_client.h"

#include <csignal>
#include <ctime>

#include "absl/strings/str_cat.h"
#include "base/interrupt.h"
#include "base/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "hub/loopback_hub.h"

namespace pith {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

struct Got {
  absl::StatusOr<HttpClientResponse> response = absl::UnknownError("");
  std::string body;
};

Got Get(HttpClient& client, const HttpClientRequest& request, const std::atomic<bool>* cancel = nullptr) {
  Got got;
  got.response = client.Get(
      request,
      [&](const HttpClientResponse&, absl::string_view piece) {
        absl::StrAppend(&got.body, piece);
        return absl::OkStatus();
      },
      cancel);
  return got;
}

HttpOptions Options(const LoopbackHub& hub, const std::string& token = "") {
  return {.token = token, .token_url = hub.endpoint(), .user_agent = "pith", .connect_timeout_s = 5, .stall_timeout_s = 5};
}

TEST(HttpClient, GivesStatusHeadersAndBody) {
  LoopbackHub hub;
  hub.files["a b.txt"] = "content";
  hub.intercept = [](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (request.path == "/x") return LoopbackReply{.headers = {{"X-Name", " value "}}, .body = "0123456789"};
    return std::nullopt;
  };
  HttpClient client(Options(hub));
  const Got got = Get(client, {hub.endpoint() + "/x"});
  ASSERT_TRUE(got.response.ok()) << got.response.status();
  EXPECT_EQ(got.response->status, 200);
  EXPECT_EQ(got.response->Header("x-name"), "value");
  EXPECT_EQ(got.response->Header("none"), "");
  EXPECT_EQ(*got.response->content_length(), 10);
  EXPECT_EQ(got.body, "0123456789");
  const Got missing = Get(client, {hub.endpoint() + "/none"});
  EXPECT_EQ(missing.response->status, 404);
  EXPECT_EQ(missing.body, "");
}

TEST(HttpClient, AsksForRanges) {
  LoopbackHub hub;
  HttpClient client(Options(hub));
  Get(client, {hub.endpoint() + "/x", 5, 9});
  Get(client, {hub.endpoint() + "/x", 5});
  Get(client, {hub.endpoint() + "/x"});
  const auto requests = hub.requests();
  EXPECT_EQ(requests[0].range, "bytes=5-9");
  EXPECT_EQ(requests[1].range, "bytes=5-");
  EXPECT_EQ(requests[2].range, "");
}

TEST(HttpClient, TheTokenStaysWithItsOrigin) {
  LoopbackHub hub, other;
  hub.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (request.path == "/same") return LoopbackReply{.status = 307, .headers = {{"Location", "/end"}}};
    if (request.path == "/away") {
      return LoopbackReply{.status = 302,
                           .headers = {{"Location", other.endpoint() + "/blob?sig=1"}, {"X-Linked-Size", "3"}, {"X-Other", "1"}}};
    }
    return LoopbackReply{.body = "end"};
  };
  other.intercept = [&](const LoopbackRequest&) { return LoopbackReply{.headers = {{"X-Linked-Etag", "e"}}, .body = "far"}; };
  HttpClient client(Options(hub, "hf_secret"));
  EXPECT_EQ(Get(client, {hub.endpoint() + "/same"}).body, "end");
  const Got away = Get(client, {hub.endpoint() + "/away"});
  EXPECT_EQ(away.body, "far");
  EXPECT_EQ(away.response->url, other.endpoint() + "/blob?sig=1");
  EXPECT_EQ(away.response->Header("x-linked-size"), "3");
  EXPECT_EQ(away.response->Header("x-linked-etag"), "e");
  EXPECT_EQ(away.response->Header("x-other"), "");
  for (const LoopbackRequest& request : hub.requests()) EXPECT_EQ(request.authorization, "Bearer hf_secret") << request.path;
  ASSERT_EQ(other.requests().size(), 1);
  EXPECT_EQ(other.requests()[0].authorization, "");
  Get(client, {other.endpoint() + "/direct"});
  EXPECT_EQ(other.requests()[1].authorization, "");
}

TEST(HttpClient, RedirectsThatLeadNowhereAreRefused) {
  LoopbackHub hub;
  hub.intercept = [&](const LoopbackRequest& request) -> std::optional<LoopbackReply> {
    if (request.path == "/file") return LoopbackReply{.status = 302, .headers = {{"Location", "file:///etc/passwd"}}};
    return LoopbackReply{.status = 302, .headers = {{"Location", "/loop"}}};
  };
  HttpClient client(Options(hub));
  const Got loop = Get(client, {hub.endpoint() + "/loop"});
  EXPECT_EQ(loop.response.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(loop.response.status().message()), HasSubstr("redirects"));
  EXPECT_EQ(Get(client, {hub.endpoint() + "/file"}).response.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Get(client, {"file:///etc/passwd"}).response.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_EQ(Get(client, {"no url"}).response.status().code(), absl::StatusCode::kDataLoss);
}

TEST(HttpClient, CutsAndSilenceMayPass) {
  LoopbackHub hub;
  hub.intercept = [](const LoopbackRequest&) { return LoopbackReply{.body = "0123456789", .cut_after = 4}; };
  HttpClient client(Options(hub));
  const Got cut = Get(client, {hub.endpoint() + "/x?secret=1"});
  EXPECT_TRUE(absl::IsUnavailable(cut.response.status())) << cut.response.status();
  EXPECT_THAT(std::string(cut.response.status().message()), Not(HasSubstr("secret")));
  EXPECT_EQ(cut.body, "0123");
  std::string gone;
  {
    const LoopbackHub closed;
    gone = closed.endpoint();
  }
  EXPECT_TRUE(absl::IsUnavailable(Get(client, {gone + "/x"}).response.status()));
}

TEST(HttpClient, AnErrorOfTheSinkComesBack) {
  LoopbackHub hub;
  hub.intercept = [](const LoopbackRequest&) { return LoopbackReply{.body = std::string(1 << 20, 'x')}; };
  HttpClient client(Options(hub));
  const auto response = client.Get({hub.endpoint() + "/x"},
                                   [](const HttpClientResponse&, absl::string_view) { return BadFileError("no"); });
  EXPECT_EQ(response.status(), BadFileError("no"));
}

TEST(HttpClient, CtrlCAndCancelEndIt) {
  LoopbackHub hub;
  HttpClient client(Options(hub));
  const std::atomic<bool> cancel{true};
  EXPECT_TRUE(absl::IsCancelled(Get(client, {hub.endpoint() + "/x"}, &cancel).response.status()));
  SetInterruptSignal(SIGINT);
  EXPECT_TRUE(absl::IsCancelled(Get(client, {hub.endpoint() + "/x"}).response.status()));
  SetInterruptSignal(0);
}

TEST(HttpClient, ReadsHowLongToWait) {
  const auto wait = [](int status, const std::string& name, const std::string& value) {
    return HttpClientResponse{.status = status, .headers = {{name, value}}}.retry_after_s();
  };
  EXPECT_EQ(wait(429, "retry-after", "7"), 7);
  EXPECT_EQ(wait(503, "retry-after", "0"), 0);
  EXPECT_EQ(wait(429, "ratelimit", "\"api\";r=0;t=55"), 55);
  EXPECT_EQ(wait(500, "retry-after", "7"), std::nullopt);
  EXPECT_EQ(wait(429, "x", "7"), std::nullopt);
  const std::time_t when = std::time(nullptr) + 100;
  std::tm utc = {};
  char soon[64];
  std::strftime(soon, sizeof(soon), "%a, %d %b %Y %H:%M:%S GMT", gmtime_r(&when, &utc));
  EXPECT_NEAR(static_cast<double>(*wait(503, "retry-after", soon)), 100, 2);
  EXPECT_EQ(wait(503, "retry-after", "Wed, 21 Oct 2015 07:28:00 GMT"), 0);
}

TEST(HttpClient, OriginsAndRelativeUrls) {
  EXPECT_EQ(*UrlOrigin("https://Huggingface.CO/a?b"), "https://huggingface.co:443");
  EXPECT_EQ(*UrlOrigin("http://h:80/x"), *UrlOrigin("http://h/y"));
  EXPECT_NE(*UrlOrigin("http://h/"), *UrlOrigin("https://h/"));
  EXPECT_NE(*UrlOrigin("http://h:1/"), *UrlOrigin("http://h:2/"));
  EXPECT_FALSE(UrlOrigin("ftp://h/").ok());
  EXPECT_EQ(*ResolveUrl("https://h/a/b?c", "/d?e=f"), "https://h/d?e=f");
  EXPECT_EQ(*ResolveUrl("https://h/a/b", "https://x/y"), "https://x/y");
  EXPECT_EQ(ShownUrl("https://h/a?X-Amz-Signature=s"), "https://h/a");
}

}  // namespace
}  // namespace pith
