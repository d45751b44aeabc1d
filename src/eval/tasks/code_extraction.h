// The program inside an answer: chat models write prose and fences around code, others only continue the prompt.
#pragma once

#include <string>

#include "absl/strings/string_view.h"
#include "eval/tasks/task_item.h"

namespace pith {

// The code to put before test.test: what test.prompt and `answer` (any bytes) make together.
//
// Of several fenced blocks the last that defines the entry point counts, else the last one; an unclosed fence runs to the end. Code that
// defines the entry point is the whole function: of the prompt only what stands before its definition (imports, other functions) is put
// before it. Other code continues the prompt; indentation lost at its beginning is restored, and it ends where a line begins at the margin.
// Without an entry point the code is taken as it is.
std::string ExtractPython(absl::string_view answer, const UnitTest& test);

}  // namespace pith
