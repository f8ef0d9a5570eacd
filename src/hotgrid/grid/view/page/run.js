// The group "Run": go to a step, choose the random start.

import { button, field, make } from "/web/dom.js";
import { notice } from "/web/notice.js";
import { group } from "./panel.js";
import { on, state } from "./state.js";

export function runGroup(transport) {
    const step = make("input", {
        type: "number",
        min: 0,
        step: 1,
        class: "number",
        id: "goto",
        placeholder: "step",
    });
    const go = () => {
        const wanted = Number(step.value);
        if (step.value !== "" && Number.isInteger(wanted) && wanted >= 0)
            transport.goTo(wanted);
        else {
            if (step.value !== "" || step.validity.badInput)
                notice("A step must be a whole number of at least 0.", { error: true });
            step.focus();
        }
    };
    const seed = make("input", {
        type: "number",
        min: 0,
        step: 1,
        class: "number",
        id: "seed",
    });
    const start = () => transport.reset(seed.value === "" ? null : Number(seed.value));
    for (const [input, action] of [
        [step, go],
        [seed, start],
    ]) {
        input.addEventListener("keydown", (event) => {
            if (event.key === "Enter") action();
        });
    }
    on("status", () => {
        if (document.activeElement !== seed) seed.value = String(state.seed);
    });
    const row = (label, input, ...buttons) => {
        const part = field(label, input, { inline: true });
        part.append(make("div", { class: "with" }, input, ...buttons));
        return part;
    };
    return group(
        "Run",
        {},
        row(
            "Go to step",
            step,
            button({ name: "Run to that step (G)", text: "Go", press: go }),
        ),
        row(
            "Seed",
            seed,
            button({ name: "Reset with this seed", text: "Reset", press: start }),
            button({
                name: "Reset with a random seed (N)",
                symbol: "dice-5",
                press: () => transport.reseed(),
            }),
        ),
    );
}
