#include "harness/content_hash.hpp"

#include "harness/fixture.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <vector>

#include <fmt/format.h>
#include <openssl/evp.h>

namespace kda::harness {
namespace {

EVP_MD_CTX* context_of(void* context) noexcept { return static_cast<EVP_MD_CTX*>(context); }

void add_attributes(ContentHash& hash, const hdf5::Attributes& attributes) {
  const std::string& object = attributes.place().object;
  for (const hdf5::Attribute& attribute : attributes.all()) {
    if (object == "/" && attribute.name == kContentHashName) continue;
    if (!attribute.type) {
      hdf5::fail(ErrorCode::kAttributeInvalid, attributes.place().attribute(attribute.name),
                 "wanted numbers or strings, got " + attribute.stored_as);
    }
    hash.add({object, attribute.name, *attribute.type, attribute.shape, attribute.data});
  }
}

void add_dataset(ContentHash& hash, const hdf5::Dataset& dataset) {
  add_attributes(hash, dataset.attributes());
  std::vector<std::byte> data(dataset.bytes());
  dataset.read(data);
  hash.add({dataset.place().object, "", dataset.type(), dataset.shape(), data});
}

/// A member of the root or of one of its groups.
struct Entry {
  std::string path;
  const hdf5::Group* parent;
  std::string name;
};

}  // namespace

ContentHash::ContentHash() : context_(EVP_MD_CTX_new()) {
  if (!context_ || EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr) != 1) {
    throw std::bad_alloc();
  }
}

void ContentHash::Free::operator()(void* context) const noexcept {
  EVP_MD_CTX_free(context_of(context));
}

void ContentHash::update(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size());
}

void ContentHash::add(const ContentRecord& record) {
  std::string head = record.name.empty() ? "D" : "A";
  for (const std::string& part :
       {std::string(record.object), std::string(record.name), std::string(name(record.type)),
        fmt::format("{}", fmt::join(record.shape, ",")), std::to_string(record.data.size())}) {
    head += part + '\0';
  }
  update(std::as_bytes(std::span(head)));
  update(record.data);
}

std::string ContentHash::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned length = 0;
  EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), &length);
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + length, ""));
}

std::string content_sha256(const hdf5::Group& root) {
  std::vector<hdf5::Group> groups;
  groups.reserve(root.members().size());  // entries point into it
  std::vector<Entry> entries;
  for (const std::string& name : root.members()) {
    entries.push_back({root.place().child(name).object, &root, name});
    if (!root.is_group(name)) continue;
    const hdf5::Group& group = groups.emplace_back(*root.group(name));
    for (const std::string& member : group.members()) {
      entries.push_back({group.place().child(member).object, &group, member});
    }
  }
  std::ranges::sort(entries, {}, &Entry::path);

  ContentHash hash;
  add_attributes(hash, root.attributes());
  for (const Entry& entry : entries) {
    if (!entry.parent->is_group(entry.name)) {
      add_dataset(hash, *entry.parent->dataset(entry.name));
    } else if (entry.parent == &root) {
      add_attributes(hash, root.group(entry.name)->attributes());
    } else {
      hdf5::fail(ErrorCode::kNameUnknown, entry.parent->place().child(entry.name),
                 "wanted a dataset, got a group");
    }
  }
  return hash.finish();
}

std::string content_sha256(const std::filesystem::path& file) {
  const hdf5::Session session;
  return content_sha256(hdf5::open_file(file));
}

}  // namespace kda::harness
