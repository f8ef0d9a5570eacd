// The chat page: a conversation, sent whole with every message.

import { placeIcons } from "/web/icons.js";
import { complain, notice } from "/web/notice.js";
import { toggleTheme } from "/web/theme.js";

import { model, reply } from "./client.js";
import { MessageView } from "./messages.js";
import { Settings } from "./settings.js";

const $ = (id) => document.getElementById(id);
const ENDS = { length: "The reply got too long and was cut." };

let conversation = [];
let running = null;
const settings = new Settings($("fields"), (keyChanged) => keyChanged && introduce());

async function introduce() {
    try {
        const found = await model(settings.key.value);
        $("model").textContent = found.name;
        $("about").textContent =
            found.about ||
            (found.tuned
                ? "A small language model. What it says may be wrong."
                : "A base model: it continues your text. It does not answer questions, and what it says may be wrong.");
        $("text").placeholder = found.tuned ? "Write a message" : "Begin a text";
    } catch (error) {
        refused(error);
    }
}

function refused(error) {
    if (error.status === 401) {
        if (!$("panel").open) $("panel").showModal();
        settings.key.focus();
        notice("This server needs its key.", { error: true });
    } else complain(error);
}

/** Scrolls to the end, unless the reader looks at something further up. */
function follow(write) {
    const talk = $("talk");
    const atEnd = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 40;
    write();
    if (atEnd) talk.scrollTop = talk.scrollHeight;
}

function busy(is) {
    $("send").hidden = is;
    $("stop").hidden = !is;
    $("status").textContent = is ? "The model is replying" : "";
}

async function send(text) {
    conversation.push({ role: "user", content: text });
    const own = conversation;
    follow(() => new MessageView($("messages"), "user", text));
    $("talk").scrollTop = $("talk").scrollHeight;
    const system = settings.system.value.trim();
    const messages = system ? [{ role: "system", content: system }, ...own] : own;
    const view = new MessageView($("messages"), "assistant");
    const stop = (running = new AbortController());
    view.busy(true);
    busy(true);
    let said = "";
    try {
        for await (const piece of reply(messages, settings.values, settings.key.value, stop.signal)) {
            said += piece.text;
            follow(() => view.write(said));
            if (ENDS[piece.finish]) view.note(ENDS[piece.finish]);
        }
    } catch (error) {
        if (error.name === "AbortError") view.note("Stopped.");
        else {
            view.note(error.message, true);
            refused(error);
        }
    } finally {
        view.busy(false);
        if (own === conversation) finish(view, text, said);
        if (running === stop) {
            running = null;
            busy(false);
        }
    }
}

/** Keeps the reply; without one, the message goes back to where it was written. */
function finish(view, text, said) {
    if (said) conversation.push({ role: "assistant", content: said });
    else {
        conversation.pop();
        if (!$("text").value) $("text").value = text;
    }
    resize();
    window.hotgrid.replies += 1;
}

function fresh() {
    running?.abort();
    conversation = [];
    $("messages").replaceChildren();
    $("text").focus();
}

function resize() {
    const text = $("text");
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight + 2, 240)}px`;
}

function submit() {
    const text = $("text").value;
    if (!text.trim() || running) return;
    $("text").value = "";
    resize();
    send(text);
}

$("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    submit();
});
$("text").addEventListener("input", resize);
$("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
        event.preventDefault();
        submit();
    }
});
addEventListener("keydown", (event) => {
    if (event.key === "Escape" && running && !$("panel").open) running.abort();
    else if (event.altKey && event.key === "n") fresh();
    else if (event.altKey && event.key === "s") $("panel").showModal();
    else return;
    event.preventDefault();
});
$("stop").addEventListener("click", () => running?.abort());
$("fresh").addEventListener("click", fresh);
$("settings").addEventListener("click", () => $("panel").showModal());
$("close").addEventListener("click", () => $("panel").close());
$("theme").addEventListener("click", toggleTheme);

placeIcons();
// What tests can ask for.
window.hotgrid = { replies: 0, ready: false };
introduce().then(() => (window.hotgrid.ready = true));
$("text").focus();
