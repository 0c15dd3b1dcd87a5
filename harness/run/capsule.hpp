#pragma once

#include "harness/run/judge.hpp"

#include <filesystem>

namespace kda::harness {

/// Saves a failed case so that it can be judged again offline: FOLDER/NAME.case.h5, a fixture with
/// inputs and expected values, and FOLDER/NAME.result.h5, the result with its bound (datasets
/// /sigma/o, ...) and attributes: implementation, formats, verdict, detail, policy, command,
/// environment. NAME is made of the names of case and implementation. Makes the folder.
/// Returns the arguments of `compare` that judge it again: "RESULT FIXTURE". Throws
/// kFileUnwritable.
std::string write_capsule(const std::filesystem::path& folder, const CaseResult& result);

}  // namespace kda::harness
