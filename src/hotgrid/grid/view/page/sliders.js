// The group "Parameters": a slider and a number for each, from the model's declaration.

import { button, make, spelled } from "/web/dom.js";
import { complain } from "/web/notice.js";
import { paced } from "/web/pace.js";
import { titled } from "/web/text.js";
import { group, slider } from "./panel.js";
import { on, state } from "./state.js";

const SEND_EVERY = 50;
// What the reader does wins over what the server says for this long: an answer to an older
// position must not pull the slider back.
const HOLD = 600;

export function parametersGroup(live, hello) {
    const rows = hello.parameters.map((parameter) => row(live, parameter));
    on("status", () => rows.forEach((each) => each.follow()));
    const none = make("p", { class: "hint" }, "This model has no parameters that can change.");
    return group("Parameters", {}, ...(rows.length > 0 ? rows : [none]));
}

function row(live, parameter) {
    const { name, meaning, unit, value } = parameter;
    const [low, high] = limits(parameter);
    let touched = -Infinity;
    const send = paced((now) => {
        live.ask({ type: "set", name, value: now }).catch((error) => {
            const kept = state.status?.parameters[name] ?? value;
            touched = -Infinity;
            state.parameters = { ...state.parameters, [name]: kept };
            control.show(kept, { typed: true });
            mark(kept);
            complain(error);
        });
    }, SEND_EVERY);
    const set = (now) => {
        touched = performance.now();
        state.parameters = { ...state.parameters, [name]: now };
        mark(now);
        send(now);
    };
    const control = slider({
        name: titled(name),
        low,
        high,
        value,
        // A bound that is excluded is no end of powers of ten: they would never reach it.
        linear: parameter.above !== null,
        limits: [parameter.above ?? parameter.low, parameter.high],
        change: set,
    });
    const back = button({
        name: `Set ${titled(name)} to its default, ${parameter.default}`,
        symbol: "rotate-ccw",
        className: "button button-quiet button-small",
        press: () => {
            control.show(parameter.default);
            set(parameter.default);
        },
    });
    const mark = (now) => {
        // Kept in place when it is not needed, so that nothing jumps.
        back.style.visibility = now === parameter.default ? "hidden" : "visible";
    };
    mark(value);
    const part = make(
        "div",
        { class: "parameter", data: { parameter: name } },
        make(
            "div",
            { class: "parameter-head" },
            make("span", { class: "parameter-name" }, titled(name)),
            unit ? make("span", { class: "unit" }, unit) : null,
            back,
        ),
        control,
        meaning ? make("p", { class: "hint" }, spelled(titled(meaning))) : null,
    );
    part.follow = () => {
        if (performance.now() - touched < HOLD) return;
        const now = state.status.parameters[name];
        if (now === undefined) return;
        control.show(now);
        mark(now);
    };
    return part;
}

/** The ends of the slider: what is declared, else up to twice the default. */
function limits({ low, high, default: usual }) {
    if (low !== null && high !== null) return [low, high];
    const reach = 2 * Math.abs(usual) || 1;
    if (low !== null) return [low, Math.max(low + reach, reach)];
    if (high !== null) return [Math.min(high - reach, 0), high];
    return usual < 0 ? [-reach, 0] : [0, reach];
}
