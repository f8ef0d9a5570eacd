// Fingers, mouse and pen on the picture. One pointer does what the tool says, two fingers
// always move and zoom, the wheel zooms at the cursor.

import { state, tell } from "./state.js";

const WHEEL_LINE = 16;

/** Says where the pointer is; the value there is shown, and the brush follows it. */
function point(stage, cell) {
    state.cursor = cell;
    tell("cursor");
    if (state.tool !== "hand") stage.redrawAbove();
}

export function listen(stage, paint) {
    const box = stage.element;
    const pointers = new Map();
    let action = null;

    const place = (event) => {
        const edge = box.getBoundingClientRect();
        return [event.clientY - edge.top, event.clientX - edge.left];
    };
    const cell = (event) => stage.cellAt(event.clientX, event.clientY);

    const begin = (event) => {
        if (state.volume) return "turn";
        if (event.button === 1 || state.tool === "hand") return "pan";
        if (state.tool === "paint") {
            paint.begin(cell(event), event.button === 2 || event.shiftKey);
            return "paint";
        }
        return event.button === 0 ? "stamp" : null;
    };

    const pinch = (event, before) => {
        const [other] = [...pointers.entries()].find(([id]) => id !== event.pointerId) ?? [];
        const fixed = pointers.get(other);
        if (!fixed) return;
        const now = place(event);
        const grown = Math.hypot(now[0] - fixed[0], now[1] - fixed[1]);
        const was = Math.hypot(before[0] - fixed[0], before[1] - fixed[1]);
        const factor = grown / Math.max(1, was);
        if (state.volume) {
            stage.volume.orbit.zoomBy(factor);
            stage.redraw();
            return;
        }
        const { camera } = stage;
        const middle = now.map((part, index) => ((part + fixed[index]) / 2) * camera.density);
        // The middle of two fingers moves half as far as the one that moves.
        camera.panBy(
            ...now.map((part, index) => ((part - before[index]) / 2) * camera.density),
        );
        camera.zoomAt(...middle, factor);
        stage.moved();
    };

    const drag = (event, before) => {
        const [dy, dx] = place(event).map((part, index) => part - before[index]);
        if (action === "turn") {
            stage.volume.orbit.turnBy(dx, dy);
            stage.redraw();
        } else if (action === "pan") {
            stage.camera.panBy(dy * stage.camera.density, dx * stage.camera.density);
            stage.moved();
        } else if (action === "paint") {
            const events = event.getCoalescedEvents?.() ?? [];
            for (const each of events.length > 0 ? events : [event]) paint.move(cell(each));
        }
    };

    box.addEventListener("pointerdown", (event) => {
        if (event.target.closest("button, a, input, select, .legend, .banner")) return;
        box.setPointerCapture(event.pointerId);
        pointers.set(event.pointerId, place(event));
        if (pointers.size === 2) {
            if (action === "paint") paint.cancel();
            action = "pinch";
            return;
        }
        point(stage, cell(event));
        action = begin(event);
        box.classList.toggle("dragging", action === "pan" || action === "turn");
    });

    box.addEventListener("pointermove", (event) => {
        const before = pointers.get(event.pointerId);
        if (before) {
            if (action === "pinch") pinch(event, before);
            else drag(event, before);
            pointers.set(event.pointerId, place(event));
        }
        point(stage, cell(event));
    });

    const finish = (event, lifted) => {
        if (!pointers.delete(event.pointerId)) return;
        if (action === "paint") {
            if (lifted) paint.end();
            else paint.cancel();
        }
        if (action === "stamp" && lifted) paint.stamp(cell(event));
        // After a pinch the finger that stays does nothing, or it would paint by accident.
        action = pointers.size > 0 ? "rest" : null;
        box.classList.remove("dragging");
        // A brush is hidden with its finger; the value of a cell that was tapped stays.
        if (event.pointerType === "touch" && state.tool !== "hand" && pointers.size === 0) {
            point(stage, null);
        }
    };
    box.addEventListener("pointerup", (event) => finish(event, true));
    box.addEventListener("pointercancel", (event) => finish(event, false));
    box.addEventListener("pointerleave", (event) => {
        if (pointers.size === 0 && event.pointerType !== "touch") point(stage, null);
    });
    box.addEventListener("contextmenu", (event) => {
        if (state.tool !== "hand") event.preventDefault();
    });
    box.addEventListener("dblclick", (event) => {
        if (event.target.closest("button, .legend") || state.tool !== "hand") return;
        stage.camera.fit();
        stage.volume?.orbit.home();
        stage.moved();
    });
    box.addEventListener(
        "wheel",
        (event) => {
            event.preventDefault();
            const lines = event.deltaMode === 1 ? WHEEL_LINE : 1;
            // A pinch on a trackpad arrives as a wheel with the control key, in smaller steps.
            const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.0015));
            if (state.volume) {
                stage.volume.orbit.zoomBy(factor);
                stage.redraw();
                return;
            }
            stage.camera.zoomAt(
                ...place(event).map((part) => part * stage.camera.density),
                factor,
            );
            stage.moved();
            point(stage, cell(event));
        },
        { passive: false },
    );
}
