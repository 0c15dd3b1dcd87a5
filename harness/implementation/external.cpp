#include "harness/implementation/external.hpp"

#include "harness/base/shell_quote.hpp"
#include "harness/case/named_outputs.hpp"
#include "harness/fixture/fixture.hpp"
#include "harness/implementation/child_process.hpp"
#include "harness/implementation/fault.hpp"
#include "harness/implementation/plugin_reply.hpp"
#include "harness/implementation/private_folder.hpp"

#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace kda::harness {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExec = "exec:";
constexpr std::string_view kPlugin = "plugin:";

std::string last_line(const std::string& text) {
  const std::size_t end = text.find_last_not_of(" \t\r\n");
  if (end == std::string::npos) return "";
  const std::size_t begin = text.find_last_of('\n', end) + 1;  // npos + 1 is 0
  return text.substr(begin, end + 1 - begin);
}

/// Throws Fault unless the child came back and said that all went well.
void require_success(const ChildEnd& end, double timeout) {
  const std::string what = to_string(end, timeout);
  switch (end.kind) {
    case ChildEnd::Kind::kTimedOut:
      throw Fault(Verdict::kTimedOut, "timed_out", what + "; killed", end.output);
    case ChildEnd::Kind::kSignalled:
      throw Fault(Verdict::kCrashed, "signal", "ended by " + what, end.output);
    case ChildEnd::Kind::kExited: break;
  }
  if (end.value == 0) return;
  if (end.value == kCannotRunHereStatus) {
    const std::string why = last_line(end.output);
    throw Fault(Verdict::kSkipped, "unavailable",
                why.empty() ? "says by its exit status 77 that it cannot be run here" : why);
  }
  if (end.value > 128) {  // a shell's way to say it
    const ChildEnd signal{ChildEnd::Kind::kSignalled, end.value - 128, {}};
    throw Fault(Verdict::kCrashed, "signal", "ended by " + to_string(signal, timeout), end.output);
  }
  throw Fault(Verdict::kCrashed, "exit_status", "ended with " + what, end.output);
}

void require_shape(const std::map<std::string, Tensor>& tensors, const std::string& name,
                   const Shape& wanted, const std::string& output) {
  const auto found = tensors.find(name);
  if (found == tensors.end()) {
    throw Fault(Verdict::kMalformed, "missing",
                name + ": wanted shape " + kda::to_string(wanted) + ", got nothing", output);
  }
  if (found->second.shape() != wanted) {
    throw Fault(Verdict::kMalformed, "shape_mismatch",
                name + ": wanted shape " + kda::to_string(wanted) + ", got " +
                    kda::to_string(found->second.shape()),
                output);
  }
}

/// The tensors that the case asks for, of the shapes that it implies. Whether there should be an
/// answer at all is for the judge.
void require_form(const KdaCase& kda_case, const std::map<std::string, Tensor>& tensors,
                  const std::string& output) {
  const std::optional<Semantics> semantics = accepted(kda_case);
  if (!semantics) return;
  require_shape(tensors, "o", semantics->o_shape(), output);
  if (semantics->final_state)
    require_shape(tensors, "final_state", semantics->state_shape(semantics->N()), output);
  if (semantics->chunk_states)
    require_shape(tensors, "h", semantics->state_shape(semantics->num_chunks), output);
}

/// The root attribute `formats` of a result; none where there is no such text.
std::optional<StatedFormats> take_formats(const std::string& text, const std::string& output) {
  if (text.empty()) return std::nullopt;
  try {
    return parse_formats(text);
  } catch (const Error& error) {
    throw Fault(Verdict::kMalformed, std::string(name(error.code())),
                "result: attribute " + error.message(), output);
  }
}

/// The result file as an answer, a Refusal, or a Fault.
StatedAnswer take_result(const Case& test_case, const fs::path& file, const std::string& output) {
  std::error_code ignored;
  if (!fs::exists(file, ignored))
    throw Fault(Verdict::kMalformed, "result_missing", "wrote no result file", output);
  Result result;
  try {
    result = read_result(file);
  } catch (const Error& error) {
    std::string message = error.message();  // begins with the name of a file that is gone by then
    if (message.starts_with(file.string())) message.replace(0, file.string().size(), "result");
    // A whole file with values of another type is a wrong answer; other files are none.
    const bool whole = error.code() == ErrorCode::kDatasetTypeUnsupported;
    throw Fault(whole ? Verdict::kFailed : Verdict::kMalformed, std::string(name(error.code())),
                message, output);
  }
  if (result.error) throw Refusal(*result.error, result.message);
  require_form(std::get<KdaCase>(test_case.inputs), result.tensors, output);
  return {outputs_of(std::move(result.tensors)), take_formats(result.formats, output)};
}

std::string content(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::string with_files(std::string_view command, const fs::path& in, const fs::path& out) {
  std::string text;
  while (!command.empty()) {
    if (command.starts_with("{in}")) {
      text += shell_quoted(in.string());
      command.remove_prefix(4);
    } else if (command.starts_with("{out}")) {
      text += shell_quoted(out.string());
      command.remove_prefix(5);
    } else {
      text += command.front();
      command.remove_prefix(1);
    }
  }
  return text;
}

/// What `prepare` gives; what goes wrong in it (a full disk, no process to be had) says nothing
/// about the implementation.
template <class Prepare>
auto prepared(Prepare prepare) {
  try {
    return prepare();
  } catch (const Error& error) {
    throw Fault(Verdict::kSkipped, std::string(name(error.code())), error.message());
  }
}

/// A private folder with the case in it.
class Workspace {
 public:
  explicit Workspace(const Case& test_case) { write_fixture(file("in.h5"), test_case, false); }
  [[nodiscard]] fs::path file(const char* name) const { return folder_.path() / name; }
  [[nodiscard]] const fs::path& path() const { return folder_.path(); }

 private:
  PrivateFolder folder_;
};

StatedAnswer run_exec(const std::string& command, const Case& test_case,
                      const ExternalOptions& options) {
  const Workspace workspace = prepared([&] { return Workspace(test_case); });
  const fs::path in = workspace.file("in.h5");
  const fs::path out = workspace.file("out.h5");
  const std::string before = content(in);
  const ChildEnd end = prepared([&] {
    return run_child({"/bin/sh", "-c", with_files(command, in, out)}, options.timeout);
  });
  require_success(end, options.timeout);
  if (content(in) != before)
    throw Fault(Verdict::kFailed, "input_changed", "changed its input file", end.output);
  return take_result(test_case, out, end.output);
}

StatedAnswer run_plugin(const std::string& plugin, const Case& test_case,
                        const ExternalOptions& options) {
  const Workspace workspace = prepared([&] { return Workspace(test_case); });
  const ChildEnd end = prepared([&] {
    return run_child({"/proc/self/exe", "plugin-host", plugin, workspace.path().string()},
                     options.timeout);
  });
  require_success(end, options.timeout);
  const std::optional<PluginReply> reply = read_reply(workspace.file("reply.json"));
  if (!reply) {
    throw Fault(Verdict::kCrashed, "exited", "ended the process instead of returning", end.output);
  }
  if (reply->verdict) throw Fault(*reply->verdict, reply->code, reply->text, end.output);
  if (!reply->code.empty()) throw Refusal(reply->code, reply->text);
  return take_result(test_case, workspace.file("out.h5"), end.output);
}

Implementation kda_implementation(const std::string& name, const char* description) {
  return {.name = name,
          .description = description,
          .ops = {Op::kKdaPrefill, Op::kChunkKda, Op::kRecurrentKda},
          .limit = {},
          .run = {},
          .by_head = false};
}

/// Of an implementation whose answers may state formats.
void set_run(Implementation& made,
             std::function<StatedAnswer(const Case&, const KernelSettings&)> run) {
  made.run = [run](const Case& test_case, const KernelSettings& settings) {
    return run(test_case, settings).answer;
  };
  made.run_stating = std::move(run);
}

}  // namespace

bool is_external(std::string_view name) {
  return name.starts_with(kExec) || name.starts_with(kPlugin);
}

Implementation make_external(const std::string& name, const ExternalOptions& options) {
  if (name.starts_with(kExec)) {
    Implementation made = kda_implementation(name, "a program that reads and writes files");
    const std::string command = name.substr(kExec.size());
    for (const char* file : {"{in}", "{out}"}) {
      if (command.find(file) != std::string::npos) continue;
      throw Error(ErrorCode::kUsage,
                  "--impl exec:COMMAND: wanted {in} and {out} in the command, got " + command,
                  "write it as in --impl 'exec:python3 run.py {in} {out}'");
    }
    set_run(made, [command, options](const Case& test_case, const KernelSettings&) {
      return run_exec(command, test_case, options);
    });
    return made;
  }
  if (name.starts_with(kPlugin)) {
    Implementation made = kda_implementation(name, "a shared library");
    std::error_code error;
    const fs::path plugin = fs::canonical(name.substr(kPlugin.size()), error);
    if (error) {
      throw Error(ErrorCode::kPathNotFound,
                  "--impl " + name + ": wanted a shared library: " + error.message());
    }
    set_run(made, [plugin, options](const Case& test_case, const KernelSettings&) {
      return run_plugin(plugin.string(), test_case, options);
    });
    return made;
  }
  throw Error(ErrorCode::kUsage, "--impl: wanted exec:COMMAND or plugin:PATH, got " + name);
}

}  // namespace kda::harness
