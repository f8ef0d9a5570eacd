// The API of the server: what models there are, and replies as they arise.

/** An answer that is an error; `status` is that of HTTP. */
export class ApiError extends Error {
    constructor(status, message) {
        super(message);
        this.status = status;
    }
}

async function asked(path, key, options = {}) {
    const headers = { "Content-Type": "application/json" };
    if (key) headers.Authorization = `Bearer ${key}`;
    const answer = await fetch(path, { ...options, headers });
    if (answer.ok) return answer;
    const text = await answer.text();
    let message = text.trim() || `the server answered ${answer.status}`;
    try {
        message = JSON.parse(text).error.message;
    } catch {
        // Not in the form of the API: its text is all there is.
    }
    throw new ApiError(answer.status, message);
}

/** The model of this server: its name, whether it is tuned, what it says about itself. */
export async function model(key) {
    const answer = await asked("/v1/models/default", key);
    return (await answer.json()).hotgrid;
}

/** Yields pieces `{text, finish}` of the reply to `messages`. */
export async function* reply(messages, settings, key, signal) {
    const answer = await asked("/v1/chat/completions", key, {
        method: "POST",
        body: JSON.stringify({ model: "default", messages, stream: true, ...settings }),
        signal,
    });
    for await (const event of events(answer.body)) {
        if (event === "[DONE]") return;
        const { error, choices } = JSON.parse(event);
        if (error) throw new ApiError(500, error.message);
        const choice = choices?.[0];
        if (choice) yield { text: choice.delta.content ?? "", finish: choice.finish_reason };
    }
}

/** The data of server-sent events; they can be cut anywhere. */
async function* events(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    let held = "";
    for (;;) {
        const { done, value } = await reader.read();
        if (done) return;
        held += value;
        let end;
        while ((end = held.indexOf("\n\n")) >= 0) {
            const event = held.slice(0, end);
            held = held.slice(end + 2);
            if (event.startsWith("data: ")) yield event.slice(6);
        }
    }
}
