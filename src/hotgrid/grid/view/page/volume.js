// The whole box at once: a 3-D texture, through which one ray is sent for each pixel.

import { SIGNED, SOLID, STATES } from "./frame.js";
import { SLOPE, Orbit, halfEdges } from "./orbit.js";
import { program, texture } from "./program.js";
import { state } from "./state.js";

const VERTEX = `
out vec2 place;
void main() {
    vec2 corner = vec2(gl_VertexID == 1 ? 3 : -1, gl_VertexID == 2 ? 3 : -1);
    place = corner;
    gl_Position = vec4(corner, 0.0, 1.0);
}`;

// Values and solids are two channels: between a value and a solid lies no third value. How much
// a point hides grows with its distance from the rest (zero, or the low end of the range).
const FRAGMENT = `
precision highp float;
precision highp sampler3D;
uniform sampler3D values;
uniform sampler2D colours;
uniform vec3 eye, right, up, ahead, halfEdges;
uniform vec2 slope;
uniform float rest, density, reach;
uniform int steps;
uniform bool flip, cells;
in vec2 place;
out vec4 colour;

vec2 value(vec3 point) {
    vec3 where = point / (2.0 * halfEdges) + 0.5;
    if (!flip) where.y = 1.0 - where.y;
    return texture(values, where).rg;
}

float matter(vec2 here) {
    return max(here.g, min(1.0, abs(here.r - rest) / max(rest, 1.0 - rest)));
}

void main() {
    vec3 ray = normalize(ahead + place.x * slope.x * right + place.y * slope.y * up);
    vec3 a = (-halfEdges - eye) / ray, b = (halfEdges - eye) / ray;
    vec3 near = min(a, b), far = max(a, b);
    float from = max(max(near.x, near.y), max(near.z, 0.0));
    float to = min(far.x, min(far.y, far.z));
    colour = vec4(0.0);
    if (to <= from) return;
    float stride = 1.8 / float(steps);
    // A different start for each pixel turns rings into fine grain.
    float noise = dot(gl_FragCoord.xy, vec2(0.06711056, 0.00583715));
    float jitter = fract(52.9829189 * fract(noise));
    vec3 light = normalize(up - 1.5 * ahead - 0.7 * right);
    for (float way = from + stride * jitter; way < to; way += stride) {
        vec3 point = eye + way * ray;
        vec2 here = value(point);
        float much = matter(here);
        float hides = much * much * density;
        vec3 tint = textureLod(colours, vec2(here.r * 0.99609 + 0.00195, 0.5), 0.0).rgb;
        if (cells) tint = vec3(0.36, 0.6, 0.93);
        if (here.g > 0.5) { hides = 40.0; tint = vec3(0.52, 0.55, 0.6); }
        float alpha = 1.0 - exp(-hides * stride * 12.0);
        if (hides > 0.02) {
            // Bright where there is less matter towards the light: one look, where a whole
            // gradient would take six.
            float rise = much - matter(value(point + light * reach));
            tint *= clamp(0.8 + 1.5 * rise, 0.45, 1.2);
            colour += (1.0 - colour.a) * alpha * vec4(tint, 1.0);
            if (colour.a > 0.97) break;
        }
    }
}`;

export class Volume {
    orbit = new Orbit(state.size);
    /** How much is hidden by what lies before it, as the reader sets it. */
    density = 1;
    #canvas;
    #gl;
    #parts;
    #software;
    #frame = null;
    #table = null;
    #flip = false;

    constructor(canvas, software, redraw) {
        this.#canvas = canvas;
        this.#software = software;
        this.#gl = canvas.getContext("webgl2", { antialias: false, depth: false });
        if (!this.#gl)
            throw new Error("The volume needs WebGL2, which this browser does not give.");
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
        texture(gl, gl.TEXTURE_2D, gl.LINEAR);
        gl.activeTexture(gl.TEXTURE0);
        texture(gl, gl.TEXTURE_3D, gl.LINEAR);
        gl.uniform1i(uniforms.values, 0);
        gl.uniform1i(uniforms.colours, 1);
        gl.pixelStorei(gl.UNPACK_ALIGNMENT, 1);
        this.#parts = { uniforms, table: null };
    }

    setFrame(frame, table, flip) {
        const gl = this.#gl;
        this.#frame = frame;
        this.#table = table;
        this.#flip = flip;
        const { depth, height, width, values } = frame;
        const pairs = new Uint8Array(2 * values.length);
        for (let index = 0; index < values.length; index += 1) {
            const solid = values[index] === SOLID;
            pairs[2 * index] = solid ? this.#rest(frame) * 254 : values[index];
            pairs[2 * index + 1] = solid ? 255 : 0;
        }
        gl.texImage3D(
            gl.TEXTURE_3D,
            0,
            gl.RG8,
            width,
            height,
            depth,
            0,
            gl.RG,
            gl.UNSIGNED_BYTE,
            pairs,
        );
        if (this.#parts.table === table) return;
        gl.activeTexture(gl.TEXTURE1);
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
        this.#parts.table = table;
    }

    /** The value that hides nothing, between 0 and 1. */
    #rest({ colours, low, high }) {
        if (colours !== SIGNED) return 0;
        return Math.min(1, Math.max(0, -low / (high - low || 1)));
    }

    draw(width, height) {
        const gl = this.#gl;
        // In software a ray costs so much that a coarse picture is the better one.
        const most = this.#software ? 256 : 1600;
        const shrink = Math.min(1.5, most / Math.max(width, height));
        const size = [
            Math.max(1, Math.round(width * shrink)),
            Math.max(1, Math.round(height * shrink)),
        ];
        if (this.#canvas.width !== size[0] || this.#canvas.height !== size[1]) {
            [this.#canvas.width, this.#canvas.height] = size;
        }
        gl.viewport(0, 0, ...size);
        gl.clearColor(0, 0, 0, 0);
        gl.clear(gl.COLOR_BUFFER_BIT);
        if (!this.#frame) return;
        const { uniforms } = this.#parts;
        const half = halfEdges(state.size);
        for (const [name, vector] of Object.entries(this.orbit.frame())) {
            gl.uniform3fv(uniforms[name], vector);
        }
        const { colours, width: w, height: h, depth: d } = this.#frame;
        gl.uniform3fv(uniforms.halfEdges, half);
        gl.uniform1f(uniforms.reach, 1.5 / Math.max(w, h, d));
        const short = Math.min(width, height);
        gl.uniform2f(uniforms.slope, (SLOPE * width) / short, (SLOPE * height) / short);
        gl.uniform1f(uniforms.rest, this.#rest(this.#frame));
        gl.uniform1f(uniforms.density, this.density * (colours === STATES ? 30 : 2));
        gl.uniform1i(uniforms.steps, this.#software ? 72 : 256);
        // Two states are cells, not a cloud: sharp, and in one colour that light can shade.
        const cells = colours === STATES;
        const filter = cells ? gl.NEAREST : gl.LINEAR;
        gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MIN_FILTER, filter);
        gl.texParameteri(gl.TEXTURE_3D, gl.TEXTURE_MAG_FILTER, filter);
        gl.uniform1i(uniforms.cells, cells ? 1 : 0);
        gl.uniform1i(uniforms.flip, this.#flip ? 1 : 0);
        gl.drawArrays(gl.TRIANGLES, 0, 3);
    }
}
