// WebGL2 programs, and whether a graphics processor stands behind them.

/** A linked program with its uniforms by name. */
export function program(gl, vertex, fragment) {
    const made = gl.createProgram();
    for (const [kind, text] of [
        [gl.VERTEX_SHADER, vertex],
        [gl.FRAGMENT_SHADER, fragment],
    ]) {
        const shader = gl.createShader(kind);
        gl.shaderSource(shader, `#version 300 es\n${text}`);
        gl.compileShader(shader);
        gl.attachShader(made, shader);
        gl.deleteShader(shader);
    }
    gl.linkProgram(made);
    if (!gl.getProgramParameter(made, gl.LINK_STATUS) && !gl.isContextLost()) {
        throw new Error(`a program did not link: ${gl.getProgramInfoLog(made)}`);
    }
    const uniforms = {};
    const count = gl.getProgramParameter(made, gl.ACTIVE_UNIFORMS) ?? 0;
    for (let index = 0; index < count; index += 1) {
        const { name } = gl.getActiveUniform(made, index);
        uniforms[name] = gl.getUniformLocation(made, name);
    }
    return { made, uniforms };
}

/** A texture bound to `target` with one filter and clamped edges. */
export function texture(gl, target, filter) {
    const made = gl.createTexture();
    gl.bindTexture(target, made);
    gl.texParameteri(target, gl.TEXTURE_MIN_FILTER, filter);
    gl.texParameteri(target, gl.TEXTURE_MAG_FILTER, filter);
    gl.texParameteri(target, gl.TEXTURE_WRAP_S, gl.CLAMP_TO_EDGE);
    gl.texParameteri(target, gl.TEXTURE_WRAP_T, gl.CLAMP_TO_EDGE);
    if (target === gl.TEXTURE_3D) {
        gl.texParameteri(target, gl.TEXTURE_WRAP_R, gl.CLAMP_TO_EDGE);
    }
    return made;
}

// What draws in software calls itself by one of these names.
const SOFTWARE = /swiftshader|llvmpipe|softpipe|software|basic render/i;

/** "gpu", "software" or "none": asked once, on a canvas that is thrown away. */
export function renderer() {
    const gl = document.createElement("canvas").getContext("webgl2");
    if (!gl) return "none";
    const info = gl.getExtension("WEBGL_debug_renderer_info");
    const name = gl.getParameter(info ? info.UNMASKED_RENDERER_WEBGL : gl.RENDERER) ?? "";
    gl.getExtension("WEBGL_lose_context")?.loseContext();
    return SOFTWARE.test(name) ? "software" : "gpu";
}
