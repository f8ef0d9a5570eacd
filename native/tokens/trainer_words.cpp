#include "tokens/trainer_words.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <utility>

#include "cpu/pool.hpp"

namespace hotgrid::tokens {
namespace {

constexpr std::size_t batch = 256;
constexpr std::size_t chunk = std::size_t{1} << 18;

const Byte* bytes_of(std::string_view word) { return reinterpret_cast<const Byte*>(word.data()); }

}  // namespace

void WordCounts::count(Split split, const Byte* text, std::size_t at, std::size_t stop,
                       std::size_t size) {
    std::size_t ends[batch];
    Key keys[batch];  // for long pieces `high` is 0 and `low` a hash
    while (at < stop) {
        const std::size_t pieces = split(text, at, stop, size, ends, batch);
        std::size_t from = at;
        for (std::size_t i = 0; i < pieces; from = ends[i++]) {
            const std::size_t length = ends[i] - from;
            if (length <= key_bytes) [[likely]] {
                keys[i] = key_of(text + from, length, text + size);
                __builtin_prefetch(&short_[place(keys[i].hash(), short_.size())]);
            } else {
                keys[i] = {hash_of(text + from, length), 0};
                __builtin_prefetch(&long_[place(keys[i].low, long_.size())]);
            }
        }
        for (std::size_t i = 0; i < pieces; at = ends[i++])
            if (keys[i].high) [[likely]]
                add_short(keys[i], 1);
            else
                add_long(reinterpret_cast<const char*>(text + at), ends[i] - at, keys[i].low, 1);
    }
}

void WordCounts::add(std::string_view word, std::uint64_t times) {
    if (word.empty() || !times) return;
    const Byte* bytes = bytes_of(word);
    if (word.size() <= key_bytes)
        add_short(key_of(bytes, word.size(), bytes + word.size()), times);
    else
        add_long(word.data(), word.size(), hash_of(bytes, word.size()), times);
}

void WordCounts::add_short(const Key& key, std::uint64_t times) {
    for (std::size_t at = place(key.hash(), short_.size());; at = (at + 1) & (short_.size() - 1)) {
        Short& entry = short_[at];
        if (entry.key == key && entry.times) [[likely]] {
            entry.times += times;
            return;
        }
        if (entry.times) continue;
        entry = {key, times};
        if (++short_used_ * 3 > short_.size() * 2) grow_short();
        return;
    }
}

void WordCounts::add_long(const char* word, std::size_t size, std::uint64_t hash,
                          std::uint64_t times) {
    for (std::size_t at = place(hash, long_.size());; at = (at + 1) & (long_.size() - 1)) {
        Long& entry = long_[at];
        if (!entry.times) {
            entry = {hash, bytes_.size(), size, times};
            bytes_.insert(bytes_.end(), word, word + size);
            if (++long_used_ * 3 > long_.size() * 2) grow_long();
            return;
        }
        if (entry.hash == hash && entry.size == size &&
            std::memcmp(bytes_.data() + entry.at, word, size) == 0) {
            entry.times += times;
            return;
        }
    }
}

void WordCounts::grow_short() {
    const std::vector<Short> old = std::exchange(short_, std::vector<Short>(short_.size() * 2));
    short_used_ = 0;
    for (const Short& entry : old)
        if (entry.times) add_short(entry.key, entry.times);
}

void WordCounts::grow_long() {
    const std::vector<Long> old = std::exchange(long_, std::vector<Long>(long_.size() * 2));
    for (const Long& entry : old) {
        if (!entry.times) continue;
        std::size_t at = place(entry.hash, long_.size());
        while (long_[at].times) at = (at + 1) & (long_.size() - 1);
        long_[at] = entry;
    }
}

void WordCounts::add_all(const WordCounts& other) {
    for (const Short& entry : other.short_)
        if (entry.times) add_short(entry.key, entry.times);
    for (const Long& entry : other.long_)
        if (entry.times)
            add_long(other.bytes_.data() + entry.at, entry.size, entry.hash, entry.times);
}

std::uint64_t WordCounts::forget_rare(std::size_t most) {
    if (size() <= most) return 0;
    std::map<std::uint64_t, std::size_t> occurring;
    for_each([&](std::string_view, std::uint64_t times) { ++occurring[times]; });
    std::size_t left = size();
    std::uint64_t limit = 0;
    for (const auto& [times, words] : occurring) {
        if (left <= most / 2) break;
        left -= words;
        limit = times;
    }
    WordCounts kept;
    for_each([&](std::string_view word, std::uint64_t times) {
        if (times > limit) kept.add(word, times);
    });
    *this = std::move(kept);
    return limit;
}

void count_words(Split split, const std::vector<Passage>& passages, std::size_t threads,
                 WordCounts& words) {
    std::vector<Passage> parts;
    for (Passage rest : passages) {
        while (rest.stop - rest.at > chunk + chunk / 2) {
            const std::size_t cut = safe_cut(rest.text, rest.at + chunk, rest.stop);
            if (cut >= rest.stop) break;
            parts.push_back({rest.text, rest.at, cut, rest.size});
            rest.at = cut;
        }
        if (rest.at < rest.stop) parts.push_back(rest);
    }
    threads = std::min({threads, cpu::threads(), parts.size()});
    std::atomic<std::size_t> next{0};
    const auto work = [&](WordCounts& counts) {
        for (std::size_t i = next++; i < parts.size(); i = next++)
            counts.count(split, parts[i].text, parts[i].at, parts[i].stop, parts[i].size);
    };
    if (threads <= 1) {
        work(words);
        return;
    }
    std::vector<WordCounts> others(threads - 1);
    cpu::parallel_for(threads, 1, [&](std::size_t begin, std::size_t end) {
        for (; begin < end; ++begin) work(begin ? others[begin - 1] : words);
    });
    for (const WordCounts& each : others) words.add_all(each);
}

}  // namespace hotgrid::tokens
