#include "harness/implementation/external.hpp"
#include "harness/mutate/mutant.hpp"

// Programs that fail as somebody else's program can (exec:COMMAND): each in a child process.

namespace kda::harness::mutate {
namespace {

struct Program {
  const char* name;
  const char* what;
  const char* command;
};

constexpr Program kPrograms[] = {
    {"exec_hangs", "a program that does not come back", "exec:sleep 60; : {in} {out}"},
    {"exec_crashes", "a program that ends by a signal", "exec:kill -SEGV $$; : {in} {out}"},
    {"exec_fails", "a program that ends with status 3", "exec:exit 3; : {in} {out}"},
    {"exec_writes_nothing", "no result", "exec:: {in} {out}"},
    {"exec_writes_text", "a result that is no HDF5 file", "exec:echo 42 >{out}; : {in}"},
    {"exec_writes_half", "the first half of a file", "exec:head -c 3000 {in} >{out}"},
    {"exec_writes_input", "its input for a result", "exec:cp {in} {out}"},
};

/// Long enough to start a shell on a busy machine.
constexpr double kTimeout = 2;

}  // namespace

std::vector<Implementation> external_mutants() {
  std::vector<Implementation> all;
  for (const Program& program : kPrograms) {
    all.push_back(make_external(program.command, {.timeout = kTimeout}));
    all.back().name = program.name;
    all.back().description = program.what;
  }
  return all;
}

}  // namespace kda::harness::mutate
