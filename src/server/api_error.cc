#include "server/api_error.h"

#include "base/log.h"
#include "base/status.h"

namespace pith {
namespace {

std::string TypeOf(int status) {
  switch (status) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 503: return "unavailable_error";
    default: return status >= 500 ? "server_error" : "invalid_request_error";
  }
}

}  // namespace

ApiError MakeApiError(int status, const std::string& message) { return {.status = status, .message = message, .type = TypeOf(status)}; }

ApiError ToApiError(const absl::Status& status) {
  const std::string message(status.message());
  switch (status.code()) {
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kUnimplemented: {
      ApiError error = MakeApiError(400, message);
      error.param = ErrorField(status);
      if (status.code() == absl::StatusCode::kOutOfRange) error.code = "context_length_exceeded";
      return error;
    }
    case absl::StatusCode::kNotFound: {
      ApiError error = MakeApiError(404, message);
      error.param = "model";
      error.code = "model_not_found";
      return error;
    }
    case absl::StatusCode::kResourceExhausted: {
      ApiError error = MakeApiError(429, message);
      error.code = "rate_limit_exceeded";
      return error;
    }
    case absl::StatusCode::kUnavailable: return MakeApiError(503, message);
    default: spdlog::error("request failed: {}", message); return MakeApiError(500, "internal error");
  }
}

OrderedJson ToJson(const ApiError& error) {
  const auto or_null = [](const std::string& text) { return text.empty() ? OrderedJson(nullptr) : OrderedJson(text); };
  return {{"error", {{"message", error.message}, {"type", error.type}, {"param", or_null(error.param)}, {"code", or_null(error.code)}}}};
}

HttpResponse ToResponse(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = DumpJson(ToJson(error))};
  if (error.status == 429 || error.status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace pith
