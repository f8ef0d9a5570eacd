// Drawing with WebGL2: values and colours are textures, and meet on the device.

import { program, texture } from "/web/program.js";
import { BITS } from "./frame.js";

// One triangle that covers the screen. The picture is cut out of it: as a viewport it could be
// larger than the device allows while a frame of the whole grid waits for a closer one.
const VERTEX = `
void main() {
    vec2 corner = vec2(gl_VertexID == 1 ? 2 : 0, gl_VertexID == 2 ? 2 : 0);
    gl_Position = vec4(corner * 2.0 - 1.0, 0.0, 1.0);
}`;

// Packed bits stay packed: eight cells are one texel.
const FRAGMENT = `
precision highp float;
uniform highp sampler2D values;
uniform highp sampler2D colours;
uniform ivec2 size;
uniform bool bits;
uniform bool flip;
uniform vec4 picture;
out vec4 colour;
void main() {
    vec2 place = (gl_FragCoord.xy - picture.xy) / picture.zw;
    if (any(lessThan(place, vec2(0))) || any(greaterThanEqual(place, vec2(1)))) discard;
    ivec2 cell = min(ivec2(place * vec2(size)), size - 1);
    // The screen counts rows from below, the frame from its first row.
    if (!flip) cell.y = size.y - 1 - cell.y;
    int byte;
    if (bits) {
        int eight = int(texelFetch(values, ivec2(cell.x >> 3, cell.y), 0).r * 255.0 + 0.5);
        byte = ((eight >> (7 - (cell.x & 7))) & 1) * 254;
    } else {
        byte = int(texelFetch(values, cell, 0).r * 255.0 + 0.5);
    }
    colour = texelFetch(colours, ivec2(byte, 0), 0);
}`;

export class DrawGl {
    name = "webgl2";
    #canvas;
    #gl;
    #parts = null;
    #frame = null;
    #table = null;
    #flip = false;

    constructor(canvas, redraw) {
        this.#canvas = canvas;
        // The picture is kept, so that the canvas can be copied at any time.
        this.#gl = canvas.getContext("webgl2", {
            antialias: false,
            depth: false,
            preserveDrawingBuffer: true,
        });
        if (!this.#gl) throw new Error("there is no WebGL2");
        canvas.addEventListener("webglcontextlost", (event) => event.preventDefault());
        canvas.addEventListener("webglcontextrestored", () => {
            this.#prepare();
            if (this.#frame) this.setFrame(this.#frame, this.#table, this.#flip);
            redraw();
        });
        this.#prepare();
    }

    #prepare() {
        const gl = this.#gl;
        const { made, uniforms } = program(gl, VERTEX, FRAGMENT);
        gl.useProgram(made);
        gl.activeTexture(gl.TEXTURE1);
        const colours = texture(gl, gl.TEXTURE_2D, gl.NEAREST);
        gl.activeTexture(gl.TEXTURE0);
        const values = texture(gl, gl.TEXTURE_2D, gl.NEAREST);
        gl.uniform1i(uniforms.values, 0);
        gl.uniform1i(uniforms.colours, 1);
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        this.#parts = { uniforms, colours, values, size: [0, 0], table: null };
    }

    setFrame(frame, table, flip) {
        const gl = this.#gl;
        const parts = this.#parts;
        this.#frame = frame;
        this.#table = table;
        this.#flip = flip;
        gl.bindTexture(gl.TEXTURE_2D, parts.values);
        const { stride, height, values } = frame;
        if (parts.size[0] === stride && parts.size[1] === height) {
            gl.texSubImage2D(
                gl.TEXTURE_2D,
                0,
                0,
                0,
                stride,
                height,
                gl.RED,
                gl.UNSIGNED_BYTE,
                values,
            );
        } else {
            gl.texImage2D(
                gl.TEXTURE_2D,
                0,
                gl.R8,
                stride,
                height,
                0,
                gl.RED,
                gl.UNSIGNED_BYTE,
                values,
            );
            parts.size = [stride, height];
        }
        if (parts.table === table) return;
        gl.activeTexture(gl.TEXTURE1);
        gl.bindTexture(gl.TEXTURE_2D, parts.colours);
        gl.texImage2D(
            gl.TEXTURE_2D,
            0,
            gl.RGBA8,
            256,
            1,
            0,
            gl.RGBA,
            gl.UNSIGNED_BYTE,
            new Uint8Array(table.bytes.buffer),
        );
        gl.activeTexture(gl.TEXTURE0);
        parts.table = table;
    }

    draw(camera) {
        const gl = this.#gl;
        gl.viewport(0, 0, this.#canvas.width, this.#canvas.height);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        if (!this.#frame) return;
        const { x, y, width, height } = camera.place(this.#frame.region);
        const { uniforms } = this.#parts;
        gl.uniform4f(uniforms.picture, x, this.#canvas.height - y - height, width, height);
        gl.uniform2i(uniforms.size, this.#frame.width, this.#frame.height);
        gl.uniform1i(uniforms.bits, this.#frame.kind === BITS ? 1 : 0);
        gl.uniform1i(uniforms.flip, this.#flip ? 1 : 0);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
    }

    clear() {
        this.#frame = null;
    }
}
