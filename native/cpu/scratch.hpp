// Room for a thread to work in that lies in one piece in the machine as well.
//
// Which places of a cache memory falls on depends on its address in the machine, which the
// system chooses anew for every 4 KiB: what is kept there beside long rows that are read may
// take the places of these in one process and leave them alone in the next. Within a large
// page an address tells.
#pragma once

#include <cstddef>

namespace hotgrid::cpu {

// A part of a large page until it is destroyed; the next to come gets it again. Several threads
// may have one each.
class Scratch {
  public:
    static constexpr std::size_t size = std::size_t{256} << 10;

    Scratch();
    ~Scratch();
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;

    // Uninitialised, `size` bytes; nullptr where all is taken or there is none. Where an address
    // sanitizer looks on there is none: it sees nothing of the parts of a page.
    std::byte* memory() const { return memory_; }

  private:
    std::byte* memory_ = nullptr;
    std::size_t number_ = 0;
};

}  // namespace hotgrid::cpu
