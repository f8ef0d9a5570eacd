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
        for (let row = 0; row < height; row += 1) {
            const start = width * (flip ? height - 1 - row : row);
            if (frame.kind === BITS) fillBits(pixels, start, frame, row, table.words);
            else fillBytes(pixels, start, frame, row, table.words);
        }
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

function fillBytes(pixels, start, frame, row, words) {
    const { values, width } = frame;
    const from = row * frame.stride;
    for (let column = 0; column < width; column += 1) {
        pixels[start + column] = words[values[from + column]];
    }
}

function fillBits(pixels, start, frame, row, words) {
    const { values, width } = frame;
    const from = row * frame.stride;
    const off = words[0];
    const on = words[SOLID - 1];
    for (let column = 0; column < width; column += 1) {
        const bit = (values[from + (column >> 3)] >> (7 - (column & 7))) & 1;
        pixels[start + column] = bit ? on : off;
    }
}
