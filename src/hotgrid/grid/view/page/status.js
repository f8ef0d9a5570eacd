// The status of the page: speed, connection, and the name of the picture.

import { make } from "/web/dom.js";
import { paced } from "/web/pace.js";
import { short, titled, whole } from "/web/text.js";
import { on, state } from "./state.js";

const element = (id) => document.getElementById(id);

/** The line below the picture: how fast the run is, and where it runs. */
export function statusBar(stage) {
    const bar = element("measures");
    const parts = {};
    const add = (name, title) => {
        const value = make("b", {});
        parts[name] = { value, note: make("span", {}) };
        bar.append(
            make("span", { class: `measure measure-${name}`, title }, value, parts[name].note),
        );
    };
    add("steps", "Steps of the run per second");
    add("mlups", "Million cell updates per second");
    add("share", "Speed of the run relative to the limit set by memory bandwidth");
    add("frames", "Frames that this page draws per second");
    add("viewers", "Pages that show this run");
    add("device", "Device of the run, number type, and how the fields are stored");
    const write = (name, value, note) => {
        parts[name].value.textContent = value;
        parts[name].note.textContent = note;
    };
    const show = () => {
        const { status, hello } = state;
        if (!status) return;
        const { steps_per_second: speed, mlups, share, viewers } = status;
        write("steps", speed < 100 ? short(speed, 3) : whole(speed), "steps/s");
        write("mlups", mlups < 100 ? short(mlups, 3) : whole(mlups), "MLUPS");
        write(
            "share",
            share === null ? "\u2013" : `${Math.round(100 * share)} %`,
            "of memory limit",
        );
        write("frames", String(Math.round(stage.measureRate())), "frames/s");
        write("viewers", String(viewers), viewers === 1 ? "viewer" : "viewers");
        write("device", hello?.device ?? "", `${hello?.dtype ?? ""} ${status.form ?? ""}`);
    };
    on("status", show);
    show();
}

/** Says that the connection is lost, and counts down to the next attempt. */
export function connectionBanner(live) {
    const banner = element("banner");
    const text = element("banner-text");
    let timer = null;
    element("retry").addEventListener("click", () => live.retry());
    on("connection", (lost) => {
        clearInterval(timer);
        document.body.classList.toggle("lost", !state.connected);
        element("connection").title = state.connected ? "Connected" : "Not connected";
        if (state.connected) {
            banner.hidden = true;
            return;
        }
        element("banner-title").textContent =
            lost.wait === null ? "This run cannot start." : "The connection is lost.";
        if (lost.wait === null) {
            text.textContent = lost.text ?? "The server refused it.";
            banner.hidden = false;
            return;
        }
        const until = performance.now() + lost.wait;
        const show = () => {
            const rest = Math.max(0, Math.ceil((until - performance.now()) / 1000));
            const next = rest > 1 ? `Next attempt in ${rest} s.` : "Trying again\u2026";
            // A server that was started again has a new token, which only its address holds.
            const hint = "If the server was restarted, open the address that it printed.";
            text.textContent = lost.tries > 4 ? `${next} ${hint}` : next;
        };
        show();
        timer = setInterval(show, 500);
        // A short gap, such as a restart, is not worth an alarm.
        if (lost.tries > 1) banner.hidden = false;
    });
}

/** Says what the page waits for until there is a picture. */
export function waitingNote() {
    const note = element("waiting");
    on("hello", () => {
        note.textContent = `${state.title} is starting\u2026`;
    });
    on("connection", (lost) => {
        if (lost?.wait === null) note.hidden = true;
    });
    on("frame", () => {
        note.hidden = true;
    });
}

/** Says that steps are being compiled, unless that is over in a moment. */
export function compilingNote() {
    const note = element("compiling");
    let timer = null;
    const end = () => {
        clearTimeout(timer);
        note.hidden = true;
    };
    on("compiling", () => {
        clearTimeout(timer);
        timer = setTimeout(() => {
            note.hidden = false;
        }, 300);
    });
    for (const event of ["status", "connection"]) on(event, end);
}

/** Keeps the accessible name of the picture current. */
export function describe(stage) {
    const canvas = element("canvas");
    const name = paced(() => {
        if (!state.hello) return;
        const size = state.size.join(" by ");
        const view = titled(state.view ?? "").toLowerCase();
        const plane = ["z", "y", "x"][state.axis];
        const where =
            state.size.length !== 3
                ? ""
                : state.volume
                  ? ", volume"
                  : `, slice ${plane} = ${state.slice}`;
        const part = stage.camera.fitted || state.volume ? "" : ", zoomed";
        const how = state.playing ? "running" : `paused at step ${state.step}`;
        canvas.setAttribute(
            "aria-label",
            `${state.title}: ${view}${where}${part}, ${size} cells, ${how}`,
        );
    }, 1000);
    for (const event of ["status", "look", "camera"]) on(event, name);
}
