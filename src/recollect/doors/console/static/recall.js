// Moves through time: the slider asks again as it is dragged, and the answer of that time takes the place of the last.
"use strict";

const PAUSE = 150;

// Of an address, where most letters of other scripts take nine: the server reads 32 kB with all that a browser adds.
const MOST_LETTERS = 24000;

const form = document.getElementById("ask");
const answer = document.getElementById("answer");
const told = document.getElementById("told");
const time = document.getElementById("time");
const question = document.getElementById("query");

// As in a chat; a new line needs Shift.
question.addEventListener("keydown", (event) => {
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  form.requestSubmit();
});

// An address has what was set, and nothing else: also the one that is made from a FormData below.
form.addEventListener("formdata", (event) => {
  for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
});

// Said before it is sent: without a script, the server's answer says it.
form.addEventListener("input", () => {
  const letters = new URLSearchParams(new FormData(form)).toString().length;
  const excess = Math.ceil((letters / MOST_LETTERS - 1) * 100);
  question.setCustomValidity(letters > MOST_LETTERS
    ? `The question and the filters are too long for an address by ${excess} %. Shorten them, or ask over REST.` : "");
});

if (time) {
  const slider = document.getElementById("moment");
  const field = document.getElementById("as_of");
  const shown = document.getElementById("at");
  const first = Number(time.dataset.first);
  let waiting = null;
  let asking = null;

  const written = (seconds) => new Date(seconds * 1000).toISOString().slice(0, 19);
  const label = () => {
    shown.textContent = field.value ? `${field.value.replace("T", " ")} UTC` : "now";
    slider.setAttribute("aria-valuetext", shown.textContent);
  };

  const ask = async () => {
    asking?.abort();
    const own = new AbortController();
    asking = own;
    const query = new URLSearchParams(new FormData(form));
    window.history.replaceState(null, "", `/console/recall?${query}`);
    if (!query.has("query")) {
      answer.removeAttribute("aria-busy"); // of the question that was given up
      return;
    }
    answer.setAttribute("aria-busy", "true");
    try {
      const reply = await fetch(`${answer.dataset.address}?${ofThisNamespace(query)}`, { signal: own.signal });
      if (reloadsToSignIn(reply)) return;
      const parsed = new DOMParser().parseFromString(await reply.text(), "text/html");
      if (!reply.ok) {
        refuse(parsed.querySelector(".fault")?.textContent || "The server could not answer. Try again.");
        return;
      }
      answer.replaceChildren(...[...parsed.body.childNodes].map((node) => document.adoptNode(node)));
      for (const button of answer.querySelectorAll("[data-copy]")) button.hidden = false;
      const sides = [...answer.querySelectorAll("[data-told]")].map((side) => side.dataset.told);
      told.textContent = `${shown.textContent}: ${sides.join(" ") || answer.textContent.trim()}`;
    } catch (problem) {
      if (problem.name === "AbortError") return;
      told.textContent = "The server does not answer. Reload the page.";
    } finally {
      if (asking === own) answer.removeAttribute("aria-busy"); // else a later question is on its way
    }
  };

  // What kept the server from answering takes the place of the last answer: that was of another time.
  const refuse = (sentence) => {
    const fault = document.createElement("p");
    fault.className = "fault";
    fault.textContent = sentence;
    answer.replaceChildren(fault);
    told.textContent = `${shown.textContent}: ${sentence}`;
  };

  slider.addEventListener("input", () => {
    const end = Math.floor(Date.now() / 1000);
    const share = Number(slider.value) / Number(slider.max);
    field.type = "datetime-local";
    field.value = share === 1 ? "" : written(Math.ceil(first + (end - first) * share));
    label();
    clearTimeout(waiting);
    waiting = setTimeout(ask, PAUSE);
  });

  const place = () => {
    const end = Math.floor(Date.now() / 1000);
    const at = field.value ? Date.parse(`${field.value}Z`) / 1000 : end;
    const share = Number.isNaN(at) || end <= first ? 1 : (at - first) / (end - first);
    slider.value = String(Math.round(Math.min(Math.max(share, 0), 1) * Number(slider.max)));
    label();
  };
  field.addEventListener("change", place);
  time.hidden = false;
  place();
}
