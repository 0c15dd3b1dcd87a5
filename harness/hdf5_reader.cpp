#include "harness/hdf5_reader.hpp"

#include "harness/hdf5_superblock.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace kda::harness::hdf5 {
namespace {

constexpr std::uint64_t kLeastLimit = std::uint64_t{64} << 20;
constexpr std::uint64_t kLimitPerByte = 1000;

struct Link {
  std::string name;
  H5L_type_t type;
};

herr_t take_link(hid_t, const char* name, const H5L_info_t* link, void* links) {
  static_cast<std::vector<Link>*>(links)->push_back({name, link->type});
  return 0;
}

std::vector<std::string> read_members(hid_t group, const Place& place) {
  std::vector<Link> links;
  check(H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, take_link, &links) >= 0, place,
        "list the group");
  std::vector<std::string> names;
  for (const Link& link : links) {
    // A name is opened as a path later: one with a slash could lead through another link.
    const bool plain = link.name != "." && link.name.find('/') == std::string::npos;
    if (link.type != H5L_TYPE_HARD || !plain) {
      const char* kind = link.type == H5L_TYPE_SOFT ? "a soft link" : "a link elsewhere";
      fail(ErrorCode::kFileUnreadable, place.child(link.name),
           fmt::format("wanted an object of this file, got {}",
                       link.type == H5L_TYPE_HARD ? "a name that is a path" : kind),
           "store the object itself instead of a link");
    }
    names.push_back(link.name);
  }
  std::ranges::sort(names);
  return names;
}

const char* kind_of(hid_t object) {
  switch (H5Iget_type(object)) {
    case H5I_GROUP: return "group";
    case H5I_DATASET: return "dataset";
    default: return "named datatype";
  }
}

void require_kind(hid_t object, std::string_view wanted, const Place& place) {
  const char* kind = kind_of(object);
  if (kind == wanted) return;
  fail(ErrorCode::kDatasetTypeUnsupported, place,
       fmt::format("wanted a {}, got a {}", wanted, kind), fmt::format("store a {}", wanted));
}

}  // namespace

Group::Group(Handle id, Place place, std::uint64_t limit)
    : id_(std::move(id)),
      place_(std::move(place)),
      limit_(limit),
      members_(read_members(id_.get(), place_)) {}

bool Group::has(std::string_view name) const {
  return std::ranges::find(members_, name) != members_.end();
}

bool Group::is_group(const std::string& name) const {
  return H5Iget_type(open(name).get()) == H5I_GROUP;
}

std::optional<Group> Group::group(const std::string& name) const {
  if (!has(name)) return std::nullopt;
  Handle object = open(name);
  require_kind(object.get(), "group", place_.child(name));
  return Group(std::move(object), place_.child(name), limit_);
}

std::optional<Dataset> Group::dataset(const std::string& name, std::uint64_t held) const {
  if (!has(name)) return std::nullopt;
  Handle object = open(name);
  require_kind(object.get(), "dataset", place_.child(name));
  return Dataset(std::move(object), place_.child(name), limit_ - std::min(held, limit_));
}

Handle Group::open(const std::string& name) const {
  return own(H5Oopen(id_.get(), name.c_str(), H5P_DEFAULT), place_.child(name), "open the object");
}

Group open_file(const std::filesystem::path& file) {
  const Place place{file};
  const std::uint64_t size = check_superblock(file);
  const Handle access = own(H5Pcreate(H5P_FILE_ACCESS), place, "prepare reading");
  // No lock: several processes read the same fixtures, and some file systems have none.
  // No chunk cache: it would allocate what the file claims a chunk to be.
  const bool prepared = H5Pset_file_locking(access.get(), false, true) >= 0 &&
                        H5Pset_cache(access.get(), 0, 0, 0, 0) >= 0;
  check(prepared, place, "prepare reading");
  const Handle id =
      own(H5Fopen(file.c_str(), H5F_ACC_RDONLY, access.get()), place, "open the file");
  return {own(H5Gopen2(id.get(), "/", H5P_DEFAULT), place, "open the root"), place,
          std::max(kLeastLimit, kLimitPerByte * size)};
}

}  // namespace kda::harness::hdf5
