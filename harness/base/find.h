// Looking for one thing among many: the answers that containers give as iterators, as values.
#pragma once

#include <algorithm>
#include <functional>
#include <iterator>
#include <type_traits>
#include <utility>
#include <vector>

namespace ulpscope {

/// Whether `wanted` is one of `all`.
template <class Range, class Value>
bool Contains(const Range& all, const Value& wanted) {
  return std::find(std::begin(all), std::end(all), wanted) != std::end(all);
}

/// The first of `all` that `fits`; null where none does.
template <class Range, class Fits>
auto FindIf(Range& all, Fits fits) -> decltype(&*std::begin(all)) {
  const auto found = std::find_if(std::begin(all), std::end(all), fits);
  return found == std::end(all) ? nullptr : &*found;
}

/// The value that `map` has for `key`; null if it has none.
template <class Map, class Key>
auto Lookup(Map& map, const Key& key) -> decltype(&map.find(key)->second) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// The value that `map` has for `key`, else `otherwise`.
template <class Map, class Key>
typename Map::mapped_type LookupOr(const Map& map, const Key& key, typename Map::mapped_type otherwise = {}) {
  const auto found = map.find(key);
  return found == map.end() ? std::move(otherwise) : found->second;
}

/// The results of `make` for each of `all`, in their order; as `Made` if that is given.
template <class Made = void, class Range, class Make>
auto Mapped(const Range& all, Make make) {
  using Given = std::decay_t<decltype(std::invoke(make, *std::begin(all)))>;
  std::vector<std::conditional_t<std::is_void_v<Made>, Given, Made>> made;
  for (const auto& each : all) made.emplace_back(std::invoke(make, each));
  return made;
}

/// The keys of `map`, in their order.
template <class Map>
std::vector<typename Map::key_type> Keys(const Map& map) {
  return Mapped(map, [](const auto& entry) { return entry.first; });
}

}  // namespace ulpscope
