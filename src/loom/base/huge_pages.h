// Asks for huge pages behind large stores, whose first touch is otherwise a page fault every 4 KiB.
#pragma once

#include <cstddef>
#include <vector>

namespace loom {

// A hint for the whole huge pages inside [data, data + bytes); does nothing for small ranges or
// where the system has none.
void prefer_huge_pages(const void* data, size_t bytes);

// Reserves room for `size` elements on huge pages where that pays.
template <class T>
void reserve_on_huge_pages(std::vector<T>& store, size_t size) {
  store.reserve(size);
  prefer_huge_pages(store.data() + store.size(), (store.capacity() - store.size()) * sizeof(T));
}

}  // namespace loom
