// What the page knows. Other programs (and the tests) read it as `window.hotgrid`.

export const state = {
    connected: false,
    viewer: null,
    viewers: 0,
    model: null,
    title: "",
    size: [1, 1],
    hello: null,
    status: null,

    step: 0,
    time: 0,
    playing: false,
    parameters: {},
    seed: 0,
    recording: false,

    // What this viewer looks at.
    view: null,
    colours: "auto",
    range: null,
    axis: 0,
    slice: 0,
    volume: false,
    arrows: 0,
    region: [0, 0, 1, 1],
    looks: 0,

    // The last picture.
    frame: 0,
    frames: 0,
    fps: 0,
    low: 0,
    high: 1,
    backend: null,

    tool: "hand",
    // The cell under the cursor as [y, x], and its value.
    cursor: null,
    value: null,
};

window.hotgrid = state;

const bus = new EventTarget();

/** Calls `action(detail)` whenever `name` is emitted. */
export function on(name, action) {
    bus.addEventListener(name, (event) => action(event.detail));
}

export function tell(name, detail) {
    bus.dispatchEvent(new CustomEvent(name, { detail }));
}

/** Changes what this viewer looks at and notifies listeners. */
export function look(changes) {
    Object.assign(state, changes);
    tell("look", changes);
}

/** Rows and columns of the plane that is drawn: the grid, or a slice of it. */
export function planeSize() {
    const { size, axis } = state;
    if (size.length === 1) return [1, size[0]];
    return size.length === 3 ? size.filter((_, index) => index !== axis) : size;
}

/** Where a plane lies, for messages about cells; nothing in two dimensions. */
export function planePlace() {
    return state.size.length === 3 ? { axis: state.axis, slice: state.slice } : {};
}
