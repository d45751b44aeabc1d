#include "server/response_format.h"

#include <gtest/gtest.h>

#include "base/status.h"
#include "server/api_error.h"

namespace pith {
namespace {

TEST(ResponseFormatTest, WholeBodiesAndChunks) {
  const ResponseHeader header{.kind = ResponseKind::kChat, .id = "chatcmpl-1", .created_unix_seconds = 7, .model = "m", .fingerprint = "f"};
  const OrderedJson whole = ResponseJson(header, OrderedJson::array({ChoiceJson(header.kind, 0, "hi", nullptr, FinishReason::kStop)}),
                                         {3, 2});
  EXPECT_EQ(DumpJson(whole),
            "{\"id\":\"chatcmpl-1\",\"object\":\"chat.completion\",\"created\":7,\"model\":\"m\",\"system_fingerprint\":\"f\",\"choices\":["
            "{\"index\":0,"
            "\"message\":{\"role\":\"assistant\",\"content\":\"hi\"},\"logprobs\":null,\"finish_reason\":\"stop\"}],"
            "\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":2,\"total_tokens\":5}}");
  EXPECT_EQ(DumpJson(ChunkChoiceJson(ResponseKind::kChat, 1, "", nullptr, FinishReason::kNone, true)),
            "{\"index\":1,\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":null}");
  EXPECT_EQ(DumpJson(ChunkChoiceJson(ResponseKind::kChat, 0, "", nullptr, FinishReason::kLength, false)),
            "{\"index\":0,\"delta\":{},\"logprobs\":null,\"finish_reason\":\"length\"}");
  EXPECT_EQ(DumpJson(ChunkChoiceJson(ResponseKind::kCompletion, 0, "x", nullptr, FinishReason::kNone, false)),
            "{\"index\":0,\"text\":\"x\",\"logprobs\":null,\"finish_reason\":null}");
  EXPECT_EQ(SseFrame(OrderedJson({{"a", 1}})), "data: {\"a\":1}\n\n");
}

TEST(ApiErrorTest, StatusesBecomeHttpStatuses) {
  EXPECT_EQ(ToApiError(FieldError("n", "bad")).status, 400);
  EXPECT_EQ(ToApiError(FieldError("n", "bad")).param, "n");
  EXPECT_EQ(ToApiError(absl::NotFoundError("x")).code, "model_not_found");
  EXPECT_EQ(ToApiError(absl::ResourceExhaustedError("x")).status, 429);
  EXPECT_EQ(ToApiError(UnavailableError("x")).status, 503);
  const ApiError bug = ToApiError(BugError("secret path"));
  EXPECT_EQ(bug.status, 500);
  EXPECT_EQ(bug.message, "internal error");
  EXPECT_EQ(DumpJson(ToJson(MakeApiError(404, "no"))),
            "{\"error\":{\"message\":\"no\",\"type\":\"not_found_error\",\"param\":null,\"code\":null}}");
}

}  // namespace
}  // namespace pith
