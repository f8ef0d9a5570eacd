#include <cstddef>
#include <vector>

#include "check.hpp"
#include "cpu/bandwidth.hpp"
#include "cpu/features.hpp"

using namespace hotgrid::cpu;

TEST(a_streamed_copy_copies_all_and_nothing_else) {
    constexpr std::size_t size = 1024;
    for (std::size_t bytes = 0; bytes < 400; ++bytes) {
        for (const std::size_t from_at : {0UL, 1UL, 17UL, 63UL}) {
            for (const std::size_t to_at : {0UL, 1UL, 31UL, 64UL}) {
                std::vector<unsigned char> from(size), to(size, 0xEE);
                for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<unsigned char>(i * 7);
                stream_copy(to.data() + to_at, from.data() + from_at, bytes);
                for (std::size_t i = 0; i < size; ++i) {
                    const bool inside = i >= to_at && i < to_at + bytes;
                    CHECK(to[i] == (inside ? from[i - to_at + from_at] : 0xEE));
                }
            }
        }
    }
}

TEST(bandwidth_is_a_speed) {
    for (const std::size_t bytes : {1UL, 1000UL, 5000000UL}) CHECK(copy_bandwidth(bytes, 2) > 0);
}

TEST(the_chosen_instruction_set_has_a_name) {
    CHECK(!name(isa()).empty());
    bool any = false;
    for (const Feature& feature : features()) any = any || feature.present;
    CHECK(any || isa() == Isa::scalar);
}
