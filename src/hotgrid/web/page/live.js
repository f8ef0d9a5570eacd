// A WebSocket that comes back by itself. It knows neither grids nor chats: text is JSON, bytes
// are bytes; their meaning is up to the application.

const FIRST_WAIT = 250;
const LONGEST_WAIT = 5000;
// A request without an answer is given up, so that a button cannot stay busy forever.
const PATIENCE = 30000;
// A connection that lasted so long was good: the next loss starts with a short wait again.
const GOOD = 2000;
// Close codes with which a server says that trying again is of no use.
const REFUSED = [4400, 4499];

/**
 * Events: `open`, `lost` (detail: `{wait, tries}` until the next attempt; `wait` is null where
 * the server refused), `text` (detail: the object) and `bytes` (detail: an ArrayBuffer).
 */
export class Live extends EventTarget {
    #address;
    #socket = null;
    #timer = null;
    #tries = 0;
    #next = 1;
    #asked = new Map();
    #closed = false;
    #refused = false;

    constructor(address) {
        super();
        this.#address = address;
        // A laptop that wakes up or finds its network again should not wait out the delay.
        addEventListener("online", () => this.#again());
        document.addEventListener("visibilitychange", () => {
            if (!document.hidden) this.#again();
        });
    }

    get connected() {
        return this.#socket?.readyState === WebSocket.OPEN;
    }

    open() {
        this.#closed = false;
        this.#refused = false;
        clearTimeout(this.#timer);
        this.#timer = null;
        const socket = new WebSocket(this.#address);
        socket.binaryType = "arraybuffer";
        this.#socket = socket;
        // An old socket may still speak after a newer one was made; only the newest counts.
        const newest = (action) => (event) => {
            if (socket === this.#socket) action(event);
        };
        let good = null;
        socket.onopen = newest(() => {
            good = setTimeout(() => {
                this.#tries = 0;
            }, GOOD);
            this.#tell("open");
        });
        socket.onmessage = newest((event) => this.#receive(event.data));
        socket.onclose = newest((event) => {
            clearTimeout(good);
            this.#lost(event.code);
        });
    }

    /** Tries again now if the connection is lost. */
    retry() {
        if (this.#refused) this.open();
        else this.#again();
    }

    #again() {
        if (this.#timer !== null) this.open();
    }

    close() {
        this.#closed = true;
        clearTimeout(this.#timer);
        this.#timer = null;
        this.#socket?.close();
    }

    /** Sends an object; says whether it went out. What cannot go out now is dropped. */
    send(message) {
        if (!this.connected) return false;
        this.#socket.send(JSON.stringify(message));
        return true;
    }

    /** Sends an object and waits for `done`; an `error` with its number rejects. */
    ask(message) {
        const id = this.#next++;
        if (!this.send({ ...message, id })) {
            return Promise.reject(new Error("There is no connection."));
        }
        return new Promise((resolve, reject) => {
            const timer = setTimeout(() => {
                this.#asked.delete(id);
                reject(new Error("The server did not answer."));
            }, PATIENCE);
            this.#asked.set(id, { resolve, reject, timer });
        });
    }

    #receive(data) {
        if (data instanceof ArrayBuffer) {
            this.#tell("bytes", data);
            return;
        }
        const message = JSON.parse(data);
        const waiting = this.#asked.get(message.id);
        if (waiting) {
            this.#asked.delete(message.id);
            clearTimeout(waiting.timer);
            if (message.type === "error") waiting.reject(new Error(message.text));
            else waiting.resolve(message);
            if (message.type === "done" || message.type === "error") return;
        }
        this.#tell("text", message);
    }

    #lost(code) {
        for (const { reject, timer } of this.#asked.values()) {
            clearTimeout(timer);
            reject(new Error("The connection was lost."));
        }
        this.#asked.clear();
        if (this.#closed) return;
        if (code >= REFUSED[0] && code <= REFUSED[1]) {
            this.#refused = true;
            this.#tell("lost", { wait: null, tries: this.#tries });
            return;
        }
        // The random part keeps many pages from knocking at the same moment.
        const usual = Math.min(LONGEST_WAIT, FIRST_WAIT * 2 ** this.#tries);
        const wait = usual * (0.8 + 0.4 * Math.random());
        this.#tries += 1;
        this.#timer = setTimeout(() => this.open(), wait);
        this.#tell("lost", { wait, tries: this.#tries });
    }

    #tell(type, detail) {
        this.dispatchEvent(new CustomEvent(type, { detail }));
    }
}

/** The address of a socket next to this page, with the options of the page's address. */
export function socketBeside(path, query = location.search) {
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    return `${scheme}//${location.host}${path}${query}`;
}
