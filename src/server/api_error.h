// Errors as the OpenAI API shapes them, and the one place where a status becomes an HTTP status.
//   {"error": {"message": "...", "type": "invalid_request_error", "param": "temperature", "code": null}}
#pragma once

#include <string>

#include "absl/status/status.h"
#include "base/json.h"
#include "server/http_types.h"

namespace pith {

struct ApiError {
  int status = 400;
  std::string message;
  std::string type;   // invalid_request_error, not_found_error, rate_limit_error, server_error, ...
  std::string param;  // the field it is about; empty: null
  std::string code;   // model_not_found, context_length_exceeded, rate_limit_exceeded, ...; empty: null
};

// kInvalidArgument 400, kOutOfRange 400 with context_length_exceeded, kNotFound 404, kUnimplemented 400 (a feature asked for in the body),
// kResourceExhausted 429, kUnavailable 503, everything else 500 with a message that tells nothing of our insides (the status is logged).
// `param` is ErrorField's.
ApiError ToApiError(const absl::Status& status);

// The error of a bare HTTP status (413, 404, ...).
ApiError MakeApiError(int status, const std::string& message);

OrderedJson ToJson(const ApiError& error);
// With Retry-After on 429 and 503.
HttpResponse ToResponse(const ApiError& error);

}  // namespace pith
