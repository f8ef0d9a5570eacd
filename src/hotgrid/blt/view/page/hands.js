// Turning and zooming by mouse, fingers and keys.

const STEP = 24;

/**
 * Moves an orbit by what happens on a canvas. `changed` is called after each move, `hovered`
 * with a place or null, `pressed` with the place of a click or tap.
 */
export function hands(canvas, orbit, { changed, hovered, pressed }) {
    const down = new Map();
    let moved = 0;
    const place = (event) => {
        const box = canvas.getBoundingClientRect();
        return [event.clientX - box.left, event.clientY - box.top];
    };
    const spread = () => {
        const [[ax, ay], [bx, by]] = [...down.values()];
        return Math.hypot(ax - bx, ay - by);
    };
    canvas.addEventListener("pointerdown", (event) => {
        canvas.setPointerCapture(event.pointerId);
        down.set(event.pointerId, place(event));
        if (down.size === 1) moved = 0;
        hovered(null);
    });
    canvas.addEventListener("pointermove", (event) => {
        const now = place(event);
        const before = down.get(event.pointerId);
        if (!before) {
            if (event.pointerType !== "touch") hovered(now);
            return;
        }
        moved += Math.hypot(now[0] - before[0], now[1] - before[1]);
        const wide = down.size === 2 ? spread() : 0;
        down.set(event.pointerId, now);
        if (down.size === 1) orbit.turnBy(now[0] - before[0], now[1] - before[1]);
        else if (down.size === 2 && wide > 0) orbit.zoomBy(spread() / wide);
        changed();
    });
    const up = (event) => {
        if (!down.delete(event.pointerId)) return;
        if (event.type === "pointerup" && down.size === 0 && moved < 5) pressed(place(event));
    };
    canvas.addEventListener("pointerup", up);
    canvas.addEventListener("pointercancel", up);
    canvas.addEventListener("pointerleave", () => hovered(null));
    canvas.addEventListener(
        "wheel",
        (event) => {
            event.preventDefault();
            orbit.zoomBy(Math.exp(-event.deltaY * 0.0015));
            changed();
        },
        { passive: false },
    );
    const keys = {
        ArrowLeft: () => orbit.turnBy(-STEP, 0),
        ArrowRight: () => orbit.turnBy(STEP, 0),
        ArrowUp: () => orbit.turnBy(0, -STEP),
        ArrowDown: () => orbit.turnBy(0, STEP),
        "+": () => orbit.zoomBy(1.2),
        "=": () => orbit.zoomBy(1.2),
        "-": () => orbit.zoomBy(1 / 1.2),
        0: () => orbit.home(),
    };
    canvas.addEventListener("keydown", (event) => {
        const act = keys[event.key];
        if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
        event.preventDefault();
        act();
        changed();
    });
}
