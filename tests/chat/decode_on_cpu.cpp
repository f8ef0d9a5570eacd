// Runs `decode` on a CPU. The header and the kernel come before this file.

static const Call* given;

static void begin() {
    decode(*given);
    auto& fiber = machine::here->fibers[machine::here->current];
    fiber.ended = true;
    machine::rest();
}

static void prepare(machine::Machine& all) {
    all.fibers.resize(machine::WARPS_OF_ALL * 32);
    all.warps.resize(machine::WARPS_OF_ALL);
    all.some.resize(BLOCKS);
    all.all.resize(BLOCKS);
    for (int block = 0; block < BLOCKS; block++) {
        all.states.emplace_back((char*)operator new[](sizeof(Shared)));
        all.rings.emplace_back((char*)operator new[](SLOTS * SLOT));
        memset(all.states.back().get(), 0xff, sizeof(Shared));
        memset(all.rings.back().get(), 0xff, SLOTS * SLOT);
    }
    for (auto& fiber : all.fibers) {
        fiber.stack.reset(new char[machine::STACK]);
        getcontext(&fiber.context);
        fiber.context.uc_stack.ss_sp = fiber.stack.get();
        fiber.context.uc_stack.ss_size = machine::STACK;
        fiber.context.uc_link = nullptr;
        makecontext(&fiber.context, begin, 0);
    }
}

extern "C" long words() { return WORDS; }

// Return 0, or 1 if the kernel has not ended after some turns of warps.
extern "C" int run(const Call* call, unsigned seed, long turns) {
    machine::Machine all;
    machine::here = &all;
    given = call;
    all.random.seed(seed);
    prepare(all);
    int left = (int)all.fibers.size();
    for (long turn = 0; turn < turns; turn++) {
        auto choice = all.random();
        if (!all.copies.empty() && choice % 4 == 0) {
            size_t which = choice / 4 % all.copies.size();
            machine::finish_copy(all.copies[which]);
            all.copies.erase(all.copies.begin() + (long)which);
        }
        int warp = (int)(choice / 16 % machine::WARPS_OF_ALL);
        for (int lane = 0; lane < 32; lane++) {
            all.current = warp * 32 + lane;
            if (all.fibers[all.current].ended) continue;
            swapcontext(&all.scheduler, &all.fibers[all.current].context);
            left -= all.fibers[all.current].ended;
        }
        if (left == 0) return 0;
    }
    return 1;
}
