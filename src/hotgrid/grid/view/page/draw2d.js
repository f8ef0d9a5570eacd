// Drawing on the plain 2-D canvas: the fastest way where there is no graphics processor.

import { BITS, SOLID } from "./frame.js";

export class Draw2d {
    name = "2d";
    #canvas;
    #context;
    // The picture at one pixel a value, the right way up.
    #image = null;
    // The same on a canvas of its own, which can be drawn at any size; made only when needed.
    #stage = document.createElement("canvas");
    #staged = false;
    #frame = null;

    constructor(canvas) {
        this.#canvas = canvas;
        this.#context = canvas.getContext("2d");
        if (!this.#context) throw new Error("there is no 2-D canvas");
    }

    setFrame(frame, table, flip) {
        const { height, width } = frame;
        if (this.#image?.width !== width || this.#image?.height !== height) {
            this.#image = new ImageData(width, height);
        }
        const pixels = new Uint32Array(this.#image.data.buffer);
        if (frame.kind === BITS) fillBits(pixels, frame, table.words, flip);
        else fillBytes(pixels, frame, table.words, flip);
        this.#frame = frame;
        this.#staged = false;
    }

    draw(camera) {
        const context = this.#context;
        context.clearRect(0, 0, this.#canvas.width, this.#canvas.height);
        if (!this.#frame) return;
        const { x, y, width, height } = camera.place(this.#frame.region);
        if (width === this.#image.width && height === this.#image.height) {
            context.putImageData(this.#image, x, y);
            return;
        }
        if (!this.#staged) {
            this.#stage.width = this.#image.width;
            this.#stage.height = this.#image.height;
            this.#stage.getContext("2d").putImageData(this.#image, 0, 0);
            this.#staged = true;
        }
        context.imageSmoothingEnabled = false;
        context.drawImage(this.#stage, x, y, width, height);
    }

    clear() {
        this.#frame = null;
    }
}

function fillBytes(pixels, { values, width, height }, words, flip) {
    for (let row = 0; row < height; row += 1) {
        const to = width * (flip ? height - 1 - row : row);
        const from = width * row;
        for (let column = 0; column < width; column += 1) {
            pixels[to + column] = words[values[from + column]];
        }
    }
}

/** Eight cells at a time and without branches: several times as fast as cell by cell. */
function fillBits(pixels, { values, width, height, stride }, words, flip) {
    const off = words[0];
    const change = words[SOLID - 1] ^ off;
    const whole = width >> 3;
    for (let row = 0; row < height; row += 1) {
        const from = row * stride;
        let to = width * (flip ? height - 1 - row : row);
        for (let index = from; index < from + whole; index += 1) {
            const byte = values[index];
            pixels[to] = off ^ (change & -(byte >> 7));
            pixels[to + 1] = off ^ (change & -((byte >> 6) & 1));
            pixels[to + 2] = off ^ (change & -((byte >> 5) & 1));
            pixels[to + 3] = off ^ (change & -((byte >> 4) & 1));
            pixels[to + 4] = off ^ (change & -((byte >> 3) & 1));
            pixels[to + 5] = off ^ (change & -((byte >> 2) & 1));
            pixels[to + 6] = off ^ (change & -((byte >> 1) & 1));
            pixels[to + 7] = off ^ (change & -(byte & 1));
            to += 8;
        }
        for (let bit = 0; bit < (width & 7); bit += 1) {
            pixels[to + bit] = off ^ (change & -((values[from + whole] >> (7 - bit)) & 1));
        }
    }
}
