// Frames as the server packs them: a header of 80 bytes, then values, then arrows.

const HEADER = 80;
const MAGIC = 0x31464748; // "HGF1", little endian

export const BYTES = 0;
export const BITS = 1;
export const VOLUME = 2;

export const SOLID = 255;
const LAST = 254;

export const PLAIN = 0;
export const SIGNED = 1;
export const STATES = 2;
export const CODED = 3; // the numbers are colours

/** Reads a frame. The values stay where they are: nothing is copied. */
export function parseFrame(buffer) {
    if (buffer.byteLength < HEADER) throw new Error("a frame is too short");
    const view = new DataView(buffer);
    if (view.getUint32(0, true) !== MAGIC) throw new Error("a frame has an unknown format");
    const float = (offset) => view.getFloat32(offset, true);
    const frame = {
        number: view.getUint32(4, true),
        step: view.getFloat64(8, true),
        time: view.getFloat64(16, true),
        kind: view.getUint8(24),
        colours: view.getUint8(25),
        look: view.getUint16(26, true),
        depth: view.getUint32(28, true),
        height: view.getUint32(32, true),
        width: view.getUint32(36, true),
        low: float(40),
        high: float(44),
        region: [float(48), float(52), float(56), float(60)],
        share: view.getUint8(72) === 255 ? null : view.getUint8(72) / 100,
        arrows: null,
    };
    frame.stride = frame.kind === BITS ? Math.ceil(frame.width / 8) : frame.width;
    const size = frame.depth * frame.height * frame.stride;
    const rows = view.getUint16(64, true);
    const columns = view.getUint16(66, true);
    if (buffer.byteLength < HEADER + size + 2 * rows * columns) {
        throw new Error("a frame is shorter than its header says");
    }
    frame.values = new Uint8Array(buffer, HEADER, size);
    if (rows && columns) {
        const values = new Int8Array(buffer, HEADER + size, 2 * rows * columns);
        frame.arrows = { rows, columns, scale: float(68), values };
    }
    return frame;
}

/** Whether one value of the frame is one cell of the grid. */
export function showsCells(frame) {
    const [y0, x0, y1, x1] = frame.region;
    return frame.kind !== VOLUME && frame.width === x1 - x0 && frame.height === y1 - y0;
}

/** The byte of a cell, or null where the frame does not show it by itself. */
export function byteOfCell(frame, y, x) {
    if (!showsCells(frame)) return null;
    const row = Math.floor(y) - frame.region[0];
    const column = Math.floor(x) - frame.region[1];
    if (row < 0 || column < 0 || row >= frame.height || column >= frame.width) return null;
    if (frame.kind === BYTES) return frame.values[row * frame.stride + column];
    const byte = frame.values[row * frame.stride + (column >> 3)];
    return (byte >> (7 - (column & 7))) & 1 ? LAST : 0;
}

/** The number a byte stands for; null for solids and what is not finite. */
export function numberOfByte(frame, byte) {
    if (byte === SOLID) return null;
    return frame.low + ((frame.high - frame.low) * byte) / LAST;
}
