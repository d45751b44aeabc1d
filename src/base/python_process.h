// For tests only: runs the Python interpreter that serves as an independent oracle.
#pragma once

#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "base/test_util.h"

namespace pith {

struct PythonResult {
  int exit_code = -1;
  std::string output;
};

// $PITH_TEST_PYTHON, else that of scripts/setup --python, else python3.
inline std::string PythonPath() {
  if (const char* path = std::getenv("PITH_TEST_PYTHON"); path != nullptr) return path;
  const std::string venv = absl::StrCat(PITH_SOURCE_DIR, "/build/venv/bin/python");
  return std::filesystem::exists(venv) ? venv : "python3";
}

// Runs a script of a file; `arguments` go through the shell, redirections included. `output` is stdout.
inline PythonResult RunPythonFile(const std::string& path, const std::string& arguments = "") {
  PythonResult result;
  FILE* pipe = popen(absl::StrCat("'", PythonPath(), "' '", path, "' ", arguments).c_str(), "r");
  if (pipe == nullptr) return result;
  char buffer[65536];
  for (size_t n = 0; (n = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) result.output.append(buffer, n);
  const int status = pclose(pipe);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return result;
}

// The same for the text of a script. `output` is stdout and stderr.
inline PythonResult RunPython(const std::string& script, const std::string& arguments = "") {
  const ScratchDirectory scratch;
  std::ofstream(scratch.File("script.py")) << script;
  return RunPythonFile(scratch.File("script.py"), absl::StrCat(arguments, " 2>&1"));
}

// Whether these modules can be imported ("numpy, safetensors.numpy"). Where scripts/setup --python has been run they must be: a test that
// is skipped there would be skipped unnoticed everywhere.
inline bool PythonHas(const std::string& modules) {
  const PythonResult result = RunPython(absl::StrCat("import ", modules));
  if (result.exit_code != 0 && std::filesystem::exists(absl::StrCat(PITH_SOURCE_DIR, "/build/venv"))) {
    ADD_FAILURE() << PythonPath() << " cannot import " << modules << ": " << result.output;
  }
  return result.exit_code == 0;
}

}  // namespace pith
