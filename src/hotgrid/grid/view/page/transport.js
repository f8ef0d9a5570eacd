// The bar at the top: play, step, reset, speed, and how far the run is.

import { icon } from "/web/icons.js";
import { complain } from "/web/notice.js";
import { short, whole } from "/web/text.js";
import { on, state } from "./state.js";

// Steps a second; 0 is as fast as it can.
const SPEEDS = [1, 2, 5, 10, 30, 60, 120, 300, 1000, 0];

const element = (id) => document.getElementById(id);

export class Transport {
    #live;
    #playShown = null;

    constructor(live) {
        this.#live = live;
        pressed("play", () => this.toggle());
        pressed("step", () => this.step());
        pressed("reset", () => this.reset());
        const speed = element("speed");
        speed.replaceChildren(...SPEEDS.map((rate) => new Option(speedTitle(rate), rate)));
        speed.value = "0";
        speed.addEventListener("change", () => this.setSpeed(Number(speed.value)));
        on("status", () => this.#show());
        on("frame", () => this.#showStep());
        this.#showPlay();
    }

    /** Sends a command and shows what went wrong. */
    do(message) {
        return this.#live.ask(message).catch(complain);
    }

    toggle() {
        this.do({ type: state.playing ? "pause" : "play" });
    }

    step(count = 1) {
        this.do({ type: "step", count });
    }

    reset(seed = null) {
        this.do({ type: "reset", seed });
    }

    /** The same model from another random start. */
    reseed() {
        this.reset(Math.floor(Math.random() * 1e6));
    }

    goTo(step) {
        this.do({ type: "goto", step });
    }

    setSpeed(rate) {
        this.do({ type: "speed", rate });
    }

    /** The next slower (-1) or faster (1) speed. */
    changeSpeed(by) {
        const now = state.status?.rate || Infinity;
        const order = SPEEDS.map((rate) => rate || Infinity);
        const next =
            by > 0 ? order.find((rate) => rate > now) : order.findLast((rate) => rate < now);
        if (next) this.setSpeed(next === Infinity ? 0 : next);
    }

    #show() {
        this.#showPlay();
        this.#showStep();
        const speed = element("speed");
        const rate = String(state.status.rate);
        // Another viewer, or a program, may have set a speed that is not in the list.
        if (![...speed.options].some((option) => option.value === rate)) {
            speed.append(new Option(speedTitle(Number(rate)), rate));
        }
        if (document.activeElement !== speed) speed.value = rate;
    }

    #showPlay() {
        if (this.#playShown === state.playing) return;
        this.#playShown = state.playing;
        const play = element("play");
        const text = state.playing ? "Pause" : "Play";
        play.setAttribute("aria-label", text);
        play.title = `${text} (Space)`;
        play.replaceChildren(icon(state.playing ? "pause" : "play"));
    }

    #showStep() {
        element("step-count").textContent = whole(state.step);
        const goal = state.status?.goal;
        const apart = goal === null || goal === undefined ? "" : ` of ${whole(goal)}`;
        const time = state.hello?.time_step === 1 ? "" : `t = ${short(state.time, 5)}`;
        element("step-note").textContent = apart || time;
    }
}

/** A press by mouse or touch leaves no focus behind, so that Space plays and pauses. */
function pressed(id, action) {
    element(id).addEventListener("click", (event) => {
        action();
        if (event.detail > 0) element(id).blur();
    });
}

function speedTitle(rate) {
    return rate === 0 ? "Full speed" : `${whole(rate)} steps/s`;
}
