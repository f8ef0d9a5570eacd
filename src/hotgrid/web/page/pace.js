// Slowing down what happens more often than it is worth sending.

/**
 * A function that calls `action` at most once in `wait` milliseconds, at once where it can, and
 * always with the newest arguments: the last call is never lost.
 */
export function paced(action, wait) {
    let timer = null;
    let last = -Infinity;
    let newest = null;
    const fire = () => {
        timer = null;
        last = performance.now();
        const given = newest;
        newest = null;
        action(...given);
    };
    const call = (...given) => {
        newest = given;
        if (timer !== null) return;
        const rest = last + wait - performance.now();
        if (rest <= 0) fire();
        else timer = setTimeout(fire, rest);
    };
    /** Sends what waits, without waiting. */
    call.flush = () => {
        if (timer === null) return;
        clearTimeout(timer);
        fire();
    };
    return call;
}

/** How many events happen in a second, over the last second or so. */
export class Rate {
    #times = [];

    count(now = performance.now()) {
        this.#times.push(now);
        while (this.#times.length > 2 && now - this.#times[0] > 1000) this.#times.shift();
    }

    perSecond(now = performance.now()) {
        const recent = this.#times.filter((time) => now - time <= 1500);
        if (recent.length < 2) return 0;
        return ((recent.length - 1) * 1000) / (now - recent[0]);
    }
}
