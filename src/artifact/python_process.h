// For tests only: runs the Python interpreter that serves as an independent oracle ($PITH_TEST_PYTHON, else python3).
#pragma once

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/test_util.h"

namespace pith {

struct PythonResult {
  int exit_code = -1;
  std::string output;  // stdout and stderr
};

// Runs a script with arguments (which must need no quoting beyond '').
inline PythonResult RunPython(const std::string& script, const std::string& arguments = "") {
  const ScratchDirectory scratch;
  std::ofstream(scratch.File("script.py")) << script;
  const char* python = std::getenv("PITH_TEST_PYTHON");
  const std::string command = absl::StrCat("'", python != nullptr ? python : "python3", "' '", scratch.File("script.py"), "' ", arguments,
                                           " 2>&1");
  PythonResult result;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[4096];
  size_t n = 0;
  while ((n = fread(buffer, 1, sizeof(buffer), pipe)) > 0) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// Whether these modules can be imported ("numpy, safetensors").
inline bool PythonHas(const std::string& modules) { return RunPython(absl::StrCat("import ", modules)).exit_code == 0; }

}  // namespace pith
