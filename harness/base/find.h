// Looking for one thing among many: what containers say in iterators, said as an answer.
#pragma once

#include <algorithm>
#include <iterator>
#include <utility>

namespace ulpscope {

/// Whether `wanted` is one of `all`.
template <class Range, class Value>
bool Contains(const Range& all, const Value& wanted) {
  return std::find(std::begin(all), std::end(all), wanted) != std::end(all);
}

/// What `map` has for `key`; null where it has nothing.
template <class Map, class Key>
auto Lookup(Map& map, const Key& key) -> decltype(&map.find(key)->second) {
  const auto found = map.find(key);
  return found == map.end() ? nullptr : &found->second;
}

/// What `map` has for `key`, else `otherwise`.
template <class Map, class Key>
typename Map::mapped_type LookupOr(const Map& map, const Key& key, typename Map::mapped_type otherwise = {}) {
  const auto found = map.find(key);
  return found == map.end() ? std::move(otherwise) : found->second;
}

}  // namespace ulpscope
