// New changes as they come: at the top of the list, unless paused, and counted for screen readers.
"use strict";

const MOST_SHOWN = 200;
const TOLD_EVERY = 5000;

const status = document.getElementById("live");
const list = document.getElementById("changes");
const pause = document.getElementById("pause");
const older = document.getElementById("older");

if (status) {
  let last = Number(status.dataset.since);
  let source = null;
  let paused = false;
  let count = 0;
  let telling = null;

  const tell = () => {
    telling = null;
    const news = count === 1 ? "1 new change" : `${count} new changes`;
    status.textContent = `${paused ? "Paused" : "Live"}. ${count ? news : "No new changes yet"}.`;
  };

  // A screen reader reads every new text: not more often than somebody can listen.
  const tellSoon = () => { telling ??= setTimeout(tell, TOLD_EVERY); };

  // The page of older changes begins where the list ends now.
  const trim = () => {
    while (list.children.length > MOST_SHOWN) list.lastElementChild.remove();
    const link = older.querySelector("a");
    const address = new URL(link.href);
    address.searchParams.set("before", list.lastElementChild.dataset.number);
    link.href = address;
    link.textContent = "Older";
    older.hidden = false;
  };

  const show = (event) => {
    const number = Number(event.lastEventId);
    if (number <= last) return;
    last = number;
    count += 1;
    const parsed = new DOMParser().parseFromString(JSON.parse(event.data), "text/html");
    list.prepend(document.adoptNode(parsed.querySelector("li")));
    if (list.children.length > MOST_SHOWN) trim();
    document.getElementById("none")?.remove();
    tellSoon();
  };

  const close = () => {
    source?.close();
    source = null;
  };

  const open = () => {
    if (source || paused || document.hidden) return;
    const address = new URL(status.dataset.stream, window.location.href);
    address.searchParams.set("since", String(last));
    address.search = ofThisNamespace(address.searchParams);
    source = new EventSource(address);
    source.addEventListener("message", show);
    source.addEventListener("error", () => {
      if (source?.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
      clearTimeout(telling);
      close();
      pause.hidden = true;
      status.textContent = "The stream has ended. Reload the page to go on.";
    });
  };

  pause.hidden = false;
  pause.addEventListener("click", () => {
    paused = !paused;
    pause.textContent = paused ? "Go on" : "Pause";
    if (paused) close(); else open();
    clearTimeout(telling);
    tell();
  });
  // A browser has few connections to one server: a page that nobody sees needs none.
  document.addEventListener("visibilitychange", () => { if (document.hidden) close(); else open(); });
  window.addEventListener("pagehide", close);
  tell();
  open();
}
