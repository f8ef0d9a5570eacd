// Observables over the steps of a run, thinned so that a long run stays cheap to draw.

const MOST = 1600;

export class History {
    steps = [];
    values = {};

    constructor(names) {
        this.names = names;
        for (const name of names) this.values[name] = [];
    }

    /** Takes all that the server kept. */
    load({ steps, values }) {
        this.steps = [...steps];
        for (const name of this.names) {
            this.values[name] = this.steps.map((_, index) => values[name]?.[index] ?? null);
        }
        this.#thin();
    }

    /** Adds a point. A step that is not new replaces what came after it: the run went back. */
    add(step, observables) {
        while (this.steps.length > 0 && this.steps.at(-1) >= step) {
            this.steps.pop();
            for (const name of this.names) this.values[name].pop();
        }
        this.steps.push(step);
        for (const name of this.names) {
            const value = observables[name];
            this.values[name].push(Number.isFinite(value) ? value : null);
        }
        this.#thin();
    }

    #thin() {
        if (this.steps.length <= MOST) return;
        // Every second point goes; the newest stays, since the curve must end where the run is.
        const last = this.steps.length - 1;
        const keep = (list) => list.filter((_, index) => (last - index) % 2 === 0);
        this.steps = keep(this.steps);
        for (const name of this.names) this.values[name] = keep(this.values[name]);
    }
}
