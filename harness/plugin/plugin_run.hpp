#pragma once

#include "cuda/runtime.hpp"
#include "harness/case/case.hpp"
#include "harness/implementation/plugin_reply.hpp"
#include "harness/plugin/kdacheck_plugin.h"

#include <functional>
#include <memory>
#include <optional>

namespace kda::harness {

/// What came of a case: tensors, or a refusal or fault in `reply`.
struct PluginAnswer {
  PluginReply reply;
  std::optional<Outputs> outputs;
};

/// Opens the memory that a plugin on a GPU works in; called once per call of the plugin.
using OpenDevice = std::function<std::unique_ptr<cuda::Device>()>;

/// Calls `plugin` on a KDA case twice in fresh memory with different values around and in its
/// buffers (a third time where the answers differ, to say why) and checks what it did:
///
///   wrote_outside     a byte around a buffer changed
///   input_changed     an element of an input changed
///   output_unwritten  an element of an output is still what it was
///   read_outside      the answer depends on what lies outside the buffers
///   not_repeatable    the same call gave other bits
///   plugin_error      it says that something went wrong, or threw
///
/// `open` is used when the plugin wants GPU memory; what it throws is passed on. A crash of the
/// plugin is a crash of this process.
[[nodiscard]] PluginAnswer run_plugin_case(const kdacheck_plugin& plugin, const Case& test_case,
                                           const OpenDevice& open);

}  // namespace kda::harness
