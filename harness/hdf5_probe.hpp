#pragma once

#include <filesystem>
#include <functional>

namespace kda::harness::hdf5 {

/// Runs `read` in a child process first: libhdf5 1.10 crashes, or never returns, on some damaged
/// files, and here that must be one more error of the file. Throws kFileUnreadable when the child
/// dies or takes over 20 s of processor time. What `read` throws is for the caller to see when it
/// runs the same in this process. Wants a Session to be held, so that no other thread is inside
/// HDF5 while the process forks.
void probe_in_child(const std::filesystem::path& file, const std::function<void()>& read);

}  // namespace kda::harness::hdf5
