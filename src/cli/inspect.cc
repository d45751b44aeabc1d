#include <map>

#include "CLI/CLI.hpp"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "base/file.h"
#include "base/status.h"
#include "cli/activations_flag.h"
#include "cli/commands.h"
#include "cli/data_path_report.h"
#include "cli/model_bundle.h"

namespace pith {
namespace {

struct Options {
  GemmActivation activations = GemmActivation::kInt16;
  std::string model;
  bool all = false;
};

absl::Status Run(const Options& options, const CommonOptions& common) {
  ThreadPool pool(common.threads);
  ASSIGN_OR_RETURN(const ModelBundle bundle, LoadModel(options.model, pool, options.activations));
  ASSIGN_OR_RETURN(const MemoryReport memory, MakeMemoryReport(*bundle.reader, *bundle.model));
  if (!common.json_to_stdout()) {
    RETURN_IF_ERROR(PrintResult(DataPathTable(bundle.model->data_path(), options.all)));
    RETURN_IF_ERROR(PrintResult(MemoryTable(memory)));
  }
  OrderedJson tensors = OrderedJson::array();
  for (const TensorDataPath& path : bundle.model->data_path()) tensors.push_back(ToJson(path));
  return WriteJsonResult(common, {{"model", options.model},
                                  {"format", bundle.reader->format()},
                                  {"architecture", bundle.model->config().model_type},
                                  {"data_path", bundle.model->DataPathName()},
                                  {"tensors", tensors},
                                  {"memory", ToJson(memory)}});
}

}  // namespace

CommandFunction SetupInspect(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("model", options->model, "model: a directory or a .gguf file")->required();
  app.add_flag("--all", options->all, "one line per tensor instead of one per kind");
  AddActivationsFlag(app, options->activations);
  return [options](const CommonOptions& common) { return Run(*options, common); };
}

}  // namespace pith
